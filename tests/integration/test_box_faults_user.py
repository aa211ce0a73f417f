# SPDX-License-Identifier: Apache-2.0
"""What is killed where there is no root: the server, the keeper, a box's first process."""
import os
import signal

import pytest

from boxserver import API
from harness import wait_until
from userserver import bare_server

LINES = 200000


@pytest.fixture(scope='module', params=['user', 'namespace'])
def one_server(request, program):
    with bare_server(request.param, program) as made:
        yield made


@pytest.fixture
def server(one_server):
    yield one_server
    one_server.delete_all()
    one_server.nothing_left()


def kill(server, program):
    """The newest that the supervisor started, and waits for the one after it."""
    before = server.pids(program)
    os.kill(before[-1], signal.SIGKILL)
    wait_until(lambda: len(server.pids(program)) > len(before), f'the next {program}')

    def is_back():
        try:
            return server.has_keeper()
        except OSError:
            return False
    wait_until(is_back, 'server and keeper')


def test_the_server(server):
    """Boxes and commands go on; no byte and no exit code is lost."""
    box = server.create()['id']
    command = server.start_command(box, f'seq {LINES}; read x; echo "got $x"; exit 7', stdin=True, timeout=0)['id']
    kill(server, 'serve')
    server.post(f'{API}/{box}/commands/{command}/stdin?close=1', b'well\n', status=200)
    end = server.ended(box, command)['end']
    assert (end['reason'], end['exit_code']) == ('exit', 7)
    want = ''.join(f'{i}\n' for i in range(1, LINES + 1)) + 'got well\n'
    assert server.output(box, command).body == want.encode()


def test_the_keeper(server):
    """Its boxes end with it and say so; the next ones are made."""
    box = server.create()['id']
    server.run(box, 'true')
    kill(server, 'keeper')
    wait_until(lambda: server.state(box) == ('error', 'lost'), 'the end of the box')
    with server.box() as fresh:
        assert server.run(fresh, 'echo well')['stdout'] == 'well\n'


def test_the_first_process_of_a_box(server):
    box, other = server.create()['id'], server.create()['id']
    server.start_command(box, 'sleep 1000', timeout=0)
    os.kill(server.init_of(box), signal.SIGKILL)
    wait_until(lambda: server.state(box)[0] == 'error', 'the end of the box')
    assert server.state(box)[1] == 'exited'
    assert server.run(other, 'echo well')['stdout'] == 'well\n'
