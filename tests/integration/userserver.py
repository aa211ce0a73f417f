# SPDX-License-Identifier: Apache-2.0
"""`coop start` without root: by an ordinary user, and by root of a user namespace."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import select
import shutil
import subprocess
import tempfile
import types

import pytest

import boxserver
from boxserver import API, LAYER, TINY
from harness import IS_ROOT, WAIT_S, wait_until

RANGE = 65536


def rows(file):
    try:
        return {line for line in pathlib.Path(file).read_text().split() if line.count(':') == 2}
    except OSError:
        return set()


def lent_ids():
    """(passwd entry, first id) of somebody to whom the same 65,536 users and groups are lent."""
    found = []
    for line in rows('/etc/subuid') & rows('/etc/subgid'):
        name, first, count = line.split(':')
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            if user.pw_uid != 0 and int(count) >= RANGE:
                found.append((user, int(first)))
    if not found:
        pytest.skip('no user has ids in /etc/subuid')
    # People before the user of a server, who may be at work meanwhile.
    return max(found, key=lambda pair: pair[0].pw_uid)


def give_away(root, first):
    """The files of a layer as a build in the user's own range leaves them."""
    for path, _, files in os.walk(root):
        for entry in [path, *(os.path.join(path, file) for file in files)]:
            owner = os.lstat(entry)
            os.chown(entry, first + owner.st_uid, first + owner.st_gid, follow_symlinks=False)


class UserServer(boxserver.BoxServer):
    """Everything that `coop start` starts, as another user."""

    def __init__(self, folder, program, user, first, **options):
        prefix = ['setpriv', f'--reuid={user.pw_uid}', f'--regid={user.pw_gid}', '--clear-groups', '--']
        super().__init__(folder, keeper=False, prefix=prefix, **options)
        self.program, self.user, self.first = str(program), user, first

    def command(self):
        return [*self.prefix, self.program, 'start', '-o', 'json', '--listen', self.host, *self.args]

    def coop(self, *args, code=0):
        done = subprocess.run([*self.prefix, self.program, *args], env=self.environment(), text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    def start(self):
        templates = self.home / 'templates'
        if not templates.exists():
            self.home.mkdir(mode=0o700)
            templates.mkdir(mode=0o700)
            give_away(self.make_layer(templates / LAYER), self.first)
            (templates / 'tiny.json').write_text(json.dumps(TINY))
            for path in (self.folder, self.home, templates, templates / 'tiny.json'):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        self.spawn()
        line = self._read_line()
        assert line, f'the server did not start:\n{self.log()}'
        self.key = (self.home / 'key').read_text().strip()
        wait_until(self.has_keeper, 'the keeper')
        return self

    def make_layer(self, layer):
        return boxserver.make_root(layer)

    def living(self):
        """All that was started, boxes too."""
        parents = {}
        for entry in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / 'stat').read_text().rpartition(')')[2].split()[1])
        found = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found - {self.pid}

    def processes(self):
        """The same, held, so that their end can be waited for."""
        held = []
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                held.append(os.pidfd_open(pid))
        return held

    def finish(self):
        held = self.processes() if self.process is not None else []
        super().finish()
        wait_ended(held)


def wait_ended(held):
    for fd in held:
        assert select.select([fd], [], [], WAIT_S)[0], 'a process outlives its supervisor'
        os.close(fd)


class NamespaceServer(UserServer):
    """As root of a user namespace with ids that nobody has."""
    FIRST = 0x68000000

    def __init__(self, folder, program, **options):
        root = types.SimpleNamespace(pw_uid=self.FIRST, pw_gid=self.FIRST)
        super().__init__(folder, program, root, self.FIRST + RANGE, **options)
        self.prefix = ['unshare', '--user', '--keep-caps', '--', 'sh', '-c', 'read _ && exec "$@"', 'sh',
                       'setpriv', '--reuid=0', '--regid=0', '--clear-groups', '--']

    def spawn(self):
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(self.command(), env=self.environment(), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, preexec_fn=self.before_exec)
        ours = os.readlink('/proc/self/ns/user')
        wait_until(lambda: os.readlink(f'/proc/{self.pid}/ns/user') != ours, 'the user namespace')
        for kind in 'ug':
            pathlib.Path(f'/proc/{self.pid}/{kind}id_map').write_text(f'0 {self.FIRST} {2 * RANGE}\n')
        with self.process.stdin as pipe:
            pipe.write(b'\n')
        return self


def need_user():
    """The user and the first of the ids that are lent to him."""
    need_root()
    if not shutil.which('newuidmap'):
        pytest.skip('newuidmap is not installed')
    return lent_ids()


def need_root():
    if not IS_ROOT:
        pytest.skip('another user is tested as root')
    boxserver.need_boxes()


def need_namespace():
    need_root()
    if 'coop' not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip('there is no user coop')


class BareServer(UserServer):
    """Whose boxes have the program that throws bombs, and can be counted."""

    def start(self):
        super().start()
        self.empty, self.names = len(self.living()), {}
        return self

    def make_layer(self, layer):
        shutil.copy(os.environ['COOP_BOX_PROBE'], super().make_layer(layer) / 'bin/probe')
        return layer

    def inside(self, box):
        """Seen from outside: no cgroup tells."""
        name, groups = self.get(f'{API}/{box}')['e2b_id'], {}
        for place in pathlib.Path('/proc').glob('[0-9]*/ns/pid'):
            with contextlib.suppress(OSError):
                groups.setdefault(os.readlink(place), []).append(place.parts[2])
        # The kernel gives the number of a namespace that has ended to a new one, so a name that was seen
        # counts only while there is none that fits.
        for names in (self.names, {}):
            for space, pids in groups.items():
                if space not in names:
                    names[space] = self.hostname(pids[0])
                if names[space] == name:
                    self.names = names
                    return pids
        return []

    def processes_of(self, box):
        return len(self.inside(box))

    def init_of(self, box):
        for pid in self.inside(box):
            status = pathlib.Path(f'/proc/{pid}/status').read_text()
            if re.search(r'^NSpid:.*\t1$', status, re.M):
                return int(pid)
        raise AssertionError(f'{box} has no first process')

    def nothing_left(self):
        def is_clean():
            return len(self.living()) <= self.empty and not list(self.folder.rglob('state/folders/*'))
        wait_until(is_clean, 'nothing is left', 30)


class BareNamespaceServer(NamespaceServer, BareServer):
    pass


@contextlib.contextmanager
def bare_server(kind, program):
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    place.chmod(0o755)
    (place / '0').mkdir()
    env = {'ASAN_OPTIONS': 'quarantine_size_mb=1', 'COOP_KEEPER_MEMORY_DISK': '1GiB'}
    try:
        if kind == 'user':
            made = BareServer(place / '0', program, *need_user(), env=env)
        else:
            need_namespace()
            made = BareNamespaceServer(place / '0', program, env=env)
        try:
            yield made.start()
        finally:
            made.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)
