# SPDX-License-Identifier: Apache-2.0
"""A box that takes all it can get takes only what is its own."""
import errno
import os
import pathlib

import boxes
from boxes import MIB, STAT


def both(keeper, **limits):
    return keeper.create(**limits), keeper.create()


def still_works(box):
    assert box.run('/bin/probe', 'cat', '/etc/hostname')[0] == 0


def all_ended(keeper, box):
    """Its init reaps after each command, and a process of a bomb may end later than that."""
    boxes.wait_until(lambda: box.run('/bin/probe', 'cat', '/etc/hostname') and keeper.call(STAT, box.id)[0].pids > 1,
                     'processes')


def test_processes(keeper):
    box, other = both(keeper, pids=20)
    code, output = box.run('/bin/probe', 'fork', user='r')
    made, why = map(int, output.split())
    assert (made <= 20, why) == (True, errno.EAGAIN)
    still_works(other)
    all_ended(keeper, box)
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


def group_files(keeper, *names):
    found = [pathlib.Path(group, name) for group in boxes.groups_of(keeper) for name in names]
    return {path.read_text().strip() for path in found if path.exists()}


def test_all_boxes_together(make_keeper):
    """More is promised than there is: the sum has a ceiling of its own."""
    keeper = make_keeper(options=['--max-pids', '30', '--max-memory', str(64 * MIB)])
    assert group_files(keeper, 'pids.max') == {'30'}
    assert str(64 * MIB) in group_files(keeper, 'memory.max', 'memory.limit_in_bytes')
    held = [keeper.create(pids=64, memory=64 * MIB) for _ in range(3)]
    made, why = map(int, held[0].run('/bin/probe', 'fork', user='r')[1].split())
    assert (made < 30, why) == (True, errno.EAGAIN)
    assert held[1].run('/bin/probe', 'memory')[0] == 137
    for box in held:
        all_ended(keeper, box)
        still_works(box)


def test_the_host_keeps_a_floor(keeper):
    total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    limits = group_files(keeper, 'memory.max', 'memory.limit_in_bytes')
    assert limits and all(total // 4 < int(limit) < total for limit in limits)
    assert all(int(limit) < int(pathlib.Path('/proc/sys/kernel/pid_max').read_text())
               for limit in group_files(keeper, 'pids.max'))
    assert group_files(keeper, 'cgroup.max.depth') == {'1'}
    pages = [pathlib.Path(group).glob('hugetlb.*.max') for group in boxes.groups_of(keeper)]
    assert {path.read_text().strip() for paths in pages for path in paths} <= {'0'}


def test_bomb_is_killed(keeper):
    box = keeper.create(pids=64)
    box.send('/bin/probe', 'fork')
    keeper.kill_box(box)
    boxes.nothing_left(keeper)
