# SPDX-License-Identifier: Apache-2.0
"""One sandbox as a program sees it over HTTP, and a server whose template has more in it."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import sys
import tempfile
import time
from urllib.parse import quote

from boxserver import LAYER, BoxServer, copy_program, need_boxes
from harness import WAIT_S

PROGRAMS = 'chmod cp grep ln mkfifo mv od rmdir touch tty'.split()


def add_python(root):
    """The program and its own modules."""
    library = f'usr/lib/python{sys.version_info.major}.{sys.version_info.minor}'
    skip = shutil.ignore_patterns('__pycache__', 'test', 'tests', 'dist-packages', 'ensurepip', 'idlelib', 'lib2to3',
                                  'config-*')
    copy_program(root, 'python3')
    shutil.copytree(f'/{library}', root / library, ignore=skip)


@contextlib.contextmanager
def serving(python=False, env=None, **options):
    """What was freed stays in ASan's quarantine; a small one lets tests put a ceiling on memory."""
    need_boxes()
    env = {'ASAN_OPTIONS': 'quarantine_size_mb=4', **(env or {})}
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    try:
        server = BoxServer(place, env=env, **options)
        server.home.mkdir(mode=0o700)
        server.keeper.prepare()
        root = server.keeper.templates / LAYER
        for name in PROGRAMS:
            copy_program(root, name)
        if python:
            add_python(root)
        server.start()
        try:
            yield server
        finally:
            server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)


class Sandbox:
    def __init__(self, server, key='', **spec):
        self.server, self.key = server, key
        self.info = server.post('/api/v1/sandboxes', spec, key=key)
        self.id, self.root = self.info['e2b_id'], f"/api/v1/sandboxes/{self.info['sandbox_id']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask('DELETE', '')

    def ask(self, method, place, body=b'', headers=None, key=None, **query):
        """`path` may be bytes."""
        text = '&'.join(f'{name}={quote(value if isinstance(value, bytes) else str(value), safe="/")}'
                        for name, value in query.items())
        return self.server.ask(method, f'{self.root}{place}' + (f'?{text}' if text else ''), body=body,
                               headers=headers, key=self.key if key is None else key)

    def ok(self, method, place, status=200, **more):
        answer = self.ask(method, place, **more)
        assert answer.status == status, answer
        return answer

    # ---- commands ----

    def run(self, line, **more):
        """Exit code and output; what goes wrong on the way is an error of the test."""
        done = self.ok('POST', '/commands', body={'command': line, 'wait': True, **more}).json
        return done['end']['exit_code'], done['stdout'] + done['stderr']

    def sh(self, line, **more):
        code, output = self.run(line, **more)
        assert code == 0, (line, code, output)
        return output

    def start(self, line, **more):
        return self.ok('POST', '/commands', 201, body={'command': line, **more}).json['id']

    # ---- files ----

    def read(self, path, **headers):
        return self.ask('GET', '/files', path=path, headers=headers)

    def write(self, path, data, status=201, **query):
        return self.ok('PUT', '/files', status, body=data, path=path, **query)

    def stat(self, path):
        return self.ok('GET', '/files/stat', path=path).json

    def names(self, path, **query):
        return [entry['name'] for entry in self.ok('GET', '/files/list', path=path, **query).json['entries']]


class WebSocket:
    """The client's side of RFC 6455, as far as a test needs it."""

    def __init__(self, server, path, key='', host='', headers=None, expect=101):
        self.sock = server.connect()
        nonce = base64.b64encode(os.urandom(16)).decode()
        ask = {'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13',
               'Sec-WebSocket-Key': nonce, **(headers or {})}
        self.sock.sendall(server.request('GET', path, headers=ask, key=key, host=host))
        self.got = b''
        while b'\r\n\r\n' not in self.got:
            piece = self.sock.recv(65536)
            assert piece, self.got
            self.got += piece
        self.head, self.got = self.got.split(b'\r\n\r\n', 1)
        self.status = int(self.head.split()[1])
        assert expect is None or self.status == expect, self.head + self.got

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()

    def send(self, data, opcode=None):
        opcode = opcode or (1 if isinstance(data, str) else 2)
        data = data.encode() if isinstance(data, str) else data
        mask = os.urandom(4)
        size = (struct.pack('!BB', 0x80 | opcode, 0x80 | len(data)) if len(data) < 126 else
                struct.pack('!BBH', 0x80 | opcode, 0x80 | 126, len(data)) if len(data) < 65536 else
                struct.pack('!BBQ', 0x80 | opcode, 0x80 | 127, len(data)))
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        self.sock.sendall(size + mask + masked)

    def tell(self, **order):
        self.send(json.dumps(order))

    def _take(self, n):
        while len(self.got) < n:
            piece = self.sock.recv(65536)
            if not piece:
                raise ConnectionResetError
            self.got += piece
        data, self.got = self.got[:n], self.got[n:]
        return data

    def next(self):
        """Opcode and payload of the next frame; pings are answered, but not for ever."""
        end = time.monotonic() + WAIT_S
        while True:
            assert time.monotonic() < end, 'nothing but pings came'
            first, second = self._take(2)
            n = second & 127
            n = struct.unpack('!H', self._take(2))[0] if n == 126 else \
                struct.unpack('!Q', self._take(8))[0] if n == 127 else n
            data = self._take(n)
            if first & 15 == 9:
                self.send(data, 10)
            else:
                return first & 15, data

    def text(self):
        """The next message about the terminal; its bytes are skipped."""
        while True:
            opcode, data = self.next()
            assert opcode in (1, 2), (opcode, data)
            if opcode == 1:
                return json.loads(data)

    def until(self, wanted, got=b''):
        """Bytes of the terminal up to and with `wanted`."""
        self.sock.settimeout(WAIT_S)
        while wanted not in got:
            opcode, data = self.next()
            assert opcode in (1, 2), (opcode, data, got[-500:])
            if opcode == 2:
                got += data
        return got
