# SPDX-License-Identifier: Apache-2.0
"""Processes of the server in groups of their own, which end with them."""
import contextlib
import errno
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys

import pytest

import boxes
import test_user
from boxes import FAILED, HELLO, HOLD, MIB, OK, VERSION

HOLDS_MAX = 128
MEMORY_MISSING, PIDS_MISSING = 1 << 1, 1 << 5
NOBODY = 65534
# Starts one that leaves the session, says its number, and waits; then takes as much as it is told.
CHILD = r'''
import os, sys
for line in sys.stdin:
    word, _, number = line.strip().partition(' ')
    if word == 'fork':
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.close(0)
            sys.stdin = None
            import signal
            signal.pause()
        print(pid, flush=True)
    elif word == 'take':
        bytearray(os.urandom(4096) * (int(number) // 4096))
        print('took', flush=True)
'''


class Child:
    def __init__(self, uid=None):
        self.process = subprocess.Popen([sys.executable, '-c', CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, user=uid)
        self.pidfd = os.pidfd_open(self.process.pid)
        self.other = None

    def say(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()

    def fork(self):
        self.say('fork')
        pid = int(self.process.stdout.readline())
        self.other = os.pidfd_open(pid)
        return pid

    def end(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            if self.other:
                signal.pidfd_send_signal(self.other, signal.SIGKILL)
        self.end()
        self.process.stdin.close()
        self.process.stdout.close()
        for fd in (self.pidfd, self.other):
            if fd:
                os.close(fd)


@pytest.fixture
def new_child():
    made = []

    def make(**options):
        made.append(Child(**options))
        return made[-1]

    yield make
    for child in made:
        child.close()


def hold(keeper, *fds, **limits):
    keeper.serial += 1
    packet = boxes.request(HOLD, keeper.serial, layers=(), **{'disk': 0, 'inodes': 0, **limits})
    if fds:
        socket.send_fds(keeper.sock, [packet], fds)
    else:
        keeper.sock.send(packet)
    while True:
        answer, _ = keeper.answer()
        if answer.serial == keeper.serial:
            return 0 if answer.verb == OK else answer.error


def groups(pid):
    """In which of the keeper's groups a process is."""
    lines = pathlib.Path(f'/proc/{pid}/cgroup').read_text().splitlines()
    return [line.rpartition('/')[2] for line in lines if '/coop-' in line]


def held_groups(keeper):
    return [entry.path for group in boxes.groups_of(keeper) for entry in os.scandir(group)
            if entry.name.startswith('hold-')]


def wait_gone(keeper):
    boxes.wait_until(lambda: held_groups(keeper), 'groups of held processes')


def ended(pidfd):
    return bool(select.select([pidfd], [], [], boxes.DEADLINE)[0])


def test_in_a_group(keeper, new_child):
    child = new_child()
    assert hold(keeper, child.pidfd) == 0
    assert groups(child.process.pid) and set(groups(child.process.pid)) == {'hold-0'}
    other = child.fork()
    assert groups(other) == groups(child.process.pid)
    assert len(held_groups(keeper)) >= 1
    child.end()
    assert ended(child.other), 'what it started ends with it, whatever its session'
    wait_gone(keeper)


def test_groups_are_used_again(keeper, new_child):
    for _ in range(3):
        child = new_child()
        assert hold(keeper, child.pidfd) == 0
        assert set(groups(child.process.pid)) == {'hold-0'}
        child.end()
        wait_gone(keeper)
    fds = keeper.settled_fds()
    child = new_child()
    assert hold(keeper, child.pidfd) == 0
    child.end()
    wait_gone(keeper)
    assert keeper.settled_fds() == fds


def test_limits(keeper, new_child):
    degraded = keeper.call(HELLO, count=VERSION)[0].degraded
    if degraded & (MEMORY_MISSING | PIDS_MISSING):
        pytest.skip('this machine limits neither memory nor processes')
    child = new_child()
    assert hold(keeper, child.pidfd, memory=32 * MIB, pids=4) == 0
    for _ in range(3):
        child.fork()
    child.say('fork')
    assert child.process.stdout.readline() == '', 'a fifth process'
    greedy = new_child()
    assert hold(keeper, greedy.pidfd, memory=32 * MIB) == 0
    greedy.say(f'take {256 * MIB}')
    assert greedy.process.wait(boxes.DEADLINE) == -signal.SIGKILL


def test_refusals(keeper, new_child):
    mine, strange, dead = new_child(), new_child(uid=NOBODY), new_child()
    dead.end()
    assert hold(keeper) == errno.EBADF
    assert hold(keeper, keeper.sock.fileno()) == errno.ESRCH
    assert hold(keeper, dead.pidfd) == errno.ESRCH
    assert hold(keeper, strange.pidfd) == errno.EPERM
    assert groups(strange.process.pid) == []
    for limits in ({'memory': 0}, {'pids': 0}, {'cpu': 0}, {'disk': MIB}, {'inodes': 1}):
        assert hold(keeper, mine.pidfd, **limits) == errno.EINVAL
    assert groups(mine.process.pid) == [] and held_groups(keeper) == []
    assert strange.process.poll() is None and mine.process.poll() is None


def test_too_many(keeper, new_child):
    child = new_child()
    for _ in range(HOLDS_MAX):
        assert hold(keeper, child.pidfd) == 0
    assert hold(keeper, child.pidfd) == errno.EUSERS
    assert set(groups(child.process.pid)) == {f'hold-{HOLDS_MAX - 1}'}
    child.end()
    wait_gone(keeper)
    child = new_child()
    assert hold(keeper, child.pidfd) == 0


def test_server_goes(keeper, new_child):
    child = new_child()
    assert hold(keeper, child.pidfd) == 0
    keeper.connect()
    assert set(groups(child.process.pid)) == {'hold-0'}
    child.end()
    wait_gone(keeper)


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGKILL])
def test_keeper_goes(keeper, new_child, how):
    child = new_child()
    assert hold(keeper, child.pidfd) == 0
    child.fork()
    keeper.end(how)
    if how == signal.SIGKILL:
        keeper.start()
    assert ended(child.pidfd) and ended(child.other)
    assert held_groups(keeper) == []


@pytest.mark.parametrize('point', ['hold-made', 'hold-end'])
def test_crash(make_keeper, new_child, point):
    if not os.environ.get('COOP_HAS_FAILPOINTS'):
        pytest.skip('a build without failpoints')
    keeper, child = make_keeper(), new_child()
    keeper.end()
    keeper.start(fail_at=point)
    with contextlib.suppress(ConnectionResetError):
        hold(keeper, child.pidfd)
        child.end()
    keeper.died()
    keeper.start()
    assert held_groups(keeper) == []


def test_helper_dies(make_keeper, new_child):
    if not os.environ.get('COOP_HAS_FAILPOINTS'):
        pytest.skip('a build without failpoints')
    keeper, child = make_keeper(), new_child()
    keeper.end()
    keeper.start(fail_at='hold-seized')
    assert hold(keeper, child.pidfd) == errno.ETIMEDOUT
    wait_gone(keeper)
    assert child.process.poll() is None and groups(child.process.pid) == []
    child.fork()


def test_without_version_2(make_keeper, new_child):
    """Nothing in a group of version 1 could be killed, so there is none."""
    keeper = make_keeper(prefix=['unshare', '--mount', 'sh', '-c', 'umount -l -a -t cgroup2 && exec "$@"', '-'])
    child = new_child()
    assert hold(keeper, child.pidfd) == errno.EOPNOTSUPP
    assert groups(child.process.pid) == [] and held_groups(keeper) == []
    child.fork()


def test_without_tracing(make_keeper, new_child):
    """As where kernel.yama.ptrace_scope is 3, which cannot be undone on a machine that runs."""
    keeper, child = make_keeper(prefix=['setpriv', '--bounding-set', '-sys_ptrace', '--']), new_child()
    for _ in range(2):
        assert hold(keeper, child.pidfd) == errno.EOPNOTSUPP
    assert groups(child.process.pid) == []
    wait_gone(keeper)
    child.fork()


@pytest.mark.parametrize('how', ['user', 'user namespace'])
def test_without_root(folder, new_child, how):
    """With groups or without, the process goes on and nothing is left."""
    if os.geteuid() != 0:
        pytest.skip('another user is tested as root')
    boxes.need_namespaces()
    with test_user.keeper_of_user(folder, how) as make:
        keeper = make()
        child, strange = new_child(uid=keeper.uid), new_child()
        assert hold(keeper, child.pidfd) in (0, errno.EOPNOTSUPP)
        assert hold(keeper, strange.pidfd) == errno.EPERM
        child.fork()
        child.end()
        wait_gone(keeper)
