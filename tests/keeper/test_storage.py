# SPDX-License-Identifier: Apache-2.0
"""The host's disk runs full under the boxes, or fails: one box is stopped, the others go on."""
import errno
import os
import signal
import subprocess

import pytest

import boxes
from boxes import BOX, CREATE, FAILED, GIB, LIST, LISTED, MIB, OK, STAT, THAW, TROUBLE

STAGE_DISK = 5


@pytest.fixture
def small_disk(folder):
    """A file system of 256 MiB for the state folder."""
    if os.geteuid() != 0:
        pytest.skip('a file system is mounted')
    boxes.need_namespaces()
    image, place = folder / 'host.img', folder / 'disk'
    place.mkdir()
    with image.open('wb') as file:
        file.truncate(256 * MIB)
    subprocess.run(['mkfs.ext4', '-q', '-F', '-m', '0', '-N', '4096', image], check=True)
    subprocess.run(['mount', '-o', 'loop', image, place], check=True)
    yield place
    boxes.wait_until(lambda: subprocess.run(['umount', place], capture_output=True).returncode, 'still mounted')


@pytest.fixture
def keeper(small_disk, make_keeper, request):
    return make_keeper(state=small_disk / 'state', options=['--disk-floor', str(request.param * MIB)])


def fill(place, keep_free):
    """Leaves this much to the boxes."""
    free = os.statvfs(place)
    with (place / 'filler').open('wb') as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - keep_free)


def trouble(keeper):
    while True:
        answer, _ = keeper.answer()
        if answer.verb == TROUBLE:
            return answer


@pytest.mark.parametrize('keeper', [96], indirect=True)
def test_below_the_floor(keeper, small_disk):
    quiet, writer = keeper.create(), keeper.create(disk=48 * MIB)
    fill(small_disk, 112 * MIB)
    writer.send('/bin/probe', 'disk')
    told = trouble(keeper)
    assert (told.serial, told.box, told.stage, told.error, told.frozen) == (0, writer.id, 1, errno.ENOSPC, 1)
    assert keeper.call(STAT, writer.id)[0].frozen == 1
    assert quiet.run('/bin/probe', 'cat', '/etc/hostname')[0] == 0
    answer, _ = keeper.call(CREATE, boxes.new_id())
    assert (answer.verb, answer.stage, answer.error) == (FAILED, STAGE_DISK, errno.ENOSPC)
    # A server that comes later hears of it too.
    keeper.connect()
    serial, seen = keeper.ask(LIST), []
    while True:
        answer, fds = keeper.answer()
        for fd in fds:
            os.close(fd)
        if answer.verb == LISTED and answer.serial == serial:
            break
        seen.append((answer.verb, answer.box))
    assert (TROUBLE, writer.id) in seen and (TROUBLE, quiet.id) not in seen and (BOX, quiet.id) in seen
    (small_disk / 'filler').unlink()
    assert keeper.call(THAW, writer.id)[0].verb == OK
    boxes.wait_until(lambda: keeper.call(STAT, writer.id)[0].frozen, 'thawed')
    keeper.kill_box(writer)
    keeper.kill_box(keeper.create())
    keeper.kill_box(quiet)
    boxes.nothing_left(keeper)


@pytest.mark.parametrize('keeper', [16], indirect=True)
def test_no_inodes_on_the_host(keeper, small_disk):
    for n in range(5000):
        try:
            (small_disk / f'inode{n}').touch()
        except OSError as error:
            assert error.errno == errno.ENOSPC
            break
    answer, _ = keeper.call(CREATE, boxes.new_id())
    assert (answer.verb, answer.stage, answer.error) == (FAILED, STAGE_DISK, errno.ENOSPC)
    # Nor is a full disk a reason not to start.
    keeper.end(signal.SIGKILL)
    assert keeper.start().end() == 0


@pytest.mark.parametrize('keeper', [0], indirect=True)
def test_disk_fails_under_a_box(keeper, small_disk):
    """Without a floor the host can run full: the box sees errors of its disk and is stopped."""
    quiet, writer = keeper.create(), keeper.create(disk=GIB, inodes=65536)
    fill(small_disk, 8 * MIB)
    writer.send('/bin/probe', 'inodes')
    writer.channel.settimeout(boxes.DEADLINE)
    told = trouble(keeper)
    assert (told.box, told.stage, told.error, told.frozen) == (writer.id, 1, errno.EIO, 1)
    assert quiet.run('/bin/probe', 'cat', '/etc/hostname')[0] == 0
    keeper.kill_box(writer)
    keeper.kill_box(quiet)
    boxes.nothing_left(keeper)


@pytest.mark.parametrize('keeper', [0], indirect=True)
def test_disks_are_made_when_there_is_room_again(keeper, small_disk):
    """Nobody has to ask a second time."""
    fill(small_disk, 16 * 1024)
    keeper.prepare(2)
    answer, _ = keeper.call(CREATE, boxes.new_id())
    assert (answer.verb, answer.stage) == (FAILED, STAGE_DISK)
    assert answer.error in (errno.ENOSPC, errno.EIO)  # of the image, or of what is mounted on it
    assert boxes.loops_of(keeper) == []
    (small_disk / 'filler').unlink()
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 2, 'ready disks')
    keeper.kill_box(keeper.create())
