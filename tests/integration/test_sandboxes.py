# SPDX-License-Identifier: Apache-2.0
"""The resource: boxes as /api/v1/sandboxes has them."""
import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from boxserver import API
from harness import Stream, check_error, wait_until
from roomserver import add_agent, make_task

MEMBERS = {'id', 'e2b_id', 'sandbox_id', 'name', 'template', 'template_hash', 'state', 'status', 'reason', 'owner',
           'agent_id', 'task_id', 'squad_id', 'repo_url', 'lease', 'metadata', 'limits', 'degraded', 'executions', 'uptime', 'cost',
           'timeout', 'idle_timeout', 'from_pool', 'created_at', 'updated_at', 'last_used_at', 'expires_at', 'ended_at'}


def ids(answer):
    return {one['sandbox_id'] for one in answer['sandboxes']}


def test_all_that_is_said_of_a_box(boxes):
    wish = {'template': 'tiny', 'name': 'a-box.7', 'agent_id': 'agent-7', 'task_id': 't/1', 'squad_id': 'crew', 'timeout': 600,
            'repo_url': 'https://example.org/x.git', 'metadata': {'a': {'b': [1, 'ü']}}, 'idle_timeout': 300,
            'limits': {'cpu': 0.5, 'memory_mb': 64, 'disk_mb': 32, 'inodes': 2048, 'processes': 20}}
    made = boxes.create(**wish)
    assert set(made) == MEMBERS
    for name in ('template', 'name', 'agent_id', 'task_id', 'squad_id', 'repo_url', 'metadata', 'limits', 'timeout', 'idle_timeout'):
        assert made[name] == wish[name], name
    assert re.fullmatch(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', made['id'])
    assert made['sandbox_id'] == 'sb-' + made['e2b_id'] and re.fullmatch('[a-z0-9]{20}', made['e2b_id'])
    assert (made['state'], made['status'], made['reason'], made['ended_at']) == ('ready', 'RUNNING', None, None)
    assert made['lease'] is None and made['executions'] == 0 and made['degraded'] == []
    for name in (made['id'], made['e2b_id'], made['sandbox_id']):
        assert boxes.get(f'{API}/{name}')['id'] == made['id']
    limit = int(boxes.run(made['id'], 'cat /proc/sys/kernel/threads-max; ulimit -c')['stdout'].split()[-1])
    assert limit == 0
    assert boxes.ask('DELETE', f'{API}/{made["id"]}').status == 204
    gone = boxes.get(f'{API}/{made["id"]}')
    assert set(gone) == MEMBERS
    assert (gone['state'], gone['status'], gone['reason']) == ('terminated', 'TERMINATED', 'killed')
    assert gone['limits'] == wish['limits'] and gone['metadata'] == wish['metadata'] and gone['ended_at']
    check_error(boxes, boxes.ask('DELETE', f'{API}/{made["id"]}'), 404)
    assert made['id'] in {b['id'] for b in boxes.get(f'{API}?ended=1')['sandboxes']}
    assert len(boxes.get(f'{API}?ended=1&limit=1')['sandboxes']) == 1


def test_every_face_lists_what_one_creates(boxes):
    by_service = boxes.post('/sandbox/create', {'environment': 'tiny'})['sandbox_id']
    by_resource = boxes.create()['sandbox_id']
    for path in ('/sandboxes', API):
        assert {by_service, by_resource} <= ids(boxes.get(path))
    assert boxes.get(f'{API}/{by_service}')['template'] == 'tiny'
    assert boxes.get(f'/sandbox/{by_resource}/status')['environment'] == 'tiny'
    boxes.ask('DELETE', f'/sandbox/{by_resource}')
    boxes.ask('DELETE', f'{API}/{by_service}')
    for path in ('/sandboxes', API):
        assert not {by_service, by_resource} & ids(boxes.get(path))


# ---- whose ----

def test_events_are_of_who_made_the_box(boxes):
    """Whatever task or agent it says it is of."""
    keys = {name: boxes.make_key('read,box', name=name)['key'] for name in ('mine', 'yours')}
    claims = {'task_id': 'one-task', 'agent_id': 'one-agent'}
    ids_of = {name: boxes.create(key=key, **claims)['e2b_id'] for name, key in keys.items()}
    with Stream(boxes, key=keys['mine']) as mine, Stream(boxes, key=keys['yours']) as yours:
        assert mine.next()['event'] == yours.next()['event'] == 'beat'
        for name in ('yours', 'mine', 'yours'):
            n = boxes.start_command(ids_of[name], f'echo {name}', key=keys[name])['id']
            boxes.ended(ids_of[name], n)
        for stream, name, times in ((mine, 'mine', 1), (yours, 'yours', 2)):
            for _ in range(times):
                items = stream.until(lambda item: item['event'] == 'command.ended')
                assert {(item['data']['box_id'], item['data']['task_id']) for item in items} == {(ids_of[name], 'one-task')}
                assert all(f'echo {name}' == item['data']['data']['command'] for item in items)
    for query in ('', '&task=one-task', '&kind=box.*,command.*'):
        for name, key in keys.items():
            page = boxes.get(f'/api/v1/events?limit=500{query}', key=key)['events']
            assert {event['box_id'] for event in page if event['kind'].split('.')[0] in ('box', 'command')} == {ids_of[name]}
    assert {event['box_id'] for event in boxes.events(task='one-task')} == set(ids_of.values())
    other = ids_of['yours']
    assert boxes.get(f'/api/v1/events?box={other}', key=keys['mine'])['events'] == []
    for name, key in keys.items():
        assert boxes.ask('DELETE', f'{API}/{ids_of[name]}', key=key).status == 204


def test_what_others_own_does_not_exist(boxes):
    mine, yours = (boxes.make_key('read,box', name=n)['key'] for n in ('mine', 'yours'))
    box = boxes.create(key=mine)
    n = boxes.start_command(box['id'], 'true', key=mine)['id']
    for name in (box['id'], box['e2b_id'], box['sandbox_id']):
        for method, path in EVERY_ROUTE:
            answer = boxes.ask(method, path.format(id=name, n=n), key=yours, body=b'{}' if method == 'POST' else b'')
            check_error(boxes, answer, 404)
    assert box['sandbox_id'] not in ids(boxes.get('/sandboxes', key=yours))
    assert box['sandbox_id'] not in ids(boxes.get(API, key=yours))
    assert box['sandbox_id'] in ids(boxes.get('/sandboxes', key=mine)) & ids(boxes.get(API))
    with boxes.connect_control() as sock:
        assert box['sandbox_id'] in ids(boxes.get(API, key=None, host='localhost', sock=sock))
    assert boxes.ask('DELETE', f'/sandbox/{box["id"]}', key=mine).status == 200
    check_error(boxes, boxes.ask('GET', f'{API}/{box["id"]}', key=yours), 404)
    assert boxes.get(f'{API}?ended=1', key=yours)['sandboxes'] == []
    assert boxes.get(f'{API}/{box["id"]}', key=mine)['state'] == 'terminated'


EVERY_ROUTE = [
    ('GET', API + '/{id}'), ('DELETE', API + '/{id}'), ('GET', API + '/{id}/stats'), ('POST', API + '/{id}/pause'),
    ('POST', API + '/{id}/resume'), ('GET', API + '/{id}/commands'),
    ('GET', API + '/{id}/commands/{n}'), ('GET', API + '/{id}/commands/{n}/output'),
    ('DELETE', API + '/{id}/commands/{n}'), ('POST', API + '/{id}/commands/{n}/stdin'),
    ('GET', '/sandbox/{id}/status'), ('DELETE', '/sandbox/{id}'), ('POST', '/sandbox/{id}/execute'),
    ('POST', API + '/{id}/commands'),
]


def test_a_reader_only_reads(boxes, shared_box):
    key = boxes.make_key('read', name='reader')['key']
    assert boxes.get('/sandboxes', key=key) == {'sandboxes': []}
    check_error(boxes, boxes.ask('POST', '/sandbox/create', key=key), 403)
    check_error(boxes, boxes.ask('POST', API, key=key), 403)
    check_error(boxes, boxes.ask('DELETE', f'/sandbox/{shared_box}', key=key), 403)


def test_caps(make_boxes):
    server = make_boxes(env={'COOP_BOXES_PER_KEY': '2', 'COOP_BOXES_MAX': '3'})
    one, other = (server.make_key('read,box', name=n)['key'] for n in ('one', 'other'))
    first = server.create(key=one, timeout=3000, idle_timeout=3000)
    server.create(key=one, timeout=1000, idle_timeout=1000)
    answer = server.ask('POST', '/sandbox/create', key=one)
    check_error(server, answer, 429)
    # There will be room when the first of its own is over; of the server's, when the first of all is.
    assert 900 < int(answer.headers['Retry-After']) <= 1000
    server.create(key=other, timeout=500, idle_timeout=400)
    answer = server.ask('POST', API, key=other)
    check_error(server, answer, 429)
    assert 300 < int(answer.headers['Retry-After']) <= 400
    server.ask('DELETE', f'/sandbox/{first["id"]}', key=one)
    server.create(key=other)


# ---- leases and repeated calls ----

def test_a_lease_gets_its_box_back(boxes):
    first = boxes.create(lease='agent 7 / task 1')
    again = boxes.create(lease='agent 7 / task 1', status=200)
    assert again['id'] == first['id'] and again['lease'] == 'agent 7 / task 1'
    assert boxes.post('/sandbox/create', {'lease': 'agent 7 / task 1'}, status=200)['sandbox_id'] == first['sandbox_id']
    other = boxes.create(lease='agent 7 / task 2')
    assert other['id'] != first['id']
    key = boxes.make_key('read,box', name='stranger')['key']
    strange = boxes.create(lease='agent 7 / task 1', key=key)
    assert strange['id'] != first['id']
    boxes.ask('DELETE', f'{API}/{first["id"]}')
    fresh = boxes.create(lease='agent 7 / task 1')
    assert fresh['id'] != first['id']
    for one in (other, strange, fresh):
        boxes.ask('DELETE', f'{API}/{one["id"]}')


def test_a_first_command(boxes):
    """One request for a box and a command in it: told at once, at its end, or by events."""
    line = {'command': 'echo "$A out"; echo err >&2; exit 3'}
    waited = boxes.create(env={'A': 'my'}, command={**line, 'wait': True})
    assert set(waited) == MEMBERS | {'command'} and (waited['state'], waited['executions']) == ('ready', 1)
    done = waited['command']
    assert (done['stdout'], done['stderr'], done['end']['exit_code']) == ('my out\n', 'err\n', 3)
    started = boxes.create(command={'argv': ['/bin/sh', '-c', 'read x; echo "$x"'], 'stdin': True})
    at = f'{API}/{started["id"]}/commands/{started["command"]["id"]}'
    assert started['command']['state'] == 'running' and started['command']['end'] is None
    boxes.ask('POST', at + '/stdin?close=1', body=b'well')
    assert boxes.output(started['id'], started['command']['id']).body == b'well\n'
    with Stream(boxes, API, method='POST', body={'command': line}) as stream:
        items = stream.until(lambda item: item['event'] == 'end')
    assert [item['event'] for item in items[:2]] == ['sandbox', 'started']
    streamed = items[0]['data']
    assert set(streamed) == MEMBERS and items[1]['data']['id'] == done['id']
    assert {(item['data']['stream'], item['data']['text']) for item in items[2:-1]} == {
        ('stdout', ' out\n'), ('stderr', 'err\n')}
    for box in (waited, started, streamed):
        assert [c['id'] for c in boxes.get(f'{API}/{box["id"]}/commands')['commands']] == [done['id']]
        boxes.ask('DELETE', f'{API}/{box["id"]}')


def test_a_first_command_of_a_lease(boxes):
    """It runs wherever the lease leads; repeated by a key it would run twice, so that is refused."""
    first = boxes.create(lease='first', command={'command': 'echo 1 > /tmp/x', 'wait': True})
    again = boxes.create(lease='first', command={'command': 'cat /tmp/x', 'wait': True}, status=200)
    assert again['id'] == first['id'] and again['command']['stdout'] == '1\n'
    assert again['command']['id'] != first['command']['id']
    boxes.ask('DELETE', f'{API}/{first["id"]}')
    twice = boxes.ask('POST', API, body={'command': {'command': 'true'}}, headers={'Idempotency-Key': 'x'})
    check_error(boxes, twice, 400)


def test_a_first_command_that_cannot_start(boxes):
    """Nobody was told of the box: it goes with it."""
    seq, before = boxes.last_seq(), ids(boxes.get(API))
    check_error(boxes, boxes.ask('POST', API, body={'command': {'argv': ['true', 'x' * (65 << 10)]}}), 400)
    wait_until(lambda: boxes.events(after=seq, kind='box.killed'), 'its end')
    assert ids(boxes.get(API)) == before
    none = boxes.create(command={'argv': ['/no/such'], 'wait': True})
    assert none['command']['end']['exit_code'] == 127
    boxes.ask('DELETE', f'{API}/{none["id"]}')


def test_idempotency_key(boxes):
    def make(name, path=API, **more):
        return boxes.ask('POST', path, headers={'Idempotency-Key': name}, body={}, **more)
    first, again, other = make('call 1'), make('call 1'), make('call 2')
    assert (first.status, again.status) == (201, 201)
    assert first.json['id'] == again.json['id'] != other.json['id']
    assert first.json['lease'] is None
    assert make('call 1', '/sandbox/create').json['sandbox_id'] == first.json['sandbox_id']
    stranger = make('call 1', key=boxes.make_key('read,box', name='stranger')['key'])
    assert stranger.status == 201 and stranger.json['id'] != first.json['id']
    with ThreadPoolExecutor(10) as pool:
        assert len({a.json['id'] for a in pool.map(lambda _: make('at once'), range(10))}) == 1
    for bad in ('', 'x' * 256, 'a\x01b'):
        assert make(bad).status == 400
    boxes.ask('DELETE', f'{API}/{first.json["id"]}')
    assert make('call 1').json['id'] != first.json['id']
    for one in boxes.get(API)['sandboxes']:
        boxes.ask('DELETE', f'{API}/{one["id"]}')


def test_a_caller_that_leaves_during_create(boxes):
    """Nobody knows the id of its box; a lease would."""
    def leave(body):
        seq = boxes.last_seq()
        sock = boxes.connect()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
        sock.sendall(boxes.request('POST', API, body=body))
        sock.close()
        return seq
    seen_killed = False
    for _ in range(40):
        seq = leave({'name': 'left'})
        wait_until(lambda s=seq: not [b for b in boxes.get(API)['sandboxes'] if b['name'] == 'left'] or
                   boxes.events(after=s, kind='box.ready'), 'a moment')
        seen_killed |= any(e['data'].get('reason') == 'abandoned' for e in boxes.events(after=seq, kind='box.killed'))
        for one in boxes.get(API)['sandboxes']:
            boxes.ask('DELETE', f'{API}/{one["id"]}')
        if seen_killed:
            break
    assert seen_killed
    leave({'lease': 'left behind'})
    wait_until(lambda: 'left behind' in [b['lease'] for b in boxes.get(API)['sandboxes']] or
               leave({'lease': 'left behind'}) < 0, 'a box with a lease')
    boxes.ask('DELETE', f'{API}/{boxes.create(lease="left behind", status=200)["id"]}')


# ---- what can be done to one ----

def test_pause_and_resume(boxes):
    with boxes.box() as box:
        running = boxes.start_command(box, 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done', timeout=0)
        wait_until(lambda: boxes.ask('GET', f'{API}/{box}/commands/{running["id"]}/output',
                                     headers={'Range': 'bytes=0-0'}).status == 206, 'output')
        assert boxes.post(f'{API}/{box}/pause', b'', status=200)['state'] == 'paused'
        check_error(boxes, boxes.ask('POST', f'{API}/{box}/pause'), 409)
        check_error(boxes, boxes.ask('POST', f'{API}/{box}/commands', body={'command': 'true'}), 409)
        assert boxes.get(f'/sandbox/{box}/status')['status'] == 'paused'
        assert boxes.post(f'{API}/{box}/resume', b'', status=200)['state'] == 'busy'
        check_error(boxes, boxes.ask('POST', f'{API}/{box}/resume'), 409)
        assert boxes.run(box, 'echo well')['stdout'] == 'well\n'


def test_renew(boxes):
    with boxes.box(timeout=60) as box:
        before = boxes.get(f'{API}/{box}')['expires_at']
        after = boxes.post(f'{API}/{box}/renew', {'timeout': 3000}, status=200)
        assert after['expires_at'] > before and after['timeout'] == 3000
        for body in ({}, {'timeout': 0}, {'timeout': 86401}, {'timeout': 'x'}, {'timeout': 5, 'x': 1}):
            check_error(boxes, boxes.ask('POST', f'{API}/{box}/renew', body=body), 400)


def test_expiry(boxes):
    made = boxes.create(timeout=1)
    gone = wait_until(lambda: (b := boxes.get(f'{API}/{made["id"]}'))['state'] == 'terminated' and b, 'the end')
    assert gone['reason'] == 'expired'
    assert boxes.get(f'/sandbox/{made["id"]}/status')['reason'] == 'expired'


def test_stats(boxes):
    with boxes.box() as box:
        boxes.run(box, 'dd if=/dev/zero of=big bs=1M count=8; head -c 1 big')
        stats = boxes.get(f'{API}/{box}/stats')
        assert stats['disk_bytes'] >= 8 << 20 and stats['processes'] >= 1 and stats['inodes'] > 0
        assert stats['memory_peak_bytes'] >= stats['memory_bytes'] > 0


def metrics(server):
    text = server.ask('GET', '/metrics').body.decode()
    return {name: float(value) for name, value in (line.rsplit(' ', 1) for line in text.splitlines() if line[0] != '#')}


def test_metrics_and_health(boxes):
    before = metrics(boxes)
    with boxes.box() as box:
        boxes.run(box, 'true')
        boxes.run(box, 'exit 3')
        boxes.run(box, 'sleep 60', timeout=1)
        boxes.run(box, 'kill -9 $$')
        waiting = boxes.start_command(box, 'sleep 1000', timeout=0)
        wait_until(lambda: boxes.show(box, waiting['id'])['pid'], 'its pid')
        now = metrics(boxes)
        for name, more in [('coop_box_creates_total{outcome="created"}', 1), ('coop_runs_total{outcome="ok",reason="exit"}', 1),
                           ('coop_runs_total{outcome="failed",reason="exit"}', 1),
                           ('coop_runs_total{outcome="failed",reason="timeout"}', 1),
                           ('coop_runs_total{outcome="failed",reason="signal"}', 1),
                           ('coop_runs_started_total', 5), ('coop_run_seconds_count', 4)]:
            assert now[name] - before[name] == more, name
        assert now['coop_run_seconds_sum'] - before['coop_run_seconds_sum'] >= 1
        assert now['coop_boxes{state="busy"}'] == 1 and now['coop_box_memory_bytes'] > 0
        assert now['coop_box_processes'] >= 2 and now['coop_keeper_ready'] == 1
        boxes.ask('DELETE', f'{API}/{box}/commands/{waiting["id"]}')
    assert metrics(boxes)['coop_boxes_ended_total{reason="killed"}'] > before['coop_boxes_ended_total{reason="killed"}']
    native = boxes.get('/health')['tiers'][0]
    assert native == {'name': 'native', 'available': True}


# ---- what is refused ----

@pytest.mark.parametrize('body', [
    {'environment': 'tiny'}, {'template': ''}, {'limits': []}, {'limits': {'cpus': 1}}, {'limits': {'cpu': 0}},
    {'limits': {'cpu': 0.001}}, {'limits': {'cpu': '1'}}, {'limits': {'memory_mb': 0}}, {'limits': {'memory_mb': 1 << 40}},
    {'limits': {'disk_mb': -1}}, {'limits': {'processes': 1}}, {'limits': {'inodes': 1}}, {'limits': {'memory_mb': 4000000}},
    {'metadata': []}, {'metadata': {'a': 'x' * 17000}}, {'env': {'A\nB=': ''}}, {'agent_id': ''}, {'agent_id': 'x' * 256}, {'squad_id': 'x' * 129},
    {'command': 'true'}, {'command': {}}, {'command': {'argv': []}}, {'command': {'command': 'a', 'argv': ['a']}},
    {'command': {'command': 'true', 'wait': 1}}, {'command': {'command': 'true', 'x': 1}},
    {'repo_url': 'x' * 2049}, {'name': 'tab\there'}, {'keep': 1}, {'idle_timeout': 0}, {'timeout': 90000}, [],
], ids=lambda b: json.dumps(b)[:40])
def test_bad_creates(boxes, body):
    check_error(boxes, boxes.ask('POST', API, body=body), 400)


def test_a_squad_is_an_admins_to_give(boxes):
    key = boxes.make_key('read,box', name='no admin')['key']
    answer = boxes.ask('POST', API, body={'squad_id': 'crew'}, key=key)
    check_error(boxes, answer, 403)
    assert 'squad_id' in answer.json['message']
    with boxes.box(key=key) as box:
        assert boxes.get(f'{API}/{box}', key=key)['squad_id'] is None


def test_names_that_are_anothers(boxes):
    """A box counts against the budgets of what it says it is for: that is its owner's to say, and free where it is no row."""
    ann, bob = (boxes.make_key('read,box', name=name) for name in ('ann', 'bob'))
    task = make_task(boxes, key=ann['key'])
    squad = boxes.post('/api/v1/squads', {'name': 'of ann'}, key=ann['key'])
    member = boxes.post(f'/api/v1/squads/{squad["id"]}/members', {'name': 'hers', 'role': 'coder'}, key=ann['key'])
    agent = f'coder-1-{os.urandom(4).hex()}'
    execution = add_agent(boxes, task, agent, 'none', state='done', owner=ann['id'])
    with boxes.box(key=bob['key'], task_id='t/1', agent_id='agent-7') as box:
        for claim in ({'task_id': task['id']}, {'agent_id': agent}, {'agent_id': execution}, {'agent_id': member['id']}):
            answer = boxes.ask('POST', API, body=claim, key=bob['key'])
            check_error(boxes, answer, 404)
            assert answer.json['message'] == 'there is no such ' + next(iter(claim)).split('_', maxsplit=1)[0]
            for key in (ann['key'], ''):
                with boxes.box(key=key, **claim) as own:
                    assert boxes.get(f'{API}/{own}').items() >= claim.items()
        pull = {'title': 'Mine', 'task_id': task['id']}
        assert boxes.ask('POST', f'{API}/{box}/git/pr', body=pull, key=bob['key']).json['message'] == 'there is no such task'
        assert len(boxes.get(API, key=bob['key'])['sandboxes']) == 1
    spawn = {'role': 'coder', 'requirements': ['x'], 'taskId': task['id']}
    check_error(boxes, boxes.ask('POST', '/api/v1/agents', body=spawn, key=bob['key']), 404)
    boxes.post(f'/api/v1/tasks/{task["id"]}/stop', {}, status=200, key=ann['key'])


@pytest.mark.parametrize('query', ['?x=1', '?ended=2', '?ended=yes', '?limit=0', '?limit=1001', '?ended=1&ended=1'])
def test_bad_lists(boxes, query):
    check_error(boxes, boxes.ask('GET', API + query), 400)


def test_absurd_names_and_environment(boxes):
    for name in ('ü', '-a', '../x', 'a b', 'a/b', '.', ''):
        check_error(boxes, boxes.ask('POST', API, body={'name': name}), 400)
    check_error(boxes, boxes.ask('POST', API, body={'env': {'ODD-NAME': 'a'}}), 400)
    name, value = 'x' * 63, 'x' * 20000
    with boxes.box(name=name, env={'PATH': '/bin', 'LD_PRELOAD': '/no/such.so', '_1': '= "\n', 'LONG': value}) as box:
        assert boxes.get(f'{API}/{box}')['name'] == name
        assert boxes.run(box, argv=['/bin/printenv', 'LONG'])['stdout'] == value + '\n'
        assert boxes.run(box, argv=['/bin/printenv', '_1'])['stdout'] == '= "\n\n'
        assert boxes.run(box, argv=['/bin/printenv', 'LONG'], env={'LONG': ''})['stdout'] == '\n'


def test_without_a_keeper(make_boxes):
    """The server runs all the same; what needs boxes says why it cannot."""
    server = make_boxes(keeper=False)
    for path in ('/sandbox/create', API):
        answer = server.ask('POST', path)
        check_error(server, answer, 503)
        assert 'keeper' in answer.json['message'] and answer.headers['Retry-After']
    assert server.get('/sandboxes') == {'sandboxes': []}
    check_error(server, server.ask('GET', f'{API}/sb-00000000000000000000'), 404)
    native = server.get('/health')['tiers'][0]
    assert native['available'] is False and native['reason']
