# SPDX-License-Identifier: Apache-2.0
"""Boxes on a host with a full disk, under a supervisor, and without root."""
import grp
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess

import pytest

import leaks
from boxserver import API, LAYER, TINY, make_root, need_boxes
from faultserver import FaultServer
from harness import WAIT_S, Server, check_error, wait_until

MIB = 1 << 20
ENOSPC, EAGAIN = 28, 11


# ---- the disk of the host ----

@pytest.fixture
def small_disk(folder):
    """A file system of 256 MiB for everything the server and the keeper write."""
    need_boxes()
    image, place = folder / 'host.img', folder / 'disk'
    place.mkdir()
    with image.open('wb') as file:
        file.truncate(256 * MIB)
    subprocess.run(['mkfs.ext4', '-q', '-F', '-m', '0', '-N', '16384', image], check=True)
    subprocess.run(['mount', '-o', 'loop', image, place], check=True)
    yield place
    wait_until(lambda: subprocess.run(['umount', place], capture_output=True).returncode == 0, 'the end of its mount')


def fill(place):
    """To the last block."""
    with (place / 'filler').open('wb', buffering=0) as file:
        for size in (MIB, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                assert error.errno == ENOSPC


def test_full_disk_under_the_server(small_disk):
    server = FaultServer(small_disk).start()
    try:
        box = server.create(limits={'disk_mb': 16})['id']
        line = 'while read x; do echo "got $x"; done; exit 9'
        command = server.start_command(box, line, stdin=True, timeout=0)['id']
        at = f'{API}/{box}/commands/{command}'
        server.post(at + '/stdin', b'one\n', status=200)
        wait_until(lambda: server.output(box, command, headers={'Range': 'bytes=0-'}).body == b'got one\n', 'its output')
        fill(small_disk)
        refused = server.ask('POST', API, body={})
        assert refused.status in (503, 507), refused
        check_error(server, refused, refused.status)
        server.post(at + '/stdin', b'two\n', status=200)
        assert server.get(f'{API}/{box}')['state'] in ('ready', 'busy', 'error')
        assert server.process.poll() is None
        (small_disk / 'filler').unlink()
        server.ask('POST', f'{API}/{box}/resume')
        server.post(at + '/stdin?close=1', b'three\n', status=200)
        end = server.ended(box, command)['end']
        assert (end['reason'], end['exit_code'], end['stdout_bytes']) == ('exit', 9, 26)
        # All of it, or a line in the place of what could not be written.
        body = re.sub(rb'\n\[(\d+) bytes left out\]\n', lambda m: b'?' * int(m[1]), server.output(box, command).body)
        assert len(body) == 26 and body.startswith(b'got one\n') and body.endswith(b'got three\n')
        with server.box() as fresh:
            assert server.run(fresh, 'echo well')['stdout'] == 'well\n'
        assert server.ask('DELETE', f'{API}/{box}').status == 204
        server.nothing_left()
    finally:
        server.finish()


def use_up_inodes(place):
    place.mkdir()
    for n in range(1 << 20):
        try:
            (place / str(n)).touch()
        except OSError as error:
            assert error.errno == ENOSPC
            return
    raise AssertionError('no end of them')


@pytest.mark.parametrize('floor', ['0', '1MiB'])
def test_no_inodes_under_the_server(small_disk, floor):
    """What is there goes on and answers; nothing is begun, and later all is as before."""
    server = FaultServer(small_disk, env={'COOP_BOXES_DISK_FLOOR': floor}).start()
    files = small_disk / 'files'
    try:
        box = server.create()['id']
        line = 'while read x; do echo "got $x"; done; exit 9'
        command = server.start_command(box, line, stdin=True, timeout=0)['id']
        use_up_inodes(files)
        refused = server.ask('POST', API, body={})
        check_error(server, refused, 507)
        # What is free is looked at once a second; until then the keeper says it.
        wait_until(lambda: floor == '0' or 'further files only' in server.ask('POST', API, body={}).json['message'],
                   'the floor')
        assert server.run(box, 'seq 3')['stdout'] == '1\n2\n3\n'
        at = f'{API}/{box}/commands/{command}'
        server.post(at + '/stdin?close=1', b'one\n', status=200)
        end = server.ended(box, command)['end']
        assert (end['reason'], end['exit_code'], end['stdout_bytes']) == ('exit', 9, 8)
        shutil.rmtree(files)
        with server.box() as fresh:
            assert server.run(fresh, 'echo well')['stdout'] == 'well\n'
        again = server.run(box, 'echo kept')['id']
        assert server.output(box, again).body == b'kept\n'
        assert server.ask('DELETE', f'{API}/{box}').status == 204
        server.nothing_left()
    finally:
        server.finish()


# ---- the supervisor ----

def lent_ids():
    """(user, first id) of somebody to whom /etc/subuid lends enough."""
    try:
        lines = pathlib.Path('/etc/subuid').read_text().split()
    except OSError:
        lines = []
    for line in lines:
        name, first, count = line.split(':')
        if int(count) >= 65536 and name != 'root' and any(user.pw_name == name for user in pwd.getpwall()):
            return pwd.getpwnam(name), int(first)
    pytest.skip('no user has ids in /etc/subuid')


def give_layer(layer, first):
    """To the ids that its boxes see as theirs."""
    for path, _, files in os.walk(layer):
        for name in [path, *(os.path.join(path, file) for file in files)]:
            owner = os.lstat(name).st_uid
            if owner < 65536:
                os.chown(name, first + owner, first + owner, follow_symlinks=False)


class Supervised(Server):
    """`coop start`, which runs the keeper and the server."""

    def __init__(self, folder, user, first):
        super().__init__(folder)
        self.user, self.first = user, first
        self.env = {'COOP_BOXES_ENABLED': 'true', 'COOP_BOXES_MEMORY': '256MiB', 'COOP_BOXES_DISK': '64MiB',
                    'COOP_BOXES_INODES': '8192',
                    'COOP_BOXES_MEMORY_FLOOR': '0', 'COOP_BOXES_DISK_FLOOR': '0', 'COOP_BOXES_POOL': '0',
                    'E2B_TEMPLATE_ID': 'tiny'}

    def command(self):
        return [os.environ['COOP_PROGRAM'], 'start', '-o', 'json', '--listen', self.host, '--user', self.user.pw_name]

    def prepare(self):
        templates = self.home / 'templates'
        give_layer(make_root(templates / LAYER), self.first)
        (templates / 'tiny.json').write_text(json.dumps(TINY))
        for path in (self.home, templates, templates / 'tiny.json'):
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
            path.chmod(0o600 if path.is_file() else 0o700)
        return self

    @property
    def pid(self):
        return self.pids('serve')[-1]

    def has_keeper(self):
        return self.get('/health', key=None)['tiers'][0]['available']


def test_supervisor_restarts_the_keeper(folder):
    need_boxes()
    folder.chmod(0o755)
    server = Supervised(folder, *lent_ids()).prepare().start()
    try:
        wait_until(server.has_keeper, 'the keeper')
        box = server.post(API, {})['id']
        os.kill(server.pids('keeper')[-1], signal.SIGKILL)
        wait_until(lambda: len(server.pids('keeper')) == 2 and server.has_keeper(), 'the next keeper')
        wait_until(lambda: server.get(f'{API}/{box}')['reason'] == 'lost', 'that it is told')
        # The server goes too: boxes do not.
        box = server.post(API, {})['id']
        done = server.post(f'{API}/{box}/commands', {'command': 'read x; exit 9', 'stdin': True, 'timeout': 0})
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: len(server.pids('serve')) == 2 and is_up(server), 'the next server')
        server.post(f'{API}/{box}/commands/{done["id"]}/stdin', b'\n', status=200)
        at = f'{API}/{box}/commands/{done["id"]}'
        assert wait_until(lambda: server.get(at)['end'], 'its end')['exit_code'] == 9
        assert server.ask('DELETE', f'{API}/{box}').status == 204
        assert len(server.pids('keeper')) == 2
    finally:
        server.finish()
    state = pathlib.Path(f'{server.home}-keeper/state')
    wait_until(lambda: not leaks.loops_of(state) + leaks.records_of(state) + leaks.groups_of(state), 'nothing is left')


def is_up(server):
    try:
        return server.has_keeper()
    except OSError:
        return False


# ---- without root ----

class UserServer(FaultServer):
    """Server and keeper of an ordinary user."""

    def __init__(self, folder, user, first, program):
        group = grp.getgrgid(user.pw_gid).gr_gid
        prefix = ['setpriv', '--reuid', str(user.pw_uid), '--regid', str(group), '--clear-groups', '--']
        super().__init__(folder, prefix=prefix)
        self.user, self.first, self.program = user, first, program
        self.keeper.folder = self.home / 'keeper'
        self.keeper.state = self.keeper.folder / 'state'
        # Boxes share one range, and processes of others may be in it.
        self.keeper.id_base, self.keeper.ids = first, 65536
        self.keeper.start = self.start_keeper

    def command(self):
        return [*self.prefix, str(self.program), 'serve', '-o', 'json', '--listen', self.host]

    def start_keeper(self):
        give_layer(self.keeper.templates / LAYER, self.first)
        for path, folders, files in os.walk(self.home):
            if LAYER in folders:
                folders.remove(LAYER)
            for name in [path, *(os.path.join(path, file) for file in files)]:
                os.chown(name, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)
        keeper = self.keeper
        keeper.process = subprocess.Popen(
            [*self.prefix, self.program.parent / 'coop-keeper', '--socket', keeper.folder / 'socket', '--state',
             keeper.state, '--templates', keeper.templates, '--init', self.program.parent / 'coop-init',
             '--template-base', str(self.first)], stdout=subprocess.PIPE, env={**os.environ, **keeper.env})
        assert keeper.process.stdout.readline() == b'ready\n'
        return keeper


@pytest.fixture
def of_user(folder, program):
    need_boxes()
    if not shutil.which('newuidmap'):
        pytest.skip('newuidmap is not installed')
    user, first = lent_ids()
    folder.chmod(0o755)
    os.chown(folder, user.pw_uid, user.pw_gid)
    for name in ('coop-probe', 'coop-builder'):
        shutil.copy(pathlib.Path(os.environ['COOP_PROGRAM']).parent / name, program.parent / name)
    server = UserServer(folder, user, first, program)
    try:
        yield server.start()
    finally:
        server.finish()


def test_bombs_without_root(of_user):
    server = of_user
    neighbour = server.create()['id']
    with server.box(limits={'processes': 40, 'disk_mb': 16, 'inodes': 1024}) as box:
        assert {'memory', 'processes', 'disk'} & set(server.get(f'{API}/{box}')['degraded'])
        made, why = map(int, server.run(box, argv=['/bin/probe', 'fork'])['stdout'].split())
        assert made <= 40 and why == EAGAIN
        written, why = map(int, server.run(box, argv=['/bin/probe', 'disk'])['stdout'].split())
        assert written < 17 * MIB and why == ENOSPC
        check_error(server, server.ask('PUT', f'{API}/{box}/files?path=/tmp/more', body=bytes(MIB)), 507)
        end = server.run(box, 'trap "" TERM; (while :; do :; done) & while :; do :; done', timeout=1)['end']
        assert end['reason'] == 'timeout'
        assert server.run(neighbour, 'echo well')['stdout'] == 'well\n'
    server.delete_all()
    server.nothing_left()


def test_kills_without_root(of_user):
    server = of_user
    box = server.create()['id']
    command = server.start_command(box, 'read x; seq 30000; exit 7', stdin=True, timeout=0)['id']
    server.kill()
    server.restart()
    server.post(f'{API}/{box}/commands/{command}/stdin', b'\n', status=200)
    assert server.ended(box, command)['end']['exit_code'] == 7
    assert server.output(box, command).body == ''.join(f'{i}\n' for i in range(1, 30001)).encode()
    server.keeper.process.kill()
    server.keeper.process.wait(WAIT_S)
    server.keeper.process.stdout.close()
    server.restart_keeper()
    wait_until(lambda: server.state(box) == ('error', 'lost'), 'that it is told')
    with server.box() as fresh:
        assert server.run(fresh, 'echo well')['stdout'] == 'well\n'
    server.nothing_left()
