# SPDX-License-Identifier: Apache-2.0
"""Real git clients against a real server, and raw bytes where a client would not send them."""
import base64
import os
import pathlib
import subprocess

ZERO = '0' * 40
PUSH_TYPE = 'application/x-git-receive-pack-request'
FETCH_TYPE = 'application/x-git-upload-pack-request'
VERSIONS = ('0', '2')


def environment(folder, **more):
    """Nothing of whoever runs the tests."""
    return {'PATH': os.environ['PATH'], 'HOME': str(folder), 'LC_ALL': 'C', 'GIT_CONFIG_NOSYSTEM': '1',
            'GIT_TERMINAL_PROMPT': '0', 'GIT_AUTHOR_NAME': 'Ann', 'GIT_AUTHOR_EMAIL': 'ann@example.org',
            'GIT_COMMITTER_NAME': 'Ann', 'GIT_COMMITTER_EMAIL': 'ann@example.org', **more}


class Work:
    """A clone."""

    def __init__(self, folder, url, version='2'):
        self.folder, self.url, self.version = pathlib.Path(folder), url, version

    def git(self, *args, status=0, env=None):
        run = subprocess.run(['git', '-c', f'protocol.version={self.version}', '-c', 'init.defaultBranch=main',
                              '-c', 'http.proactiveAuth=basic', *args],
                             cwd=self.folder, env=environment(self.folder.parent, **(env or {})), capture_output=True,
                             text=True, timeout=120)
        assert status is None or run.returncode == status, f'git {args}: {run.returncode}\n{run.stdout}{run.stderr}'
        run.said = run.stdout + run.stderr
        return run

    def init(self):
        self.folder.mkdir(parents=True)
        self.git('init', '-q')
        self.git('remote', 'add', 'origin', self.url)
        return self

    def clone(self):
        self.folder.mkdir(parents=True)
        self.git('clone', '-q', self.url, '.')
        return self

    def commit(self, name='file', text='text\n', message='feat: add a file'):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        self.git('add', '-A')
        self.git('commit', '-q', '-m', message)
        return self.head()

    def head(self, what='HEAD'):
        return self.git('rev-parse', what).stdout.strip()

    def push(self, *refs, status=0, options=()):
        return self.git('push', *options, 'origin', *refs, status=status)

    def remote_refs(self):
        lines = self.git('ls-remote', 'origin').stdout.splitlines()
        return {name: oid for oid, name in (line.split('\t') for line in lines)}


def make_repo(server, name, owner='coop', **more):
    """An empty repository; its path in URLs."""
    repo = server.post('/api/v1/repos', {'name': name, 'owner': owner, **more})
    return f'/git/{repo["owner"]}/{repo["name"]}.git', repo


def url_of(server, path, key=None, name='x'):
    return f'http://{name}:{key or server.key}@{server.host}{path}'


def folder_of(server, repo):
    return server.home / 'repos' / repo['id']


def basic(secret, name='x'):
    return {'Authorization': 'Basic ' + base64.b64encode(f'{name}:{secret}'.encode()).decode()}


# ---- packets, as a client of one's own writes them ----

def pkt(data):
    data = data.encode() if isinstance(data, str) else data
    return b'%04x' % (len(data) + 4) + data


def command(old, new, ref, caps=''):
    return pkt(f'{old} {new} {ref}' + (f'\0 {caps}' if caps else ''))


def push_body(commands, pack=b'', caps='report-status'):
    """`commands` are (old, new, ref)."""
    lines = [command(*c, caps if i == 0 else '') for i, c in enumerate(commands)]
    return b''.join(lines) + b'0000' + pack


def empty_pack():
    import hashlib
    head = b'PACK' + (2).to_bytes(4, 'big') + (0).to_bytes(4, 'big')
    return head + hashlib.sha1(head).digest()


def pack_of(work, *revisions):
    return subprocess.run(['git', 'pack-objects', '--stdout', '--revs', '-q'], cwd=work.folder,
                          env=environment(work.folder.parent), input='\n'.join(revisions).encode() + b'\n',
                          capture_output=True, check=True).stdout
