# SPDX-License-Identifier: Apache-2.0
"""A terminal over a WebSocket: real bytes both ways, sizes, signals, coming and going."""
import json
import statistics
import time
from urllib.parse import quote

import pytest

from boxclient import Sandbox, WebSocket, serving
from harness import check_error, wait_until

# Of the server while 40 MB go through: buffers, not the output.
GROWTH_KIB = 24 * 1024


@pytest.fixture(scope='module')
def box_server():
    with serving() as server:
        yield server


@pytest.fixture(scope='module')
def box(box_server):
    with Sandbox(box_server, limits={'disk_mb': 512, 'inodes': 65536}) as one:
        yield one


def terminal(box, line=None, **query):
    if line is not None:
        query['command'] = line
    text = '&'.join(f'{name}={quote(str(value))}' for name, value in query.items())
    ws = WebSocket(box.server, f'{box.root}/terminal?{text}', **{'key': box.key} if box.key else {})
    ws.number = ws.text()['started']['id']
    return ws


def state(box, number):
    return box.ok('GET', f'/commands/{number}').json['state']


def end_of(ws):
    while 'end' not in (told := ws.text()):
        pass
    opcode, data = ws.next()
    assert opcode == 8 and data[:2] == (1000).to_bytes(2, 'big')
    return told['end']


def test_a_login_shell(box):
    with terminal(box) as ws:
        ws.send(b'echo "$((6*7))" $TERM; tty; id -u\n')
        got = ws.until(b'1000\r\n')
        assert b'42 xterm-256color\r\n' in got and b'/dev/pts/' in got
        ws.send(b'exit 3\n')
        assert end_of(ws)['exit_code'] == 3


def test_the_size(box):
    with terminal(box, "trap 'stty size' WINCH; stty size; while :; do read -r x; done", rows=50, columns=132) as ws:
        ws.until(b'50 132\r\n')
        ws.tell(resize={'rows': 7, 'columns': 9})
        ws.send(b'\n')
        ws.until(b'7 9\r\n')
        ws.tell(signal='SIGKILL')
        end = end_of(ws)
        assert (end['reason'], end['exit_code']) == ('signal', 137)


def test_every_byte(box):
    """What an editor sends and draws: escapes, NUL, bytes that are no text."""
    data = bytes(range(256)) * 8
    line = 'stty raw -echo; printf ready; head -c 2048 | od -An -v -tx1 | tr -d " \\n"; printf "\\033[2J\\377"'
    with terminal(box, line) as ws:
        ws.until(b'ready')
        ws.send(data)
        got = ws.until(b'\xff')
        assert bytes.fromhex(got.partition(b'\x1b')[0].decode()) == data
        assert got.endswith(b'\x1b[2J\xff')
        assert end_of(ws)['exit_code'] == 0


def test_keys_that_signal(box):
    # bash forgets an interrupt that comes between two commands, unless it is told what to do.
    with terminal(box, 'trap "exit 130" INT; echo go; while :; do sleep 0.2; done') as ws:
        ws.until(b'go')
        ws.send(b'\x03')
        assert end_of(ws)['exit_code'] == 130
    with terminal(box, 'echo go; cat') as ws:
        ws.until(b'go')
        ws.send(b'\x04')
        assert end_of(ws)['exit_code'] == 0


@pytest.mark.parametrize('order', ['x', '[]', '{}', '{"resize":{}}', '{"resize":{"rows":0,"columns":1}}',
                                   '{"resize":{"rows":1,"columns":1},"x":1}', '{"signal":"SIGNOPE"}', '{"signal":0}',
                                   '{"resize":{"rows":1e9,"columns":1}}', '{"run":"x"}'])
def test_bad_orders(box, order):
    with terminal(box, 'echo go; cat', kill=1) as ws:
        ws.send(order)
        assert ws.text()['error']['message']
        ws.send(b'still\n')
        ws.until(b'still')


def test_detaching_and_coming_back(box):
    with terminal(box, 'echo one; read -r x; echo "two $x"; read -r y; echo "three $y"') as ws:
        ws.until(b'one')
        number = ws.number
    assert state(box, number) == 'running'
    with terminal(box, attach=number) as ws:
        got = ws.until(b'one')
        ws.send(b'A\n')
        before = len(ws.until(b'two A\r\n', got))
    with terminal(box, attach=number, **{'from': before}) as first, terminal(box, attach=number) as second:
        second.until(b'two A')
        first.send(b'B\n')
        assert first.until(b'three B\r\n') == b'B\r\nthree B\r\n'
        second.until(b'three B\r\n')
        assert end_of(first)['exit_code'] == end_of(second)['exit_code'] == 0
    assert state(box, number) == 'ended'


def test_closing_can_kill(box):
    with terminal(box, 'trap "" HUP; echo go; sleep 1000', kill=1) as ws:
        ws.until(b'go')
        number = ws.number
    wait_until(lambda: state(box, number) == 'ended', 'the end of the command')


def test_a_reader_that_does_not_read(box):
    """The command goes on, the server stays small, and who reads again is told what is missing."""
    before = box.server.resident_kib()
    line = 'i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero | tr "\\0" x; i=$((i+1)); done; echo over'
    with terminal(box, line) as ws:
        wait_until(lambda: state(box, ws.number) == 'ended', 'the end of the command')
        assert box.server.resident_kib() - before < GROWTH_KIB
        got, missing = 0, 0
        while True:
            opcode, data = ws.next()
            if opcode == 2:
                got += len(data)
            elif opcode == 1 and 'gap' in json.loads(data):
                missing += json.loads(data)['gap']['bytes']
            else:
                end = json.loads(data)['end']
                break
        assert got + missing == end['stdout_bytes'] >= 40_000_000


def test_a_program_that_does_not_read(box):
    """Input is held up, not gathered."""
    before = box.server.resident_kib()
    with terminal(box, 'stty raw -echo; echo go; sleep 1000', kill=1) as ws:
        ws.until(b'go')
        ws.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(2048):
                ws.send(bytes(60000))
        assert box.server.resident_kib() - before < GROWTH_KIB
    assert box.sh('echo well') == 'well\n'


def test_what_is_too_large(box):
    with terminal(box, 'cat', kill=1) as ws:
        ws.send(bytes(70000))
        opcode, data = ws.next()
        while opcode != 8:
            opcode, data = ws.next()
        assert data[:2] == (1009).to_bytes(2, 'big')


@pytest.mark.parametrize('query,status', [
    ('rows=0', 400), ('columns=5000', 400), ('odd=1', 400), ('attach=0', 400), ('attach=99999', 404),
    ('attach=1&command=x', 400), ('kill=2', 400), ('cwd=%FF', 400)])
def test_bad_queries(box, query, status):
    with WebSocket(box.server, f'{box.root}/terminal?{query}', expect=status):
        pass


def test_a_command_that_cannot_start(box):
    with terminal(box, 'x', user='nobody-of-that-name') as ws:
        end = end_of(ws)
        assert end['reason'] == 'not-started' and end['exit_code'] in (126, 127)


def test_it_is_a_websocket_of_its_owner(box):
    check_error(box.server, box.ask('GET', '/terminal'), 426)
    for scopes, status in [('box', 404), ('read', 403)]:
        key = box.server.make_key(scopes, 'other')['key']
        with WebSocket(box.server, f'{box.root}/terminal', key=key, expect=status):
            pass
    with WebSocket(box.server, f'{box.root}/terminal', headers={'Origin': 'http://evil.example'}, expect=403):
        pass
    with WebSocket(box.server, f'{box.root}/terminal', key=None, headers={'Cookie': box.server.sign_in()}, expect=403):
        pass


def test_a_revoked_key(box_server):
    key = box_server.make_key('read,box', 'short')
    with Sandbox(box_server, key=key['key']) as box:
        ws = terminal(box, 'echo go; cat')
        ws.until(b'go')
        assert box_server.ask('DELETE', f"/api/v1/keys/{key['id']}").status == 204
        ws.send(b'x\n')
        opcode, data = ws.next()
        while opcode != 8:
            opcode, data = ws.next()
        assert data[:2] == (1008).to_bytes(2, 'big')
        box.key = ''


def test_latency(box):
    """Loose: it only finds a path that waits for a timer."""
    with terminal(box, 'stty raw -echo; echo go; cat', kill=1) as ws:
        ws.until(b'go')
        waits = []
        for i in range(50):
            start = time.monotonic()
            ws.send(b'%02d' % i)
            ws.until(b'%02d' % i)
            waits.append(time.monotonic() - start)
        assert statistics.median(waits) < 0.2
