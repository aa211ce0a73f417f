# SPDX-License-Identifier: Apache-2.0
"""Webhooks of squads: what their tasks do is told elsewhere, signed, and none of it is lost."""
import contextlib
import json
import sqlite3

import pytest

import eventlog
from harness import check_error, wait_until
from hookserver import HookServer, due_now

LOOPBACK = {'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'true'}
SQUADS, TASKS = '/api/v1/squads', '/api/v1/tasks'


class Squad:
    def __init__(self, server, heard, name='shop'):
        self.server, self.heard, self.name = server, heard, name
        self.squad = server.post(SQUADS, {'name': name, 'config': {'planner': 'person'}})
        self.at = f'{SQUADS}/{name}/hooks'

    def add(self, status=201, **body):
        body = {'url': self.heard.url('/in'), 'secret': self.heard.secret, **body}
        return self.server.post(self.at, {k: v for k, v in body.items() if v is not None}, status=status)

    def task(self, request='Sell more'):
        return self.server.post(TASKS, {'request': request, 'squad': self.name}, status=201)

    def stop(self, task):
        return self.server.post(f'{TASKS}/{task["id"]}/stop', {}, status=200)

    def deliveries(self, hook):
        return self.server.get(f'{self.at}/{hook["id"]}/deliveries')['deliveries']


@pytest.fixture
def squad(make_server):
    with HookServer() as heard:
        yield Squad(make_server(env=LOOPBACK), heard)


# ---- rows ----

def test_rows(squad):
    server = squad.server
    hook = squad.add(events=['task.*', 'pr.opened'])
    assert (hook['squad_id'], hook['events'], hook['active'], hook['has_secret']) == (squad.squad['id'], ['task.*', 'pr.opened'], True, True)
    assert 'secret' not in hook and squad.heard.secret not in str(hook)
    at = f'{squad.at}/{hook["id"]}'
    assert server.get(at) == hook and server.get(squad.at)['hooks'] == [hook] and server.get(squad.at)['total'] == 1
    changed = server.ask('PATCH', at, body={'events': ['*'], 'active': False})
    assert changed.status == 200 and changed.json['events'] == ['*'] and changed.json['active'] is False
    squad.stop(squad.task('nobody hears'))
    assert squad.deliveries(hook) == []
    assert server.ask('DELETE', at).status == 204
    check_error(server, server.ask('GET', at), 404)
    assert [e['data']['action'] for e in server.events(kind='hook.changed')] == ['created', 'edited', 'deleted']
    usual = squad.add(secret=None, url='http://hooks.example/')
    assert usual['events'] == ['task.*', 'human.*', 'pr.*'] and len(usual['secret']) == 64
    assert 'secret' not in server.get(f'{squad.at}/{usual["id"]}')


def test_a_secret_that_was_made_signs(squad):
    hook = squad.add(secret=None)
    squad.heard.secret = hook['secret']
    squad.task()
    assert squad.heard.of('task.created').is_signed
    with sqlite3.connect(squad.server.home / 'coop.db') as db:
        sealed, = db.execute('SELECT secret FROM hooks').fetchone()
    db.close()
    assert hook['secret'].encode() not in sealed


@pytest.mark.parametrize('body, status', [
    ({'url': 'ftp://x'}, 400), ({'url': 'http://a:b@example.com/'}, 400), ({'url': ''}, 400), ({'url': None}, 400),
    ({'url': 'http://10.0.0.1/'}, 403), ({'url': 'http://169.254.169.254/'}, 403), ({'events': ['everything']}, 400),
    ({'events': []}, 400), ({'events': [7]}, 400), ({'secret': ''}, 400), ({'name': 'web'}, 400)])
def test_refused(squad, body, status):
    check_error(squad.server, squad.server.ask('POST', squad.at, body={
        k: v for k, v in {'url': squad.heard.url(), **body}.items() if v is not None}), status)
    assert squad.server.get(squad.at)['total'] == 0


def test_loopback_is_refused(make_server):
    server = make_server()
    check_error(server, server.ask('POST', f'{SQUADS}/default/hooks', body={'url': 'http://127.0.0.1:1/'}), 403)


def test_who_may(squad):
    server, hook = squad.server, squad.add()
    one, two = (server.make_key('read,box', name)['key'] for name in ('one', 'two'))
    reader = server.make_key('read', 'reader')['key']
    for path in (squad.at, f'{squad.at}/{hook["id"]}', f'{squad.at}/{hook["id"]}/deliveries'):
        check_error(server, server.ask('GET', path, key=one), 404)
        check_error(server, server.ask('GET', path, key=reader), 403)
    # The machine's squad tells of everybody's tasks.
    check_error(server, server.ask('GET', f'{SQUADS}/default/hooks', key=one), 403)
    mine = server.ask('POST', SQUADS, key=one, body={'name': 'mine'}).json
    made = server.ask('POST', f'{SQUADS}/mine/hooks', key=one, body={'url': 'http://hooks.example/'})
    assert made.status == 201 and made.json['squad_id'] == mine['id']
    check_error(server, server.ask('GET', f'{SQUADS}/{mine["id"]}/hooks/{made.json["id"]}', key=two), 404)
    # Another squad's hook is none of this one's.
    check_error(server, server.ask('DELETE', f'{SQUADS}/mine/hooks/{hook["id"]}', key=one), 404)


def test_only_what_its_key_may_see(squad):
    """Whoever makes a box may name any task in it, and an admin any squad: it is still another's box."""
    server = squad.server
    ann = server.make_key('read,box', 'ann')
    anns = server.post(SQUADS, {'name': 'anns'}, key=ann['key'])
    hook = server.post(f'{SQUADS}/anns/hooks', {'url': squad.heard.url('/anns'), 'events': ['*']}, key=ann['key'])
    machines = server.post(f'{SQUADS}/default/hooks', {'url': squad.heard.url('/all'), 'events': ['*']})
    assert server.stop() == 0
    owners = ('', ann['id'], 'somebody', '*', ann['id'])
    eventlog.append(server.home, [{'kind': 'tool.used', 'squad_id': one, 'owner': owner, 'data': json.dumps({'n': n})}
                                  for one in (anns['id'], machines['squad_id']) for n, owner in enumerate(owners)])
    server.start()
    for at, wanted in ((f'{SQUADS}/{anns["id"]}/hooks/{hook["id"]}', {1, 3, 4}),
                       (f'{SQUADS}/default/hooks/{machines["id"]}', set(range(len(owners))))):
        told = wait_until(lambda: has_told(server, at, len(owners) - 1), 'the last is told')
        assert told == wanted


def has_told(server, hook, last):
    """What its deliveries say, once the last is among them; events become deliveries in their order."""
    all_of = [server.get(f'{hook}/deliveries/{one["id"]}') for one in server.get(f'{hook}/deliveries')['deliveries']]
    said = {one['body']['data'].get('n') if isinstance(one['body'], dict) else json.loads(one['body'])['data'].get('n')
            for one in all_of if one['event'] == 'tool.used'}
    return said if last in said else None


def test_twenty(squad):
    for _ in range(20):
        squad.add(url='http://hooks.example/')
    check_error(squad.server, squad.server.ask('POST', squad.at, body={'url': 'http://hooks.example/'}), 429)


def test_gone_with_the_squad(squad):
    squad.add()
    squad.stop(squad.task())
    squad.heard.all_of('task.cancelled')
    assert squad.server.ask('DELETE', f'{SQUADS}/shop').status == 204
    with sqlite3.connect(squad.server.home / 'coop.db') as db:
        assert db.execute('SELECT COUNT(*) FROM hooks').fetchone() == db.execute('SELECT COUNT(*) FROM deliveries').fetchone() == (0,)
    db.close()


# ---- what is sent ----

def test_a_task(squad):
    squad.add(events=['task.*', 'human.*'])
    other = squad.server.post(SQUADS, {'name': 'other', 'config': {'planner': 'person'}})
    squad.server.post(TASKS, {'request': 'of others', 'squad': 'other'}, status=201)
    task = squad.task()
    squad.stop(task)
    heard = squad.heard.all_of('task.created', 'task.cancelled')
    assert all(h.is_signed and h.path == '/in' for h in heard)
    for h in heard:
        assert h.json['kind'] == h.event == h.headers['X-Coop-Event'] and h.json['task_id'] == task['id'], other
        assert h.json['squad'] == {'id': squad.squad['id'], 'name': 'shop'} and h.json['task']['number'] == task['number']
        assert h.headers['User-Agent'].startswith('Coop-Hookshot/') and h.headers['Content-Type'] == 'application/json'
    # The same as the log has.
    log = {e['seq']: e for e in squad.server.events(task=task['id'])}
    for h in heard:
        assert {**h.json, 'squad': 0, 'task': 0} == {**log[h.json['seq']], 'squad': 0, 'task': 0}
    last = next(h for h in heard if h.event == 'task.cancelled')
    assert last.json['task']['state'] == 'cancelled' and last.json['data']['tests']['total'] == 0
    assert len({h.guid for h in heard}) == len(heard) and len({h.headers['X-Coop-Hook-ID'] for h in heard}) == 1


def test_only_what_was_asked_for(squad):
    squad.add(events=['task.cancelled'])
    squad.stop(squad.task())
    assert squad.heard.next().event == 'task.cancelled'
    squad.stop(squad.task())
    assert squad.heard.next().event == 'task.cancelled' and squad.heard.got.empty()


def test_ping_and_again(squad):
    server, hook = squad.server, squad.add()
    at = f'{squad.at}/{hook["id"]}'
    sent = server.post(f'{at}/ping', b'', status=200)
    ping = squad.heard.next()
    assert ping.event == 'ping' and ping.is_signed and ping.guid == sent['guid']
    assert ping.json['hook']['id'] == hook['id'] and ping.json['kind'] == 'ping'
    done = wait_until(lambda: (d := squad.deliveries(hook))[0]['state'] == 'done' and d[0], 'its end')
    assert (done['status'], done['tries'], done['seq'], 'body' in done) == (200, 1, None, False)
    whole = server.get(f'{at}/deliveries/{done["id"]}')
    assert whole['body'] == ping.json
    repeated = server.post(f'{at}/deliveries/{done["id"]}/again', b'', status=200)
    again = squad.heard.next()
    assert (again.guid, again.body) == (ping.guid, ping.body) and repeated['id'] != done['id']
    for path in (f'{at}/deliveries/999999', f'{at}/deliveries/x', f'{squad.at}/0', f'{squad.at}/x'):
        check_error(server, server.ask('GET', path), 404)
    check_error(server, server.ask('POST', f'{squad.at}/99/ping'), 404)


# ---- none is lost ----

@pytest.mark.parametrize('point', ['hook-making', 'hook-sent'])
def test_crash(squad, point):
    """Killed while deliveries are written, or between the answer and its row: made once, sent at least once."""
    server, hook = squad.server, squad.add(events=['task.cancelled'])
    task = squad.task()
    assert server.stop() == 0
    server.env['COOP_FAIL_AT'] = point
    server.start()
    with contextlib.suppress(ConnectionError):  # it may be killed before it answers
        squad.stop(task)
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    done = wait_until(lambda: (d := squad.deliveries(hook)) and d[0]['state'] == 'done' and d, 'the delivery')
    heard = [squad.heard.next() for _ in range(2 if point == 'hook-sent' else 1)]
    assert len(done) == 1 and {h.guid for h in heard} == {done[0]['guid']}
    assert all(h.is_signed and h.json['task_id'] == task['id'] for h in heard) and squad.heard.got.empty()


@pytest.mark.parametrize('answer', [500, 429, 'cut', 'slow'])
def test_again_after(squad, answer):
    """kill -9 while one waits for its next try, or for its answer."""
    server, hook = squad.server, squad.add(events=['task.created'])
    squad.heard.answers = [answer]
    squad.task()
    first = squad.heard.next()
    if answer != 'slow':
        wait_until(lambda: squad.deliveries(hook)[0]['tries'] == 1, 'the first try')
    server.kill()
    due_now(server)
    server.start()
    second = squad.heard.next()
    assert (second.guid, second.body, second.is_signed) == (first.guid, first.body, True)
    wait_until(lambda: squad.deliveries(hook)[0]['state'] == 'done', 'the answer')
    assert len(squad.deliveries(hook)) == 1


@pytest.mark.parametrize('answer', [404, 302])
def test_not_again_after(squad, answer):
    hook = squad.add(events=['task.created'])
    squad.heard.answers = [answer]
    squad.task()
    squad.heard.next()
    failed = wait_until(lambda: (d := squad.deliveries(hook)) and d[0]['state'] == 'failed' and d[0], 'the end')
    assert failed['status'] == answer and str(answer) in failed['problem']


# ---- one after the other ----

@contextlib.contextmanager
def two_receivers(squad):
    """Both hear the same; the first one is the squad's own."""
    with HookServer() as other:
        events = ['task.created', 'task.cancelled']
        yield squad.add(events=events), squad.add(events=events, url=other.url(), secret=other.secret), other


def heard_by(receiver, n):
    return [receiver.next().event for _ in range(n)]


def state_of(squad, hook, event):
    return next(d for d in squad.deliveries(hook) if d['event'] == event)['state']


@pytest.mark.parametrize('answer', [500, 'slow'])
def test_in_their_order(squad, answer):
    """What comes later waits for what came before, over kill -9, and nobody else waits for it."""
    with two_receivers(squad) as (hook, _, other):
        squad.heard.answers = [answer]
        squad.stop(squad.task())
        assert heard_by(other, 2) == ['task.created', 'task.cancelled']
        first = squad.heard.next()
        wait_until(lambda: len(squad.deliveries(hook)) == 2, 'both deliveries')
        assert first.event == 'task.created' and squad.heard.got.empty()
        squad.server.kill()
        due_now(squad.server)
        squad.server.start()
        again, last = squad.heard.next(), squad.heard.next()
        assert (again.guid, again.event, last.event) == (first.guid, 'task.created', 'task.cancelled')
        wait_until(lambda: {d['state'] for d in squad.deliveries(hook)} == {'done'}, 'both answers')


def test_one_is_given_up(squad):
    """After its last try it has failed, for all to see, and the next one goes."""
    with two_receivers(squad) as (hook, _, other):
        squad.heard.answers = [500, 500]
        squad.stop(squad.task())
        assert squad.heard.next().event == 'task.created' and len(heard_by(other, 2)) == 2
        wait_until(lambda: len(squad.deliveries(hook)) == 2, 'both deliveries')
        squad.server.kill()
        with sqlite3.connect(squad.server.home / 'coop.db') as db:
            db.execute("UPDATE deliveries SET tries = 7, next_us = 0 WHERE event = 'task.created' AND state = 'waiting'")
        db.close()
        squad.server.start()
        assert heard_by(squad.heard, 2) == ['task.created', 'task.cancelled']
        wait_until(lambda: state_of(squad, hook, 'task.cancelled') == 'done', 'the next one')
        failed = next(d for d in squad.deliveries(hook) if d['event'] == 'task.created')
        assert (failed['state'], failed['tries'], failed['problem']) == ('failed', 8, 'it was answered with 500')


def test_who_asks_waits_for_none(squad):
    """A ping shows whether the receiver is back."""
    hook = squad.add(events=['task.created'])
    squad.heard.answers = [500]
    squad.task()
    assert squad.heard.next().event == 'task.created'
    wait_until(lambda: squad.deliveries(hook)[0]['tries'] == 1, 'the first try')
    squad.server.post(f'{squad.at}/{hook["id"]}/ping', b'', status=200)
    assert squad.heard.next().event == 'ping'
    assert state_of(squad, hook, 'task.created') == 'waiting'


# ---- commands ----

def test_commands(squad, coop, tmp_path):
    server = squad.server

    def run(*args):
        return coop('squad', 'hook', *args, '--server', f'http://{server.host}', '-o', 'json', env={'COOP_API_KEY': server.key})

    def ok(*args):
        done = run(*args)
        assert done.returncode == 0, done
        return json.loads(done.stdout) if done.stdout else None

    file = tmp_path / 'secret'
    file.write_text(squad.heard.secret + '\n')
    hook = ok('add', 'shop', squad.heard.url(), '-e', 'task.*', '-e', 'pr.opened', '--secret-file', str(file))
    assert hook['events'] == ['task.*', 'pr.opened'] and squad.heard.secret not in str(hook)
    assert [h['id'] for h in ok('ls', 'shop')] == [hook['id']]
    number = str(hook['id'])
    sent = ok('test', 'shop', number)
    assert squad.heard.next().guid == sent['guid']
    wait_until(lambda: ok('log', 'shop', number)[0]['state'] == 'done', 'the ping')
    ok('again', 'shop', number, str(sent['id']))
    assert squad.heard.next().guid == sent['guid']
    assert len(ok('add', 'shop', 'http://hooks.example/')['secret']) == 64
    ok('rm', 'shop', number)
    assert run('rm', 'shop', number).returncode != 0
    assert run('add', 'shop', 'http://10.0.0.1/').returncode != 0
