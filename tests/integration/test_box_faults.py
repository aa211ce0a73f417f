# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the server and of the keeper at every stage: commands go on, ends are not lost, nothing is left."""
import os
import pathlib
import re
import shutil
import signal
import tempfile
import threading

import pytest

from boxserver import API, need_boxes
from faultserver import GONE, FaultServer
from harness import check_error, wait_until

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='this build has no failpoints')
CREATE = ('box-create-sent', 'box-create-row', 'box-create-made')
EXEC = ('box-start-sent', 'box-start-row', 'run-started', 'run-before-write', 'runlog-written', 'run-after-write', 'run-ended',
        'box-end-row', 'run-before-forget')
PAUSE = ('box-pause-sent', 'box-pause-done')
DELETE = ('box-kill-sent', 'box-kill-gone', 'box-kill-row')
START = ('box-listed', 'box-adopt')
STORE = ('store.job.begin', 'store.commit.before', 'store.commit.after', 'store.publish.before')
KEEPER_CREATE = ('create-record', 'create-cgroup', 'create-disk', 'create-clone', 'create-maps', 'create-network',
                 'create-layers', 'create-running')
KEEPER_KILL = ('kill-signal', 'kill-reaped', 'kill-cgroup', 'kill-record')

LINES = 30000
NUMBERS = ''.join(f'{i}\n' for i in range(1, LINES + 1)).encode()
COUNTS = f'seq {LINES}; echo bad >&2; exit 7'


@pytest.fixture(scope='module')
def one_server():
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    try:
        server = FaultServer(place).start()
        yield server
        server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def server(one_server):
    """Whatever a test did to it: afterwards it runs without failpoints and nothing is there."""
    yield one_server
    if one_server.process is None or 'COOP_FAIL_AT' in one_server.env:
        one_server.restart()
    if not one_server.keeper.is_running() or one_server.keeper.env:
        one_server.restart_keeper()
    one_server.delete_all()
    one_server.nothing_left()


class Witness:
    """A command that runs through all of it and says at its end what it was told."""

    def __init__(self, server):
        self.server, self.box, self.told = server, server.create()['id'], b''
        line = 'while read x; do echo "got $x"; done; exit 9'
        self.id = server.start_command(self.box, line, stdin=True, timeout=0)['id']

    def tell(self, text):
        self.server.post(f'{API}/{self.box}/commands/{self.id}/stdin', text + b'\n', status=200)
        self.told += b'got ' + text + b'\n'

    def is_well(self):
        self.server.post(f'{API}/{self.box}/commands/{self.id}/stdin?close=1', b'', status=200)
        end = self.server.ended(self.box, self.id)['end']
        assert (end['reason'], end['exit_code']) == ('exit', 9)
        assert self.server.output(self.box, self.id).body == self.told


def check_counts(server, box, command):
    end = server.ended(box, command)['end']
    assert (end['reason'], end['exit_code']) == ('exit', 7)
    assert (end['stdout_bytes'], end['stderr_bytes']) == (len(NUMBERS), 4)
    assert server.output(box, command).body == NUMBERS
    assert server.output(box, command, 'stderr').body == b'bad\n'


# ---- the server ----

@needs_failpoints
@pytest.mark.parametrize('point', CREATE)
def test_server_killed_while_creating(server, point):
    witness = Witness(server)
    server.restart(f'{point}:1')
    witness.tell(b'one')
    again = {'Idempotency-Key': f'once {point}'}
    assert server.try_('POST', API, body={}, headers=again) is None
    server.wait_killed()
    server.restart()
    witness.tell(b'two')
    # The same call again: there is one box, and it works.
    made = server.ask('POST', API, body={}, headers=again)
    assert made.status in (200, 201)
    assert server.live() == {witness.box, made.json['id']}
    assert server.run(made.json['id'], 'echo well')['stdout'] == 'well\n'
    for one in server.get(f'{API}?ended=1')['sandboxes']:
        assert one['state'] == 'terminated' or one['reason'] in ('interrupted', 'lost'), one
    witness.is_well()


@needs_failpoints
@pytest.mark.parametrize('point', CREATE + EXEC)
def test_server_killed_while_creating_with_a_command(server, point):
    witness = Witness(server)
    server.restart(f'{point}:1')
    body = {'lease': f'with {point}', 'command': {'command': COUNTS}}
    server.try_('POST', API, body=body)
    server.wait_killed()
    server.restart()
    witness.tell(b'after')
    # What was begun is whole, or was never there.
    for box in server.live() - {witness.box}:
        commands = [c['id'] for c in server.get(f'{API}/{box}/commands')['commands']]
        assert len(commands) <= 1
        for command in commands:
            check_counts(server, box, command)
    again = server.ask('POST', API, body={**body, 'command': {'command': 'echo well', 'wait': True}})
    assert again.status in (200, 201) and again.json['command']['stdout'] == 'well\n'
    assert server.live() == {witness.box, again.json['id']}
    witness.is_well()


@needs_failpoints
@pytest.mark.parametrize('point', CREATE)
def test_nobody_is_left_with_a_box_he_never_heard_of(server, point):
    """Without words to find it by, what was made for the caller ends with the next start."""
    witness = Witness(server)
    server.restart(f'{point}:1')
    assert server.try_('POST', API, body={}) is None
    server.wait_killed()
    server.restart()
    wait_until(lambda: server.live() == {witness.box}, 'the end of what nobody knows')
    for one in server.get(f'{API}?ended=1')['sandboxes']:
        assert one['state'] == 'terminated' or one['reason'] == 'interrupted', one
    witness.is_well()


@needs_failpoints
def test_server_killed_while_filling_its_pool(server):
    """The box that was being made is nobody's; the one that was taken before stays."""
    witness = Witness(server)
    server.env['COOP_BOXES_POOL'] = '1'
    try:
        server.restart('box-pool-made:2')
        wait_until(lambda: 'coop_boxes_pooled 1' in server.ask('GET', '/metrics').body.decode(), 'a box in the pool')
        taken = server.create()
        assert taken['from_pool']
        server.wait_killed()
        server.restart()
        wait_until(lambda: 'coop_boxes_pooled 1' in server.ask('GET', '/metrics').body.decode(), 'a new one in the pool')
        assert server.live() == {witness.box, taken['id']}
        assert server.run(taken['id'], 'echo well')['stdout'] == 'well\n'
    finally:
        server.env['COOP_BOXES_POOL'] = '0'
        server.restart()
    witness.is_well()


@needs_failpoints
@pytest.mark.parametrize('point', EXEC)
def test_server_killed_while_executing(server, point):
    witness = Witness(server)
    box = server.create()['id']
    server.restart(f'{point}:1')
    answer = server.try_('POST', f'{API}/{box}/commands', body={'command': COUNTS})
    server.wait_killed()
    server.restart()
    witness.tell(b'after')
    commands = [c['id'] for c in server.get(f'{API}/{box}/commands')['commands']]
    assert len(commands) == 1 or answer is None
    for command in commands:
        check_counts(server, box, command)
    done = server.run(box, 'echo well')
    assert done['stdout'] == 'well\n' and done['id'] not in commands
    witness.is_well()


@needs_failpoints
@pytest.mark.parametrize('point', ('box-start-sent', 'box-start-row'))
def test_server_killed_before_it_was_answered(server, point):
    """A server that came back starts a command before init has greeted it, and is killed: the command runs."""
    box = server.create()
    init = server.init_pid(box['sandbox_id'])
    os.kill(init, signal.SIGSTOP)
    try:
        server.restart(f'{point}:1')
        server.try_('POST', f'{API}/{box["id"]}/commands', body={'command': COUNTS})
        server.wait_killed()
    finally:
        os.kill(init, signal.SIGCONT)
    server.restart()
    ran = wait_until(lambda: server.get(f'{API}/{box["id"]}/commands')['commands'], 'that it is found')
    check_counts(server, box['id'], ran[0]['id'])
    assert server.run(box['id'], 'echo well')['stdout'] == 'well\n'


@needs_failpoints
def test_server_killed_while_a_log_turns(server):
    """Longer than a log may be: what is left out is told, to the byte."""
    box = server.create()['id']
    server.restart('runlog-paged:3')
    command = server.start_command(box, 'seq 3000000; exit 7', timeout=0)['id']
    server.wait_killed()
    server.restart()
    whole = ''.join(f'{i}\n' for i in range(1, 3000001)).encode()
    end = server.ended(box, command)['end']
    assert (end['exit_code'], end['stdout_bytes']) == (7, len(whole))
    at = 0
    for piece in re.split(rb'(\n\[\d+ bytes left out\]\n)', server.output(box, command).body):
        gap = re.fullmatch(rb'\n\[(\d+) bytes left out\]\n', piece)
        if gap is None:
            assert whole[at:at + len(piece)] == piece
        at += int(gap[1]) if gap else len(piece)
    assert at == len(whole)


@needs_failpoints
@pytest.mark.parametrize('point', DELETE)
def test_server_killed_while_deleting(server, point):
    witness = Witness(server)
    box = server.create()['id']
    command = server.start_command(box, 'echo early; sleep 1000', timeout=0)['id']
    wait_until(lambda: server.output(box, command, headers={'Range': 'bytes=0-'}).body == b'early\n', 'its output')
    server.restart(f'{point}:1')
    assert server.try_('DELETE', f'{API}/{box}') is None
    server.wait_killed()
    server.restart()
    wait_until(lambda: server.state(box) == ('terminated', 'killed'), 'the end of the box')
    assert server.live() == {witness.box}
    assert server.show(box, command)['end']['reason'] in ('stopped', 'lost')
    assert server.output(box, command).body == b'early\n'
    witness.tell(b'after')
    witness.is_well()


@needs_failpoints
@pytest.mark.parametrize('point', PAUSE)
def test_server_killed_while_pausing(server, point):
    box = server.create()['id']
    command = server.start_command(box, COUNTS)['id']
    server.restart(f'{point}:1')
    assert server.try_('POST', f'{API}/{box}/pause') is None
    server.wait_killed()
    server.restart()
    assert server.state(box)[0] in ('paused', 'ready', 'busy')
    assert server.ask('POST', f'{API}/{box}/resume').status in (200, 409)
    check_counts(server, box, command)


@needs_failpoints
def test_server_killed_while_a_box_expires(server):
    server.restart('box-expire:1')
    box = server.create(timeout=1)['id']
    server.wait_killed()
    server.restart()
    wait_until(lambda: server.state(box) == ('terminated', 'expired'), 'the end of the box')


@needs_failpoints
@pytest.mark.parametrize('point', START)
def test_server_killed_while_it_finds_boxes(server, point):
    witness = Witness(server)
    server.stop()
    server.env['COOP_FAIL_AT'] = f'{point}:1'
    server.spawn()
    server.wait_killed()
    server.restart()
    witness.tell(b'after')
    witness.is_well()


def a_life(server):
    """True: it was killed on the way."""
    try:
        server.process.stdout.readline()
        wait_until(lambda: server.process.poll() is not None or server.has_keeper(), 'the keeper')
        box = server.create()['id']
        check_counts(server, box, server.start_command(box, COUNTS)['id'])
        assert server.ask('DELETE', f'{API}/{box}').status == 204
    except GONE:
        return True
    return server.process.poll() is not None


@needs_failpoints
@pytest.mark.parametrize('point', STORE)
def test_server_killed_at_every_write(server, point):
    """Create, run, delete, with a kill at one write after the other."""
    witness = Witness(server)
    for n in range(1, 40):
        if server.process is not None:
            server.stop()
        server.env['COOP_FAIL_AT'] = f'{point}:{n}'
        server.spawn()
        if not a_life(server):
            break
        server.wait_killed()
    assert n > 4
    server.restart()
    for one in server.live() - {witness.box}:
        server.run(one, 'true')
    witness.tell(b'after')
    witness.is_well()


def test_server_killed_while_uploading(server):
    box = server.create()['id']
    at = f'{API}/{box}/files?path=/home/user/file'
    assert server.ask('PUT', at, body=b'before').status == 201
    empty = server.get(f'{API}/{box}/stats')['disk_bytes']
    with server.connect() as sock:
        sock.sendall(server.request('PUT', at, headers={'Content-Length': '30000000'}) + bytes(5000000))
        wait_until(lambda: server.get(f'{API}/{box}/stats')['disk_bytes'] > empty + 3000000, 'a part of the new file')
        server.kill()
    server.restart()
    assert server.ask('GET', at).body == b'before'
    wait_until(lambda: server.get(f'{API}/{box}/stats')['disk_bytes'] < empty + 1000000, 'the end of the upload')
    assert server.run(box, 'ls -A /home/user')['stdout'] == 'file\n'
    assert server.ask('PUT', at, body=b'after').status == 201
    assert server.ask('GET', at).body == b'after'


# ---- the first process of a box ----

def test_init_killed(server):
    witness = Witness(server)
    box = server.create()['sandbox_id']
    command = server.start_command(box, 'echo early; sleep 1000', timeout=0)['id']
    wait_until(lambda: server.output(box, command, headers={'Range': 'bytes=0-'}).body == b'early\n', 'its output')
    os.kill(server.init_pid(box), signal.SIGKILL)
    wait_until(lambda: server.state(box)[0] == 'error', 'the end of the box')
    assert server.state(box) == ('error', 'exited')
    assert server.ended(box, command)['end']['reason'] == 'lost'
    assert server.output(box, command).body == b'early\n'
    check_error(server, server.ask('POST', f'{API}/{box}/commands', body={'command': 'true'}), 404)
    witness.tell(b'after')
    witness.is_well()


# ---- the keeper ----

def test_keeper_killed(server):
    held = [Witness(server) for _ in range(3)]
    held[0].tell(b'before')
    wait_until(lambda: server.output(held[0].box, held[0].id, headers={'Range': 'bytes=0-'}).body == held[0].told, 'output')
    server.keeper.stop(signal.SIGKILL)
    wait_until(lambda: not server.has_keeper(), 'that it is noticed')
    check_error(server, server.ask('POST', API, body={}), 503)
    assert server.is_well() or 'keeper' in str(server.get('/health', key=None))
    server.restart_keeper()
    for one in held:
        wait_until(lambda box=one.box: server.state(box) == ('error', 'lost'), 'that it is told')
        assert server.ended(one.box, one.id)['end']['reason'] == 'lost'
    assert server.output(held[0].box, held[0].id).body == held[0].told
    with server.box() as box:
        assert server.run(box, 'echo well')['stdout'] == 'well\n'


@needs_failpoints
@pytest.mark.parametrize('point', KEEPER_CREATE)
def test_keeper_killed_while_creating(server, point):
    server.restart_keeper(f'{point}:2')
    first = Witness(server)
    answer = server.ask('POST', API, body={})
    check_error(server, answer, 503)
    server.keeper.died()
    server.restart_keeper()
    wait_until(lambda: server.state(first.box) == ('error', 'lost'), 'that it is told')
    assert server.live() == set()
    server.nothing_left()
    with server.box() as box:
        assert server.run(box, 'echo well')['stdout'] == 'well\n'


@needs_failpoints
@pytest.mark.parametrize('point', KEEPER_KILL)
def test_keeper_killed_while_killing(server, point):
    server.restart_keeper(f'{point}:1')
    first, box = Witness(server), server.create()['id']
    answers = []
    caller = threading.Thread(target=lambda: answers.append(server.ask('DELETE', f'{API}/{box}').status))
    caller.start()
    server.keeper.died()
    server.restart_keeper()
    caller.join()
    assert answers == [204] and server.state(box) == ('terminated', 'killed')
    wait_until(lambda: server.state(first.box) == ('error', 'lost'), 'that it is told')
    server.nothing_left()
