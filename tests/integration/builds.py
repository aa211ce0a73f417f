# SPDX-License-Identifier: Apache-2.0
"""Servers that build templates: run by a user to whom ids are lent, with a root that is copied in no time."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess

import pytest

from harness import Server, read_answer, wait_until

PROGRAMS = ['sh', 'cat', 'ls', 'mkdir', 'rm', 'id', 'env', 'stat', 'head', 'touch', 'ln', 'chmod', 'mkfifo']


def builder_user():
    """(uid, gid, first lent id), the user's own for an ordinary user."""
    if not shutil.which('newuidmap'):
        pytest.skip('newuidmap is not installed')
    own = pwd.getpwuid(os.geteuid()).pw_name
    for line in pathlib.Path('/etc/subuid').read_text(encoding='ascii').split():
        name, first, count = line.split(':')
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            if int(count) >= 65536 and (os.geteuid() == 0 or name == own):
                return user.pw_uid, user.pw_gid, int(first)
    pytest.skip('no user has ids in /etc/subuid')


class Builder:
    """Runs things as the user who builds; everything is below one folder of that user."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.uid, self.gid, self.first = builder_user()
        folder.chmod(0o755)
        os.chown(folder, self.uid, self.gid)

    @property
    def prefix(self):
        if os.geteuid() != 0:
            return []
        return ['setpriv', '--reuid', str(self.uid), '--regid', str(self.gid), '--clear-groups', '--']

    def mkdir(self, name, mode=0o700):
        path = self.folder / name
        path.mkdir(mode)
        os.chown(path, self.uid, self.gid)
        return path

    def server(self, name='server', store=None, env=None):
        """Started; its store is kept when another is made with the same folder."""
        place = self.folder / name
        if not place.exists():
            self.mkdir(name)
        store = store or self.folder / 'store'
        server = BuildServer(place, prefix=[*self.prefix], env={
            'COOP_TEMPLATES_DIR': str(store), 'COOP_BOXES_ENABLED': 'true', 'HOME': str(place), **(env or {})})
        server.program = str(self.program)
        return server

    def run(self, plan, env=None, before=()):
        """The builder itself: (exit code, the objects it printed)."""
        done = subprocess.run([*before, *self.prefix, str(self.program.parent / 'coop-builder')], check=False, timeout=600,
                              input=json.dumps(plan), stdout=subprocess.PIPE, text=True,
                              env={**os.environ, **(env or {})})
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def remove(self):
        """What belongs to lent ids goes by the builder, the rest by us."""
        for store in [self.folder / 'store', *self.folder.glob('*/home/templates')]:
            if store.is_dir():
                names = [p.name for p in store.iterdir() if p.is_dir() and not p.is_symlink()]
                self.run({'action': 'remove', 'store': str(store), 'names': names})
        shutil.rmtree(self.folder, ignore_errors=True)


class BuildServer(Server):
    program = None

    def command(self):
        return [*self.prefix, self.program, 'serve', '-o', 'json', '--listen', self.host, *self.args]

    def recipe(self, name, text):
        folder = self.home / 'templates.d'
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f'{name}.yaml').write_text(text, encoding='utf-8')

    def template(self, name):
        return self.get(f'/api/v1/templates/{name}')

    def begin_build(self, name, update=False):
        """A socket on which the events of the build come."""
        sock = self.connect()
        body = json.dumps({'update': update}).encode()
        sock.sendall(b'POST /api/v1/templates/%s/build HTTP/1.1\r\nHost: %s\r\nX-API-Key: %s\r\n'
                     b'Accept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s'
                     % (name.encode(), self.host.encode(), self.key.encode(), len(body), body))
        return sock

    def build(self, name, update=False, on_progress=None):
        """(last event, its data)"""
        with self.begin_build(name, update) as sock:
            for event, data in events_of(sock):
                if event == 'progress' and on_progress is not None:
                    on_progress(data)
                if event in ('done', 'failed'):
                    return event, data
        return 'cut', {}

    def builders(self):
        """Process ids of builders that this server has started."""
        found = []
        for path in pathlib.Path('/proc').glob('[0-9]*/stat'):
            with contextlib.suppress(OSError):
                stat = path.read_text(encoding='utf-8', errors='replace')
                name, _, rest = stat.partition('(')[2].rpartition(')')
                if name == 'coop-builder' and int(rest.split()[1]) == self.pid:
                    found.append(int(path.parent.name))
        return found


def events_of(sock):
    """(event, data) until the stream ends."""
    text = b''
    sock.settimeout(600)
    while True:
        while (found := re.search(rb'event: (\w+)\r?\ndata: (.*?)\r?\n\r?\n', text)) is not None:
            text = text[found.end():]
            yield found[1].decode(), json.loads(found[2])
        piece = sock.recv(65536)
        if not piece:
            return
        text += piece


def libraries(program):
    listed = subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r'(/\S+\.so\S*)', listed))


def make_root(path):
    """A root with a shell and a few programs of this machine, and two users."""
    for folder in ('bin', 'etc', 'home/user', 'usr/bin', 'usr/sbin', 'root'):
        (path / folder).mkdir(parents=True)
    needed = set()
    for name in PROGRAMS:
        program = os.path.realpath(shutil.which(name))
        shutil.copy(program, path / 'bin' / name)
        needed |= libraries(program)
    for library in needed:
        target = path / library.lstrip('/')
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), target)
    (path / 'etc/passwd').write_text('root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n',
                                     encoding='ascii')
    (path / 'etc/group').write_text('root:x:0:\nuser:x:1000:\n', encoding='ascii')
    return path


def stale(store):
    return sorted(p.name for p in store.glob('*.tmp-*'))


def wait_clean(store):
    wait_until(lambda: not stale(store), f'{store} is clean')


__all__ = ['Builder', 'make_root', 'read_answer', 'stale', 'wait_clean']
