# SPDX-License-Identifier: Apache-2.0
"""What a task may spend: one budget for whoever plans, writes, tests and reviews it, enforced at the door."""
import json

import pytest

from harness import wait_until
from teamserver import TASKS, plan, plans, says, step, team_serving, writes

# In dollars for a million tokens: what a call may take at most is far more than what it takes.
PRICES = 'models:\n  - {match: coder, provider: demo, input: 10, output: 10}\n'
LOOPER = r'''
description: asks the same for ever
command:
  - /bin/bash
  - -c
  - |
    ask='{"model": "coder", "messages": [{"role": "user", "content": "again"}]}'
    while :; do
        exec 3<>/dev/tcp/127.0.0.1/3128
        printf 'POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' >&3
        printf 'Content-Length: %s\r\nConnection: close\r\n\r\n%s' "${#ask}" "$ask" >&3
        cat <&3 >/dev/null
        exec 3>&-
    done
output: text
'''


def add_looper(root):
    agents = root.parents[1] / 'agents'
    agents.mkdir(exist_ok=True)
    (agents / 'looper.yaml').write_text(LOOPER)


@pytest.fixture(scope='module')
def server():
    with team_serving(add_looper) as running:
        running.kill_door()
        (running.door_folder / 'state' / 'prices.yaml').write_text(PRICES)
        running.start_door()
        wait_until(running.door_is_up, 'the door')
        running.script(plans(plan(step('one'))), writes('parts/one', 'good\n'))
        yield running


def budget_of(server, task):
    return next((b for b in server.get('/api/v1/budgets')['budgets'] if b['scope'] == f'task:{task["id"]}'), None)


def question_of(server, task):
    [asked] = [q for q in server.task(task)['questions'] if q['state'] == 'open']
    return asked


def answer(server, task, text, status=200):
    return server.post(f'{TASKS}/{task["id"]}/answer', {'answer': text}, status=status)


def test_one_budget_for_all_of_them(server):
    """A call for the plan and two for the code; there is none left for who looks at it."""
    repo = server.new_repo('calls')
    task = server.new_task(repository=repo, policy={'budget': {'calls': 3}})
    blocked = server.task_in(task, 'blocked', 'done')
    assert (blocked['state'], blocked['blocked_from']) == ('blocked', 'reviewing'), blocked['problem']
    assert 'budget' in blocked['problem'] and '3 calls' in blocked['problem']
    spent = budget_of(server, task)
    assert spent['bounds'] == {'calls': 3} and spent['spent']['calls'] == 3
    asked = question_of(server, task)
    assert asked['options'] == ['raise', 'stop'] and 'raised' in asked['text']
    for nonsense in ('go on', 'calls 3', 'usd 7', 'calls many', 'raise it'):
        answer(server, task, nonsense, status=400)
    assert server.task(task)['state'] == 'blocked'
    answer(server, task, 'calls 50')
    ended = server.task_done(task)
    assert ended['policy']['budget'] == {'calls': 50} and server.file(repo, 'parts/one') == 'good'
    assert [e['data']['state'] for e in server.events_of(task, 'step.ended')] == ['done']
    assert ended['report']['usage']['calls'] > 3
    assert budget_of(server, task) is None, 'what is over binds nobody'


def test_who_plans_is_bound_too(server):
    """Money: the first question may cost more than there is."""
    task = server.new_task(repository=server.new_repo('money'), policy={'budget': {'usd': 0.001}})
    blocked = server.task_in(task, 'blocked', 'done')
    assert (blocked['state'], blocked['blocked_from']) == ('blocked', 'planning'), blocked['problem']
    assert '0.001 USD' in blocked['problem'] and server.agents(task) == []
    assert budget_of(server, task)['bounds'] == {'microusd': 1000}
    answer(server, task, 'raise')
    blocked = server.task_in(task, 'blocked', 'done')
    assert budget_of(server, task)['bounds'] == {'microusd': 2000}, 'twice as much, and still too little'
    answer(server, task, 'usd 20')
    ended = server.task_done(task)
    assert 0 < ended['report']['usage']['microusd'] < 20_000_000


def test_a_squad_says_it_for_its_tasks(server):
    server.post('/api/v1/squads', {'name': 'thrifty', 'config': {'budget': {'calls': 1}}}, status=201)
    for policy in ({'budget': None}, {'budget': {'calls': 2}}, {'budget': {'tokens': 1}}):
        refused = server.ask('POST', '/api/v1/tasks', body={'request': 'Add parts', 'squad': 'thrifty', 'policy': policy})
        assert refused.status == 403 and 'at most 1 calls' in refused.json['message'], refused
    task = server.new_task(repository=server.new_repo('squad'), squad='thrifty')
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and '1 calls' in blocked['problem'], blocked['problem']
    answer(server, task, 'stop')
    stopped = server.task(task)
    assert stopped['state'] == 'cancelled' and budget_of(server, task) is None
    wait_until(lambda: server.live() == set(), 'its boxes to go')


def test_what_a_person_set_at_the_door_stands(server):
    task = server.new_task(repository=server.new_repo('stands'), policy={'planner': 'person', 'budget': {'calls': 100}})
    wait_until(lambda: budget_of(server, task), 'the budget')
    assert server.ask('PUT', f'/api/v1/budgets/task:{task["id"]}', body={'calls': 1}).status in (200, 201)
    server.give_plan(task, plan(step('one')))
    server.task_in(task, 'blocked')
    assert question_of(server, task)['options'] == ['retry', 'stop'], 'an answer does not raise what is not the task\'s'
    assert server.ask('PUT', f'/api/v1/budgets/task:{task["id"]}', body={'calls': 90}).status in (200, 201)
    answer(server, task, 'retry')
    server.task_done(task)
    assert budget_of(server, task)['bounds'] == {'calls': 90}


def test_it_binds_after_a_kill(server):
    task = server.new_task(repository=server.new_repo('killed'), policy={'budget': {'calls': 2}})
    server.task_in(task, 'blocked')
    server.kill()
    server.restart()
    assert server.task(task)['state'] == 'blocked' and budget_of(server, task)['bounds'] == {'calls': 2}
    answer(server, task, 'tokens 5', status=400)
    answer(server, task, 'raise to: calls=70')
    server.task_done(task)


def test_a_runaway_is_stopped(server):
    members = [{'role': 'coder', 'adapter': 'looper'}]
    server.post('/api/v1/squads', {'name': 'loopers', 'members': members}, status=201)
    task = server.new_task(repository=server.new_repo('loops'), squad='loopers', plan=plan(step('one')),
                           policy={'tries': 1})
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and 'the same' in blocked['problem'], blocked['problem']
    assert server.events_of(task, 'loop.broken')
    [agent] = server.agents(task)
    assert agent['state'] == 'failed' and 'the same' in agent['problem'], agent['problem']
    wait_until(lambda: server.live() == set(), 'its box to go')


def test_a_council_is_bound_too(server):
    """Three opinions are asked for at once, and there are two calls."""
    body = json.dumps(plan(step('one')))
    server.script(says('council-*', json.dumps({'ranking': ['A', 'B'], 'why': 'shorter'}), match='Rank the plans'),
                  says('council-*', body), says('chairman-*', json.dumps({'plan': plan(step('one')), 'dissent': []})),
                  writes('parts/one', 'good\n'))
    task = server.new_task(repository=server.new_repo('council'), policy={'planner': 'council', 'budget': {'calls': 2}})
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and '2 calls' in blocked['problem'], blocked['problem']
    assert server.agents(task) == []
    answer(server, task, 'calls 200')
    server.task_done(task)
    assert 'council' in {e['data']['agent'].split('-')[0] for e in server.events_of(task, 'model.called')}
