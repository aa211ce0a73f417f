# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of boxes share: a server with its keeper, and a client that costs little."""
import contextlib
import json
import os
import pathlib
import pwd
import socket
import subprocess
import tempfile
import time

import lib

USER = 'coop'
READY_S = 900  # the first start builds the template


def template_cache():
    """Layers are named by what they were made from, so one folder serves every run."""
    return pathlib.Path(os.environ.get('COOP_TEST_CACHE', pathlib.Path.home() / '.cache' / 'coop')) / 'templates'


class Wire:
    """One kept connection; answers are read as they come.  urllib would cost more than a box."""

    def __init__(self, port, key):
        self.socket = socket.create_connection(('127.0.0.1', port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f'Host: 127.0.0.1:{port}\r\nX-API-Key: {key}\r\n'
        self.buffer = b''

    def close(self):
        self.socket.close()

    def send(self, method, path, body=None, accept='application/json'):
        data = b'' if body is None else json.dumps(body).encode()
        kind = 'Content-Type: application/json\r\n' if body is not None else ''
        self.socket.sendall(f'{method} {path} HTTP/1.1\r\n{self.head}Accept: {accept}\r\n{kind}'
                            f'Content-Length: {len(data)}\r\n\r\n'.encode() + data)

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError('the server closed the connection')
        self.buffer += piece

    def read_head(self):
        while b'\r\n\r\n' not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b'\r\n\r\n', 1)
        lines = head.decode().split('\r\n')
        headers = {k.lower(): v.strip() for k, v in (line.split(':', 1) for line in lines[1:])}
        return int(lines[0].split()[1]), headers

    def call(self, method, path, body=None):
        self.send(method, path, body)
        status, headers = self.read_head()
        length = int(headers.get('content-length', 0))
        while len(self.buffer) < length:
            self.more()
        answer, self.buffer = self.buffer[:length], self.buffer[length:]
        if status >= 300:
            raise RuntimeError(f'{method} {path}: {status} {answer[:300]!r}')
        return json.loads(answer) if answer else None

    def stream_until(self, marks):
        """Reads the events of an answer until each of the marks was seen; the time of each."""
        seen = {}
        text = b''
        while len(seen) < len(marks):
            text += self.buffer
            self.buffer = b''
            for mark in marks:
                if mark not in seen and mark in text:
                    seen[mark] = time.perf_counter()
            if len(seen) < len(marks):
                self.more()
        # The end of the answer: an empty chunk.
        while not (text + self.buffer).endswith(b'0\r\n\r\n'):
            self.more()
        self.buffer = b''
        return seen


class Boxes:
    """A running release server of its own, with its keeper."""

    def __init__(self, child, port, home):
        self.child, self.port, self.home = child, port, pathlib.Path(home)
        self.key = (self.home / 'key').read_text().strip()

    def wire(self):
        return Wire(self.port, self.key)

    def pid_of(self, program):
        children = pathlib.Path(f'/proc/{self.child.pid}/task/{self.child.pid}/children').read_text().split()
        for pid in children:
            words = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
            if program in (pathlib.Path(os.fsdecode(words[0])).name, os.fsdecode(words[1]) if len(words) > 1 else ''):
                return int(pid)
        raise ProcessLookupError(program)

    def settle(self):
        """Until the pool is full and nothing is under way."""
        wire = self.wire()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            text = json.dumps(wire.call('GET', '/api/v1/stats'))
            if json.loads(text).get('boxes', {}).get('settled', True):
                break
            time.sleep(0.05)
        wire.close()


@contextlib.contextmanager
def serving(bench, **settings):
    """`settings` are those of the configuration, with '__' for the dot."""
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        os.chmod(folder, 0o755)
        home = pathlib.Path(folder, 'home')
        port = lib.free_port()
        cache = template_cache()
        cache.mkdir(parents=True, exist_ok=True)
        who = []
        if os.geteuid() == 0:
            os.chown(cache, pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid)
            for parent in cache.parents:
                if parent.stat().st_mode & 0o001 == 0 and parent != pathlib.Path('/'):
                    raise PermissionError(f'{parent} is closed to the user {USER}: set COOP_TEST_CACHE')
            who = ['--user', USER]
        options = [f'--set={name.replace("__", ".")}={value}' for name, value in settings.items()]
        argv = [bench.program('coop'), 'start', '--home', home, '--listen', f'127.0.0.1:{port}', *who,
                f'--set=templates.dir={cache}', '--set=http.rate_per_key=1000000',
                '--set=http.rate_burst=10000000', '--set=boxes.per_key=4096', '--set=boxes.max=4096', *options]
        child = subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL,
                                 stderr=open(pathlib.Path(folder, 'log'), 'wb'))
        try:
            wait_for_boxes(child, port, home)
            yield Boxes(child, port, home)
        finally:
            child.terminate()
            child.wait(60)


def wait_for_boxes(child, port, home):
    """Ready to make boxes: the template is there and the self-test has passed."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if child.poll() is not None:
            raise RuntimeError(f'the server ended with {child.returncode}')
        with contextlib.suppress(OSError, RuntimeError):
            wire = Wire(port, (home / 'key').read_text().strip())
            with contextlib.closing(wire):
                wire.call('GET', '/api/v1/self-test')
                return
        time.sleep(0.05)
    raise TimeoutError('no box could be made')
