# SPDX-License-Identifier: Apache-2.0
"""The server is killed at every place of the workflow that is interesting, the door and the keeper in the middle of
the work; all go on without doing anything twice."""
import os
import pathlib
import re
import signal

import pytest

from boxserver import API
from harness import wait_until
from teamserver import FILES, done, plan, plans, says, step, team_serving, tool, write, writes
from workserver import git

PLACES = ['flow-planned', 'flow-commit', 'flow-branch', 'flow-pull', 'flow-agent', 'flow-proved', 'flow-joining',
          'flow-joined', 'flow-ready', 'flow-round', 'crew-scanned', 'flow-merge', 'flow-done']
MERGES = ['merge-tree-made', 'merge-commit-made']
# The tests of whoever has asked for it take until somebody lets them go on.
SLOW = {**FILES, 'check.sh': 'while test -e /tmp/wait; do sleep 0.05; done\n' + FILES['check.sh']}

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a build without failpoints')


@pytest.fixture
def server():
    with team_serving() as running:
        running.script(plans(plan(step('one'))), writes('parts/one', 'good\n'))
        yield running


def die_at(server, places, **task):
    """A task, and a server that dies at each place when it comes to it."""
    server.kill()
    server.restart(COOP_FAIL_AT=places[0])
    made = server.new_task(**task)
    for place in places[1:]:
        server.wait_killed()
        server.env['COOP_FAIL_AT'] = place
        server.spawn()  # it may be there before anybody could ask it anything
    server.wait_killed()
    server.restart()
    return made


def test_every_place_has_its_kill():
    """Whoever adds a failpoint to the team says here, or in a test beside this, what happens there."""
    tests, source = pathlib.Path(__file__).parent, pathlib.Path(__file__).parents[2] / 'src'
    places = {place for path in [*(source / 'team').glob('*.c'), source / 'forge/merge.c']
              for place in re.findall(r'FAILPOINT\("([\w-]+)"\)', path.read_text())}
    words = '\n'.join(path.read_text() for path in tests.glob('test_*.py'))
    assert len(places) > 30 and sorted(p for p in places if not re.search(rf"'{p}[:']", words)) == []


@needs_failpoints
def test_killed_everywhere(server):
    repo = server.new_repo()
    task = die_at(server, PLACES, repository=repo)
    ended = server.task_done(task)
    assert server.file(repo, 'parts/one') == 'good'
    assert server.branches(repo) == ['main', f'task-{task["number"]}']
    kinds = [e['kind'] for e in server.events_of(task)]
    for kind in ('task.planned', 'pr.opened', 'pr.ready', 'pr.merged', 'merge.queued', 'task.completed', 'step.started'):
        assert kinds.count(kind) == 1, (kind, kinds)
    assert kinds.count('review.submitted') == 2
    assert sorted(a['kind'] for a in server.agents(task)) == ['review', 'test', 'work']
    subjects = git(server.bare('work'), 'log', '--format=%s', 'main').splitlines()
    assert len(subjects) == len(set(subjects)), subjects
    assert len(server.get(f'/api/v3/repos/{repo}/pulls?state=all')) == 1 and ended['pull_number'] == 1
    wait_until(lambda: server.live() == set(), 'its boxes to go')


@needs_failpoints
def test_killed_where_steps_are_brought_together(server):
    repo = server.new_repo()
    server.script(plans(plan(step('one'), step('two'))), writes('parts/one', 'good\n', asked='# Goal\\s+Write one'),
                  writes('parts/two', 'good\n'))
    task = die_at(server, MERGES, repository=repo)
    server.task_done(task)
    assert server.file(repo, 'parts/one') == server.file(repo, 'parts/two') == 'good'
    assert server.branches(repo) == ['main', f'task-{task["number"]}']
    assert len(git(server.bare('work'), 'log', '--format=%s', '--min-parents=2', f'task-{task["number"]}').splitlines()) == 1


# ---- in the middle of the work ----

def kill_door(server):
    server.kill_door()
    server.start_door()


def kill_keeper(server):
    """With all boxes.  Nobody says what became of them until there is another."""
    server.keeper.stop(signal.SIGKILL)
    wait_until(lambda: server.log_lines('its box does not answer'), 'whoever goes on')
    server.keeper.start()


def kill_server(server):
    server.kill()
    server.restart()


def kill_all(server):
    server.kill()
    server.keeper.stop(signal.SIGKILL)
    server.kill_door()
    server.keeper.start()
    server.start_door()
    server.restart()


@pytest.fixture(scope='module')
def shared():
    with team_serving() as running:
        yield running


def in_tests(server, task):
    """The box of an agent whose work Coop tests, as long as it does."""
    boxes = [a['sandboxId'] for a in server.agents(task) if a['state'] == 'proving']
    return next((box for box in boxes for c in server.get(f'{API}/{box}/commands')['commands']
                 if 'coop-check' in c['command'] and c['state'] != 'ended'), None)


@pytest.mark.parametrize('kill', [kill_door, kill_keeper, kill_server, kill_all])
def test_killed_in_the_middle(shared, kill):
    """One agent waits for its model, what another has made is being tested."""
    server, name = shared, kill.__name__.replace('_', '-')
    repo = server.new_repo(name, SLOW)
    thinks = [tool('shell', command='echo begun')], {'tools': [write('parts/one', 'good\n')], 'first_ms': 2000}, [done()]
    server.script(plans(plan(step('one')), match='Think'), plans(plan(step('two'))), says('coder*', *thinks, asked='Think'),
                  says('coder*', [tool('shell', command='test -e parts/two || echo >/tmp/wait; echo good >>parts/two')], [done()]))
    thinker, tested = (server.new_task(what, repository=repo) for what in ('Think', 'Test'))
    box = wait_until(lambda: in_tests(server, tested), 'tests')
    wait_until(lambda: server.events_of(thinker, 'tool.used'), 'a thought')
    kill(server)
    wait_until(lambda: server.has_keeper() and server.door_is_up(), 'door and keeper')
    # The box is gone with the keeper; else its tests may end.
    server.ask('POST', f'{API}/{box}/commands', body={'command': 'rm -f /tmp/wait', 'wait': True})
    for task in (thinker, tested):
        server.task_done(task)
        ends = [e['data']['state'] for e in server.events_of(task, 'step.ended')]
        # The model may have answered before the kill.
        assert ends == ['done'] or kill in (kill_keeper, kill_all) and ends == ['lost', 'done'], (ends, task)
    assert (ends == ['done']) == (kill not in (kill_keeper, kill_all))
    assert server.file(repo, 'parts/one') == 'good' and server.file(repo, 'parts/two').startswith('good')
    wait_until(lambda: server.live() == set(), 'the end of the boxes')
