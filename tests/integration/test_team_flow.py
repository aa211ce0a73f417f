# SPDX-License-Identifier: Apache-2.0
"""One request in; tested, reviewed, merged code out: over the real door, boxes and forge, with a scripted
brain."""
import re

import pytest

from harness import wait_until
from teamserver import FILES, TASKS, done, plan, plans, says, step, team_serving, tool, write, writes
from workserver import git

# In the box of whoever wrote second: what both wanted.
RESOLVE = '''git fetch -q origin "$(git rev-parse --abbrev-ref HEAD | sed 's/--.*//')"
git merge -q FETCH_HEAD || true
printf 'good\\nadd\\nsub\\n' >parts/both
git add -A && git commit -q -m 'fix: keep what both wanted'
'''
# Half of the work is pushed, and then it takes for ever; whoever comes after finds that half.
HANG = '''if git log --format=%s | grep -q half; then printf 'good\\n' >parts/one
else printf 'bad\\n' >parts/one; git add -A; git commit -q -m 'feat: add half'; git push -q; sleep 1000; fi
'''


@pytest.fixture(scope='module')
def server():
    with team_serving() as running:
        yield running


def test_all_the_way(server):
    repo = server.new_repo('happy')
    server.script(plans(plan(step('one'))), writes('parts/one', 'good\n'))
    task = server.new_task(repository=repo)
    ended = server.task_done(task)
    assert ended['rung'] == 'merged' and server.file(repo, 'parts/one') == 'good'
    assert server.branches(repo) == ['main', f'task-{task["number"]}']
    kinds = [e['kind'] for e in server.events_of(task)]
    assert [k for k in kinds if k in ('task.created', 'task.planned', 'step.started', 'step.ended', 'pr.opened',
                                      'pr.ready', 'pr.merged', 'task.completed')] == [
        'task.created', 'task.planned', 'pr.opened', 'step.started', 'step.ended', 'pr.ready', 'pr.merged',
        'task.completed']
    assert {e['data']['state'] for e in server.events_of(task, 'checks.ended')} == {'passed'}, 'who follows the task sees them'
    report = ended['report']
    assert report['tests']['failed'] == 0
    # The template of this test has no scanners, and what was not scanned is not said to be fit.
    assert not report['production_ready'] and all('scan' in reason for reason in report['reasons']), report['reasons']
    assert {a['kind'] for a in report['agents']} == {'work', 'test', 'review'}
    assert all(a['usage']['calls'] > 0 for a in report['agents'])
    assert server.live() == set(), 'its boxes are gone'
    # The pull request leads to its task, and to what Coop saw of it.
    body = server.get(f'/api/v3/repos/{repo}/pulls/1')['body']
    checks = re.search(r'\[What Coop saw\]\(http://[^/]+(/[^)]+)\)', body)
    assert f'/api/v1/tasks/{task["id"]}' in body and checks, body
    assert 'parts' in [run['name'] for run in server.get(checks[1])['check_runs']]


def test_what_fails_is_fixed(server):
    repo = server.new_repo('fixed')
    server.script(plans(plan(step('one'))),
                  says('coder*', [write('parts/one', 'bad\n')], [done()], [write('parts/one', 'good\n')], [done()]))
    task = server.new_task(repository=repo)
    server.task_done(task)
    tries = [e['data'] for e in server.events_of(task, 'step.ended')]
    assert [(t['state'], t['passed'], t['seen_by']) for t in tries] == [('failed', False, 'coop'), ('done', True, 'coop')]
    assert server.file(repo, 'parts/one') == 'good'


def test_nobody_is_believed(server):
    """It says three times that it is done, and Coop sees three times that it is not."""
    repo = server.new_repo('lies')
    lies = [[write('parts/one', 'bad\n')], [done('All tests pass!')]]
    server.script(plans(plan(step('one'))), says('coder*', *lies, *lies, *lies))
    task = server.new_task(repository=repo)
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and '3 tries' in blocked['problem'] and 'parts' in blocked['problem']
    assert len(server.events_of(task, 'human.asked')) == 1
    assert server.file(repo, 'parts/one') is None
    wait_until(lambda: server.live() == set(), 'its boxes to go')


def test_a_reviewer_asks_for_changes(server):
    repo = server.new_repo('reviewed')
    finding = {'path': 'parts/one', 'line': 2, 'severity': 'error', 'body': 'This is ugly.'}
    server.script(plans(plan(step('one'))),
                  says('reviewer*', [done('Not yet.', verdict='changes', findings=[finding])], match='ugly', turn=2),
                  says('reviewer*', [tool('read', path='parts/one')], [done('Better.', verdict='approve')]),
                  writes('parts/one', 'good\nnice\n', asked='This is ugly'),
                  writes('parts/one', 'good\nugly\n'))
    task = server.new_task(repository=repo)
    ended = server.task_done(task)
    assert ended['round'] == 2 and server.file(repo, 'parts/one') == 'good\nnice'
    reviews = server.get(f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}/reviews')
    assert sorted(r['state'] for r in reviews) == ['APPROVED'] * 3 + ['CHANGES_REQUESTED']
    lines = server.get(f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}/comments')
    assert [(c['path'], c['line']) for c in lines] == [('parts/one', 2)]


def test_two_coders_in_the_same_place(server):
    repo = server.new_repo('conflict')
    server.script(plans(plan(step('add'), step('sub'))),
                  says('coder*', [tool('shell', command=RESOLVE)], [done()], asked='changed the same places'),
                  writes('parts/both', 'good\nadd\n', asked='# Goal\\s+Write add'), writes('parts/both', 'good\nsub\n'))
    task = server.new_task(repository=repo)
    server.task_done(task)
    assert server.file(repo, 'parts/both') == 'good\nadd\nsub'
    assert len(server.events_of(task, 'merge.conflicted')) == 1


def test_steps_in_their_order(server):
    repo = server.new_repo('ordered')
    server.script(plans(plan(step('one'), step('two', depends=['one']))), writes('parts/one', 'good\n', asked='# Goal\\s+Write one'),
                  says('coder*', [tool('shell', command='cat parts/one >parts/two')], [done()]))
    server.task_done(server.new_task(repository=repo))
    assert server.file(repo, 'parts/two') == 'good'


def test_an_agent_is_killed(server):
    repo = server.new_repo('killed')
    server.script(plans(plan(step('one'))), says('coder*', [tool('shell', command=HANG)], [done()]))
    task = server.new_task(repository=repo)
    branch = f'task-{task["number"]}--coder-1'
    wait_until(lambda: branch in server.branches(repo) and
               'half' in git(server.bare('killed'), 'log', '-1', '--format=%s', branch), 'half of the work')
    [agent] = [a for a in server.agents(task) if a['state'] == 'working']
    assert server.ask('DELETE', f'/api/v1/sandboxes/{agent["sandboxId"]}').status == 204
    server.task_done(task)
    assert server.file(repo, 'parts/one') == 'good'
    assert [e['data']['state'] for e in server.events_of(task, 'step.ended')] == ['lost', 'done']


def test_the_models_are_away_for_a_while(server):
    repo = server.new_repo('away')
    server.script(plans(plan(step('one'))),
                  says('coder*', [tool('shell', command='sleep 1')], [write('parts/one', 'good\n')], [done()]))
    task = server.new_task(repository=repo)
    wait_until(lambda: [a for a in server.agents(task) if a['state'] == 'working' and a['turns'] > 0] or
               server.events_of(task, 'tool.used', 'model.called'), 'the first turn')
    server.kill_door()
    server.start_door()
    server.task_done(task)
    assert server.file(repo, 'parts/one') == 'good'


def test_nobody_has_the_model(server):
    """Nobody tries again what no try can change."""
    repo = server.new_repo('missing')
    server.script(models=['other'])
    task = server.new_task(repository=repo, policy={'planner': 'person', 'until': 'ready'})
    server.task_in(task, 'approving')
    server.give_plan(task, plan(step('one')))
    blocked = server.task_in(task, 'blocked')
    assert 'The step "Write one" has no model' in blocked['problem'] and 'coop provider add' in blocked['problem']
    [agent] = server.agents(task)
    assert agent['state'] == 'failed' and 'coop provider add' in agent['problem']
    server.script(writes('parts/one', 'good\n'))
    server.post(f'{TASKS}/{task["id"]}/retry', {}, status=200)
    server.task_done(task)


def test_a_person_plans(server):
    repo = server.new_repo('planned')
    server.script(writes('parts/one', 'good\n'))
    task = server.new_task(repository=repo, policy={'planner': 'person', 'until': 'ready'})
    server.task_in(task, 'approving')
    server.give_plan(task, plan(step('one', details='Say that it is good.')))
    ended = server.task_done(task)
    assert ended['rung'] == 'ready' and server.file(repo, 'parts/one') is None
    pull = server.get(f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}')
    assert not pull['draft'] and pull['title'] == 'Add parts' and pull['user']['login'] == 'coop[bot]'


def test_a_budget_is_used_up(server):
    repo = server.new_repo('poor')
    server.script(writes('parts/one', 'good\n'))
    task = server.new_task(repository=repo, policy={'planner': 'person'})
    scope = f'/api/v1/budgets/task:{task["id"]}'
    assert server.ask('PUT', scope, body={'tokens': 1}).status in (200, 201)
    server.give_plan(task, plan(step('one')))
    blocked = server.task_in(task, 'blocked')
    assert 'token' in blocked['problem'], blocked['problem']
    assert len(server.agents(task)) == 1


def test_in_an_empty_repository(server):
    assert server.ask('POST', '/api/v1/repos', body={'name': 'empty'}).status == 201
    server.script(plans(plan(step('one'))),
                  says('coder*', [write(path, text) for path, text in FILES.items()], [done()]))
    task = server.new_task(repository='coop/empty')
    ended = server.task_done(task)
    assert ended['rung'] == 'merged' and server.file('coop/empty', 'parts/start') == 'good'
    assert 'chore: begin the repository' in git(server.bare('empty'), 'log', '--format=%s', 'main').splitlines()


def test_without_a_repository(server):
    server.script(plans(plan(step('one'), step('two'))), writes('one', 'good\n'))
    task = server.new_task('Write it down')
    ended = server.task_done(task)
    assert ended['rung'] == 'tested' and ended['pull_number'] is None
    assert all(a['result']['files'] for a in server.agents(task)), server.agents(task)


def test_five_at_once(server):
    """Three are worked on, two wait and say so; all of them land on one branch."""
    repo = server.new_repo('five')
    hold = 'while ! test -e /tmp/go; do sleep 0.05; done; printf "good\\n" >"parts/$TASK_ID"'
    server.script(plans(plan(step('one'))), says('coder*', [tool('shell', command=hold)], [done()]))
    tasks = [server.new_task(f'Add part {n}', repository=repo) for n in range(5)]
    for task in tasks[:3]:
        wait_until(lambda one=task: at_work(server, one), 'an agent at work')
    assert [server.task(task)['state'] for task in tasks] == ['working'] * 3 + ['queued'] * 2
    assert [server.task(task)['waiting_for'] for task in tasks[3:]] == ['a free place', 'a free place, with 1 before it']
    listed = server.cli('task', 'ls', '--open')
    assert listed.count('queued') == 2 and 'a free place, with 1 before it' in listed, listed
    for task in tasks:
        server.run(wait_until(lambda one=task: at_work(server, one), 'an agent at work'), 'echo >/tmp/go')
    for task in tasks:
        server.task_done(task)
        assert server.file(repo, f'parts/{task["id"]}') == 'good'


def at_work(server, task):
    """The box of the coder."""
    return next((a['sandboxId'] for a in server.agents(task) if a['state'] == 'working'), None)
