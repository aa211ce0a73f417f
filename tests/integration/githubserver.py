# SPDX-License-Identifier: Apache-2.0
"""A place that answers as GitHub does: its API below /api/v3, and repositories by `git http-backend`."""
import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import sqlite3

from gitrepo import GitServer, Handler, Source, git

HOOK_SECRET = 'hook-secret-that-nobody-sees'
# Nobody else's: other tests run at the same time.
TOKEN = f'github_pat_hunter2_{secrets.token_hex(16)}'


class GithubHandler(Handler):
    def do_GET(self):
        if not self.path.startswith('/api/v3/'):
            return super().do_GET()
        owner = self.server.owner
        body = self.body()
        path = self.path[len('/api/v3'):]
        owner.asked.append((self.command, path, json.loads(body) if body else None))
        if self.headers.get('Authorization') not in [f'Bearer {t}' for t in owner.tokens]:
            return self.answer(401, [], b'{"message": "Bad credentials"}')
        status, fields, value = owner.reply(self.command, path.partition('?')[0])
        return self.answer(status, [('Content-Type', 'application/json'), *fields], json.dumps(value).encode())

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET


class GithubServer(GitServer):
    """`tokens` are taken; `replies` are (method, path) -> (status, fields, value)."""

    def __init__(self, root, *tokens, login='robot', fields=()):
        password = f'x-access-token:{tokens[0]}'
        super().__init__(root, password=password)
        self.http.RequestHandlerClass = GithubHandler
        self.tokens, self.asked, self.login, self.fields, self.replies = list(tokens), [], login, list(fields), {}

    @property
    def base(self):
        return f'http://127.0.0.1:{self.http.server_port}/api/v3'

    def reply(self, method, path):
        if path == '/user':
            return 200, self.fields, {'login': self.login}
        return self.replies.get((method, path), (404, [], {'message': 'Not Found'}))


@contextlib.contextmanager
def serving(tmp_path, kind, token):
    """A place of that kind with the repository acme/widget."""
    root = tmp_path / 'root'
    (root / 'acme').mkdir(parents=True)
    source = Source(tmp_path / 'source')
    bare = root / 'acme' / 'widget.git'
    git(tmp_path, 'clone', '-q', '--bare', str(source.folder), str(bare))
    git(bare, 'config', 'http.receivepack', 'true')
    with kind(root, token) as server:
        server.source, server.bare = source, bare
        yield server


def sign(body, secret=HOOK_SECRET):
    return 'sha256=' + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def deliver(server, name, payload, guid, signature='', status=202):
    body = json.dumps(payload).encode() if not isinstance(payload, bytes) else payload
    headers = {'Content-Type': 'application/json', 'X-GitHub-Event': name, 'X-GitHub-Delivery': guid}
    if signature is not None:
        headers['X-Hub-Signature-256'] = signature or sign(body)
    answer = server.ask('POST', '/webhooks/github', headers=headers, body=body, key=None)
    assert answer.status == status, answer
    return answer.json


def add_work(server, repo, kind, name, body, state='waiting'):
    """As a box's push or pull request would have; the server is not running."""
    with sqlite3.connect(server.home / 'coop.db') as db:
        db.execute('INSERT INTO upstream_work (id, repository_id, key, kind, body, state, tries, next_us, created_us) '
                   'SELECT COALESCE(MAX(id), 0) + 1, ?, ?, ?, ?, ?, 0, 0, 0 FROM upstream_work',
                   (repo['id'], f'{kind}:{repo["id"]}:{name}', kind, json.dumps(body), state))
    db.close()


def coded(token):
    return base64.b64encode(f'x-access-token:{token}'.encode()).decode()
