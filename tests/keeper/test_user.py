# SPDX-License-Identifier: Apache-2.0
"""The same boxes without root: as an ordinary user, and as root of that user's namespace."""
import contextlib
import errno
import os
import pathlib
import pwd
import shutil
import signal

import pytest

import boxes
import test_escape
from boxes import FAILED, FREEZE, MIB, STAT

IDS, MEMORY, CPU, DEVICES, DISK, PIDS = (1 << n for n in range(6))
FREEZE_MISSING = 1 << 7


def lent_ids():
    """(user, uid, gid, first id) of somebody to whom /etc/subuid lends enough."""
    try:
        lines = pathlib.Path('/etc/subuid').read_text().split()
    except OSError:
        lines = []
    for line in lines:
        name, first, count = line.split(':')
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        if int(count) >= 65536:
            return name, user.pw_uid, user.pw_gid, int(first)
    pytest.skip('no user has ids in /etc/subuid')


@contextlib.contextmanager
def keeper_of_user(folder, how):
    """Makes keepers of an ordinary user, or of root in that user's namespace."""
    _, uid, gid, first = lent_ids()
    if not shutil.which('newuidmap'):
        pytest.skip('newuidmap is not installed')
    prefix = ['setpriv', '--reuid', str(uid), '--regid', str(gid), '--clear-groups', '--']
    if how == 'user namespace':
        ids = f'{first},1,65536'
        prefix += ['unshare', '--user', '--map-root-user', '--map-users', ids, '--map-groups', ids, '--']
    os.chown(folder, uid, gid)
    base = first if how == 'user' else 1
    made = []

    def make(*options):
        keeper = boxes.Keeper(folder, prefix=prefix, uid=uid, options=['--template-base', str(base), *options])
        (keeper.store / boxes.LAYER / 'etc/mine').write_text('mine\n')
        boxes.give_away(keeper.store, first, users=['mine'])
        made.append(keeper)
        return keeper.start()

    yield make
    for keeper in made:
        if keeper.process.poll() is None:
            keeper.end(signal.SIGKILL)
        keeper.sock.close()


@pytest.fixture(params=['user', 'user namespace'])
def make_keeper(request, folder):
    if os.geteuid() != 0:
        pytest.skip('another user is tested as root')
    boxes.need_namespaces()
    with keeper_of_user(folder, request.param) as make:
        yield make


@pytest.fixture
def keeper(make_keeper):
    return make_keeper()


def test_says_what_is_missing(keeper):
    answer, _ = keeper.call(boxes.HELLO, count=boxes.VERSION)
    missing = IDS | MEMORY | CPU | DEVICES | DISK | PIDS
    assert answer.degraded & missing == missing


@pytest.mark.parametrize('user', ['u', 'r'])
def test_inside(keeper, user):
    test_escape.test_inside(keeper, user)


def test_outside(keeper):
    box = keeper.create()
    found = test_escape.status(box.pid)
    assert (found['Seccomp'], found['NoNewPrivs']) == ('2', '1')
    assert int(found['CapBnd'], 16) == test_escape.INIT_CAPABILITIES
    # Neither the host's root nor the user who started it.
    assert int(found['Uid'].split()[0]) not in (0, keeper.uid)
    for name in test_escape.NAMESPACES:
        assert os.readlink(f'/proc/{box.pid}/ns/{name}') != os.readlink(f'/proc/self/ns/{name}'), name


def test_ids_of_layers(keeper):
    box = keeper.create()
    assert box.run('/bin/probe', 'stat', '/etc') == (0, '0 0\n')
    assert box.run('/bin/probe', 'stat', '/etc/mine') == (0, '1000 1000\n')
    assert box.run('/bin/probe', 'write', '/etc/mine', 'yours') == (0, '')


def test_disk_and_processes_have_a_bound(keeper):
    box = keeper.create(disk=16 * MIB, inodes=512, pids=20)
    written, why = map(int, box.run('/bin/probe', 'disk')[1].split())
    assert why == 28 and written < 17 * MIB
    assert box.run('/bin/probe', 'write', '/etc/x', 'y', user='r')[0] == 28
    other = keeper.create(inodes=512, pids=20)
    made, why = map(int, other.run('/bin/probe', 'inodes')[1].split())
    assert why == 28 and made < 512
    made, why = map(int, other.run('/bin/probe', 'fork')[1].split())
    assert why == 11 and made <= 20


def test_life(keeper):
    held = [keeper.create() for _ in range(10)]
    for box in held[:5]:
        keeper.kill_box(box)
    assert len(boxes.records_of(keeper)) == 5
    if keeper.call(boxes.HELLO, count=boxes.VERSION)[0].degraded & FREEZE_MISSING:
        assert keeper.call(FREEZE, held[5].id)[0].verb == FAILED
    pids = [box.pid for box in held[5:]]
    assert keeper.call(STAT, held[5].id)[0].verb == boxes.STATS
    keeper.end(signal.SIGKILL)
    boxes.wait_until(lambda: [pid for pid in pids if os.path.exists(f'/proc/{pid}/exe')], 'boxes outlive the keeper')
    keeper.start()
    assert boxes.records_of(keeper) == []
    keeper.kill_box(keeper.create())
    assert keeper.end() == 0


# ---- disks that are folders ----

def folders_of(keeper):
    return [path.name for path in (keeper.state / 'folders').iterdir()]


def test_a_folder_is_a_disk(make_keeper):
    keeper = make_keeper('--user-disk', 'folder')
    assert keeper.call(boxes.HELLO, count=boxes.VERSION)[0].degraded & DISK
    box, other = keeper.create(), keeper.create()
    assert sorted(folders_of(keeper)) == sorted([box.id, other.id])
    assert box.run('/bin/probe', 'write', '/etc/mine', 'yours') == (0, '')
    assert (keeper.state / 'folders' / box.id / 'upper/etc/mine').read_text() == 'yours'
    assert other.run('/bin/probe', 'stat', '/etc/mine') == (0, '1000 1000\n')
    keeper.kill_box(box)
    assert folders_of(keeper) == [other.id]
    assert keeper.end() == 0
    assert folders_of(keeper) == []


def test_only_a_large_disk_is_a_folder(make_keeper):
    keeper = make_keeper('--user-disk-memory', str(32 * MIB))
    small, large = keeper.create(disk=32 * MIB), keeper.create(disk=33 * MIB)
    assert folders_of(keeper) == [large.id]
    keeper.kill_box(small)
    keeper.kill_box(large)


def test_a_file_has_a_bound(make_keeper):
    box = make_keeper('--user-disk', 'folder').create(disk=16 * MIB)
    limits = pathlib.Path(f'/proc/{box.pid}/limits').read_text()
    assert f'Max file size             {16 * MIB} ' in limits


@pytest.mark.parametrize('bomb, limit', [('disk', {'disk': 16 * MIB}), ('inodes', {'inodes': 512})])
def test_too_much_is_the_end(make_keeper, bomb, limit):
    """The watcher looks once a second; another box stays."""
    keeper = make_keeper('--user-disk', 'folder')
    box, other = keeper.create(**limit), keeper.create(**limit)
    box.send('/bin/probe', bomb)
    answer, _ = keeper.answer()
    assert (answer.verb, answer.box, answer.error) == (boxes.TROUBLE, box.id, errno.EDQUOT)
    if not answer.frozen:
        assert (gone := keeper.answer()[0]).verb == boxes.GONE and gone.box == box.id
        assert folders_of(keeper) == [other.id]
    assert other.run('/bin/probe', 'stat', '/etc')[0] == 0


def test_use_is_measured(make_keeper):
    keeper = make_keeper('--user-disk', 'folder')
    box = keeper.create()
    assert box.run('/bin/probe', 'write', '/etc/mine', 'x' * 5000) == (0, '')
    boxes.wait_until(lambda: not 8192 <= keeper.call(STAT, box.id)[0].disk_bytes < MIB, 'not measured')


def test_folders_of_a_killed_keeper_go(make_keeper):
    keeper = make_keeper('--user-disk', 'folder')
    box = keeper.create()
    assert box.run('/bin/probe', 'write', '/etc/mine', 'yours') == (0, '')
    deep = keeper.state / 'folders' / box.id / 'upper'
    keeper.end(signal.SIGKILL)
    # Deeper than a path may be long.
    fd = os.open(deep, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir('d', 0o000, dir_fd=fd)
        below = os.open('d', os.O_RDONLY, dir_fd=fd)
        os.chown(below, keeper.uid, keeper.uid)
        os.close(fd)
        fd = below
    os.close(fd)
    keeper.start()
    boxes.wait_until(lambda: folders_of(keeper), 'folders are left')
