# SPDX-License-Identifier: Apache-2.0
"""The server is killed at every place of the workflow that is interesting, and goes on without doing anything
twice."""
import os

import pytest

from harness import wait_until
from teamserver import plan, plans, step, team_serving, writes
from workserver import git

PLACES = ['flow-planned', 'flow-commit', 'flow-branch', 'flow-pull', 'flow-agent', 'flow-proved', 'flow-joining',
          'flow-joined', 'flow-ready', 'flow-round', 'flow-merge', 'flow-done']

pytestmark = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a build without failpoints')


@pytest.fixture
def server():
    with team_serving() as running:
        running.script(plans(plan(step('one'))), writes('parts/one', 'good\n'))
        yield running


def test_killed_everywhere(server):
    """One task, and a server that dies at each place when it comes to it."""
    repo = server.new_repo()
    server.kill()
    server.restart(COOP_FAIL_AT=PLACES[0])
    task = server.new_task(repository=repo)
    for place in PLACES[1:]:
        server.wait_killed()
        server.env['COOP_FAIL_AT'] = place
        server.spawn()  # it may be there before anybody could ask it anything
    server.wait_killed()
    server.restart()
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
