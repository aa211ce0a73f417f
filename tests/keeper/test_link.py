# SPDX-License-Identifier: Apache-2.0
"""The server's side of keeper and channel, killed at every moment that matters: no byte of a command is
lost or doubled, and neither is its end."""
import os
import signal
import struct
import subprocess

import pytest

import boxes

LINES = 150000
LINE = 10
PAGE = 4096
WANT = b''.join(b'%09d\n' % i for i in range(LINES))
# The second of each is somewhere in the middle of the output.
MOMENTS = ['run-started:1', 'run-before-write:1', 'run-before-write:9', 'run-after-write:1', 'run-after-write:4',
           'runlog-written:1', 'runlog-written:11', 'runlog-paged:1', 'runlog-paged:12', 'run-ended:1',
           'run-before-forget:1']


def drive(keeper, folder, fail_at=None):
    env = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=1:abort_on_error=1'}
    if fail_at:
        env['COOP_FAIL_AT'] = fail_at
    done = subprocess.run([os.environ['COOP_LINK_DRIVER'], keeper.socket_path, folder, str(LINES)], env=env,
                          capture_output=True, timeout=60)
    said = done.stderr.decode().splitlines(True)
    return done.returncode, ''.join(line for line in said if 'msg="slow dispatch"' not in line)


def logged(folder):
    data = (folder / 'logs/1.out').read_bytes()
    magic, version, gaps, end = struct.unpack_from('<8sIIQ', data)
    assert (magic, version, gaps) == (b'cooplog\0', 1, 0)
    return data[PAGE:PAGE + end]


@pytest.fixture
def real(make_keeper):
    keeper = make_keeper(init=os.environ['COOP_INIT'])
    keeper.sock.close()
    keeper.sock = None
    return keeper


def check(keeper, folder):
    assert (folder / 'end').read_text() == f'exit 5 {LINES * LINE}\n'
    assert logged(folder) == WANT
    boxes.nothing_left(keeper)


def test_in_one_go(real, folder):
    assert drive(real, folder) == (0, '')
    check(real, folder)


@pytest.mark.parametrize('moment', MOMENTS)
def test_killed(real, folder, moment):
    if not os.environ['COOP_HAS_FAILPOINTS']:
        pytest.skip('a release build has no failpoints')
    assert drive(real, folder, moment)[0] == -signal.SIGKILL
    assert drive(real, folder) == (0, '')
    check(real, folder)


def test_killed_again_and_again(real, folder):
    if not os.environ['COOP_HAS_FAILPOINTS']:
        pytest.skip('a release build has no failpoints')
    for moment in MOMENTS * 2:
        code, text = drive(real, folder, moment)
        assert code in (0, -signal.SIGKILL), text
        if code == 0:
            break
    else:
        assert drive(real, folder) == (0, '')
    check(real, folder)
