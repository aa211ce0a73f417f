# SPDX-License-Identifier: Apache-2.0
"""Loop devices: as many as boxes need at once, removed when idle, and nobody else's touched."""
import contextlib
import fcntl
import os
import signal
import subprocess

import pytest

import boxes
from boxes import CREATE, KILL
from test_crash import needs_failpoints

ADD, REMOVE = 0x4C80, 0x4C81
TRIMMERS = 8
IDLE = ['--device-idle', '1']
NEVER = ['--device-idle', '3600']


@contextlib.contextmanager
def stranger(number):
    """A device that is not the keeper's."""
    with open('/dev/loop-control', 'rb+', buffering=0) as control:
        fcntl.ioctl(control, ADD, number)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.ioctl(control, REMOVE, number)


def first_number(keeper):
    return boxes.DEVICE_FIRST + int(keeper.instance, 16) % boxes.DEVICE_RANGES * boxes.DEVICE_PLACES


def untouched(keeper):
    return len(boxes.devices_of(keeper)) != len(boxes.loops_of(keeper))


def unwritten(keeper):
    return boxes.devices_written_down(keeper) != len(boxes.loops_of(keeper))


def trimmed(keeper):
    """Only those that are in use are left, on the host and in the list."""
    boxes.wait_until(lambda: untouched(keeper), 'devices that nobody needs')
    boxes.wait_until(lambda: unwritten(keeper), 'devices in the list')


def at_once(keeper, n):
    serials = {keeper.ask(CREATE, boxes.new_id()) for _ in range(n)}
    made = []
    while serials:
        answer, fds = keeper.answer()
        assert answer.verb == boxes.BOX
        serials.remove(answer.serial)
        made.append(boxes.Box(answer, fds).hello())
    return made


def test_used_again(make_keeper):
    keeper = make_keeper(options=NEVER)
    for _ in range(3):
        for box in at_once(keeper, 6):
            keeper.kill_box(box)
        boxes.nothing_left(keeper)
    # An end that is still giving back its image holds its device a moment longer.
    assert 6 <= len(boxes.devices_of(keeper)) <= 10
    assert boxes.devices_written_down(keeper) == len(boxes.devices_of(keeper))


def test_removed_when_idle(make_keeper):
    keeper = make_keeper(options=IDLE)
    keeper.prepare(2)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 2, 'ready disks')
    held = at_once(keeper, 12)
    assert len(boxes.devices_of(keeper)) >= 12
    for box in held[1:]:
        keeper.kill_box(box)
    trimmed(keeper)
    boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 3, 'the box and the ready disks')
    assert held[0].run('/bin/probe', 'write', '/tmp/note', 'x')[0] == 0
    for box in [held[0], *at_once(keeper, 3)]:
        keeper.kill_box(box)
    trimmed(keeper)


def test_an_end_leaves_none(make_keeper):
    keeper = make_keeper(options=NEVER)
    keeper.prepare(2)
    for box in at_once(keeper, 10)[1:]:
        keeper.kill_box(box)
    assert boxes.devices_of(keeper)
    assert keeper.end() == 0
    boxes.nothing_left(keeper, of_keeper=True)
    assert boxes.devices_written_down(keeper) == 0


def test_an_end_passes_over_what_is_held(make_keeper):
    """As many as are removed side by side are open, and so cannot be; the next keeper removes them."""
    keeper = make_keeper(options=NEVER)
    for box in at_once(keeper, TRIMMERS + 2):
        keeper.kill_box(box)
    boxes.nothing_left(keeper)
    held = sorted(boxes.devices_of(keeper))[:TRIMMERS]
    with contextlib.ExitStack() as files:
        for number in held:
            files.enter_context(open(f'/dev/loop{number}', 'rb'))
        assert keeper.end() == 0
        assert sorted(boxes.devices_of(keeper)) == held
        assert boxes.devices_written_down(keeper) == len(held)
    assert keeper.start().end() == 0
    boxes.nothing_left(keeper, of_keeper=True)
    assert boxes.devices_written_down(keeper) == 0


def test_strangers_are_left_alone(make_keeper, folder):
    """A device in our range that we did not make, and one of ours that somebody else uses."""
    keeper = make_keeper(options=IDLE)
    base = first_number(keeper)
    image = folder / 'image'
    image.write_bytes(bytes(boxes.MIB))
    with stranger(base):
        try:
            keeper.kill_box(keeper.create())
            boxes.wait_until(lambda: boxes.devices_written_down(keeper), 'a device that is not ours in the list')
            first, second = keeper.create(), keeper.create()
            assert sorted(boxes.devices_of(keeper)) == [base, base + 1, base + 2]
            keeper.kill_box(first)
            boxes.wait_until(lambda: len(boxes.loops_of(keeper)) != 1, 'the end of a box')
            taken = next(n for n in boxes.devices_of(keeper)
                         if n != base and not os.path.exists(f'/sys/block/loop{n}/loop'))
            subprocess.run(['losetup', f'/dev/loop{taken}', image], check=True)
            keeper.kill_box(second)
            boxes.wait_until(lambda: set(boxes.devices_of(keeper)) != {base, taken}, 'ours that is free')
            subprocess.run(['losetup', '-d', f'/dev/loop{taken}'], check=True)
            boxes.wait_until(lambda: boxes.devices_of(keeper) != [base], 'ours that is free again')
        finally:
            keeper.end()
            assert base in boxes.devices_of(keeper)


def test_a_list_of_another_name_says_nothing(make_keeper):
    keeper = make_keeper(options=IDLE)
    assert keeper.end() == 0
    name = boxes.free_name()
    (keeper.state / 'devices').write_bytes(keeper.instance.encode() + b'\1' * boxes.DEVICE_PLACES)
    (keeper.state / 'instance').write_text(name)
    with stranger(first_number(keeper)):
        keeper.start()
        assert boxes.devices_written_down(keeper) == 0
        assert keeper.end() == 0
        assert boxes.devices_of(keeper) == [first_number(keeper)]
    assert (keeper.state / 'devices').read_bytes() == name.encode() + bytes(boxes.DEVICE_PLACES)


def test_what_was_not_made_is_not_ours(make_keeper):
    """The number that a disk was to have is somebody else's, and the disk fails before that shows."""
    keeper = make_keeper(options=IDLE)
    base = first_number(keeper)
    box = boxes.new_id()
    (keeper.state / 'kept' / f'{box}.img').mkdir()
    with stranger(base):
        assert keeper.call(CREATE, box, flags=boxes.KEEP_DISK)[0].verb == boxes.FAILED
        boxes.wait_until(lambda: boxes.devices_written_down(keeper), 'a device that is not ours in the list')
        assert boxes.devices_of(keeper) == [base]
        assert keeper.end() == 0
        assert boxes.devices_of(keeper) == [base]


@needs_failpoints
@pytest.mark.parametrize('step', ('device-record', 'device-made', 'device-trim', 'device-removed', 'device-wiped'))
def test_killed_between_steps(make_keeper, step):
    """Of the keeper or of a helper; the next keeper knows what is its own."""
    keeper = make_keeper(options=IDLE)
    keeper.end()
    keeper.start(fail_at=step + ':2')
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        for _ in [keeper.ask(CREATE, boxes.new_id()) for _ in range(2)]:
            answer, _ = keeper.answer()
            if answer.verb == boxes.BOX:
                keeper.ask(KILL, answer.box)
        boxes.wait_until(lambda: keeper.process.poll() is None and (untouched(keeper) or unwritten(keeper)), 'devices')
    keeper.end(signal.SIGKILL)
    boxes.wait_until(lambda: boxes.helpers_of(keeper), 'helpers outlive the keeper')
    keeper.start()
    boxes.nothing_left(keeper)
    # One may be in use for a moment longer: what is attached to it ends in a helper.
    boxes.wait_until(lambda: boxes.devices_of(keeper), 'devices that nobody needs')
    trimmed(keeper)
