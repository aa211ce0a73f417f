# SPDX-License-Identifier: Apache-2.0
"""A task that ends before anybody reviews it: its steps are looked at together all the same."""
import os

import pytest

from eventlog import open_log
from teamserver import FILES, plan, says, step, team_serving, tool, writes
from teamserver import done as say_done

# Two parts are enough: the one that is there, and one more.
CHECK = FILES['check.sh'].replace('exit ', 'set -- parts/*; if [ $# -gt 2 ]; then echo "not ok - $# parts"; exit 1; fi\nexit ')
BODY = plan(step('one'), step('two'))
STEPS = [writes('parts/one', 'good\n', asked='# Goal\\s+Write one'), writes('parts/two', 'good\n', asked='# Goal\\s+Write two')]
FIX = says('coder*', [tool('shell', command='rm parts/start')], [say_done()], asked='Fix what was found[\\s\\S]*3 parts')


@pytest.fixture(scope='module')
def server():
    with team_serving() as running:
        yield running


def begin(server, name, until, **more):
    repo = server.new_repo(name, {**FILES, 'check.sh': CHECK})
    return repo, server.new_task(repository=repo, plan=BODY, policy={'until': until, **more})


def kinds(server, task):
    return [a['kind'] for a in server.task(task)['agents']]


@pytest.mark.parametrize('until', ['tested', 'ready'])
def test_together(server, until):
    """Each of the two passes, both do not."""
    server.script(FIX, *STEPS)
    repo, task = begin(server, f'together-{until}', until)
    ended = server.task_done(task)
    assert ended['rung'] == until and server.file(repo, 'parts/start', ended['branch']) is None
    assert kinds(server, task) == ['work', 'work', 'check', 'fix', 'check']
    seen = [a['result']['passed'] for a in server.agents(task) if a['kind'] == 'check']
    assert sorted(seen) == [False, True]
    assert all(a['usage']['calls'] == 0 for a in ended['report']['agents'] if a['kind'] == 'check'), 'no model is asked'
    assert server.branches(repo) == ['main', ended['branch']] and server.live() == set()


def test_what_a_feature_needs_is_looked_at_too(server):
    """The second step takes away what the first one brought."""
    body = {**plan(step('one', feature='first'), step('two', feature='second', depends=['one'])), 'features': [
        {'name': 'first', 'title': 'First', 'acceptance': [{'name': 'one is there', 'run': 'test -e parts/one'}]},
        {'name': 'second', 'title': 'Second', 'acceptance': [{'name': 'two is there', 'run': 'test -e parts/two'}]}]}
    server.script(says('coder*', [tool('shell', command='echo good >parts/one')], [say_done()], asked='Fix what was found'),
                  says('coder*', [tool('shell', command='cat parts/one >parts/two; rm parts/one')], [say_done()], asked='# Goal\\s+Write two'),
                  STEPS[0])
    repo = server.new_repo('features')
    task = server.new_task(repository=repo, plan=body, policy={'until': 'tested'})
    ended = server.task_done(task)
    assert kinds(server, task) == ['work', 'work', 'check', 'fix', 'check']
    assert server.file(repo, 'parts/one', ended['branch']) == 'good' == server.file(repo, 'parts/two', ended['branch'])


def test_without_a_repository(server):
    """The second step takes away what the first one brought; the files of all are looked at before it is done."""
    body = {**plan(step('one', feature='first'), step('two', feature='second', depends=['one'])), 'features': [
        {'name': 'first', 'title': 'First', 'acceptance': [{'name': 'one is there', 'run': 'test -e one'}]},
        {'name': 'second', 'title': 'Second', 'acceptance': [{'name': 'two is there', 'run': 'test -e two'}]}]}
    server.script(says('coder*', [tool('shell', command='echo good >one')], [say_done()], asked='Fix what was found'),
                  says('coder*', [tool('shell', command='cat one >two; rm one')], [say_done()], asked='# Goal\\s+Write two'),
                  writes('one', 'good\n', asked='# Goal\\s+Write one'))
    task = server.new_task('Write it down', plan=body)
    assert server.task_done(task)['rung'] == 'tested'
    assert kinds(server, task) == ['work', 'work', 'check', 'fix', 'check']
    checks = [a for a in server.agents(task) if a['kind'] == 'check']
    assert sorted(a['result']['passed'] for a in checks) == [False, True]
    kept = server.get(f'/api/v1/kept?task={task["id"]}')['kept']
    assert len(kept) == 3 and kept[0]['execution_id'] == next(a['id'] for a in server.agents(task) if a['kind'] == 'fix')
    assert server.live() == set()


def test_it_is_not_said_to_be_tested(server):
    """Nobody fixes it: a question after as many rounds as there may be."""
    useless = [says('coder*', [tool('shell', command=f'echo {n} >>notes')], [say_done()], asked='Fix what was found') for n in 'x']
    server.script(*useless, *STEPS)
    _, task = begin(server, 'never', 'tested', rounds=1, tries=1)
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and blocked['rung'] is None, blocked
    assert '3 parts' in blocked['questions'][-1]['text']


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a build without failpoints')
@pytest.mark.parametrize('place', ['flow-check', 'crew-leased', 'crew-proving', 'crew-checked'])
def test_killed_on_the_way(server, place):
    """Both steps are done: the first that comes to this place is the check."""
    server.script(STEPS[0], says('coder*', [tool('shell', command='cat parts/start >parts/two; rm parts/start')], [say_done()]))
    repo = server.new_repo(f'killed-{place}', {**FILES, 'check.sh': CHECK})
    server.kill()
    server.restart(COOP_FAIL_AT='flow-joined')
    task = server.new_task(repository=repo, plan=BODY, policy={'until': 'tested'})
    server.wait_killed()  # one of them is joined
    server.env['COOP_FAIL_AT'] = 'flow-joined'
    server.spawn()
    server.wait_killed()  # and the other
    server.env['COOP_FAIL_AT'] = place
    server.spawn()
    server.wait_killed()
    with open_log(server.home) as db:
        assert db.execute('SELECT kind FROM task_executions WHERE ended_us = 0').fetchall() == [('check',)]
    server.restart()
    ended = server.task_done(task)
    assert ended['rung'] == 'tested' and kinds(server, task) == ['work', 'work', 'check']
