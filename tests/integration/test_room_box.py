# SPDX-License-Identifier: Apache-2.0
"""A room as an agent sees it: from inside a real box, through the real door."""
import json
import shlex

import pytest

from boxclient import WebSocket
from harness import WAIT_S, wait_until
from roomserver import Room, add_agent, put_task
from workserver import serving

# A client in bash: the mask of its frames is 0, which leaves the bytes as they are.
HTTP = r'''
exec 3<>/dev/tcp/127.0.0.1/3128
body={body}
printf '{method} {path} HTTP/1.1\r\nHost: coop\r\nConnection: close\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n%s' "${{#body}}" "$body" >&3
cat <&3
'''
SOCKET = r'''
exec 3<>/dev/tcp/127.0.0.1/3128
printf 'GET {path} HTTP/1.1\r\nHost: coop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n' >&3
while IFS= read -r line <&3 && [ "$line" != $'\r' ]; do echo "$line"; done
say() {{ printf "\\x81\\x$(printf %x $((128 + ${{#1}})))\\0\\0\\0\\0%s" "$1" >&3; }}
{then}
'''
HEAR = 'IFS= read -r -d "}" -t 20 -u 3 x; echo; echo "heard: $x"'


@pytest.fixture(scope='module')
def server():
    with serving() as one:
        yield one


@pytest.fixture
def room(server):
    task = put_task(server)
    room = Room(server, task)
    room.box = server.create()
    room.execution = add_agent(server, task, f'coder-1-{room.box["sandbox_id"][-8:]}', room.box['e2b_id'])
    yield room
    server.ask('DELETE', f'/api/v1/sandboxes/{room.box["sandbox_id"]}')


def run(room, script):
    done = room.server.run(room.box['sandbox_id'], argv=['/bin/bash', '-c', script], timeout=WAIT_S)
    return done['stdout']


def ask(room, method, path, body=None, key='none'):
    text = run(room, HTTP.format(method=method, path=path, body=shlex.quote(json.dumps(body) if body is not None else ''), key=key))
    head, _, rest = text.partition('\r\n\r\n')
    status = int(head.split()[1])
    return status, json.loads(rest) if rest.startswith('{') else rest


def test_saying_and_reading(room):
    status, sent = ask(room, 'POST', f'/rooms/{room.id}/messages', {'text': 'from inside', 'priority': 'high'})
    assert status == 201, sent
    assert (sent['seen_by'], sent['execution_id'], sent['author'][:6]) == ('agent', room.execution, 'agent:')
    assert sent['name'].startswith('coder-1-')
    assert ask(room, 'PATCH', f'/rooms/{room.id}', {'knowledge': [{'name': 'k', 'text': 'v', 'evidence': 'e'}]})[0] == 200
    context = room.get()
    assert context['messages'][0]['text'] == 'from inside' and context['knowledge'][0]['seen_by'] == 'agent'
    assert ask(room, 'GET', f'/rooms/{room.id}')[1]['messages'][0]['text'] == 'from inside'
    told = room.server.events(kind='message.posted', task=room.task['id'])[-1]
    assert told['data']['seen_by'] == 'agent' and told['execution_id'] == room.execution


def test_only_its_own_room_and_name(room):
    other = put_task(room.server)
    for path in (f'/rooms/room-{other["id"]}', f'/rooms/{other["number"]}', '/rooms/room-x', f'/rooms/{room.id}/x', '/rooms/',
                 f'/rooms/../api/v1/tasks/{room.task["id"]}', f'/api/v1/rooms/{room.id}'):
        status = ask(room, 'GET', path, key=room.server.key)[0]
        assert status in (400, 403, 404), (path, status)
    for lie in ({'author': 'coop'}, {'name': 'coop'}, {'seen_by': 'coop'}, {'execution_id': 'x'}, {'actor': 'local'}):
        assert ask(room, 'POST', f'/rooms/{room.id}/messages', {'text': 'x', **lie})[0] == 400
    # The key of an admin that it came by is not looked at.
    assert ask(room, 'POST', f'/rooms/{room.id}/messages', {'text': 'x'}, key=room.server.key)[1]['seen_by'] == 'agent'
    assert ask(room, 'POST', f'/rooms/room-{other["id"]}/messages', {'text': 'x'}, key=room.server.key)[0] == 404


def test_words_of_others(room):
    room.patch(plan={'goal': 'a wheel'})
    assert ask(room, 'PATCH', f'/rooms/{room.id}', {'plan': {'goal': 'mine'}})[0] == 403
    assert ask(room, 'PATCH', f'/rooms/{room.id}', {'plan': {'note': 'mine'}})[0] == 200
    assert room.get()['plan'] == {'goal': 'a wheel', 'note': 'mine'}


def test_a_box_without_an_agent(room):
    with room.server.box() as box:
        text = room.server.run(box, argv=['/bin/bash', '-c', HTTP.format(method='GET', path=f'/rooms/{room.id}', body="''", key='x')],
                               timeout=WAIT_S)['stdout']
        assert ' 404 ' in text.split('\n')[0]


def test_a_socket_through_the_door(room):
    with room.join() as person:
        text = run(room, SOCKET.format(path=f'/rooms/{room.id}', then='\n'.join([
            HEAR, """say '{"type":"message","text":"hello from a box"}'""", HEAR, 'exec 3>&-'])))
        assert text.startswith('HTTP/1.1 101 ')
        assert '"type":"welcome"' in text and 'hello from a box' in text
        assert person.text() == {'type': 'joined', 'name': person_name(room), 'seen_by': 'agent'}
        assert person.text()['message']['seen_by'] == 'agent'
        assert person.text()['type'] == 'left'
    wait_until(lambda: room.server.events(task=room.task['id'], kind='agent.left'), 'the event')
    kinds = [e['kind'] for e in room.server.events(task=room.task['id'], execution=room.execution)]
    assert [k for k in kinds if not k.startswith('command')] == ['agent.joined', 'message.posted', 'agent.left']


def person_name(room):
    return f'coder-1-{room.box["sandbox_id"][-8:]}'


def test_a_flood(room):
    """An agent that says too much is refused; the room and the others go on."""
    loop = '\n'.join(['for i in $(seq 90); do', """say '{"type":"message","text":"flood"}'""", 'done', 'for i in $(seq 400); do',
                      'IFS= read -r -d "}" -t 20 -u 3 x || break; case $x in *429*) echo refused; break;; esac', 'done'])
    with room.join() as person:
        assert 'refused' in run(room, SOCKET.format(path=f'/rooms/{room.id}', then=loop))
        room.post(text='still here')
        while person.text().get('message', {}).get('text') != 'still here':
            pass
    flood = [m for m in room.server.events(kind='message.posted', task=room.task['id']) if m['data']['text'] == 'flood']
    assert len(flood) <= 64


def test_the_plan_of_its_own_task(room):
    text = ask(room, 'GET', '/agent/v1/plan')[1]
    assert 'Project: ' in text and person_name(room) in text
    assert ask(room, 'GET', f'/agent/v1/plan?task={room.task["id"]}')[0] == 200
    assert ask(room, 'GET', f'/agent/v1/plan?task={put_task(room.server)["id"]}')[0] == 404


def test_people_have_no_place_here(room):
    WebSocket(room.server, f'/rooms/{room.id}', key='e2b_' + '0' * 40, expect=401).close()
