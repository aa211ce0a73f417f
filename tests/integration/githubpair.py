# SPDX-License-Identifier: Apache-2.0
"""A mirror with a pull request, and the GitHub that it was opened at."""
import pytest

from fakehub import FakeHub
from githubserver import HOOK_SECRET, TOKEN, add_work, serving
from gitserver import Work, url_of
from harness import wait_until

API = '/api/v1/github'
V3 = '/api/v3/repos/coop/widget'


@pytest.fixture
def hub(tmp_path):
    with serving(tmp_path, FakeHub, TOKEN) as server:
        yield server


def works(server, kind):
    return [w for w in server.get(f'{API}/work')['work'] if w['kind'] == kind]


def wait_done(server, kind, count=1):
    return wait_until(lambda: len(w := [w for w in works(server, kind) if w['state'] == 'done']) >= count and w,
                      f'{count} {kind}')


class Pair:
    """A mirror with a pull request of a branch as a box would have pushed it, and its place."""

    def __init__(self, make_server, hub, folder, env=None, draft=False, labels=()):
        self.hub = hub
        self.server = server = make_server(env={'COOP_GITHUB_WRITE_PAUSE': '0s', **(env or {})})
        server.post(f'{API}/login', {'base_url': hub.base, 'token': TOKEN, 'webhook_secret': HOOK_SECRET}, status=200)
        server.post('/api/v1/repos', {'name': 'widget', 'source': hub.url('acme/widget.git'), 'mirror': True},
                    status=202)
        self.repo = wait_until(lambda: (r := server.get('/api/v1/repos/coop/widget'))['state'] == 'ready' and r,
                               'the mirror')
        here = Work(folder / 'here', url_of(server, '/git/coop/widget.git')).clone()
        here.git('checkout', '-q', '-b', 'task-1')
        self.oid = here.commit('work', 'work\n', 'feat: work')
        here.push('task-1')
        self.pull = server.post(f'{V3}/pulls', {'title': 'Work', 'head': 'task-1', 'base': 'main', 'body': 'Text',
                                                'draft': draft})
        self.at = f'{V3}/pulls/{self.pull["number"]}'
        if labels:
            server.post(f'{V3}/issues/{self.pull["number"]}/labels', {'labels': list(labels)}, status=200)
        server.stop()
        add_work(server, self.repo, 'push', 'task-1', {'branch': 'task-1', 'oid': self.oid, 'seq': 1})
        add_work(server, self.repo, 'pull', str(self.pull['number']), {'number': self.pull['number'], 'seq': 2})
        server.start()
        wait_done(server, 'pull')
        self.there, = hub.pulls.values()

    def patch(self, **body):
        answer = self.server.ask('PATCH', self.at, body=body)
        assert answer.status == 200, answer
        return answer.json

    def comment(self, text, status=201):
        return self.server.post(f'{V3}/issues/{self.pull["number"]}/comments', {'body': text}, status=status)

    def count(self, method, end):
        return len([1 for m, path, _ in self.hub.asked if m == method and path.endswith(end)])


@pytest.fixture
def pair(make_server, hub, tmp_path):
    return Pair(make_server, hub, tmp_path)
