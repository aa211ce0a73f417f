# SPDX-License-Identifier: Apache-2.0
"""Repositories made by the git program, and a server of `git http-backend` on loopback."""
import base64
import http.server
import os
import pathlib
import subprocess
import threading

ENV = {'PATH': os.environ['PATH'], 'HOME': '/nonexistent', 'LC_ALL': 'C', 'GIT_CONFIG_NOSYSTEM': '1',
       'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_AUTHOR_NAME': 'T', 'GIT_AUTHOR_EMAIL': 't@localhost',
       'GIT_COMMITTER_NAME': 'T', 'GIT_COMMITTER_EMAIL': 't@localhost', 'GIT_TERMINAL_PROMPT': '0'}


def git(folder, *args, env=None, check=True, **more):
    # Another user's, where a test runs the server as one.
    done = subprocess.run(['git', '-c', 'safe.directory=*', '-C', str(folder), *args], env={**ENV, **(env or {})},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60, **more)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout.strip() if check else done


class Source:
    """A work tree with some history."""

    def __init__(self, folder, commits=3, branch='main'):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        git(self.folder, 'init', '-q', '-b', branch)
        for number in range(commits):
            self.commit(f'file-{number}', f'{number}\n')

    def commit(self, name, text):
        (self.folder / name).write_text(text)
        git(self.folder, 'add', '--', name)
        git(self.folder, 'commit', '-q', '-m', f'feat: {name}')
        return self.head()

    def commit_bytes(self, name, size):
        return self.commit(name, base64.b64encode(os.urandom(size * 3 // 4)).decode())

    def head(self, ref='HEAD'):
        return git(self.folder, 'rev-parse', ref)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get('Transfer-Encoding') != 'chunked':
            return self.rfile.read(int(self.headers.get('Content-Length', 0)))
        got = b''
        while size := int(self.rfile.readline().split(b';')[0], 16):
            got += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return got

    def do_GET(self):
        owner = self.server.owner
        body = self.body()
        owner.seen.append((self.command, self.path, self.headers.get('Authorization')))
        if owner.password and self.headers.get('Authorization') != owner.authorization():
            return self.answer(401, [('WWW-Authenticate', 'Basic realm="x"')], b'')
        if owner.redirect:
            return self.answer(302, [('Location', owner.redirect + self.path)], b'')
        path, _, query = self.path.partition('?')
        if owner.is_dumb:
            file = owner.root / path.lstrip('/')
            return self.answer(200, [], file.read_bytes()) if file.is_file() else self.answer(404, [], b'')
        env = {**ENV, 'GIT_PROJECT_ROOT': str(owner.root), 'GIT_HTTP_EXPORT_ALL': '1', 'PATH_INFO': path,
               'QUERY_STRING': query, 'REQUEST_METHOD': self.command, 'REMOTE_ADDR': '127.0.0.1',
               'CONTENT_TYPE': self.headers.get('Content-Type', ''), 'CONTENT_LENGTH': str(len(body)),
               'HTTP_CONTENT_ENCODING': self.headers.get('Content-Encoding', ''),
               'HTTP_GIT_PROTOCOL': self.headers.get('Git-Protocol', ''),
               'GIT_CONFIG_COUNT': '1', 'GIT_CONFIG_KEY_0': 'safe.directory', 'GIT_CONFIG_VALUE_0': '*'}
        if owner.gate is not None and owner.gate_at in path:
            owner.held.set()
            owner.gate.wait(60)
        done = subprocess.run(['git', 'http-backend'], env=env, input=body, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        head, _, rest = done.stdout.partition(b'\r\n\r\n')
        fields = [tuple(line.split(': ', 1)) for line in head.decode().split('\r\n')]
        status = next((int(value.split()[0]) for name, value in fields if name == 'Status'), 200)
        owner.sent += len(rest)
        return self.answer(status, [f for f in fields if f[0] != 'Status'], rest)

    do_POST = do_GET

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class GitServer:
    """Every repository below `root`.  `sent` counts bytes of answers, `seen` what was asked; `gate` is an
    event that packs wait for (`gate_at`: whose), and `held` says that one does; `listener` a socket in the place of one on loopback."""

    def __init__(self, root, password=None, listener=None):
        self.root, self.password, self.redirect, self.gate = pathlib.Path(root), password, None, None
        self.sent, self.seen = 0, []
        self.gate_at, self.held = 'git-upload-pack', threading.Event()
        self.is_dumb = False  # plain files, as servers that know nothing of git have them
        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        if listener:
            self.http.socket.close()
            self.http.socket = listener
        self.http.owner = self
        self.thread = threading.Thread(target=self.http.serve_forever)

    def authorization(self):
        return 'Basic ' + base64.b64encode(self.password.encode()).decode()

    def url(self, name, user=''):
        return f'http://{user}127.0.0.1:{self.http.server_port}/{name}'

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        if self.gate is not None:
            self.gate.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
