# SPDX-License-Identifier: Apache-2.0
"""Plans by a scripted brain, by a council and by people, on a real server; nobody works on them here."""
import json
import os
import subprocess

import pytest

from harness import PROGRAM, WAIT_S, check_error, wait_until
from teamserver import TASKS, plan, plans, says, step, team_serving

APPROVE = {'approve': True}
SEATS = [{'provider': 'demo', 'model': 'coder'}] * 4
COUNCIL = {'planner': 'council', **APPROVE}
SYNTHESIS = {'plan': plan(step('joined')), 'dissent': ['B wanted more']}
GOOD_COUNCIL = [
    says('council-*', json.dumps({'ranking': ['A', 'B'], 'why': 'shorter'}), match='Rank the plans'),
    says('council-*', 'Here it is:\n```json\n' + json.dumps(plan(step('seat'))) + '\n```'),
    says('chairman-*', json.dumps(SYNTHESIS), system='chairman'),
]


@pytest.fixture(scope='module')
def server():
    with team_serving() as running:
        running.repository = running.new_repo()
        yield running


def show(server, task):
    return server.get(f'{TASKS}/{task["id"]}/plan')


def asked(server, task):
    """Which agents have called a model, as often as they did."""
    return sorted(e['data']['agent'] for e in server.events_of(task, 'model.called'))


def coop(server, *words, code=0, **options):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=WAIT_S, check=False,
                          **{'env': {**os.environ, 'COOP_HOME': str(server.home)}, **options})
    assert done.returncode == code, done
    return done.stdout if code == 0 else done.stderr


# ---- one brain ----

def test_brain_and_approval(server):
    """It is told the files, the checks and the squad; its plan waits for a person."""
    seen = r'(?s)Add more parts.*parts/start.*sh check\.sh.*coder-2: coder, backend.*"acceptance"'
    server.script(says('planner-*', 'Sure.\n' + json.dumps(plan(step('one'), minutes=7)), match=seen))
    task = server.new_task('Add more parts', repository=server.repository, policy=APPROVE)
    server.task_in(task, 'approving')
    got = show(server, task)
    assert (got['state'], got['producer'], got['version'], got['council']) == ('draft', 'brain', 1, None)
    assert got['body']['minutes'] == 7 and '# Plan: parts' in got['text'] and '> Add more parts' in got['text']
    number = str(task['number'])
    assert 'Estimated time: 7 min' in coop(server, 'plan', 'show', number)
    assert 'Sure.' in coop(server, 'plan', 'show', number, '--voices')
    assert wait_until(lambda: asked(server, task), 'the call') == [f'planner-{number}']
    assert 'is approved' in coop(server, 'plan', 'approve', f'#{number}')
    wait_until(lambda: server.task(task)['state'] not in ('approving', 'planning'), 'the work')
    check_error(server, server.ask('PUT', f'{TASKS}/{number}/plan', body=plan(step('late'))), 409)


def test_brain_repairs(server):
    server.script(says('planner-*', json.dumps(plan(step('two'))), match='It cannot be used: there is no JSON'),
                  says('planner-*', 'I would rather not.'))
    task = server.new_task(policy=APPROVE)
    server.task_in(task, 'approving')
    got = show(server, task)
    assert [(v['phase'], v['state']) for v in got['voices']] == [('brain', 'malformed'), ('brain-repair', 'answered')]


def test_brain_fails(server):
    """Twice nothing: the task is blocked with the reason, and a person's plan helps."""
    server.script(says('planner-*', 'No.'))
    task = server.new_task(policy=APPROVE)
    blocked = server.task_in(task, 'blocked')
    assert 'gave no plan that can be used' in blocked['problem']
    assert show(server, task)['state'] == 'failed'


def test_nobody_has_the_model(server):
    """That does not pass by itself: a person is told what helps, and then the same plan goes on."""
    server.script(models=['other'])
    task = server.new_task(policy=APPROVE)
    blocked = server.task_in(task, 'blocked')
    assert "no provider has the model 'demo/coder'" in blocked['problem'] and 'coop provider add' in blocked['problem']
    assert blocked['questions'][0]['options'] == ['retry', 'stop']
    server.script(plans(plan(step('later'))))
    coop(server, 'task', 'retry', str(task['number']))
    server.task_in(task, 'approving')


# ---- the council ----

def test_council(server):
    server.script(*GOOD_COUNCIL)
    task = server.new_task(policy=COUNCIL)
    server.task_in(task, 'approving')
    got = show(server, task)
    council, n = got['council'], task['number']
    assert got['producer'] == 'council' and got['body']['steps'][0]['name'] == 'joined'
    assert council['outcome'] == 'synthesis' and council['dissent'] == ['B wanted more'] and len(council['scores']) == 3
    told = [e['kind'] for e in server.events_of(task)]
    assert [told.count(k) for k in ('council.opened', 'opinion.given', 'ranking.given', 'council.closed')] == [1, 3, 3, 1]
    calls = sorted([f'council-{seat}-{n}' for seat in (1, 2, 3)] * 2 + [f'chairman-{n}'])
    wait_until(lambda: asked(server, task) == calls, lambda: asked(server, task))
    shown = coop(server, 'plan', 'show', str(n))
    assert 'Council: synthesis' in shown and 'ranking 1 (coder): answered: ' in shown and '- B wanted more' in shown


def test_council_with_a_silent_and_a_malformed_member(server):
    server.script(says('council-2-*', {'text': 'late', 'first_ms': 60000}), says('council-3-*', 'What is a plan?\x1b[31m'),
                  *GOOD_COUNCIL)
    task = server.new_task(policy={**COUNCIL, 'council': {'seats': SEATS, 'quorum': 2, 'timeout_s': 8}})
    server.task_in(task, 'approving')
    got = show(server, task)
    states = {v['seat']: v['state'] for v in got['voices'] if v['phase'] == 'opinion'}
    assert states == {1: 'answered', 2: 'silent', 3: 'malformed', 4: 'answered'}
    assert got['council']['outcome'] == 'synthesis'
    assert '\x1b' not in json.dumps(got, ensure_ascii=False)


def test_council_falls_back(server):
    server.script(says('council-*', 'What is a plan?'), says('planner-*', json.dumps(plan(step('alone')))))
    task = server.new_task(policy=COUNCIL)
    server.task_in(task, 'approving')
    got = show(server, task)
    assert got['producer'] == 'brain' and got['council']['outcome'] == 'brain'
    assert got['council']['reason'] == '0 of 3 opinions can be used, 2 are needed'


# ---- people ----

PERSON = {'planner': 'person'}
YAML = '''project: Mine
minutes: 3
steps:
  - name: by-hand
    details: |
      Do it
      well.
'''


def test_set_and_edit(server, tmp_path):
    task = server.new_task(policy={**PERSON, **APPROVE})
    server.task_in(task, 'approving')
    number = str(task['number'])
    check_error(server, server.ask('GET', f'{TASKS}/{number}/plan'), 404)
    check_error(server, server.ask('POST', f'{TASKS}/{number}/plan/approve'), 404)
    (tmp_path / 'bad.yaml').write_text('project: Mine\nsteps:\n  - name: a\n    depends: [b]\n')
    assert "'a' depends on 'b', which is no step" in coop(server, 'plan', 'set', number, str(tmp_path / 'bad.yaml'), code=2)
    (tmp_path / 'good.yaml').write_text(YAML)
    # The plan is the person's, so the work begins; the editor comes too late.
    assert 'by person, approved' in coop(server, 'plan', 'set', number, str(tmp_path / 'good.yaml'))
    got = show(server, task)
    assert got['body']['minutes'] == 3 and got['body']['steps'][0]['details'] == 'Do it\nwell.'
    assert server.ask('POST', f'{TASKS}/{number}/plan/approve').status == 200


def test_with_the_request(server):
    """Nobody is asked, and nothing waits."""
    check_error(server, server.ask('POST', TASKS, body={'request': 'x', 'plan': {'project': 'P'}}), 400)
    task = server.new_task(plan=plan(step('mine')), policy=APPROVE)
    wait_until(lambda: server.task(task)['state'] not in ('queued', 'planning'), 'the work')
    got = show(server, task)
    assert (got['producer'], got['state'], got['voices']) == ('person', 'approved', [])


def test_edit(server):
    server.script(says('planner-*', json.dumps(plan(step('one')))))
    task = server.new_task(policy=APPROVE)
    server.task_in(task, 'approving')
    number = str(task['number'])
    env = {**os.environ, 'COOP_HOME': str(server.home)}
    said = coop(server, 'plan', 'edit', number, env={**env, 'EDITOR': "sed -i 's/\"name\": \"one\"/\"name\": 7/'"}, code=2)
    assert 'name' in said and 'What was written is in ' in said
    os.unlink(said.rpartition('What was written is in ')[2].strip())
    coop(server, 'plan', 'edit', number, env={**env, 'VISUAL': 'false'}, code=2)
    coop(server, 'plan', 'edit', number, env={**env, 'EDITOR': 'true'})
    assert show(server, task)['version'] == 1
    assert 'Write me instead' in coop(server, 'plan', 'edit', number,
                                      env={**env, 'EDITOR': "sed -i 's/Write one/Write me instead/'"})
    got = show(server, task)
    assert (got['version'], got['producer'], got['state']) == (2, 'person', 'approved')


@pytest.mark.parametrize('body', [{}, {'project': 'P'}, plan(step('a'), step('a')), plan(step('a', more=1)),
                                  plan(step('a', depends=['a'])), plan(step('../a')), plan(*[step(f's{n}') for n in range(31)])])
def test_what_is_refused(server, body):
    task = server.new_task(policy=PERSON)
    check_error(server, server.ask('PUT', f'{TASKS}/{task["id"]}/plan', body=body), 400)


# ---- failures ----

def is_asking(server):
    """Whether the door has taken a connection of the server's own (state 03)."""
    with open('/proc/net/unix') as sockets:
        return any(f'{server.home}/run/mind-' in line and line.split()[5] == '03' for line in sockets)


def test_door_that_dies(server):
    """With a question in it: the next door is asked again."""
    server.script(says('planner-*', {'text': json.dumps(plan(step('one'))), 'first_ms': 1500}))
    task = server.new_task(policy=APPROVE)
    server.task_in(task, 'planning')
    wait_until(lambda: is_asking(server), 'the question')
    server.kill_door()
    server.start_door()
    server.task_in(task, 'approving')


def test_provider_that_is_away(server):
    server.script(says('planner-*', {'error': {'status': 503, 'message': 'not now'}}))
    task = server.new_task(policy=APPROVE)
    wait_until(lambda: len(asked(server, task)) >= 2, 'two tries')
    server.script(says('planner-*', json.dumps(plan(step('one')))))
    server.task_in(task, 'approving')


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')
@pytest.mark.parametrize('place', ['plan-begun:1', 'plan-voice:1', 'plan-voice:3', 'plan-voice:4', 'plan-voice:6',
                                   'plan-voice:7', 'plan-ended:1'])
def test_killed(place):
    """Only what is missing is asked: the first seat answers at once, the others after it has been written down."""
    slow = [{**c, 'role': role, 'turns': [{**c['turns'][0], 'first_ms': ms}]}
            for c in GOOD_COUNCIL[:2] for role, ms in (('council-1-*', 0), ('council-*', 700))]
    with team_serving(COOP_FAIL_AT=place) as running:
        running.script(*slow, GOOD_COUNCIL[2])
        task = running.new_task(policy=COUNCIL)
        running.wait_killed()
        running.restart()
        running.task_in(task, 'approving')
        got = show(running, task)
        assert got['version'] == 1 and got['council']['outcome'] == 'synthesis'
        told = [e['kind'] for e in running.events_of(task)]
        assert [told.count(k) for k in ('council.opened', 'opinion.given', 'ranking.given', 'council.closed')] == [1, 3, 3, 1]
        first = f'council-1-{task["number"]}'
        wait_until(lambda: asked(running, task).count(first) == 2, lambda: asked(running, task))
