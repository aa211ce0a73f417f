# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the keeper, at any moment: boxes die with it, and the next one leaves nothing."""
import os
import signal

import pytest

import boxes
from boxes import CREATE, KILL

CREATING = ('create-record', 'create-cgroup', 'create-disk', 'create-clone', 'create-maps', 'create-network',
            'create-layers', 'create-running')
KILLING = ('kill-signal', 'kill-reaped', 'kill-cgroup', 'kill-record')

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')


def start_again(keeper):
    boxes.wait_until(lambda: boxes.helpers_of(keeper), 'helpers outlive the keeper')
    boxes.wait_until(lambda: boxes.processes_of(keeper), 'processes outlive the keeper')
    keeper.start()
    boxes.nothing_left(keeper)
    keeper.kill_box(keeper.create())
    assert keeper.end() == 0
    boxes.nothing_left(keeper, of_keeper=True)


def test_boxes_die_with_the_keeper(keeper):
    held = [keeper.create() for _ in range(5)]
    held[0].send('/bin/probe', 'pause')
    keeper.prepare(4)
    keeper.end(signal.SIGKILL)
    start_again(keeper)


def test_killed_again_and_again(keeper):
    for _ in range(5):
        keeper.prepare(2)
        for _ in range(3):
            keeper.ask(CREATE, boxes.new_id())
        keeper.answer()
        keeper.end(signal.SIGKILL)
        keeper.start()
    keeper.end(signal.SIGKILL)
    start_again(keeper)


@needs_failpoints
@pytest.mark.parametrize('stage', CREATING)
def test_killed_while_creating(make_keeper, stage):
    keeper = make_keeper()
    keeper.end()
    keeper.start(fail_at=stage + ':2')
    keeper.create()
    keeper.ask(CREATE, boxes.new_id())
    keeper.died()
    start_again(keeper)


@needs_failpoints
@pytest.mark.parametrize('stage', KILLING)
def test_killed_while_killing(make_keeper, stage):
    keeper = make_keeper()
    keeper.end()
    keeper.start(fail_at=stage)
    keeper.create()
    box = keeper.create()
    keeper.ask(KILL, box.id)
    keeper.died()
    start_again(keeper)


def test_ready_disks_have_no_name(keeper):
    """Whoever holds them can be killed: nobody has to clean up."""
    keeper.prepare(3)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 3 or list((keeper.state / 'pool').iterdir()), 'ready disks')
    assert all(image.endswith(' (deleted)') for image in boxes.loops_of(keeper))
    keeper.prepare(1)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 1, 'dropped disks')
    keeper.prepare(2, disk=32 * boxes.MIB)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 2, 'disks of another shape')
    keeper.end(signal.SIGKILL)
    boxes.wait_until(lambda: boxes.loops_of(keeper), 'disks without a keeper')


@needs_failpoints
def test_killed_while_preparing(make_keeper):
    keeper = make_keeper()
    keeper.end()
    keeper.start(fail_at='idmap:2')
    keeper.prepare(4)
    keeper.died()
    start_again(keeper)


@needs_failpoints
def test_helper_killed_while_giving_back(make_keeper):
    keeper = make_keeper()
    keeper.end()
    keeper.start(fail_at='disk-release:2')
    box = keeper.create()
    box.run('/bin/probe', 'disk')
    assert keeper.kill_box(box).exit_code == 137
    boxes.nothing_left(keeper)
    keeper.kill_box(keeper.create())
    boxes.nothing_left(keeper)


@needs_failpoints
def test_kept_disk_outlives_a_crash(make_keeper):
    keeper = make_keeper()
    keeper.end()
    keeper.start(fail_at='kill-signal')
    box = keeper.create(flags=boxes.KEEP_DISK)
    assert box.run('/bin/probe', 'write', '/tmp/note', 'remember')[0] == 0
    keeper.ask(KILL, box.id)
    keeper.died()
    boxes.wait_until(lambda: boxes.loops_of(keeper), 'disks without a keeper')
    keeper.start()
    again = keeper.create(box=box.id, flags=boxes.KEEP_DISK)
    assert again.run('/bin/probe', 'cat', '/tmp/note') == (0, 'remember')
    keeper.kill_box(again)
    assert keeper.call(KILL, box.id)[0].verb == boxes.GONE
    assert os.listdir(keeper.state / 'kept') == []


@needs_failpoints
def test_disk_helper_killed(make_keeper):
    keeper = make_keeper()
    keeper.end()
    keeper.start(fail_at='disk-helper')
    answer, _ = keeper.call(CREATE, boxes.new_id())
    assert (answer.verb, answer.stage) == (boxes.FAILED, 5)
    boxes.nothing_left(keeper)
