# SPDX-License-Identifier: Apache-2.0
"""Streams of squads and of agents' work, over the event log."""
import pytest

from harness import Stream, check_error
from roomserver import Room, add_agent, make_task


@pytest.fixture
def task(server):
    return make_task(server)


def names(items):
    return [item['event'] for item in items]


def test_a_squad(server, task):
    squad = task['squad']['id']
    with Stream(server, f'/api/v1/sse/squad/{squad}') as stream:
        assert stream.next()['event'] == 'beat'
        other = make_task(server)
        Room(server, other).post(text='hello')
        Room(server, other).patch(plan={'a': 1})
        items = stream.until(lambda item: item['event'] == 'context-update')
        assert [n for n in names(items) if n in ('task_created', 'message', 'context-update')] == ['task_created', 'message', 'context-update']
        assert all(item['data']['squad_id'] == squad for item in items)
        kinds = [item['data']['kind'] for item in items if not item['data']['kind'].startswith('task.')]
        assert kinds[-2:] == ['message.posted', 'context.updated']
    said = next(item for item in items if item['data']['kind'] == 'message.posted')
    with Stream(server, '/api/v1/sse/squad/default', last_id=said['id']) as stream:
        again = stream.until(lambda item: item['event'] == 'context-update')
        assert again[-1]['id'] == items[-1]['id']
        assert 'message' not in names(again)


def test_events_of_a_task_have_its_squad(server, task):
    """Whoever writes them; what is about no task has none."""
    Room(server, task).post(text='x')
    told = server.events(task=task['id'])
    assert told and all(event['squad_id'] == task['squad']['id'] for event in told)
    server.make_key('read', 'any')
    assert server.events(kind='key.created')[-1].get('squad_id') is None


def test_an_execution(server, task):
    one = add_agent(server, task, 'coder-1-0a0b0c0d', 'no-box')
    for name in (one, 'coder-1-0a0b0c0d'):
        with Stream(server, f'/api/v1/sse/execution/{name}', headers={'Accept': '*/*'}) as stream:
            assert stream.next()['event'] == 'beat'


@pytest.mark.parametrize('path, status', [('squad/nobody', 404), ('execution/nobody', 404), ('squad/default?after=x', 400),
                                          ('squad/default?x=1', 400)])
def test_refused(server, path, status):
    check_error(server, server.ask('GET', f'/api/v1/sse/{path}'), status)


def test_whose_execution_it_is(server, task):
    one = add_agent(server, task, 'coder-1-0e0f0001', 'no-box')
    stranger = server.make_key('read', 'stranger')['key']
    assert server.ask('GET', f'/api/v1/sse/execution/{one}', key=stranger).status == 404


def test_statistics(server, task):
    before = server.get('/api/v1/sse/stats')
    with Stream(server, '/api/v1/sse/squad/default') as one, Stream(server) as two:
        assert one.next()['event'] == two.next()['event'] == 'beat'
        Room(server, task).post(text='x')
        one.until(lambda item: item['event'] == 'message')
        two.until(lambda item: item['event'] == 'message.posted')
        now = server.get('/api/v1/sse/stats')
        assert now['connections'] == before['connections'] + 2
        assert now['streams']['squads']['connections'] == before['streams']['squads']['connections'] + 1
        assert now['streams']['squads']['events_sent'] > before['streams']['squads']['events_sent']
        assert now['streams']['events']['beats_sent'] > before['streams']['events']['beats_sent']
