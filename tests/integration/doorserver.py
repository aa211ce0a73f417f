# SPDX-License-Identifier: Apache-2.0
"""A server with boxes and a door, and two networks of the test's own: the door stands in one, and
what it may or may not reach in the other.  No packet leaves them."""
import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading

import pytest

from boxserver import PROGRAMS, BoxServer
from harness import PR_SET_PDEATHSIG, PROGRAM, WAIT_S, wait_until

INSIDE = '10.99.0.2'  # in the other network: only for a rule that says so
DOOR = '10.99.0.1'
PORT = 8080
NOBODY = 65534
CLONE_NEWNET = 0x40000000
# Answers every request with the words of its command line, and closes.
PAGE = r'''
import socket, sys, threading
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(64)
print('ready', flush=True)
def serve(c):
    with c:
        got = b''
        while b'\r\n\r\n' not in got:
            piece = c.recv(65536)
            if not piece: return
            got += piece
        if got.startswith(b'ECHO'):
            c.sendall(b'echo\r\n\r\n')
            while piece := c.recv(65536): c.sendall(piece)
            return
        body = b'page of the test\n'
        c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' % len(body) + body)
while True:
    c, _ = s.accept(); threading.Thread(target=serve, args=(c,), daemon=True).start()
'''


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def need_networks():
    if os.geteuid() != 0 or not shutil.which('ip'):
        pytest.skip('networks are made by root with ip(8)')


class Networks:
    """Two, with one cable between them; each is held by a process that sleeps in it."""

    def __init__(self):
        self.holders = [subprocess.Popen(['unshare', '--net', 'sleep', 'infinity'], preexec_fn=die_with_parent)
                        for _ in range(2)]
        wait_until(self.are_apart, 'the networks')
        near, far = (str(h.pid) for h in self.holders)
        subprocess.run(['ip', 'link', 'add', 'near', 'netns', near, 'type', 'veth', 'peer', 'name', 'far', 'netns', far],
                       check=True)
        for pid, name, address in ((near, 'near', DOOR), (far, 'far', INSIDE)):
            self.run(pid, 'ip', 'addr', 'add', f'{address}/24', 'dev', name)
            self.run(pid, 'ip', 'link', 'set', name, 'up')
            self.run(pid, 'ip', 'link', 'set', 'lo', 'up')
        self.pages = [self.open_page(far, port) for port in (PORT, 443)]

    @staticmethod
    def open_page(pid, port):
        page = subprocess.Popen(['nsenter', '-t', pid, '-n', sys.executable, '-c', PAGE, INSIDE, str(port)],
                                stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        assert page.stdout.readline() == b'ready\n'
        return page

    def are_apart(self):
        ours = os.readlink('/proc/self/ns/net')
        return all(os.readlink(f'/proc/{h.pid}/ns/net') != ours for h in self.holders)

    @staticmethod
    def run(pid, *command):
        subprocess.run(['nsenter', '-t', pid, '-n', *command], check=True)

    def listen(self, port):
        """A listening socket in the other network: a socket is of the network in which its thread made it."""
        made = []

        def make():
            with open(f'/proc/{self.holders[1].pid}/ns/net') as network:
                if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET) == 0:
                    made.append(socket.create_server((INSIDE, port)))
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made[0]

    def enter(self):
        return ['nsenter', '-t', str(self.holders[0].pid), '-n']

    def close(self):
        for process in (*self.pages, *self.holders):
            process.kill()
            process.wait(WAIT_S)
        for page in self.pages:
            page.stdout.close()


class DoorServer(BoxServer):
    def __init__(self, folder, prefix_of_door=(), door_env=None, programs=(), **options):
        super().__init__(folder, **options)
        self.keeper.programs = (*PROGRAMS, *programs)
        self.env = {**self.env, 'COOP_DOOR_ENABLED': 'true', 'COOP_DOOR_ASK_CLIENTS': 'false', **(options.get('env') or {})}
        self.door_folder = pathlib.Path(f'{self.home}-door')
        self.door_log = self.folder / 'door-log'
        self.prefix_of_door, self.door_env = list(prefix_of_door), dict(door_env or {})
        self.door = None

    def start_door(self):
        self.door_folder.mkdir(mode=0o711, exist_ok=True)
        self.door_folder.chmod(0o711)
        os.chown(self.door_folder, NOBODY, NOBODY)
        program = pathlib.Path(PROGRAM).parent / 'coop-door'
        env = {k: v for k, v in os.environ.items() if k in ('PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS')}
        with open(self.door_log, 'ab') as log:
            self.door = subprocess.Popen(
                [*self.prefix_of_door, program, '--socket', self.door_folder / 'socket', '--state', self.door_folder / 'state',
                 '--user', 'nobody', '--server-uid', '0'],
                env={**env, 'COOP_LOG': 'debug', **self.door_env}, stdout=subprocess.PIPE, stderr=log,
                preexec_fn=die_with_parent)
        assert self.door.stdout.readline() == b'ready\n', self.door_log.read_text()
        return self

    def kill_door(self, how=signal.SIGKILL):
        self.door.send_signal(how)
        code = self.door.wait(WAIT_S)
        self.door.stdout.close()
        self.door = None
        return code

    def start(self):
        self.start_door()
        try:
            super().start()
            wait_until(self.door_is_up, 'the door')
        except BaseException:
            self.kill_door()
            raise
        return self

    def door_is_up(self):
        return self.get('/api/v1/door/status')['up']

    def finish(self):
        try:
            super().finish()
        finally:
            code = self.kill_door(signal.SIGTERM) if self.door is not None else 0
            log = self.door_log.read_text()
            assert code == 0 and 'Sanitizer' not in log and 'runtime error' not in log, log[-3000:]

    def door_pid(self):
        return self.door.pid

    def restart(self):
        """The server alone, after it was killed."""
        super(BoxServer, self).start()
        wait_until(self.has_keeper, 'the keeper')
        wait_until(self.door_is_up, 'the door')

    # ---- what tests do ----

    def cli(self, *args):
        done = subprocess.run([PROGRAM, *args], env=self.environment(), capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 0, done
        return done.stdout

    def rule(self, action, pattern, status=200, **more):
        return self.post('/api/v1/door/rules', {'action': action, 'pattern': pattern, **more}, status=status)

    def mode(self, mode, **more):
        answer = self.ask('PUT', '/api/v1/door/mode', body={'mode': mode, **more})
        assert answer.status == 200, answer
        return answer.json

    def through(self, box, host=INSIDE, port=PORT):
        """The page behind a tunnel, or what the door said in its place."""
        line = (f"exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3; "
                "IFS= read -r first <&3; echo \"$first\"; case $first in *\\ 200\\ *) "
                "while IFS= read -r l <&3 && [ \"$l\" != $'\\r' ]; do :; done; "
                f"printf 'GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n' >&3;; esac; cat <&3")
        done = self.run(box, argv=['/bin/bash', '-c', line], timeout=WAIT_S)
        assert done['stdout'], (done, self.door_log.read_text()[-3000:])
        return done['stdout']


@contextlib.contextmanager
def door_server(folder, **options):
    need_networks()
    networks = Networks()
    try:
        place = pathlib.Path(folder)
        place.chmod(0o711)  # the door is another user
        server = DoorServer(place, prefix_of_door=networks.enter(), **options)
        server.networks = networks
        server.start()
        yield server
        server.finish()
    finally:
        networks.close()
