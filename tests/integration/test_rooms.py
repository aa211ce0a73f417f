# SPDX-License-Identifier: Apache-2.0
"""Rooms as people see them: over HTTP and WebSocket, filtered, through restarts, against hostile bytes."""
import os
import signal
import struct
import subprocess

import pytest

from boxclient import WebSocket
from harness import PROGRAM, WAIT_S, check_error, wait_until
from roomserver import Room, add_agent, make_task, put_task


@pytest.fixture
def room(server):
    return Room(server, make_task(server))


def test_messages_and_context(room):
    for i in range(12):
        room.post(text=f'message {i}')
    sent = room.post(text='now', priority='urgent', recipient='coder-1', kind='status', data={'a': [1]})
    assert (sent['n'], sent['priority'], sent['seen_by'], sent['recipient']) == (13, 'urgent', 'person', 'coder-1')
    context = room.get()
    assert [m['n'] for m in context['messages']] == list(range(4, 14))
    assert context['id'] == f'room-{room.task["id"]}'
    assert [m['n'] for m in room.get('/messages?after=10')['messages']] == [11, 12, 13]
    assert [m['n'] for m in room.get('/messages?after=0&priority=high')['messages']] == [13]
    page = room.get('/messages?after=0&limit=2')
    assert [m['n'] for m in page['messages']] == [1, 2] and page['more']
    events = room.server.events(kind='message.posted', task=room.task['id'])
    assert events[-1]['data'] == {'n': 13, 'priority': 'urgent', 'kind': 'status', 'recipient': 'coder-1', 'text': 'now',
                                  'room_id': room.id, 'name': events[-1]['data']['name'], 'seen_by': 'person'}


def test_names_of_a_room(room):
    room.post(text='x')
    for name in (room.id, room.task['id'], str(room.task['number'])):
        for root in ('/rooms', '/api/v1/rooms'):
            assert room.server.get(f'{root}/{name}')['messages'][0]['text'] == 'x'


@pytest.mark.parametrize('body', [{}, {'text': ''}, {'text': 'x' * 8193}, {'text': 1}, {'text': 'x', 'author': 'coop'},
                                  {'text': 'x', 'name': 'ann'}, {'text': 'x', 'seen_by': 'coop'},
                                  {'text': 'x', 'priority': 'most'}, {'text': 'x', 'kind': 'order'},
                                  {'text': 'x', 'data': {'x': 'y' * 20000}}, {'text': 'x', 'data': []}])
def test_bad_messages(room, body):
    check_error(room.server, room.ask('POST', '/messages', body=body), 400)
    assert room.get()['messages'] == []


def test_a_huge_message(room):
    check_error(room.server, room.ask('POST', '/messages', body={'text': 'x' * (1 << 20)}), 400)
    head = {'Content-Type': 'application/json', 'Content-Length': str(1 << 40)}
    assert room.ask('POST', '/messages', headers=head).status == 413


def test_partial_updates(room):
    with room.join() as ws:
        first = room.patch(plan={'phase': {'n': 1, 'name': 'x'}}, assignments={'coder-1': {'task': 'a'}})
        assert room.patch(plan={'phase': {'name': None}})['version'] == first['version'] + 1
        assert ws.text()['data'] == {'plan': {'phase': {'n': 1, 'name': 'x'}}, 'assignments': {'coder-1': {'task': 'a'}}}
        told = ws.text()
        assert (told['type'], told['data'], told['seen_by']) == ('context-update', {'plan': {'phase': {'name': None}}}, 'person')
    room.patch(knowledge=[{'name': 'port', 'text': '8003', 'evidence': 'ss -ltn', 'expires_s': 60}])
    context = room.get()
    assert context['plan'] == {'phase': {'n': 1}}
    fact = context['knowledge'][0]
    assert (fact['name'], fact['text'], fact['evidence'], fact['seen_by']) == ('port', '8003', 'ss -ltn', 'person')
    assert fact['expires_at'] > fact['at']
    check_error(room.server, room.ask('PATCH', body={'messages': []}), 400)
    kinds = [e['kind'] for e in room.server.events(task=room.task['id']) if not e['kind'].startswith('task.')]
    assert kinds[-4:] == ['context.updated', 'context.updated', 'knowledge.added', 'context.updated']


def test_everybody_hears(room):
    with room.join() as all_, room.join('?priority=high') as loud:
        room.post(text='one')
        all_.tell(type='message', text='two', priority='high', ref='r1')
        assert all_.text()['type'] == 'joined'
        assert [all_.text()['message']['text'] for _ in range(2)] == ['one', 'two']
        assert all_.text() == {'type': 'posted', 'n': 2, 'ref': 'r1'}
        assert loud.text()['message']['text'] == 'two'
        loud.tell(type='context-update', data={'plan': {'x': 1}})
        assert loud.text()['type'] == all_.text()['type'] == 'context-update'
        loud.tell(type='ping', ref='p')
        assert loud.text() == {'type': 'pong', 'ref': 'p'}
    with room.join('?after=1') as late:
        assert late.text()['message']['text'] == 'two'


@pytest.mark.parametrize('frame', ['x', '[]', '{}', '"message"', '{"type":"order"}', '{"type":"message"}', '{"type":1,"text":"x"}',
                                   '{"type":"message","text":"x","author":"coop"}', '{"type":"message","text":""}',
                                   '{"type":"context-update"}', '{"type":"context-update","data":[]}',
                                   '{"type":"context-update","data":{"messages":[]}}', b'\x00binary',
                                   '{"type":"message","text":"' + 'x' * 9000 + '"}', '{"type":"message","type":"message","text":"x"}'])
def test_bad_frames(room, frame):
    with room.join() as ws:
        ws.send(frame)
        told = ws.text()
        assert told['type'] == 'error' and told['message'] and told['code'] == 400
        ws.tell(type='message', text='still')
        assert ws.text()['message']['text'] == 'still'
    assert len(room.get()['messages']) == 1


def frame_bytes(first, data=b'', mask=True):
    size = bytes([len(data)]) if len(data) < 126 else struct.pack('!BH', 126, len(data))
    return bytes([first, size[0] | (0x80 if mask else 0)]) + size[1:] + (bytes(4) if mask else b'') + data


@pytest.mark.parametrize('bytes_, code', [
    (frame_bytes(0x81, b'{}', mask=False), 1002), (frame_bytes(0xf1, b'{}'), 1002), (frame_bytes(0x83, b'{}'), 1002),
    (frame_bytes(0x80, b'{}'), 1002), (frame_bytes(0x81, b'\xff\xfe'), 1007), (frame_bytes(0x09, b'x'), 1002),
    (struct.pack('!BBQ', 0x81, 0xff, 1 << 40) + bytes(5), 1009), (struct.pack('!BBQ', 0x81, 0xff, 200 * 1024) + bytes(5), 1009)])
def test_hostile_frames(room, bytes_, code):
    with room.join() as ws:
        ws.sock.sendall(bytes_)
        opcode, data = ws.next()
        assert opcode == 8 and struct.unpack('!H', data[:2])[0] == code
    assert room.server.is_well()


def test_random_bytes(room):
    for size in (1, 7, 100, 5000):
        with room.join() as ws:
            ws.sock.sendall(os.urandom(size))
    with room.join() as ws:
        room.post(text='fine')
        assert ws.text()['message']['text'] == 'fine'


def test_whose_room_it_is(server):
    ann, bob = server.make_key('read,box', 'ann')['key'], server.make_key('read,box', 'bob')['key']
    reader = server.make_key('read', 'reader')['key']
    room = Room(server, make_task(server, key=ann), key=ann)
    assert room.post(text='mine')['name'] == 'ann'
    for key in (bob, reader):
        for method, path, body in (('GET', '', b''), ('GET', '/messages', b''), ('POST', '/messages', {'text': 'x'}),
                                   ('PATCH', '', {'plan': {}})):
            status = 403 if key == reader and method != 'GET' else 404
            check_error(server, room.ask(method, path, body=body, key=key), status)
        WebSocket(server, f'/rooms/{room.id}', key=key, expect=404).close()
    WebSocket(server, f'/rooms/{room.id}', key=None, expect=401).close()
    assert server.ask('GET', '/rooms/room-nothing').status == 404


def test_a_key_that_ends(server):
    made = server.make_key('read,box', 'short')
    room = Room(server, make_task(server, key=made['key']), key=made['key'])
    with room.join() as ws:
        assert server.ask('DELETE', f'/api/v1/keys/{made["id"]}').status == 204
        assert server.post(f'/rooms/{room.id}/messages', {'text': 'x'})
        opcode, data = ws.next()
        assert opcode == 8 and data[2:] == b'the key is not valid any more'


def test_a_key_that_only_reads(server):
    room = Room(server, make_task(server))
    admin = server.make_key('read', 'looker')['key']
    room.key = admin
    check_error(server, room.ask('POST', '/messages', body={'text': 'x'}), 403)


def test_a_member_that_does_not_read(server):
    """It is told how many it missed; the others and the sender wait for nothing."""
    room = Room(server, make_task(server))
    text = 'x' * 8000
    with room.join(receive_buffer=4096) as slow, room.join() as quick:
        for _ in range(900):
            room.post(text=text)
            while quick.text()['type'] != 'message':
                pass
        got, missed = [], None
        assert slow.text()['type'] == 'joined'
        while missed is None:
            told = slow.text()
            if told['type'] == 'missed':
                missed = told
            else:
                got.append(told['message']['n'])
        assert got == list(range(1, len(got) + 1))
        assert missed['after'] == len(got) and missed['count'] == 900 - len(got) > 0
        room.post(text='last')
        assert slow.text()['message']['n'] == 901


def test_restart(make_server):
    server = make_server()
    room = Room(server, make_task(server))
    with room.join() as ws:
        room.post(text='before')
        room.patch(plan={'a': 1}, assignments={'b': 2}, knowledge=[{'name': 'c', 'text': 'd'}])
        before = room.get()
        server.kill()
        with pytest.raises((ConnectionError, AssertionError)):
            while True:
                ws.text()
    server.start()
    assert room.get() == before
    with room.join('?after=0') as ws:
        assert ws.text()['message']['text'] == 'before'
        assert room.post(text='after')['n'] == 2
    assert server.stop() == 0  # with nobody left behind in a room


def test_stop_tells_members(make_server):
    server = make_server()
    room = Room(server, make_task(server))
    with room.join() as ws:
        assert server.stop() == 0
        with pytest.raises((ConnectionError, AssertionError)):
            while True:
                ws.text()


def test_plan_text(server):
    task = put_task(server, 'approving')
    room = Room(server, task)
    add_agent(server, task, 'coder-1-aabbccdd', 'no-box')
    room.post(text='halfway\nthrough')
    answer = server.ask('GET', f'/api/v1/tasks/{task["number"]}/plan.txt')
    assert answer.status == 200 and answer.headers['Content-Type'].startswith('text/plain')
    text = answer.body.decode()
    assert text == server.ask('GET', f'/agent/v1/plan?task={task["id"]}').body.decode()
    for part in ('Project: ', 'Status: ', 'Progress: 0/0', 'Phase: ', 'Active agents:\n- ', 'coder-1-aabbccdd (coder): work [working]',
                 '(person): halfway through', 'Next steps:\n1. ', 'Estimated time left: '):
        assert part in text
    other = server.make_key('read', 'other')['key']
    assert server.ask('GET', f'/api/v1/tasks/{task["number"]}/plan.txt', key=other).status == 404
    assert server.ask('GET', f'/agent/v1/plan?task={task["id"]}', key=other).status == 404
    assert server.ask('GET', '/agent/v1/plan').status == 400


def test_commands(server):
    task = make_task(server)
    room, number = Room(server, task), str(task['number'])

    def coop(*words, code=0):
        done = subprocess.run([PROGRAM, 'room', *words], env=server.environment(), capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == code, done
        return done.stdout

    assert 'message 1' in coop('post', number, 'hello', '--priority', 'high', '--to', 'coder-1')
    room.patch(plan={'a': 1}, knowledge=[{'name': 'k', 'text': 'v\x1b[31m', 'evidence': 'e'}])
    shown = coop('show', number)
    assert '(person) to coder-1: hello' in shown and '"a": 1' in shown and 'person; e)' in shown
    assert '\x1b' not in shown
    coop('show', 'nothing', code=4)
    before = server.get('/api/v1/sse/stats')['streams']['events']['opened']
    watch = subprocess.Popen([PROGRAM, 'room', 'watch', number], env=server.environment(), stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: server.get('/api/v1/sse/stats')['streams']['events']['opened'] > before, 'the stream')
        room.post(text='seen')
        assert 'message.posted' in watch.stdout.readline()
    finally:
        watch.send_signal(signal.SIGINT)
        assert watch.wait(WAIT_S) == 0
        watch.stdout.close()
