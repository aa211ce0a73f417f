# SPDX-License-Identifier: Apache-2.0
"""Tasks as programs and people see them.  Nothing is worked on here: a person plans, and none comes."""
import pytest

from gitserver import Work, make_repo, url_of
from harness import check_error, wait_until

TASKS = '/api/v1/tasks'
PERSON = {'planner': 'person'}


def new(server, request='Add a multiply function', status=201, **more):
    return server.post(TASKS, {'request': request, 'policy': PERSON, **more}, status=status)


def test_without_a_repository(server):
    made = new(server, '  Write a poem\nabout boxes ')
    assert made['title'] == 'Write a poem' and made['created'] and made['source'] == 'api'
    assert made['repository'] is None and made['branch'] is None and made['pull_url'] is None
    assert made['squad']['name'] == 'default' and made['progress'] == {'done': 0, 'total': 0}
    assert 'reply' not in made and 'dedupe' not in made
    assert server.get(f'{TASKS}/{made["id"]}')['number'] == made['number']
    assert server.get(f'{TASKS}/{made["number"]}')['id'] == made['id']
    assert server.get(f'{TASKS}/%23{made["number"]}')['id'] == made['id']
    told = [e for e in server.events() if e['kind'] == 'task.created' and e['task_id'] == made['id']]
    assert len(told) == 1 and told[0]['data']['title'] == 'Write a poem'


def test_with_a_repository(server):
    make_repo(server, 'calc', default_branch='trunk')
    made = new(server, repository='Coop/Calc', source='n8n')
    assert made['repository'] == 'coop/calc' and made['branch'] == f'task-{made["number"]}'
    assert made['base_branch'] == 'trunk' and made['source'] == 'n8n'
    shaped = new(server, 'Fix: the ünïcode!', repository='calc', base='next',
                 policy={**PERSON, 'branch': 'feature/{id}-{slug}'})
    assert shaped['branch'] == f'feature/{shaped["number"]}-fix-the-n-code' and shaped['base_branch'] == 'next'
    assert [t['number'] for t in server.get(f'{TASKS}?open=1')['tasks'][:2]] == [shaped['number'], made['number']]


def test_the_same_again(server):
    first = new(server, dedupe='message-1')
    again = new(server, 'Something else', status=200, dedupe='message-1')
    assert again['id'] == first['id'] and again['created'] is False


@pytest.mark.parametrize('body, status', [
    ({}, 400), ({'request': ''}, 400), ({'request': ' \n\t '}, 400), ({'request': 7}, 400),
    ({'request': 'x' * 32769}, 400), ({'request': 'x', 'more': 1}, 400), ({'request': 'x', 'squad': 'none'}, 404),
    ({'request': 'x', 'repository': 'none'}, 404), ({'request': 'x', 'repository': '../etc'}, 400),
    ({'request': 'x', 'source': 'fax'}, 400), ({'request': 'x', 'base': 'main'}, 400),
    ({'request': 'x', 'policy': {'until': 'never'}}, 400), ({'request': 'x', 'policy': {'tries': 0}}, 400),
    ({'request': 'x', 'policy': {'branch': 'fixed'}}, 400), ({'request': 'x', 'policy': {'branch': '{id}..'}}, 400),
    ({'request': 'x', 'policy': {'council': {'seats': [{}]}}}, 400), ({'request': 'x', 'policy': []}, 400),
    ({'request': 'x', 'policy': {'council': {'seats': [{'model': 'm'}], 'quorum': 2}}}, 400),
    ({'request': 'x', 'policy': {'budget': {'usd': -1}}}, 400), ({'request': 'x', 'title': 'y' * 121}, 400),
])
def test_what_is_refused(server, body, status):
    check_error(server, server.ask('POST', TASKS, body=body), status)


@pytest.mark.parametrize('query', ['page=0', 'per_page=101', 'open=2', 'what=1'])
def test_lists_refuse(server, query):
    check_error(server, server.ask('GET', f'{TASKS}?{query}'), 400)


@pytest.mark.parametrize('task', ['0', '99999999', 'x', '%23', '-1', '1%27', '18446744073709551616'])
def test_none_of_that_name(server, task):
    check_error(server, server.ask('GET', f'{TASKS}/{task}'), 404)


def test_what_a_repository_asks_for(server, tmp_path):
    path, _ = make_repo(server, 'asking')
    work = Work(tmp_path / 'w', url_of(server, path)).init()
    work.commit('coop.yaml', 'checks: [make]\nteam:\n  until: reviewed\n  rounds: 2\n')
    work.push('HEAD:main')
    made = new(server, repository='asking', policy={**PERSON, 'rounds': 1})
    assert made['policy'] == {'until': 'reviewed', 'rounds': 1, 'planner': 'person'}
    server.post('/api/v1/squads', {'name': 'asked', 'repository': 'asking', 'config': {'until': 'merged'}})
    assert new(server, squad='asked')['policy'] == {'until': 'merged', 'rounds': 2, 'planner': 'person'}
    work.commit('coop.yaml', 'checks: [make]\nteam: {budget: {usd: 1}}\n')
    work.push('HEAD:main')
    made = new(server, repository='asking', policy=PERSON)
    blocked = wait_until(lambda: (t := server.get(f'{TASKS}/{made["id"]}'))['state'] == 'blocked' and t, 'it to be told')
    assert 'coop.yaml, line 2' in blocked['problem'] and 'budget' in blocked['problem']
    assert server.get(f'{TASKS}/{made["id"]}')['questions'][0]['options'] == ['retry', 'stop']
    work.commit('coop.yaml', 'checks: [make]\nteam: {rounds: 10, turns: 9999, tries: 1}\n')
    work.push('HEAD:main')
    server.post(f'{TASKS}/{made["id"]}/retry', {}, status=200)
    wait_until(lambda: server.get(f'{TASKS}/{made["id"]}')['state'] == 'approving', 'it to go on')
    # It can ask for less than the server gives, and not for more.
    assert new(server, repository='asking', policy=PERSON)['policy'] == {**PERSON, 'rounds': 3, 'turns': 100, 'tries': 1}
