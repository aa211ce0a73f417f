# SPDX-License-Identifier: Apache-2.0
"""People and a squad that works: questions and their answers, a council, and the commands that show it."""
import json
import os
import subprocess

import pytest

from harness import PROGRAM, WAIT_S, wait_until
from teamserver import done, plan, plans, says, step, team_serving, tool, write, writes

ASKS = says('coder*', [tool('ask', question='Red or blue?', options=['red', 'blue'])],
            [write('parts/one', 'good\n{{last_tool}}\n')], [done()])


@pytest.fixture(scope='module')
def server():
    with team_serving() as running:
        yield running


def coop(server, *words, code=0):
    ran = subprocess.run([PROGRAM, *words], env=server.environment(), capture_output=True, text=True, timeout=WAIT_S)
    assert ran.returncode == code, ran
    return ran.stdout


# ---- questions ----

def asking(server, task):
    """The agent of a task that waits for a person."""
    return wait_until(lambda: [a for a in server.agents(task) if a['state'] == 'asking'],
                      lambda: f'a question: {server.task(task)}')[0]


def test_a_person_answers(server):
    repo = server.new_repo('asked')
    server.script(plans(plan(step('one'))), ASKS)
    task = server.new_task(repository=repo)
    number = str(task['number'])
    agent = asking(server, task)
    assert server.task(task)['waiting_for'] == 'an answer: Red or blue?'
    assert 'an answer: Red or blue?' in coop(server, 'task', 'ls', '--open')
    [question] = server.task(task)['questions']
    assert question['state'] == 'open' and question['options'] == ['red', 'blue'] and question['id'] in coop(
        server, 'task', 'show', number)
    assert f'task {number} is ' in coop(server, 'task', 'answer', number, 'blue')
    coop(server, 'task', 'answer', number, 'red', code=6)
    server.task_done(task)
    assert server.file(repo, 'parts/one') == 'good\nblue'
    [answered] = server.events_of(task, 'human.answered')
    assert answered['data']['answer'] == 'blue' and answered['execution_id'] == agent['id']
    log = coop(server, 'task', 'log', number)
    assert log.index('question: Red or blue?') < log.index('answer: blue')


def test_an_answer_after_a_restart(server):
    """The program in the box waits on, whatever becomes of the server."""
    repo = server.new_repo('restarted')
    server.script(plans(plan(step('one'))), ASKS)
    task = server.new_task(repository=repo)
    agent = asking(server, task)
    server.kill()
    server.restart()
    assert server.task(task)['waiting_for'] == 'an answer: Red or blue?'
    coop(server, 'task', 'answer', str(task['number']), 'blue')
    server.task_done(task)
    assert [a['id'] for a in server.agents(task) if a['kind'] == 'work'] == [agent['id']]
    assert len(server.events_of(task, 'human.asked')) == len(server.events_of(task, 'human.answered')) == 1
    assert server.file(repo, 'parts/one') == 'good\nblue'


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')
def test_killed_with_the_answer(server):
    """It is written, and nobody was told: the next server finds that the agent is at work again."""
    repo = server.new_repo('answered')
    wait = 'while ! test -e /tmp/go; do sleep 0.05; done'
    server.script(plans(plan(step('one'))), {**ASKS, 'turns': [*ASKS['turns'][:2], {'tools': [tool('shell', command=wait)]},
                                                               ASKS['turns'][2]]})
    server.stop()
    server.restart(COOP_FAIL_AT='crew-answered')
    task = server.new_task(repository=repo)
    agent = asking(server, task)
    subprocess.run([PROGRAM, 'task', 'answer', str(task['number']), 'blue'], env=server.environment(), timeout=WAIT_S,
                   stderr=subprocess.DEVNULL)
    server.wait_killed()
    server.restart()
    wait_until(lambda: [a['state'] for a in server.agents(task)] == ['working'], lambda: server.agents(task))
    server.run(agent['sandboxId'], 'echo >/tmp/go')
    server.task_done(task)
    assert server.file(repo, 'parts/one') == 'good\nblue'


def test_who_waits_for_a_person_takes_no_place(server):
    """Three is the usual limit: with as many questions open, a fourth task is worked on."""
    repo = server.new_repo('places')
    server.script(plans(plan(step('one'))), {**ASKS, 'asked': 'Add a question'}, writes('parts/two', 'good\n'))
    *tasks, last = [server.new_task(f'Add {what}', repository=repo) for what in (*['a question'] * 3, 'a part')]
    server.task_done(last)
    for task in tasks:
        asking(server, task)
        coop(server, 'task', 'stop', str(task['number']))


# ---- what is shown while it happens ----

def test_watched(server):
    """From the sentence to the merge at one terminal; afterwards the log says the same, and following it ends."""
    repo = server.new_repo('watched')
    server.script(plans(plan(step('one'))), writes('parts/one', 'good\n'))
    shown = coop(server, 'task', 'new', 'Add a part', '--repo', repo, '--watch')
    task = server.get('/api/v1/tasks?per_page=1')['tasks'][0]
    assert task['state'] == 'done' and task['source'] == 'cli'
    places = [shown.index(words) for words in ('council plans', 'sandbox created', 'feature marked complete',
                                               'sandbox cleaned up', 'merged: #1', ' done: ')]
    assert places == sorted(places), shown
    number = str(task['number'])
    log = coop(server, 'task', 'log', number)
    assert ' done: ' in shown.splitlines()[-1] and shown[shown.index('task: '):] in log
    assert coop(server, 'task', 'log', number, '--follow').startswith(log)


def test_followed(server):
    """One that looks on from the middle to the end sees all of it, also what the server does not live to tell."""
    repo = server.new_repo('followed')
    server.script(plans(plan(step('one'))), ASKS)
    task = server.new_task(repository=repo)
    number = str(task['number'])
    asking(server, task)
    with subprocess.Popen([PROGRAM, 'task', 'log', number, '-f'], env=server.environment(), stdout=subprocess.PIPE,
                          text=True) as looker:
        lines = []
        while 'question: Red or blue?' not in (line := looker.stdout.readline()):
            assert line, lines
            lines.append(line)
        server.kill()
        server.restart()
        coop(server, 'task', 'answer', number, 'blue')
        rest = looker.stdout.read()
        assert looker.wait(WAIT_S) == 0
    assert 'answer: blue' in rest and 'merged: #1' in rest and ' done: ' in rest.splitlines()[-1], rest


# ---- agents by hand ----

def test_agents_by_hand(server):
    """`coop agent`: spawned, seen at work, stopped; and one that comes to its end."""
    repo = server.new_repo('hand')
    server.script(says('coder*', [tool('shell', command='sleep 600')], match='sleep'),
                  says('coder*', [write('parts/one', 'good\n')], [done('It is good.')]))
    model = ['--provider', 'demo', '--model', 'coder', '--repo', repo]
    sleeper = json.loads(coop(server, 'agent', 'spawn', 'coder', 'sleep', *model, '-o', 'json'))
    writer = json.loads(coop(server, 'agent', 'spawn', 'coder', 'Write one', *model, '-o', 'json'))
    names = [one['agentId'] for one in (sleeper, writer)]
    listed = coop(server, 'agent', 'ls')
    assert all(name in listed for name in names), listed
    log = coop(server, 'agent', 'log', writer['id'], '--follow')
    assert 'agent.joined' in log and 'tool.used' in log and log.splitlines()[-1].count('agent.left') == 1, log
    ended = server.get(f'/api/v1/agents/{writer["id"]}')
    assert ended['state'] == 'done' and ended['result']['passed'] is True and 'done' in coop(server, 'agent', 'show', writer['id'])
    assert server.file(repo, 'parts/one', ended['git_branch']) == 'good'
    wait_until(lambda: server.get(f'/api/v1/agents/{sleeper["id"]}')['turns'] > 0, 'the first turn')
    assert coop(server, 'agent', 'stop', sleeper['id']) == 'stopped\n'
    wait_until(lambda: server.live() == set(), 'the end of the boxes')


# ---- a plan by file ----

PLAN = '''project: parts
features:
  - name: first
    title: The first part
    acceptance:
      - {name: first is good, run: 'read -r word <parts/one && test "$word" = good'}
steps:
  - name: one
    title: Write one
    feature: first
    files: [parts/one]
  - name: two
    title: Write two
    depends: [one]
'''


def test_a_plan_by_file(server, tmp_path):
    """From the file of a person to the merge, by the command line alone; nobody else plans."""
    repo = server.new_repo('by-file')
    server.script(writes('parts/one', 'good\n', asked='# Goal\\s+Write one'),
                  says('coder*', [tool('shell', command='cat parts/one >parts/two')], [done()]))
    (tmp_path / 'plan.yaml').write_text(PLAN)
    (tmp_path / 'bad.yaml').write_text(PLAN.replace('depends: [one]', 'depends: [three]'))
    coop(server, 'task', 'new', 'Add two parts', '--repo', repo, '--plan', str(tmp_path / 'bad.yaml'), code=2)
    coop(server, 'task', 'new', 'Add two parts', '--repo', repo, '--plan', str(tmp_path / 'none.yaml'), code=2)
    before = len(server.get('/api/v1/tasks?per_page=100')['tasks'])
    made = json.loads(coop(server, 'task', 'new', 'Add two parts', '--repo', repo, '--plan', str(tmp_path / 'plan.yaml'),
                           '-o', 'json'))
    assert len(server.get('/api/v1/tasks?per_page=100')['tasks']) == before + 1
    ended = server.task_done(made)
    assert ended['rung'] == 'merged' and server.file(repo, 'parts/two') == 'good' == server.file(repo, 'parts/one')
    shown = ended['plan']
    assert (shown['producer'], shown['state'], shown['version']) == ('person', 'approved', 1)
    assert [(s['name'], s['depends'], s['state']) for s in ended['steps']] == [('one', [], 'done'), ('two', ['one'], 'done')]
    first = [a for a in server.agents(made) if a['kind'] == 'work' and a['step_id'] == ended['steps'][0]['id']]
    assert [c['name'] for c in first[0]['result']['checks']] == ['first-is-good'], 'what the file says proves it'
    asked = {e['data']['agent'].split('-')[0] for e in server.events_of(made, 'model.called')}
    assert asked == {'coder', 'tester', 'reviewer'}, 'nobody but the person has planned'
    assert 'Write two' in coop(server, 'plan', 'show', str(made['number']))
