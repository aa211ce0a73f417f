# SPDX-License-Identifier: Apache-2.0
"""Commands in a box: their life, their output, their input."""
import base64
import contextlib
import hashlib
import json
import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from boxserver import API
from harness import WAIT_S, Stream, check_error, read_all, read_answer, wait_until

MEMBERS = {'id', 'command', 'user', 'cwd', 'tty', 'state', 'started_at', 'pid', 'end'}


def bytes_of(items, stream='stdout'):
    """Put together from events, with their offsets checked."""
    got = b''
    for item in items:
        data = item['data']
        if item['event'] != 'output' or data['stream'] != stream:
            continue
        assert data['offset'] == len(got), data
        got += data['text'].encode() if 'text' in data else base64.b64decode(data['base64'])
    return got


def is_end(item):
    return item['event'] == 'end'


# ---- starting ----

def test_start_list_show(boxes, shared_box):
    made = boxes.start_command(shared_box, 'echo hello; echo oops >&2; exit 3')
    assert set(made) == MEMBERS and made['state'] == 'running' and made['end'] is None
    assert made['command'] == 'echo hello; echo oops >&2; exit 3' and made['user'] and made['cwd'] == '/home/user'
    assert made['id'] in [c['id'] for c in boxes.get(f'{API}/{shared_box}/commands')['commands']]
    ended = boxes.ended(shared_box, made['id'])
    assert set(ended) == MEMBERS
    end = ended['end']
    assert (end['reason'], end['exit_code'], end['stdout_bytes'], end['stderr_bytes']) == ('exit', 3, 6, 5)
    assert end['duration_ms'] >= 0 and end['max_rss_bytes'] > 0 and 'signal' not in end
    assert boxes.output(shared_box, made['id']).body == b'hello\n'
    assert boxes.output(shared_box, made['id'], 'stderr').body == b'oops\n'
    newest = boxes.get(f'{API}/{shared_box}/commands?limit=1')['commands']
    assert [c['id'] for c in newest] == [made['id']]


def test_wait(boxes, shared_box):
    done = boxes.run(shared_box, 'echo out; echo err >&2; exit 2')
    assert set(done) == MEMBERS | {'stdout', 'stderr'}
    assert (done['stdout'], done['stderr'], done['state'], done['end']['exit_code']) == ('out\n', 'err\n', 'ended', 2)
    done = boxes.run(shared_box, argv=['/bin/printenv', 'A', 'B'], env={'A': 'a b', 'B': '$A'})
    assert done['stdout'] == 'a b\n$A\n' and done['command'] == '/bin/printenv A B'
    assert boxes.run(shared_box, 'pwd', cwd='/tmp')['stdout'] == '/tmp\n'
    assert boxes.run(shared_box, 'seq 1000000')['stdout_truncated'] is True


def test_who_runs_it(boxes, shared_box):
    assert boxes.run(shared_box, 'id -u')['stdout'] == '1000\n'
    assert boxes.run(shared_box, 'id -u', user='1001')['stdout'] == '1001\n'
    lost = boxes.run(shared_box, 'id -u', user='nobody-of-here')
    assert lost['end']['reason'] == 'not-started' and lost['end']['message']


def test_a_user_who_changes(boxes):
    """What is remembered of a user ends with the files it was read from."""
    with boxes.box() as box:
        for uid in (1001, 1002):
            for _ in range(3):
                boxes.run(box, 'id -u', user='user')
            done = boxes.run(box, f'echo "user:x:{uid}:{uid}::/:/bin/sh" > /etc/passwd', root=True)
            assert done['end']['exit_code'] == 0, done
            for _ in range(3):
                assert boxes.run(box, 'id -u', user='user')['stdout'] == f'{uid}\n'


@pytest.mark.parametrize('body,code', [
    ({'argv': ['/no/such']}, 127), ({'argv': ['/etc/passwd']}, 126), ({'command': 'true', 'cwd': '/no/such'}, 127)])
def test_what_cannot_start(boxes, shared_box, body, code):
    end = boxes.run(shared_box, **body)['end']
    assert end['reason'] == 'not-started' and end['message'] and end['exit_code'] in (126, 127)
    assert end['exit_code'] == code


@pytest.mark.parametrize('body', [
    {}, {'command': ''}, {'command': 1}, {'argv': []}, {'argv': 'true'}, {'argv': [1]}, {'argv': ['a'] * 1025},
    {'command': 'true', 'argv': ['true']}, {'command': 'x' * 70000}, {'command': 'true', 'user': ''},
    {'command': 'true', 'user': 'x' * 65}, {'command': 'true', 'timeout': -1}, {'command': 'true', 'timeout': 86401},
    {'command': 'true', 'rows': 0}, {'command': 'true', 'columns': 5000}, {'command': 'true', 'tty': 1},
    {'command': 'true', 'env': {'=': ''}}, {'command': 'true', 'background': True}, [],
], ids=lambda b: json.dumps(b)[:40])
def test_bad_starts(boxes, shared_box, body):
    check_error(boxes, boxes.ask('POST', f'{API}/{shared_box}/commands', body=body), 400)


@pytest.mark.parametrize('n', ['0', 'x', '-1', '4294967296', '99999', '1.5'])
def test_no_such_command(boxes, shared_box, n):
    at = f'{API}/{shared_box}/commands/{n}'
    for method, path, body in [('GET', at, b''), ('DELETE', at, b''), ('GET', at + '/output', b''),
                               ('POST', at + '/stdin', b'x'), ('POST', at + '/signal', {'signal': 15}),
                               ('POST', at + '/resize', {'rows': 1, 'columns': 1})]:
        check_error(boxes, boxes.ask(method, path, body=body), 404)


# ---- ends ----

def test_timeout_kills_the_tree(boxes, shared_box):
    done = boxes.run(shared_box, 'echo a; sleep 1000 & (trap "" TERM; sleep 1001) & wait', timeout=3)
    assert done['end']['reason'] == 'timeout' and done['end']['exit_code'] == 124 and done['stdout'] == 'a\n'
    left = boxes.run(shared_box, 'for p in /proc/[0-9]*/cmdline; do tr "\\0" " " < $p; echo; done')['stdout']
    assert 'sleep 100' not in left


def test_signal(boxes, shared_box):
    for name, number in [('SIGTERM', signal.SIGTERM), ('USR1', signal.SIGUSR1), (2, signal.SIGINT), ('9', signal.SIGKILL)]:
        made = boxes.start_command(shared_box, argv=['/bin/sleep', '1000'], timeout=0)
        at = f'{API}/{shared_box}/commands/{made["id"]}'
        wait_until(lambda a=at: boxes.get(a)['pid'], 'its pid')
        assert boxes.ask('POST', at + '/signal', body={'signal': name}).status == 204
        end = boxes.ended(shared_box, made['id'])['end']
        assert (end['reason'], end['signal'], end['exit_code']) == ('signal', number, 128 + number)
        check_error(boxes, boxes.ask('POST', at + '/signal', body={'signal': name}), 409)
        check_error(boxes, boxes.ask('DELETE', at), 409)
    made = boxes.start_command(shared_box, 'sleep 1000', timeout=0)
    at = f'{API}/{shared_box}/commands/{made["id"]}'
    for body in ({}, {'signal': 0}, {'signal': 65}, {'signal': 'SIGNONE'}, {'signal': None}, {'signal': 9, 'x': 1}, []):
        check_error(boxes, boxes.ask('POST', at + '/signal', body=body), 400)
    assert boxes.ask('DELETE', at).status == 204
    assert boxes.ended(shared_box, made['id'])['end']['signal'] == signal.SIGKILL


def test_out_of_memory(boxes):
    with boxes.box(limits={'memory_mb': 48}) as box:
        done = boxes.run(box, 'x=$(head -c 200000000 /dev/zero | tr "\\0" x); echo ${#x}')
        assert done['end']['reason'] == 'oom' and done['end']['exit_code'] == 137
        assert boxes.run(box, 'echo well')['stdout'] == 'well\n'
        assert boxes.get(f'{API}/{box}/stats')['oom_kills'] > 0


def test_end_of_the_box(boxes):
    made = boxes.create()
    n = boxes.start_command(made['id'], 'echo early; sleep 1000', timeout=0)['id']
    wait_until(lambda: boxes.output(made['id'], n, headers={'Range': 'bytes=0-'}).body == b'early\n', 'its output')
    with boxes.feed(made['id'], n) as feed:
        waiter = boxes.connect()
        waiter.sendall(boxes.request('POST', f'{API}/{made["id"]}/commands',
                                     body={'command': 'sleep 1001', 'wait': True, 'timeout': 0}))
        wait_until(lambda: len(boxes.get(f'{API}/{made["id"]}/commands')['commands']) == 2, 'the second one')
        boxes.ask('DELETE', f'{API}/{made["id"]}')
        assert feed.until(is_end)[-1]['data']['reason'] == 'stopped'
        with waiter:
            assert read_answer(waiter).json['end']['reason'] == 'stopped'
    # All of it stays readable.
    assert [c['id'] for c in boxes.get(f'{API}/{made["id"]}/commands')['commands']] == [1, 2]
    assert boxes.show(made['id'], n)['end']['reason'] == 'stopped'
    assert boxes.output(made['id'], n).body == b'early\n'
    with boxes.feed(made['id'], n) as feed:
        items = feed.until(is_end)
        assert bytes_of(items) == b'early\n' and items[-1]['data']['reason'] == 'stopped'
    check_error(boxes, boxes.ask('POST', f'{API}/{made["id"]}/commands', body={'command': 'true'}), 404)


# ---- output ----

def noise(boxes, box, count):
    """A command that writes random bytes, and those bytes."""
    made = boxes.start_command(box, f'dd if=/dev/urandom of=/tmp/noise bs=1000 count={count}; cat /tmp/noise')
    boxes.ended(box, made['id'])
    return made['id'], boxes.output(box, made['id']).body


def sum_inside(boxes, box):
    return boxes.run(box, argv=['/bin/sha256sum', '/tmp/noise'])['stdout'].split()[0]


def test_random_bytes_come_as_they_are(boxes, shared_box):
    n, body = noise(boxes, shared_box, 3000)
    assert len(body) == 3000000 and hashlib.sha256(body).hexdigest() == sum_inside(boxes, shared_box)
    with boxes.feed(shared_box, n) as feed:
        assert bytes_of(feed.until(is_end)) == body


def test_live_bytes_come_as_they_are(boxes, shared_box):
    line = 'dd if=/dev/urandom of=/tmp/noise bs=1000 count=2000; cat /tmp/noise; head -c 999 /tmp/noise >&2'
    with Stream(boxes, f'{API}/{shared_box}/commands', method='POST', body={'command': line}) as feed:
        items = feed.until(is_end)
    assert items[0]['event'] == 'started' and items[0]['data']['command'] == line
    body = bytes_of(items)
    assert hashlib.sha256(body).hexdigest() == sum_inside(boxes, shared_box)
    assert items[-1]['data']['stdout_bytes'] == 2000000
    assert bytes_of(items, 'stderr').endswith(body[:999])


def test_ranges(boxes, shared_box):
    n, body = noise(boxes, shared_box, 2000)
    size = len(body)
    for text, first, last in [('0-0', 0, 0), ('0-99', 0, 99), ('500-', 500, size - 1), ('-10', size - 10, size - 1),
                              (f'{size - 1}-', size - 1, size - 1), ('1999000-99999999', 1999000, size - 1)]:
        answer = boxes.output(shared_box, n, headers={'Range': f'bytes={text}'})
        assert answer.status == 206 and answer.body == body[first:last + 1], text
        assert answer.headers['Content-Range'] == f'bytes {first}-{last}/{size}'
    for text in (f'{size}-', '99999999-', '-0'):
        answer = boxes.output(shared_box, n, headers={'Range': f'bytes={text}'})
        assert answer.status == 416 and answer.headers['Content-Range'] == f'bytes */{size}'
    for text in ('bytes=5-1', 'lines=1-2', 'bytes=0-1,3-4'):
        assert boxes.output(shared_box, n, headers={'Range': text}).body == body
    for query in ('?stream=both', '?x=1', '?stream=stdout&stream=stderr'):
        check_error(boxes, boxes.ask('GET', f'{API}/{shared_box}/commands/{n}/output{query}'), 400)


def test_range_of_what_goes_on(boxes, shared_box):
    made = boxes.start_command(shared_box, 'echo 0123456789; until [ -e /tmp/range ]; do sleep 0.05; done; echo end', timeout=0)
    first = wait_until(lambda: (a := boxes.output(shared_box, made['id'], headers={'Range': 'bytes=3-'})).status == 206 and a,
                       'the first bytes')
    assert first.body == b'3456789\n' and first.headers['Content-Range'] == 'bytes 3-10/*'
    assert boxes.output(shared_box, made['id'], headers={'Range': 'bytes=11-'}).status == 416
    with boxes.connect() as sock:
        sock.sendall(boxes.request('GET', f'{API}/{shared_box}/commands/{made["id"]}/output'))
        boxes.run(shared_box, 'echo > /tmp/range')
        assert read_answer(sock).body == b'0123456789\nend\n'


def test_range_of_what_moves_on(boxes, shared_box):
    """What a slow reader was promised comes, though the log has dropped it meanwhile."""
    lines, limit = 2500000, 1 << 20
    whole = b''.join(b'%d\n' % i for i in range(10**7, 10**7 + 2 * lines))
    half = len(whole) // 2
    made = boxes.start_command(shared_box, f'seq 10000000 {10**7 + lines - 1}; read x; '
                                           f'seq {10**7 + lines} {10**7 + 2 * lines - 1}; read x', stdin=True, timeout=0)
    at = f'{API}/{shared_box}/commands/{made["id"]}'

    def ask(first):
        answer = boxes.output(shared_box, made['id'], headers={'Range': f'bytes={first}-'})
        return answer if answer.status == 206 else None

    def check(answer):
        first, last = map(int, re.fullmatch(r'bytes (\d+)-(\d+)/\*', answer.headers['Content-Range']).groups())
        assert answer.body == whole[first:last + 1] and 0 < len(answer.body) <= limit
        return first

    wait_until(lambda: ask(half - 1), 'the first half')
    with boxes.connect(receive_buffer=4096) as slow:
        slow.sendall(boxes.request('GET', at + '/output', {'Range': f'bytes={half - 7 * limit}-'}))
        boxes.ask('POST', at + '/stdin', body=b'\n')
        wait_until(lambda: (a := ask(half - 7 * limit)) and check(a) > half, 'the first half to be dropped')
        assert half - 7 * limit <= check(read_answer(slow)) < half
    check(ask(0))
    assert boxes.ask('DELETE', at).status == 204


def test_events_go_on_where_they_were(boxes, shared_box):
    made = boxes.start_command(shared_box, 'for i in 1 2 3; do echo "ä$i"; echo "ö$i" >&2; read x; done; echo end',
                         stdin=True, timeout=0)
    at = f'{API}/{shared_box}/commands/{made["id"]}'
    out, err, last = b'', b'', None
    for i in range(1, 4):
        with boxes.feed(shared_box, made['id'], last) as feed:
            seen = {'stdout': out, 'stderr': err}
            while len(seen['stdout']) < 4 * i or len(seen['stderr']) < 4 * i:
                item = feed.next()
                data = item['data']
                assert data['offset'] == len(seen[data['stream']])
                seen[data['stream']] += data['text'].encode()
                last = item['id']
            out, err = seen['stdout'], seen['stderr']
            assert last == f'{len(out)}.{len(err)}'
        boxes.ask('POST', at + '/stdin', body=b'\n')
    with boxes.feed(shared_box, made['id'], last) as feed:
        items = feed.until(is_end)
        assert [i['data'].get('text') for i in items] == ['end\n', None]
    # In the middle of what is written down already, and at its end.
    with boxes.feed(shared_box, made['id'], '6.4') as feed:
        text = {'stdout': '', 'stderr': ''}
        for item in feed.until(is_end)[:-1]:
            text[item['data']['stream']] += item['data'].get('text') or base64.b64decode(
                item['data']['base64']).decode(errors='replace')
        assert text['stdout'].endswith('ä3\nend\n') and text['stderr'] == 'ö2\nö3\n'
    with boxes.feed(shared_box, made['id'], items[-1]['id']) as feed:
        assert feed.next()['event'] == 'end' and feed.next() is None
    for bad in ('x', '1', '1.2.3', '-1.0', '1.', '99999999999999999999.0'):
        answer = boxes.output(shared_box, made['id'], headers={'Accept': 'text/event-stream', 'Last-Event-ID': bad})
        assert answer.status == 400, bad


def test_text_is_not_cut_in_a_character(boxes, shared_box):
    made = boxes.start_command(shared_box, r"printf 'a\360\237'; sleep 0.3; printf '\230\200b'; printf '\360' >&2")
    with boxes.feed(shared_box, made['id']) as feed:
        items = feed.until(is_end)
    out = [i['data'] for i in items if i['data'].get('stream') == 'stdout']
    assert ''.join(d['text'] for d in out) == 'a\U0001f600b'
    err = [i['data'] for i in items if i['data'].get('stream') == 'stderr']
    assert err == [{'stream': 'stderr', 'offset': 0, 'base64': '8A=='}]


def test_range_ends_with_its_key(make_boxes):
    """So many at once that they are still being looked through when their key goes."""
    boxes = make_boxes()
    key = boxes.make_key()
    with boxes.box() as box, contextlib.ExitStack() as stack:
        n = boxes.start_command(box, 'seq 1000000', timeout=0)['id']
        boxes.ended(box, n)
        path = f'{API}/{box}/commands/{n}/output?stream=stdout'
        asked = [stack.enter_context(boxes.connect()) for _ in range(40)]
        revoke = stack.enter_context(boxes.connect())
        os.kill(boxes.pid, signal.SIGSTOP)
        for sock in asked:
            sock.sendall(boxes.request('GET', path, {'Range': 'bytes=0-', 'Connection': 'close'}, key=key['key']))
        revoke.sendall(boxes.request('DELETE', f'/api/v1/keys/{key["id"]}'))
        os.kill(boxes.pid, signal.SIGCONT)
        assert read_answer(revoke, 'DELETE').status == 204
        said = b''.join(map(read_all, asked))
        assert b'the key of this call is not valid any more' in said


def test_endless_output_has_a_bound(make_boxes):
    boxes = make_boxes(env={'ASAN_OPTIONS': 'quarantine_size_mb=1'})
    with boxes.box() as box:
        boxes.run(box, 'seq 100000')
        before = boxes.resident_kib()
        made = boxes.start_command(box, 'seq 5000000', timeout=0)
        end = boxes.ended(box, made['id'])['end']
        body = boxes.output(box, made['id']).body
        whole = ''.join(f'{i}\n' for i in range(1, 5000001)).encode()
        assert end['reason'] == 'exit' and end['stdout_bytes'] == len(whole)
        parts, at = re.split(rb'\n\[(\d+) bytes left out\]\n', body), 0
        for piece, hole in zip(parts[::2], [*map(int, parts[1::2]), 0]):
            assert piece == whole[at:at + len(piece)]
            at += len(piece) + hole
        assert at == len(whole) and len(parts) > 1 and len(parts[0]) > 1 << 20 and len(parts[-1]) > 1 << 10
        with boxes.feed(box, made['id']) as feed:
            items = feed.until(is_end)
        gaps = [i['data'] for i in items if i['event'] == 'gap']
        assert [g['bytes'] for g in gaps] == list(map(int, parts[1::2]))
        # A range that begins in the hole begins behind it, and Content-Range says so.
        hole = gaps[0]['offset'] + 5
        answer = boxes.output(box, made['id'], headers={'Range': f'bytes={hole}-'})
        behind = gaps[0]['offset']
        for gap in gaps:
            behind += gap['bytes'] if gap['offset'] == behind else 0
        assert answer.headers['Content-Range'].startswith(f'bytes {behind}-')
        assert answer.body == whole[behind:behind + len(answer.body)]
        # And one that is longer than a hole is far ends before it, whole.
        answer = boxes.output(box, made['id'], headers={'Range': 'bytes=1-'})
        assert answer.headers['Content-Range'] == f"bytes 1-{gaps[0]['offset'] - 1}/{len(whole)}"
        assert len(answer.body) > 4 << 20 and answer.body == whole[1:gaps[0]['offset']]
        assert boxes.resident_kib() - before < 16 * 1024


def test_a_reader_that_stops_reading(boxes, shared_box):
    """It holds up nobody, neither the command nor the server."""
    made = boxes.start_command(shared_box, 'seq 300000; echo done >&2')
    with Stream(boxes, f'{API}/{shared_box}/commands/{made["id"]}/output', receive_buffer=4096) as feed:
        assert boxes.ended(shared_box, made['id'])['end']['exit_code'] == 0
        assert bytes_of(feed.until(is_end)) == ''.join(f'{i}\n' for i in range(1, 300001)).encode()


# ---- input and terminals ----

def test_input(boxes, shared_box):
    made = boxes.start_command(shared_box, 'wc -c', stdin=True)
    at = f'{API}/{shared_box}/commands/{made["id"]}'
    assert boxes.post(at + '/stdin', b'12345', status=200) == {'bytes': 5}
    big = b'x' * 3000000
    assert boxes.post(at + '/stdin?close=1', big, status=200) == {'bytes': len(big)}
    boxes.ended(shared_box, made['id'])
    assert boxes.output(shared_box, made['id']).body.split() == [b'3000005']
    check_error(boxes, boxes.ask('POST', at + '/stdin', body=b'x'), 409)
    silent = boxes.start_command(shared_box, 'cat; echo nothing came')
    assert boxes.ended(shared_box, silent['id'])['end']['stdout_bytes'] == 13
    for query in ('?close=2', '?x=1'):
        check_error(boxes, boxes.ask('POST', at + '/stdin' + query, body=b'x'), 400)


def test_input_of_a_command_that_takes_none(boxes, shared_box):
    still = boxes.start_command(shared_box, 'sleep 1000', timeout=0)
    at = f'{API}/{shared_box}/commands/{still["id"]}'
    check_error(boxes, boxes.ask('POST', at + '/stdin', body=b'x'), 409)
    check_error(boxes, boxes.ask('POST', at + '/stdin?close=1'), 409)
    boxes.ask('DELETE', at)


def test_input_that_nobody_reads(boxes):
    with boxes.box() as box, boxes.connect() as sock:
        made = boxes.start_command(box, 'sleep 1000', stdin=True, timeout=0)
        at = f'{API}/{box}/commands/{made["id"]}'
        sock.sendall(boxes.request('POST', at + '/stdin', headers={'Content-Length': '50000000'}))
        sock.settimeout(0.5)
        sent, piece = 0, b'x' * 65536
        with contextlib.suppress(TimeoutError):
            while sent < 50000000:
                sent += sock.send(piece)
        assert sent < 20000000, 'everything was taken'
        sock.settimeout(WAIT_S)
        assert boxes.ask('DELETE', at).status == 204
        assert read_answer(sock).status == 409
        assert boxes.run(box, 'echo well')['stdout'] == 'well\n'


def test_terminal(boxes, shared_box):
    made = boxes.start_command(shared_box, 'stty size; read x; stty size; echo "got $x"', tty=True, rows=40, columns=120)
    at = f'{API}/{shared_box}/commands/{made["id"]}'
    assert made['tty'] is True
    wait_until(lambda: boxes.output(shared_box, made['id'], headers={'Range': 'bytes=0-'}).status == 206, 'its size')
    assert boxes.ask('POST', at + '/resize', body={'rows': 10, 'columns': 20}).status == 204
    boxes.post(at + '/stdin', b'hello\r', status=200)
    boxes.ended(shared_box, made['id'])
    text = boxes.output(shared_box, made['id']).body.decode().split('\r\n')
    assert text[0] == '40 120' and '10 20' in text and 'got hello' in text
    plain = boxes.start_command(shared_box, 'sleep 1000', timeout=0)
    at = f'{API}/{shared_box}/commands/{plain["id"]}'
    check_error(boxes, boxes.ask('POST', at + '/resize', body={'rows': 10, 'columns': 20}), 409)
    for body in ({}, {'rows': 1}, {'rows': 0, 'columns': 1}, {'rows': 1, 'columns': 5000}, {'rows': 1, 'columns': 1, 'x': 1}):
        check_error(boxes, boxes.ask('POST', at + '/resize', body=body), 400)
    boxes.ask('DELETE', at)


# ---- many ----

def test_many_in_a_row(boxes, shared_box):
    for i in range(300):
        done = boxes.run(shared_box, f'echo {i}; exit {i % 3}')
        assert (done['stdout'], done['end']['exit_code']) == (f'{i}\n', i % 3)
    last = boxes.get(f'{API}/{shared_box}/commands?limit=1000')['commands']
    assert len(last) >= 300 and [c['id'] for c in last] == sorted(c['id'] for c in last)
    assert [c for c in last if c['state'] != 'ended'] == []


def test_many_at_once(boxes, shared_box):
    def one(i):
        return boxes.run(shared_box, f'sleep 0.1; seq {i * 1000} {i * 1000 + 999}')['stdout']
    with ThreadPoolExecutor(20) as pool:
        for i, text in enumerate(pool.map(one, range(20))):
            assert text.split() == [str(n) for n in range(i * 1000, i * 1000 + 1000)]


# ---- callers that leave ----

def test_who_waits_may_leave(boxes, shared_box):
    for body, headers in [({'wait': True}, {}), ({}, {'Accept': 'text/event-stream'})]:
        sock = boxes.connect()
        line = 'rm -f /tmp/go; echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo end'
        sock.sendall(boxes.request('POST', f'{API}/{shared_box}/commands', headers=headers,
                                   body={'command': line, 'timeout': 0, **body}))
        n = wait_until(lambda: (c := boxes.get(f'{API}/{shared_box}/commands?limit=1')['commands'][0])['command'] == line
                       and c['state'] == 'running' and c['id'], 'the command')
        wait_until(lambda m=n: boxes.output(shared_box, m, headers={'Range': 'bytes=0-'}).body == b'begun\n', 'its start')
        sock.close()
        boxes.run(shared_box, 'echo > /tmp/go')
        boxes.ended(shared_box, n)
        assert boxes.output(shared_box, n).body == b'begun\nend\n'


def test_a_key_that_is_revoked(boxes):
    key = boxes.make_key('read,box', name='short')
    box = boxes.create(key=key['key'])
    made = boxes.start_command(box['id'], 'while :; do echo x; sleep 0.1; done', timeout=0, key=key['key'])
    with Stream(boxes, f'{API}/{box["id"]}/commands/{made["id"]}/output', key=key['key']) as feed:
        assert feed.next()['event'] == 'output'
        assert boxes.ask('DELETE', f'/api/v1/keys/{key["id"]}').status == 204
        while item := feed.next():
            assert item['event'] == 'output'
    boxes.ask('DELETE', f'{API}/{box["id"]}')


def test_a_restart_loses_nothing(make_boxes):
    server = make_boxes()
    box = server.create()['id']
    made = server.start_command(box, 'for i in $(seq 200); do echo $i; sleep 0.01; done; exit 5', timeout=0)
    with server.feed(box, made['id']) as feed:
        items = [feed.next(), feed.next()]
    server.kill()
    server.spawn()
    server._read_line()
    wait_until(server.has_keeper, 'the keeper')
    with server.feed(box, made['id'], items[-1]['id']) as feed:
        more = feed.until(is_end)
    text = ''.join(i['data'].get('text', '') for i in items + more)
    assert text == ''.join(f'{i}\n' for i in range(1, 201)) and more[-1]['data']['exit_code'] == 5


def test_a_kill_right_after_the_start(boxes, shared_box):
    """The process may not be there yet; the signal waits for it."""
    at = f'{API}/{shared_box}/commands'
    first = boxes.start_command(shared_box, 'true')['id'] + 1
    for n in range(first, first + 50):
        both = boxes.request('POST', at, body={'command': 'sleep 1000', 'timeout': 0})
        both += boxes.request('DELETE', f'{at}/{n}', headers={'Connection': 'close'})
        answers = boxes.raw(both)
        assert b'HTTP/1.1 201 ' in answers and b'HTTP/1.1 204 ' in answers, answers
    for n in range(first, first + 50):
        assert boxes.ended(shared_box, n)['end']['signal'] == signal.SIGKILL


def test_a_box_that_never_said_a_word(boxes):
    with boxes.box() as box:
        silent = boxes.run(box, 'true')['id']
        uuid = boxes.get(f'{API}/{box}')['id']
    for path in ('', '?stream=stderr'):
        answer = boxes.ask('GET', f'{API}/{uuid}/commands/{silent}/output{path}')
        assert (answer.status, answer.body) == (200, b'')
    with boxes.feed(uuid, silent) as feed:
        assert [e['event'] for e in feed.until(is_end)] == ['end']


# ---- results of tests ----

def names_that_fail(n):
    lines = ['TAP version 13', f'1..{n}', *(f'not ok {i} - {i:03d}{"x" * 400}' for i in range(1, n + 1))]
    return '\n'.join(lines) + '\n'


def test_results_are_told_wherever_the_end_is(boxes):
    """By who waited, who followed and who comes when the box is gone; and by an event."""
    with boxes.box() as box:
        boxes.execute(box, files={'few': names_that_fail(3), 'many': names_that_fail(150)})
        waited = boxes.run(box, 'cat few')['end']['test_results']
        assert (waited['runner'], waited['total'], waited['failed'], len(waited['failing'])) == ('tap', 3, 3, 3)
        body = json.dumps({'command': 'cat few'}).encode()
        with Stream(boxes, f'{API}/{box}/commands', method='POST', body=body) as feed:
            started = feed.until(lambda e: e['event'] == 'started')[-1]['data']['id']
            assert feed.until(is_end)[-1]['data']['test_results'] == waited
        detached = boxes.start_command(box, 'seq 100000; cat many')['id']
        results = boxes.ended(box, detached)['end']['test_results']
        assert (results['failed'], len(results['failing']), results['names_cut']) == (150, 150, False)
        # An event has less room for names.
        with boxes.feed(box, detached) as feed:
            told = feed.until(is_end)[-1]['data']['test_results']
        assert told['failed'] == 150 and 10 < len(told['failing']) < 150 and told['names_cut']
        plain = boxes.run(box, 'echo 1 passed')['id']
        uuid = boxes.get(f'{API}/{box}')['id']
    wait_until(lambda: boxes.get(f'{API}/{uuid}')['state'] == 'terminated', 'the end of the box')
    for command, want in ((started, waited), (detached, results), (plain, None)):
        assert boxes.show(uuid, command)['end'].get('test_results') == want
        with boxes.feed(uuid, command) as feed:
            end = feed.until(is_end)[-1]['data']
        assert end.get('test_results', {}).get('total') == (want and want['total'])
    reported = [e for e in boxes.get('/api/v1/events?kind=tests.reported&limit=100')['events']
                if e['box_id'] == box.removeprefix('sb-')]
    assert [e['data']['failed'] for e in reported] == [3, 3, 150]
    assert reported[-1]['data']['run'] == detached
