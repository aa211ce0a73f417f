# SPDX-License-Identifier: Apache-2.0
"""`coop start` by an ordinary user: keeper, server and boxes without any privilege."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import select
import shutil
import signal
import subprocess
import types

import pytest

import boxserver
from boxserver import API, LAYER, TINY
from harness import IS_ROOT, WAIT_S, wait_until

DEGRADED = {'ids', 'memory', 'cpu', 'devices', 'disk', 'pids'}
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
            give_away(boxserver.make_root(templates / LAYER), self.first)
            (templates / 'tiny.json').write_text(json.dumps(TINY))
            for path in (self.folder, self.home, templates, templates / 'tiny.json'):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
        self.spawn()
        line = self._read_line()
        assert line, f'the server did not start:\n{self.log()}'
        self.key = (self.home / 'key').read_text().strip()
        wait_until(self.has_keeper, 'the keeper')
        return self

    def processes(self):
        """Held, so that their end can be waited for: everything that was started, boxes too."""
        parents = {}
        for entry in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / 'stat').read_text().rpartition(')')[2].split()[1])
        found = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        held = []
        for pid in found - {self.pid}:
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


@pytest.fixture
def make_user_server(folder, program):
    if not IS_ROOT:
        pytest.skip('another user is tested as root')
    boxserver.need_boxes()
    user, first = lent_ids()
    if not shutil.which('newuidmap'):
        pytest.skip('newuidmap is not installed')
    folder.chmod(0o755)
    made = []

    def make(**options):
        place = folder / str(len(made))
        place.mkdir()
        made.append(UserServer(place, program, user, first, **options))
        return made[-1].start()

    yield make
    for server in made:
        server.finish()


@pytest.fixture(params=['memory', 'folder'])
def server(request, make_user_server):
    return make_user_server(env={'COOP_KEEPER_MEMORY_DISK': '0' if request.param == 'folder' else '1GiB'})


def test_commands_run(server):
    with server.box() as box:
        done = server.run(box, 'id -u; id -g; pwd; echo hello >note; cat note; cat /proc/self/uid_map')
        assert done['end']['exit_code'] == 0, done
        words = done['stdout'].split()
        assert words[:4] == ['1000', '1000', '/home/user', 'hello']
        # The ids that are lent, never the user's own.
        assert int(words[-1]) == RANGE
        assert server.run(box, 'exit 7')['end']['exit_code'] == 7
        assert server.run(box, 'stat -c %u /bin/bash', root=True)['stdout'] == '0\n'


def test_root_of_a_user_namespace(folder, program):
    if not IS_ROOT:
        pytest.skip('another user is tested as root')
    boxserver.need_boxes()
    if 'coop' not in {user.pw_name for user in pwd.getpwall()}:
        pytest.skip('there is no user coop')
    folder.chmod(0o755)
    (folder / '0').mkdir()
    server = NamespaceServer(folder / '0', program)
    try:
        server.start()
        with server.box() as box:
            shown = server.get(f'{API}/{box}')
            assert {'ids', 'disk', 'devices'} <= set(shown['degraded'])
            done = server.run(box, 'id -u; cat /proc/self/uid_map')
            assert done['stdout'].split() == ['1000', '0', str(RANGE), str(RANGE)], done
    finally:
        server.finish()


def test_weaknesses_are_named(server):
    made = server.create()
    assert DEGRADED <= set(made['degraded'])
    health = server.get('/health', key=None)
    reasons = {part['part']: part['reason'] for part in health['degraded']}
    assert DEGRADED <= set(re.findall(r'\w+', reasons['boxes'].partition(':')[2]))
    rows = {row['name']: row for row in json.loads(server.coop('doctor', '-o', 'json', code=0))['probes']}
    assert rows['boxes']['state'] == 'degraded'
    assert DEGRADED <= set(re.findall(r'\w+', rows['boxes']['detail']))
    assert rows['boxes']['fix']
    server.ask('DELETE', f'{API}/{made["id"]}')


def test_boxes_survive_the_server(server):
    with server.box() as box:
        server.run(box, 'echo before >note')
        pid = server.get('/api/v1/events?kind=server.started&limit=500')['events'][-1]['data']['pid']
        os.kill(pid, signal.SIGKILL)

        def is_back():
            try:
                return server.has_keeper() and server.ask('GET', f'{API}/{box}').status == 200
            except OSError:
                return False
        wait_until(is_back, 'the next server')
        assert server.run(box, 'cat note')['stdout'] == 'before\n'


def test_nothing_is_left(server):
    server.create()
    state = server.home / 'keeper/state'
    held = server.processes()
    assert len(held) >= 3  # keeper, server, the box
    assert server.stop() == 0
    wait_ended(held)
    assert list((state / 'pool').iterdir()) == list((state / 'folders').iterdir()) == []
    assert str(server.home) not in pathlib.Path('/proc/self/mountinfo').read_text()
