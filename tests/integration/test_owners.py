# SPDX-License-Identifier: Apache-2.0
"""Whose events they are: a key reads of its own things, and of what all may see; an admin reads everything."""
import contextlib
import json
import sqlite3

import pytest

import eventlog
from gitserver import make_repo
from harness import Stream, check_error, wait_until
from roomserver import Room, make_task

EVENTS = '/api/v1/events'
PRIVATE = {'task.created', 'message.posted', 'context.updated'}


class Person:
    """Somebody with a key, a task in the squad that all share, and words that only the room has."""

    def __init__(self, server, name):
        made = server.make_key('read,box', name)
        self.server, self.name, self.key, self.id = server, name, made['key'], made['id']
        self.task = make_task(server, key=self.key)
        self.room = Room(server, self.task, key=self.key)
        self.words = f'the words of {name}'
        self.say(self.words)
        self.room.patch(plan={'secret': f'the plan of {name}'})

    def say(self, text):
        self.room.post(text=text)

    def last_word(self, seen):
        """Speaks last, and is heard last in what `seen` reads from a stream."""
        self.say('over')
        return seen.until(lambda item: is_word(item.get('data'), 'over'))


def is_word(event, text):
    return event is not None and event.get('kind') == 'message.posted' and event['data']['text'] == text


class World:
    def __init__(self, server):
        self.server = server
        self.ann, self.bob = Person(server, 'ann'), Person(server, 'bob')

    def other(self, person):
        return self.bob if person is self.ann else self.ann

    def check(self, person, events):
        """All that is of `person`, and nothing of the other."""
        told = json.dumps(events)
        other = self.other(person)
        assert person.words in told
        assert other.words not in told and other.task['id'] not in told and f'of {other.name}' not in told
        mine = [event for event in events if event.get('task_id') == person.task['id']]
        assert {event['kind'] for event in mine} >= PRIVATE

    def both(self):
        return (self.ann, self.bob)


@pytest.fixture
def world(make_server):
    return World(make_server())


def pages(server, key, query='', limit=500):
    found, after, more = [], 0, True
    while more:
        page = server.get(f'{EVENTS}?after={after}&limit={limit}{query}', key=key)
        found, after, more = found + page['events'], page['next_after'], page['more']
    assert after == page['seq'] <= server.last_seq()
    return found


def streamed(server, path, person):
    with Stream(server, path, key=person.key) as stream:
        return [item['data'] for item in person.last_word(stream) if item['event'] != 'beat']


# ---- later ----

def read_later(world):
    server = world.server
    for person in world.both():
        everything = pages(server, person.key)
        world.check(person, everything)
        for limit in (1, 3):
            assert pages(server, person.key, limit=limit) == everything
        squad = person.task['squad']['id']
        world.check(person, pages(server, person.key, f'&squad={squad}'))
        world.check(person, pages(server, person.key, '&kind=task.*,message.*,context.updated'))
        world.check(person, pages(server, person.key, f'&task={person.task["id"]}'))
        other = world.other(person)
        for query in (f'&task={other.task["id"]}', f'&task={other.task["id"]}&squad={squad}',
                      f'&task={other.task["id"]}&kind=message.*'):
            assert pages(server, person.key, query) == []
        for path in (f'{EVENTS}?after=0', '/api/v1/sse/squad/default?after=0'):
            world.check(person, streamed(server, path, person))
    told = json.dumps(server.events())
    assert all(person.words in told and person.task['id'] in told for person in world.both())


def test_later_and_after_a_restart(world):
    read_later(world)
    assert world.server.stop() == 0
    world.server.start()
    read_later(world)
    world.server.kill()
    world.server.start()
    read_later(world)


def test_behind_the_ring(world):
    """What is read from the database because it is too old for memory, from between what is others'."""
    assert world.server.stop() == 0
    many = [{'kind': 'agent.said', 'task_id': world.bob.task['id'], 'owner': world.bob.id, 'data': '{"text":"bobs"}'},
            {'kind': 'box.created', 'box_id': 'b1'}]
    eventlog.append(world.server.home, many * 3000 + [
        {'kind': 'agent.said', 'task_id': world.ann.task['id'], 'owner': world.ann.id}] + many * 3000)
    world.server.start()
    seen = pages(world.server, world.ann.key)
    assert len(seen) < 100 and 'bobs' not in json.dumps(seen) and seen[-2]['kind'] == 'agent.said'
    read_later(world)
    assert world.server.get(f'{EVENTS}/verify')['sound'] is True


def test_what_is_older_than_owners(world):
    """It is nobody's, so it is for admins; the chain holds."""
    server = world.server
    assert server.stop() == 0
    eventlog.forget_owners(server.home)
    server.start()
    assert server.get(f'{EVENTS}/verify')['sound'] is True
    for person in world.both():
        assert {event['kind'] for event in pages(server, person.key)} == {'server.started'}
        person.say(person.words)
        assert [event['data']['text'] for event in pages(server, person.key, '&kind=message.posted')] == [person.words]
    told = json.dumps(server.events())
    assert all(f'the words of {person.name}' in told for person in world.both())


# ---- live ----

def test_live(world):
    server, (ann, bob) = world.server, world.both()
    paths = (EVENTS, f'{EVENTS}?squad={ann.task["squad"]["id"]}', f'{EVENTS}?kind=message.*', '/api/v1/sse/squad/default')
    with contextlib.ExitStack() as stack:
        mine, yours, admins = ([stack.enter_context(Stream(server, path, key=key)) for path in paths]
                               for key in (ann.key, bob.key, ''))
        foreign = stack.enter_context(Stream(server, f'{EVENTS}?task={bob.task["id"]}', key=ann.key))
        for stream in (*mine, *yours, *admins, foreign):
            assert stream.next()['event'] == 'beat'
        bob.say('for bob alone')
        ann.say('for ann alone')
        for streams, sees in ((mine, ['for ann alone']), (yours, ['for bob alone']), (admins, ['for bob alone', 'for ann alone'])):
            for stream in streams:
                items = stream.until(lambda item: is_word(item['data'], sees[-1]))
                assert [item['data']['data']['text'] for item in items] == sees
        make_repo(server, 'shared')
        for stream in (mine[0], yours[0], admins[0]):
            assert stream.until(lambda item: item['event'] == 'repo.created')[0]['event'] == 'repo.created'
    with Stream(server, f'{EVENTS}?task={bob.task["id"]}&after=0', key=ann.key) as foreign:
        assert foreign.next()['event'] == 'beat'


# ---- what is whose ----

def test_what_all_see(world):
    """Repositories are everybody's, and so is what happens in them; the server's own life is no secret."""
    server, (ann, bob) = world.server, world.both()
    server.post('/api/v1/repos', {'name': 'work'}, key=ann.key)
    for method, path, body, key in (('POST', '/issues', {'title': 'It creaks'}, ann.key),
                                    ('POST', '/issues/1/comments', {'body': 'So it does'}, bob.key),
                                    ('POST', '/labels', {'name': 'bug'}, ann.key),
                                    ('POST', '/hooks', {'config': {'url': 'https://example.org/hook'}}, '')):
        answer = server.ask(method, f'/api/v3/repos/coop/work{path}', body=body, key=key)
        assert answer.status == 201, answer
    server.ask('GET', EVENTS, key='coop_nonsense')
    wait_until(lambda: server.events(kind='key.refused'), 'the refusal is told')
    seen = {person.name: {event['kind'] for event in pages(server, person.key)} for person in world.both()}
    everything = {event['kind'] for event in server.events()}
    assert seen['ann'] == seen['bob'] >= {'server.started', 'repo.created', 'issue.opened', 'comment.added', 'label.changed'}
    assert everything - seen['ann'] == {'key.created', 'key.refused', 'hook.changed'}


def test_squads(world):
    server, (ann, bob) = world.server, world.both()
    squad = server.post('/api/v1/squads', {'name': 'anns own'}, key=ann.key)
    seen = [pages(server, person.key, '&kind=squad.changed') for person in world.both()]
    assert [event['squad_id'] for event in seen[0]] == [squad['id']] and seen[1] == []
    check_error(server, server.ask('GET', f'/api/v1/sse/squad/{squad["id"]}', key=bob.key), 404)


ADMINS = [('GET', '/api/v1/events/verify'), ('GET', '/api/v1/door/log'), ('GET', '/api/v1/backup'), ('POST', '/api/v1/restore'),
          ('GET', '/api/v1/usage'), ('GET', '/api/v1/keys')]


@pytest.mark.parametrize('method, path', ADMINS)
def test_other_ways_are_for_admins(server, method, path):
    key = server.make_key('read,box', 'neither')['key']
    check_error(server, server.ask(method, path, key=key), 403)


def test_reports_count_what_is_ones_own(world):
    """The machine's sums without names are in /metrics; a report is of one's own tasks."""
    server = world.server
    for person in world.both():
        server.post(f'/api/v1/tasks/{person.task["id"]}/stop', {}, status=200, key=person.key)
        report = server.get('/api/v1/reports', key=person.key)
        assert [task['id'] for task in report['tasks']] == [person.task['id']]
        assert world.other(person).task['id'] not in json.dumps(report)
    assert {task['id'] for task in server.get('/api/v1/reports')['tasks']} == {person.task['id'] for person in world.both()}
    metrics = server.ask('GET', '/metrics', key=world.ann.key).body.decode()
    assert all(person.task['id'] not in metrics and person.id not in metrics for person in world.both())


def test_on_the_command_line(coop, world):
    server = world.server
    at = ['--server', f'http://{server.host}']
    for _ in range(3):  # as many as are asked for, though the last of the log are another's
        world.bob.say('again')
    for person in world.both():
        other, env = world.other(person), {'COOP_API_KEY': person.key}
        done = coop('events', *at, '-o', 'json', env=env)
        world.check(person, [json.loads(line) for line in done.stdout.splitlines()])
        newest = coop('events', *at, '--limit', '2', '-o', 'json', env=env).stdout.splitlines()
        assert [json.loads(line)['task_id'] for line in newest] == [person.task['id']] * 2
        assert coop('task', 'log', str(person.task['number']), *at, env=env).returncode == 0
        done = coop('task', 'log', str(other.task['number']), *at, env=env)
        assert done.returncode != 0 and other.words not in done.stdout
    local = coop('events', env={'COOP_HOME': str(server.home)}).stdout
    assert all(person.task['id'] in local for person in world.both()), local


def test_a_row_that_was_made_anothers(world):
    """The owner is under the chain of hashes as all else is."""
    server = world.server
    seq = server.events(task=world.bob.task['id'])[0]['seq']
    with contextlib.closing(sqlite3.connect(server.home / 'coop.db', timeout=10)) as db, db:
        db.execute('UPDATE events SET owner = ? WHERE seq = ?', (world.ann.id, seq))
    answer = server.get(f'{EVENTS}/verify')
    assert (answer['sound'], answer['bad_seq']) == (False, seq)
