# SPDX-License-Identifier: Apache-2.0
"""Root inside a real box, as sudo gives it: the few capabilities, the same walls, the same end."""
import errno
import os
import re
import shutil

import pytest

import boxes
import frames
from boxes import CREATE, Box
from test_escape import INIT_CAPABILITIES

PROBE, SUDO = '/bin/probe', '/usr/bin/sudo'


@pytest.fixture
def make_box(make_keeper):
    keeper = make_keeper(init=os.environ['COOP_INIT'])
    folder = keeper.store / boxes.LAYER / 'usr/bin'
    folder.mkdir(parents=True)
    shutil.copy(os.environ['COOP_SUDO'], folder / 'sudo')
    (keeper.store / boxes.LAYER / 'etc/passwd').write_text(
        'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\nother:x:33:33::/:/bin/sh\n')
    made = []

    def make(flags=boxes.SUDO):
        answer, fds = keeper.call(CREATE, boxes.new_id(), flags=flags)
        box = Box(answer, fds)
        made.append(box)
        box.init = frames.Init(box)
        return box

    yield make
    for box in made:
        keeper.kill_box(box)
    boxes.nothing_left(keeper)


def fields(text):
    return dict(re.findall(r'^(\w+):\s*(.*)$', text, re.M))


def test_root_is_small(make_box):
    box = make_box()
    reason, code, out, _ = box.init.run(SUDO, PROBE, 'cat', '/proc/self/status')
    assert (reason, code) == (frames.EXIT, 0)
    found = fields(out)
    assert found['Uid'].split() == ['0'] * 4 and found['Gid'].split() == ['0'] * 4
    assert int(found['CapEff'], 16) == int(found['CapBnd'], 16) == INIT_CAPABILITIES
    assert int(found['CapAmb'], 16) == int(found['CapInh'], 16) == 0
    assert (found['Seccomp'], found['NoNewPrivs']) == ('2', '1')
    assert box.init.run(PROBE, 'cat', '/proc/self/oom_score_adj')[2] == '500\n'
    assert box.init.run(SUDO, PROBE, 'cat', '/proc/self/oom_score_adj')[2] == '500\n'
    assert box.init.run(SUDO, PROBE, 'cat', '/proc/1/oom_score_adj')[2] == '0\n'


def test_other_users(make_box):
    box = make_box()
    found = fields(box.init.run(SUDO, '-u', 'other', PROBE, 'cat', '/proc/self/status')[2])
    assert found['Uid'].split()[0] == '33' and int(found['CapEff'], 16) == 0
    assert box.init.run(SUDO, '-u', '-x', PROBE)[1] == 1
    reason, code, _, err = box.init.run(SUDO, PROBE, user='other')
    assert code == 1 and 'may not use sudo' in err


def test_root_gets_no_further(make_box):
    """What the escape probe finds is the same as for root that the keeper's own test has."""
    box = make_box()
    plain = box.init.run(PROBE, flags=frames.ROOT)
    by_sudo = box.init.run(SUDO, PROBE)
    assert plain[:2] == by_sudo[:2] == (frames.EXIT, 0)
    assert plain[2] == by_sudo[2]


def test_without_it(make_box):
    box = make_box(flags=0)
    reason, code, out, err = box.init.run(SUDO, PROBE, 'cat', '/etc/passwd')
    assert (reason, code, out) == (frames.EXIT, 1, '')
    assert err == 'sudo: the template of this box does not allow sudo\n'


def test_a_time_limit_reaches_root(make_box):
    box = make_box()
    reason, *_ = box.init.run(SUDO, PROBE, 'pause', timeout_ms=500)
    assert reason == frames.TIMEOUT
    # Only pid 1, as soon as the run's leader is gone too.
    boxes.wait_until(lambda: len(boxes.processes_of(None, box.answer.id_base, 1)) - 1, 'processes')


def test_names_are_read_as_nobody(make_box):
    """A list of users that only root may read names nobody; and who has looked is root again."""
    box = make_box()
    assert fields(box.init.run(PROBE, 'cat', '/proc/self/status', user='other')[2])['Uid'].split() == ['33'] * 4
    assert box.init.run('chmod', '/etc/passwd', '600', flags=frames.BUILTIN | frames.ROOT)[1] == 0
    with pytest.raises(AssertionError, match=os.strerror(errno.ENOENT)):
        box.init.run(PROBE, 'cat', '/proc/self/status', user='other')
    root = fields(box.init.run(PROBE, 'cat', '/proc/self/status', flags=frames.ROOT)[2])
    assert root['Uid'].split() == root['Gid'].split() == ['0'] * 4
    assert int(root['CapEff'], 16) == INIT_CAPABILITIES
