# SPDX-License-Identifier: Apache-2.0
"""GitHub's dialect spoken by hand, and a repository with branches to speak about."""
from gitserver import Work, make_repo, url_of

V3 = '/api/v3'


class Repo:
    """`name` of the owner coop: an empty main, and whatever a test pushes."""

    def __init__(self, server, folder, name, key=''):
        self.server, self.name, self.key = server, name, key
        path, self.row = make_repo(server, name)
        self.work = Work(folder / name, url_of(server, path)).init()
        self.work.commit('a.txt', 'one\ntwo\nthree\n', 'feat: begin')
        self.work.push('HEAD:main')

    def as_(self, key):
        """The same for another key."""
        other = object.__new__(Repo)
        other.__dict__.update(self.__dict__, key=key)
        return other

    def ask(self, method, path='', body=b'', **more):
        return self.server.ask(method, f'{V3}/repos/coop/{self.name}{path}', body=body, key=self.key, **more)

    def call(self, method, path='', body=b'', status=200, **more):
        answer = self.ask(method, path, body, **more)
        assert answer.status == status, (method, path, answer)
        return answer.json if answer.body else None

    def get(self, path, status=200, **more):
        return self.call('GET', path, status=status, **more)

    def post(self, path, body=b'', status=201, **more):
        return self.call('POST', path, body, status, **more)

    def patch(self, path, body, status=200):
        return self.call('PATCH', path, body, status)

    def put(self, path, body=b'', status=200):
        return self.call('PUT', path, body, status)

    def delete(self, path, body=b'', status=204):
        return self.call('DELETE', path, body, status)

    def branch(self, name, files=None, base='origin/main'):
        """A branch of one commit behind what was pushed to main; a file of None goes."""
        self.work.git('fetch', '-q', 'origin')
        self.work.git('checkout', '-q', '-B', name, base)
        for path, text in (files or {'b.txt': f'{name}\n'}).items():
            target = self.work.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                target.unlink()
                continue
            target.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.work.git('add', '-A')
        self.work.git('commit', '-q', '-m', f'feat: {name}')
        self.work.push(f'+HEAD:{name}')
        return self.work.head()

    def pull(self, name, files=None, **more):
        """A branch and its pull request."""
        self.branch(name, files)
        return self.post('/pulls', {'title': f'Add {name}', 'head': name, 'base': 'main', **more})


def errors(answer):
    """What a refusal says of fields: (resource, field, code)."""
    return [(e.get('resource'), e.get('field'), e['code']) for e in answer['errors']]
