# SPDX-License-Identifier: Apache-2.0
"""`coop task stop` in every state: whatever is under way ends, and nothing of it is left."""
import base64

import pytest

from boxserver import API
from harness import wait_until
from teamserver import FILES, done, plan, plans, says, step, team_serving, tool, write

# Tests hang where a part of the repository says so: in boxes of agents, or in the clean ones.
HANGS = '''if test -e parts/slow-step && test -e /usr/local/bin/coop-agent; then sleep 1000; fi
if test -e parts/slow-landing && ! test -e /usr/local/bin/coop-agent; then sleep 1000; fi
'''
TREE = {**FILES, 'check.sh': HANGS + FILES['check.sh']}
SLEEPS = [tool('shell', command='sleep 1000')]


def works(part, asked):
    return says('coder*', [write(f'parts/{part}', 'good\n')], [done()], asked=asked)


SCRIPT = [
    says('planner*', {'text': 'late', 'first_ms': 60000}, match='Stop the planning'), plans(plan(step('one'))),
    says('coder*', SLEEPS, asked='Stop the work'),
    says('coder*', [tool('ask', question='May I?')], asked='Stop the question'),
    works('slow-step', 'Stop the tests'), works('slow-landing', 'Stop the landing'),
    says('coder*', [write('parts/one', 'bad\n')], [done()], asked='Stop what is blocked'),
    says('coder*', [write('parts/one', 'good\n')], [done()]),
    says('reviewer*', [tool('shell', command='while ! test -e /tmp/go; do sleep 0.05; done')],
         [done('It reads well.', verdict='approve')], asked='Stop the merge'),
    says('reviewer*', SLEEPS, asked='Stop the review'), says('tester*', SLEEPS, asked='Stop the review'),
]


def is_agent(kind, state):
    return lambda server, task: any((a['kind'], a['state']) == (kind, state) and a['turns'] + (state == 'asking') > 0
                                    for a in server.agents(task))


def is_task(state):
    return lambda server, task: server.task(task)['state'] == state


def is_tested(server, task):
    return any('coop-check' in c['command'] and c['state'] != 'ended' for a in server.agents(task) if a['state'] == 'proving'
               for c in server.get(f'{API}/{a["sandboxId"]}/commands')['commands'])


def is_landing(server, task):
    """Coop's checks of the pull request have their box."""
    return is_task('landing')(server, task) and any(one['name'] == 'checks' for one in server.get(API)['sandboxes'])


def is_merging(server, task):
    """While it was reviewed, the target has moved: what the queue puts together is tested once more, and does not come to
    an end."""
    reviewer = next((a for a in server.agents(task) if a['kind'] == 'review' and a['state'] == 'working'), None)
    contents = f'/api/v3/repos/{task["repository"]}/contents/parts/slow-landing'
    if reviewer and server.ask('GET', contents).status == 404:
        body = {'message': 'feat: begin again', 'content': base64.b64encode(b'good\n').decode()}
        assert server.ask('PUT', contents, body=body).status == 201
        server.run(reviewer['sandboxId'], 'echo >/tmp/go')
    return [m['state'] for m in server.get(f'/api/v1/repos/{task["repository"]}/merges')['merges']] == ['checking']


STATES = {
    'planning': ('Stop the planning', {}, is_task('planning')),
    'approving': ('Stop the approval', {'policy': {'approve': True}}, is_task('approving')),
    'working': ('Stop the work', {}, is_agent('work', 'working')),
    'asking': ('Stop the question', {}, is_agent('work', 'asking')),
    'testing': ('Stop the tests', {}, is_tested),
    'reviewing': ('Stop the review', {}, lambda *a: is_agent('review', 'working')(*a) and is_agent('test', 'working')(*a)),
    'landing': ('Stop the landing', {}, is_landing),
    'merging': ('Stop the merge', {}, is_merging),
    'blocked': ('Stop what is blocked', {'policy': {'tries': 1}}, is_task('blocked')),
}


@pytest.fixture(scope='module')
def server():
    with team_serving(COOP_TEAM_CONCURRENT_TASKS='20') as running:
        running.script(*SCRIPT)
        running.tasks = {name: running.new_task(request, repository=running.new_repo(name, TREE), **more)
                         for name, (request, more, _) in STATES.items()}
        yield running


@pytest.mark.parametrize('state', STATES)
def test_stop(server, state):
    task = server.tasks[state]
    wait_until(lambda: STATES[state][2](server, task), lambda: f'{state}: {server.task(task)}')
    boxes = {f'sb-{a["sandboxId"]}' for a in server.agents(task) if a['sandboxId']}
    assert f'task {task["number"]} is cancelled' in server.cli('task', 'stop', str(task['number']), '--reason', 'enough')
    stopped = server.task(task)
    assert (stopped['state'], stopped['problem']) == ('cancelled', 'enough') and stopped['waiting_for'] is None
    assert all(a['ended_at'] for a in server.agents(task)) and all(q['state'] != 'open' for q in stopped['questions'])
    live = server.get(API)['sandboxes']
    assert not boxes & {one['sandbox_id'] for one in live} and not [one for one in live if one.get('task_id') == task['id']]
    merges = server.get(f'/api/v1/repos/{task["repository"]}/merges?ended=1')['merges']
    assert all(m['state'] == 'cancelled' for m in merges) and len(merges) == (state == 'merging'), merges
    if stopped['pull_number']:
        assert server.get(f'/api/v3/repos/{task["repository"]}/pulls/{stopped["pull_number"]}')['state'] == 'closed'
    assert {subject.split(':')[1] for subject in server.subjects(state, 'main')} <= {' begin', ' begin again'}
    # A second time nothing happens, and nothing goes on.
    assert server.post(f'/api/v1/tasks/{task["id"]}/stop', {}, status=200)['state'] == 'cancelled'
    assert server.ask('POST', f'/api/v1/tasks/{task["id"]}/retry', body={}).status == 409
    assert [e['kind'] for e in server.events_of(task)].count('task.cancelled') == 1


def test_stop_while_it_is_queued(server):
    server.new_repo('queued')
    server.stop()
    server.restart(COOP_TEAM_CONCURRENT_TASKS='1')
    first, second = [server.new_task('Stop the planning', repository='coop/queued') for _ in range(2)]
    wait_until(lambda: is_task('planning')(server, first), 'its turn')
    assert is_task('queued')(server, second)
    for task in (second, first):
        assert server.post(f'/api/v1/tasks/{task["id"]}/stop', {}, status=200)['state'] == 'cancelled'
        assert server.agents(task) == []


def test_nothing_is_left(server):
    wait_until(lambda: server.live() == set(), 'the end of the boxes')
    wait_until(lambda: server.boxes_of_keeper() == [], 'the end of the processes')
