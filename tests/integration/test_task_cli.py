# SPDX-License-Identifier: Apache-2.0
"""`coop squad` and `coop task`, as people type them.  Nothing is worked on: a person plans, and none comes."""
import contextlib
import json
import os
import sqlite3

import pytest

from client import WHO, make_client
from fake import Fake, answer

PERSON = ['--planner', 'person']
STEPS = ['council plans', 'sandbox created', 'code generated', 'tests executed', 'tests passed',
         'feature marked complete', 'sandbox cleaned up']


@pytest.fixture(params=WHO)
def client(request, coop, make_server):
    return make_client(request.param, coop, make_server)


def piped(text):
    """The reading end of a pipe with that in it."""
    read, write = os.pipe()
    with open(write, 'w') as end:
        end.write(text)
    return open(read)


def test_squads(client):
    assert 'planner, coder-1, coder-2, reviewer, tester' in client.ok('squad')
    made = client.json('squad', 'new', 'shop', '--member', 'coder:backend', '--member', 'qa_tester', '--config', '{"tries": 2}')
    assert [m['name'] for m in made['members']] == ['coder-1', 'tester-1'] and made['config'] == {'tries': 2}
    assert client.json('squad', 'set', 'shop', '--description', 'Sells', '--config', '{"tries": null}')['config'] == {}
    added = client.json('squad', 'add', 'shop', 'reviewer', '--for', 'security', '--model', 'm', '--name', 'rita')
    assert (added['specialization'], added['llm_model']) == ('security', 'm')
    assert client.json('squad', 'change', 'shop', 'rita', '--active', 'no')['is_active'] is False
    assert client.ok('squad', 'drop', 'shop', 'rita') == 'removed rita\n'
    assert 'coder-1' in client.ok('squad', 'show', 'shop') and 'backend_developer' in client.ok('squad', 'roles')
    assert client.ok('squad', 'rm', 'shop') == 'removed shop\n'
    assert 'must be a JSON object' in client.error(2, 'squad', 'new', 'x', '--config', '[1')


SQUAD = '''
description: 12
config: {tries: 2, approve: true, budget: {usd: 0.5}}
members:
  - {role: coder, specialization: frontend, template: python-3.11, config: {turns: 30, tools: [read, edit, done]}}
  - {role: reviewer, name: rita, llm_provider: anthropic, llm_model: "4", system_prompt: Be kind., is_active: false}
'''


def test_a_squad_as_a_file(client, folder):
    file = folder / 'squad.yaml'
    file.write_text(SQUAD)
    made = client.json('squad', 'new', 'filed', '--file', str(file))
    assert made['description'] == '12' and made['config'] == {'tries': 2, 'approve': True, 'budget': {'usd': 0.5}}
    coder, rita = made['members']
    assert (coder['template'], coder['config']) == ('python-3.11', {'turns': 30, 'tools': ['read', 'edit', 'done']})
    assert (rita['name'], rita['llm_model'], rita['system_prompt'], rita['is_active']) == ('rita', '4', 'Be kind.', False)
    again = client.json('squad', 'new', 'other', '-f', str(file), '--member', 'tester', '--config', '{"tries": 1}')
    assert [m['role'] for m in again['members']] == ['tester'] and again['config'] == {'tries': 1}
    for text, said in (('a: [', 'line 2'), ('- x', 'a squad is a map'), ('', 'no squad'), ('a: &b 1', 'line 1'), ('{', 'JSON')):
        file.write_text(text)
        assert said in client.error(2, 'squad', 'new', 'x', '--file', str(file)), text
    file.write_text('membres: []')
    assert 'membres' in client.error(2, 'squad', 'new', 'x', '--file', str(file))
    for name in ('filed', 'other'):
        client.ok('squad', 'rm', name)


def test_none_of_that_name(client):
    assert 'no such squad' in client.error(4, 'squad', 'show', 'shop')


def test_tasks(client):
    client.ok('repo', 'create', 'calc', '--commit')
    made = client.json('task', 'new', 'Add multiply', '--repo', 'calc', '--until', 'tested', *PERSON)
    assert made['number'] == 1 and made['branch'] == 'task-1' and made['source'] == 'cli'
    assert made['policy'] == {'planner': 'person', 'until': 'tested'}
    text = client.ok('task', 'show', '#1')
    assert 'Add multiply' in text and 'task-1' in text and 'Tests: total 0, passed 0, failed 0' in text
    assert 'Add multiply' in client.ok('task') and client.json('task', 'ls', '--open')[0]['id'] == made['id']
    assert client.json('task', 'ls', '--squad', 'none') == []
    shown = client.json('task', 'show', '1')
    assert shown['steps'] == shown['agents'] == shown['questions'] == shown['kept'] == [] and shown['totals']['calls'] == 0
    assert 'task: Add multiply' in client.ok('task', 'log', '1')
    assert client.json('task', 'new', '-', *PERSON, stdin=piped('From the input\n'))['title'] == 'From the input'
    assert 'is missing' in client.error(2, 'task', 'new', ' ', *PERSON)
    assert 'no such task' in client.error(4, 'task', 'show', '77')
    assert 'no repository' in client.error(4, 'task', 'new', 'x', '--repo', 'none')


def test_a_plan_of_ones_own(client, folder):
    plan = {'project': 'calc', 'features': [{'name': 'multiply', 'title': 'Multiply'}],
            'steps': [{'name': 'multiply', 'title': 'Multiply', 'feature': 'multiply', 'role': 'coder'}]}
    text = json.dumps(plan)
    made = client.json('task', 'new', 'Add multiply', '--plan', '-', stdin=piped(text))
    shown = client.json('task', 'show', str(made['number']))
    assert shown['plan']['producer'] == 'person' and shown['plan']['body']['project'] == 'calc'
    assert client('task', 'new', 'x', '--plan', '-', stdin=piped('{"steps": 1}')).returncode == 2


def ask(client, number, text='Which one?', state='blocked'):
    """What the workflow would write."""
    with contextlib.closing(sqlite3.connect(client.server.home / 'coop.db', timeout=30)) as db, db:
        (task,) = db.execute('SELECT id FROM tasks WHERE number = ?', (number,)).fetchone()
        db.execute("UPDATE tasks SET state = ?, blocked_from = 'planning', problem = 'no idea' WHERE id = ?", (state, task))
        db.execute("INSERT INTO questions (id, task_id, text, state, created_us) VALUES ('q1', ?, ?, 'open', 1)", (task, text))
    return task


def test_answers(client):
    client.ok('task', 'new', 'Add multiply', *PERSON)
    assert 'asks nothing' in client.error(6, 'task', 'answer', '1', 'yes')
    assert 'can be retried' in client.error(6, 'task', 'retry', '1')
    ask(client, 1)
    assert client.json('task', 'show', '1')['waiting_for'] == 'an answer: Which one?'
    told = client.json('task', 'answer', '1', 'The blue one')
    question = told['questions'][0]
    assert (question['state'], question['answer'], question['text']) == ('answered', 'The blue one', 'Which one?')
    assert told['state'] != 'blocked' and told['problem'] is None
    assert 'answer: The blue one' in client.ok('task', 'log', '1')


def test_retry_and_stop(client):
    client.ok('task', 'new', 'Add multiply', *PERSON)
    ask(client, 1)
    told = client.json('task', 'retry', '1')
    assert told['state'] != 'blocked' and told['questions'][0]['answer'] == 'retry'
    assert client.json('task', 'stop', '1', '--reason', 'enough')['state'] == 'cancelled'
    assert client.json('task', 'stop', '1')['state'] == 'cancelled'


EVENTS = [
    ('task.created', {'title': 'Factorial'}), ('task.planned', {}), ('box.created', {'agent_id': 'coder-1-1f2e3d4c'}),
    ('tool.used', {'agent': 'coder-1', 'name': 'shell', 'exit_code': 2, 'output': 'making\nno such rule\n[exit code 2]', 'stderr': 'no such rule\n'}),
    ('commit.pushed', {'branch': 'task-1--coder-1', 'after': '0123456789abcdef'}),
    ('tests.reported', {'total': 3, 'passed': 2, 'failed': 1, 'stderr': 'RangeError: n\x1b[31m is -1\nat x.js'}),
    ('tests.reported', {'total': 3, 'passed': 3, 'failed': 0}), ('step.ended', {'state': 'done', 'title': 'Factorial'}),
    ('review.submitted', {'number': 2, 'title': 'Factorial', 'state': 'CHANGES_REQUESTED'}),
    ('box.killed', {}), ('task.completed', {}),
]


def test_the_log_in_words(coop):
    events = [{'seq': i, 'at': f'2026-11-16T10:00:{i:02}.000000Z', 'kind': kind, 'box_id': 'b', 'data': data}
              for i, (kind, data) in enumerate(EVENTS)]
    page = {'events': events, 'next_after': 9, 'more': False}
    with Fake({'/api/v1/tasks/1': answer({'id': 'x', 'number': 1}), '/api/v1/events': answer(page)}) as fake:
        text = coop('task', 'log', '1', '--server', fake.url()).stdout
        # It is over, so that nothing is waited for.
        assert coop('task', 'log', '1', '-f', '--server', fake.url()).stdout == text
    seen = [text.index(step) for step in STEPS]
    assert seen == sorted(seen), text
    assert all(f'[{n}/7]' in text for n in range(1, 8))
    assert 'stderr: RangeError: n\\x1b[31m is -1\n' in text and 'stderr: at x.js\n' in text and '\x1b' not in text
    assert 'output: making\n         stderr: no such rule\n         output: [exit code 2]\n' in text and text.count('no such rule') == 1
    assert 'review of #2: CHANGES_REQUESTED\n' in text
    assert 'total 3, passed 2, failed 1' in text and 'total 3, passed 3, failed 0' in text


def test_the_demo_says_what_it_waits_for(coop):
    """A first start builds a template, and no box is there before."""
    templates = [{'name': 'agent', 'state': 'available'}, {'name': 'base', 'state': 'building', 'progress': {'step': 'packages', 'percent': 28}}]
    with Fake({'/api/v1/providers': answer({'providers': []}), '/api/v1/templates': answer({'templates': templates})}) as fake:
        done = coop('demo', '--server', fake.url())
    assert "The template 'base' is being built, this once (28 %)" in done.stdout and 'agent' not in done.stdout.split('The template')[1], done
