# SPDX-License-Identifier: Apache-2.0
"""Boxes are made, held, frozen, handed to the next server and taken down without a trace."""
import ctypes
import errno
import os
import pathlib
import re
import socket
import struct
import threading

import pytest

import boxes
from boxes import BOX, CREATE, FAILED, FREEZE, GONE, HELLO, KILL, LIST, LISTED, OK, STAT, STATS, THAW, VERSION, Box

MANY = 200
AT_ONCE = 20


def test_create_and_kill(keeper):
    box = keeper.create(hostname='first')
    assert box.run('/bin/probe', 'cat', '/etc/hostname') == (0, 'first\n')
    assert '127.0.1.1 first' in box.run('/bin/probe', 'cat', '/etc/hosts')[1]
    assert 'nameserver 127.0.0.1' in box.run('/bin/probe', 'cat', '/etc/resolv.conf')[1]
    assert len(box.run('/bin/probe', 'cat', '/etc/machine-id')[1]) == 33
    assert box.run('/bin/probe', 'cat', '/sys/fs/cgroup/memory.max')[1] == f"{boxes.LIMITS['memory']}\n"
    assert box.run('/bin/probe', 'cat', '/sys/fs/cgroup/cpu.max')[1] == '100000 100000\n'
    gone = keeper.kill_box(box)
    assert gone.exit_code == 137
    boxes.nothing_left(keeper)
    assert keeper.end() == 0
    boxes.nothing_left(keeper, of_keeper=True)


@pytest.mark.parametrize('kind', ('image', 'link', 'none'))
def test_folder_of_own_files(keeper, kind):
    """It stays as the image has it, with what else is in it; a link or nothing gives no other box."""
    etc = keeper.store / boxes.LAYER / 'etc'
    (etc / 'resolv.conf').unlink()
    if kind == 'image':
        (etc / 'more').write_text('more')
        os.chown(etc, 7, 8)
        etc.chmod(0o2751)
    else:
        etc.rmdir()
    if kind == 'link':
        etc.symlink_to('tmp')
        assert keeper.call(CREATE, boxes.new_id())[0].verb == FAILED
        return
    box = keeper.create(hostname='own')
    assert box.run('/bin/probe', 'cat', '/etc/hostname') == (0, 'own\n')
    if kind == 'image':
        assert box.run('/bin/probe', 'cat', '/etc/more') == (0, 'more')
        assert box.run('/bin/probe', 'stat', '/etc') == (0, '7 8\n')
        assert box.run('/bin/probe', 'mode', '/etc') == (0, '42751\n')
    keeper.kill_box(box)


def test_namespaces_are_set_through_their_own_proc(make_keeper):
    """In the keeper's /proc each of these files would be there once for every box, and be looked for among all."""
    libc, in_open = ctypes.CDLL(None, use_errno=True), 0x20
    keeper = make_keeper(prefix=['unshare', '-m', 'sh', '-c', 'mount -t proc proc /proc && exec "$@"', 'sh'])
    proc = f'/proc/{keeper.process.pid}/root/proc/sys'
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    for place in ('user', 'kernel', 'net/ipv4'):
        assert libc.inotify_add_watch(fd, f'{proc}/{place}'.encode(), in_open) >= 0
    pathlib.Path(proc, 'user/max_user_namespaces').read_text()
    assert b'max_user_namespaces' in os.read(fd, 4096)
    for _ in range(2):
        box = keeper.create(low=1)
        assert box.run('/bin/probe', 'cat', '/proc/sys/user/max_user_namespaces') == (0, '0\n')
        keeper.kill_box(box)
    with pytest.raises(BlockingIOError):
        print(os.read(fd, 4096))
    os.close(fd)


def test_what_is_held_long_is_out_of_the_way_of_children(keeper):
    """A child copies, and closes, what is below; so its start costs the same whatever the keeper holds."""
    def low():
        return sum(int(fd) < 256 for fd in os.listdir(f'/proc/{keeper.process.pid}/fd'))

    keeper.kill_box(keeper.create())
    boxes.nothing_left(keeper)
    before, held = low(), [keeper.create() for _ in range(10)]
    boxes.wait_until(lambda: low() > before, 'fds of boxes among the low ones')
    assert keeper.fds() >= before + 4 * len(held)
    for box in held:
        assert box.run('/bin/probe', 'write', '/tmp/note', 'x')[0] == 0


def test_prepared_and_not(keeper):
    """A box has its own limits and ids, whether it was prepared, was not, or another kind was."""
    keeper.prepare(3)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 3, 'ready disks')
    made = [keeper.create(), keeper.create(pids=33), keeper.create(), keeper.create(flags=boxes.KEEP_DISK),
            keeper.create(), keeper.create()]
    assert len({box.answer.id_base for box in made}) == len(made)
    for box, pids in zip(made, (64, 33, 64, 64, 64, 64)):
        place = pathlib.Path(f'/proc/{box.pid}/cgroup').read_text()
        slot = (box.answer.id_base - boxes.ID_BASE) // 65536
        assert set(re.findall(r'/(box-\d+)$', place, re.M)) == {f'box-{slot}'}
        limits = [pathlib.Path(group, f'box-{slot}', 'pids.max') for group in boxes.groups_of(keeper)]
        assert {path.read_text() for path in limits if path.exists()} == {f'{pids}\n'}
        assert box.run('/bin/probe', 'write', '/tmp/note', 'x')[0] == 0
        assert box.run('/bin/probe', 'stat', '/tmp/note') == (0, '1000 1000\n')
    keeper.prepare(1, pids=33)
    for box in made:
        keeper.kill_box(box)
    keeper.call(KILL, made[3].id)
    boxes.nothing_left(keeper)
    keeper.prepare(0)
    boxes.nothing_left(keeper)


def test_prepared_again(keeper):
    """What boxes have taken is replaced, also after all that were wanted had been there."""
    keeper.prepare(2)
    for _ in range(2):
        boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 2, 'ready disks')
        for box in [keeper.create() for _ in range(3)]:
            keeper.kill_box(box)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 2, 'ready disks')
    boxes.nothing_left(keeper)


def test_many_leave_nothing(keeper):
    keeper.prepare(8)
    keeper.kill_box(keeper.create())
    boxes.nothing_left(keeper)
    fds = keeper.settled_fds()
    for _ in range(MANY // AT_ONCE):
        serials = {keeper.ask(CREATE, boxes.new_id()) for _ in range(AT_ONCE)}
        made = []
        while serials:
            answer, received = keeper.answer()
            assert answer.verb == BOX
            serials.remove(answer.serial)
            made.append(Box(answer, received).hello())
        assert len({box.answer.id_base for box in made}) == AT_ONCE
        assert len({box.answer.netns_cookie for box in made}) == AT_ONCE
        for box in made:
            keeper.kill_box(box)
    boxes.nothing_left(keeper)
    assert keeper.settled_fds() == fds
    assert keeper.end() == 0
    boxes.nothing_left(keeper, of_keeper=True)


def test_the_real_init(make_keeper):
    keeper = make_keeper(init=os.environ['COOP_INIT'])
    answer, fds = keeper.call(CREATE, boxes.new_id())
    box = Box(answer, fds)
    frame = struct.Struct('<HBBIQII')
    box.channel.send(frame.pack(1, 0, 0, 0, 0, 1, 0))
    kind, _, _, _, _, version, length = frame.unpack(box.channel.recv(4096))
    assert (kind, version, length) == (1, 1, 0)
    keeper.kill_box(box)
    boxes.nothing_left(keeper)


def test_it_ends_by_itself(keeper):
    box = keeper.create()
    box.channel.send(b'q\x07')
    answer, _ = keeper.answer()
    assert (answer.verb, answer.serial, answer.box, answer.exit_code) == (GONE, 0, box.id, 7)
    boxes.nothing_left(keeper)


def test_door(keeper):
    box = keeper.create()
    box.send('/bin/probe')
    box.answer_of()
    with pytest.raises(BlockingIOError):
        box.door.setblocking(False)
        box.door.accept()
    assert box.door.getsockname() == ('127.0.0.1', boxes.DOOR_PORT)
    cookie = box.door.getsockopt(socket.SOL_SOCKET, 71, 8)
    assert int.from_bytes(cookie, 'little') == box.answer.netns_cookie != 0


def test_freeze(keeper):
    box = keeper.create()
    assert keeper.call(FREEZE, box.id)[0].verb == OK
    assert keeper.call(STAT, box.id)[0].frozen == 1
    box.send('/bin/probe', 'cat', '/etc/hostname')
    box.channel.settimeout(0.3)
    with pytest.raises(TimeoutError):
        box.answer_of()
    box.channel.settimeout(boxes.DEADLINE)
    assert keeper.call(THAW, box.id)[0].verb == OK
    assert box.answer_of()[0] == 0
    assert keeper.call(FREEZE, box.id)[0].verb == OK
    keeper.kill_box(box)


def test_stat(keeper):
    box = keeper.create()
    before, _ = keeper.call(STAT, box.id)
    assert before.verb == STATS and before.pids == 1 and before.memory_bytes > 0
    box.send('/bin/probe', 'pause')
    boxes.wait_until(lambda: keeper.call(STAT, box.id)[0].pids != 2, 'processes')
    keeper.kill_box(box)
    assert keeper.call(STAT, box.id)[0].verb == FAILED


def test_server_comes_back(keeper):
    held = [keeper.create() for _ in range(3)]
    ended = keeper.create()
    keeper.sock.close()
    keeper.sock = None
    ended.channel.send(b'q\x05')
    boxes.wait_until(lambda: ended.id in boxes.records_of(keeper), 'the record')
    keeper.connect()
    serial = keeper.ask(LIST)
    seen, gone = {}, {}
    while True:
        answer, fds = keeper.answer()
        if answer.verb == LISTED:
            break
        if answer.verb == BOX and answer.serial == serial:
            seen[answer.box] = Box(answer, fds)
        elif answer.verb == GONE:
            gone[answer.box] = answer.exit_code
    assert set(seen) == {box.id for box in held}
    assert gone == {ended.id: 5}
    for box in seen.values():
        assert box.run('/bin/probe', 'cat', '/etc/hostname')[0] == 0
        assert box.door.getsockname()[1] == boxes.DOOR_PORT
        assert box.pid > 0
        keeper.kill_box(box)


def test_new_server_replaces(keeper):
    old = keeper.sock
    keeper.sock = None
    keeper.connect()
    assert keeper.call(HELLO, count=VERSION)[0].verb == OK
    assert old.recv(1) == b''


def test_strangers_are_refused(keeper):
    read, write = os.pipe()
    keeper.socket_path.chmod(0o666)
    pid = os.fork()
    if pid == 0:
        os.setresuid(12345, 12345, 12345)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(str(keeper.socket_path))
        os.write(write, sock.recv(1) or b'end')
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 8) == b'end'
    assert keeper.call(HELLO, count=VERSION)[0].verb == OK


@pytest.mark.parametrize('packet', [b'x', b'\0' * 1168, b'\xff' * 1168, b'\0' * 5000,
                                    boxes.request(CREATE, 1, '../../../etc/passwdxx')])
def test_what_is_no_request(keeper, packet):
    keeper.sock.send(packet)
    answer, _ = keeper.answer()
    assert (answer.verb, answer.stage, answer.error) == (FAILED, 1, 22)
    assert keeper.call(HELLO, count=VERSION)[0].verb == OK


def test_failures_have_a_stage(keeper):
    answer, _ = keeper.call(CREATE, boxes.new_id(), layers=('dead',))
    assert (answer.verb, answer.stage, answer.error) == (FAILED, 6, 2)
    box = keeper.create()
    answer, _ = keeper.call(CREATE, box.id)
    assert (answer.verb, answer.stage, answer.error) == (FAILED, 1, 17)
    keeper.kill_box(box)
    boxes.nothing_left(keeper)


@pytest.mark.parametrize('name', ['proc', 'dev', 'sys', 'etc'])
def test_image_with_a_link_for_a_folder(keeper, name):
    root = boxes.template(keeper.store, os.environ['COOP_BOX_PROBE'], 'bad0')
    if name == 'etc':
        (root / 'etc/resolv.conf').unlink()
        (root / 'etc').rmdir()
    (root / name).symlink_to('/tmp')
    answer, _ = keeper.call(CREATE, boxes.new_id(), layers=('bad0',))
    assert (answer.verb, answer.stage) == (FAILED, 10)
    boxes.nothing_left(keeper)


def test_ids_of_layers_begin_elsewhere(make_keeper, folder):
    base = 231072
    keeper = make_keeper(options=['--template-base', str(base)])
    (keeper.store / boxes.LAYER / 'etc/mine').write_text('mine\n')
    boxes.give_away(keeper.store, base, users=['mine'])
    box = keeper.create(flags=boxes.KEEP_DISK)
    assert box.run('/bin/probe', 'stat', '/etc') == (0, '0 0\n')
    assert box.run('/bin/probe', 'stat', '/bin/probe') == (0, '0 0\n')
    assert box.run('/bin/probe', 'stat', '/etc/mine') == (0, '1000 1000\n')
    assert box.run('/bin/probe', 'write', '/etc/mine', 'yours') == (0, '')
    assert box.run('/bin/probe', 'stat', '/etc/mine') == (0, '1000 1000\n')
    assert box.run('/bin/probe', 'write', '/etc/root', 'x', user='r') == (0, '')
    assert box.run('/bin/probe', 'stat', '/etc/root') == (0, '0 0\n')
    assert box.run('/bin/probe', 'write', '/etc/none', 'x')[0] == errno.EACCES
    keeper.kill_box(box)
    again = keeper.create(box=box.id, flags=boxes.KEEP_DISK)
    assert again.run('/bin/probe', 'stat', '/etc/mine') == (0, '1000 1000\n')
    keeper.kill_box(again)
    assert keeper.call(KILL, box.id)[0].verb == GONE
    boxes.nothing_left(keeper)


def test_layers_are_stacked_and_not_written(keeper):
    top = keeper.store / '11bb'
    (top / 'etc').mkdir(parents=True)
    (top / 'etc/top').write_text('top\n')
    box = keeper.create(layers=('11bb', boxes.LAYER))
    assert box.run('/bin/probe', 'cat', '/etc/top') == (0, 'top\n')
    assert box.run('/bin/probe', 'disk')[0] == 0
    assert not (top / 'tmp').exists() and os.listdir(keeper.store / boxes.LAYER / 'tmp') == []


def test_kill_while_creating(keeper):
    ids = [boxes.new_id() for _ in range(10)]
    for box in ids:
        keeper.ask(CREATE, box)
        keeper.ask(KILL, box)
    gone = set()
    while gone != set(ids):
        answer, fds = keeper.answer()
        for fd in fds:
            os.close(fd)
        if answer.verb == GONE:
            gone.add(answer.box)
    boxes.nothing_left(keeper)


def test_kept_disk_comes_back(keeper):
    box = keeper.create(flags=boxes.KEEP_DISK)
    assert box.run('/bin/probe', 'write', '/tmp/note', 'remember') == (0, '')
    keeper.kill_box(box)
    boxes.nothing_left(keeper)
    again = keeper.create(box=box.id, flags=boxes.KEEP_DISK)
    assert again.answer.id_base != box.answer.id_base
    assert again.run('/bin/probe', 'cat', '/tmp/note') == (0, 'remember')
    keeper.kill_box(again)
    assert keeper.call(KILL, box.id)[0].verb == GONE
    assert os.listdir(keeper.state / 'kept') == []


@pytest.mark.parametrize('bomb', ['inodes', 'disk'])
def test_full_kept_disk_comes_back(keeper, bomb):
    box = keeper.create(flags=boxes.KEEP_DISK, disk=32 * boxes.MIB, inodes=512)
    box.run('/bin/probe', bomb)
    for _ in range(3):
        keeper.kill_box(box)
        box = keeper.create(box=box.id, flags=boxes.KEEP_DISK, disk=32 * boxes.MIB, inodes=512)
        assert box.run('/bin/probe', 'cat', '/etc/hostname') == (0, 'box\n')
        # What was set aside for the start is not the box's to use.
        box.run('/bin/probe', bomb)
    keeper.kill_box(box)
    assert keeper.call(KILL, box.id)[0].verb == GONE
    boxes.nothing_left(keeper)


def test_a_slow_server_stops_nothing(keeper):
    """Requests pile up while nobody reads the answers; every one is answered in the end."""
    count = 3000
    box = keeper.create()
    thread = threading.Thread(target=lambda: [keeper.ask(STAT, box.id) for _ in range(count)])
    thread.start()
    thread.join(boxes.DEADLINE)
    for _ in range(count):
        assert keeper.answer()[0].verb == STATS
    keeper.kill_box(box)


def test_second_keeper_is_refused(keeper, folder):
    second = boxes.Keeper(folder)
    with pytest.raises(AssertionError):
        second.start()
    assert second.process.wait(boxes.DEADLINE) == 6
    assert keeper.connect().call(HELLO, count=VERSION)[0].verb == OK
