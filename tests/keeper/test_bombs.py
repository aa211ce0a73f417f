# SPDX-License-Identifier: Apache-2.0
"""A box that takes all it can get takes only what is its own."""
import errno

import boxes
from boxes import MIB, STAT


def both(keeper, **limits):
    return keeper.create(**limits), keeper.create()


def still_works(box):
    assert box.run('/bin/probe', 'cat', '/etc/hostname')[0] == 0


def test_processes(keeper):
    box, other = both(keeper, pids=20)
    code, output = box.run('/bin/probe', 'fork', user='r')
    made, why = map(int, output.split())
    assert (made <= 20, why) == (True, errno.EAGAIN)
    still_works(other)
    boxes.wait_until(lambda: keeper.call(STAT, box.id)[0].pids > 1, 'processes')
    still_works(box)
    keeper.kill_box(box)
    boxes.wait_until(lambda: len(boxes.processes_of(keeper)) > 1, 'processes')


def test_memory(keeper):
    box, other = both(keeper, memory=32 * MIB)
    assert box.run('/bin/probe', 'memory')[0] == 137
    found, _ = keeper.call(STAT, box.id)
    assert found.oom_kills == 1 and found.memory_peak_bytes <= 32 * MIB
    still_works(other)
    still_works(box)
    assert keeper.kill_box(box).oom_kills == 1


def test_disk(keeper):
    box, other = both(keeper, disk=32 * MIB)
    written, why = map(int, box.run('/bin/probe', 'disk')[1].split())
    assert why == errno.ENOSPC and 20 * MIB < written < 32 * MIB
    still_works(other)
    still_works(box)
    assert keeper.call(STAT, box.id)[0].disk_bytes > 20 * MIB


def test_inodes(keeper):
    box, other = both(keeper, inodes=1024)
    made, why = map(int, box.run('/bin/probe', 'inodes')[1].split())
    assert why == errno.ENOSPC and 900 < made < 1100
    still_works(other)
    still_works(box)


def test_bomb_is_killed(keeper):
    box = keeper.create(pids=64)
    box.send('/bin/probe', 'fork')
    keeper.kill_box(box)
    boxes.nothing_left(keeper)
