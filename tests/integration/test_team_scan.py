# SPDX-License-Identifier: Apache-2.0
"""What scanners find in a change is said on its lines, once: in real boxes, by the real program."""
import os

import pytest

from boxserver import copy_program
from teamserver import FILES, plan, plans, step, team_serving, tool, writes

# shellcheck: what is not used is a warning (SC2034), arguments that are split again are an error (SC2068).
OLD = '#!/bin/sh\nold=1\n' + 'true\n' * 20
BAD = '#!/bin/sh\nnew=1\nfor part in $@; do cat "$part"; done\n'
GOOD = '#!/bin/sh\nnew=1\nset -e\nfor part in "$@"; do cat "$part"; done\n'
LINE = ' (a scan by Coop)'


@pytest.fixture(scope='module')
def server():
    with team_serving(lambda root: copy_program(root, 'shellcheck')) as running:
        running.script(plans(plan(step('show'))),
                       writes('show.sh', GOOD, asked='SC2068'),
                       {'role': 'coder*', 'turns': [
                           {'tools': [tool('write', path='show.sh', text=BAD),
                                      tool('shell', command='echo true >>old.sh')]},
                           {'tools': [tool('done', summary='I did it.')]}]})
        yield running


def check_said(server, repo, ended):
    """Both rounds: a line for each finding on a line of the change, though one of them stayed."""
    assert ended['round'] == 2 and server.file(repo, 'show.sh') == GOOD.rstrip()
    pull = f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}'
    lines = server.get(f'{pull}/comments')
    assert sorted((c['path'], c['original_line'], c['body'].split()[2]) for c in lines) == [
        ('show.sh', 2, 'SC2034:'), ('show.sh', 3, 'SC2068:')], lines
    assert all(c['body'].endswith(LINE) for c in lines)
    reviews = [r for r in server.get(f'{pull}/reviews') if 'reads well' in r['body']]
    assert [r['state'] for r in reviews] == ['CHANGES_REQUESTED', 'APPROVED'], 'nobody is asked whether an error is one'
    first, second = (r['body'] for r in reviews)
    assert '`old.sh`, line 2: **warning:** shellcheck SC2034' in first, first
    assert 'old.sh' not in second and 'Still there of what scanners said before: 2.' in second, second
    runs = server.get(f'/api/v3/repos/{repo}/commits/{lines[0]["original_commit_id"]}/check-runs')['check_runs']
    assert ('scan: shellcheck', 'failure') in [(r['name'], r['conclusion']) for r in runs]


def test_on_lines_and_once(server):
    repo = server.new_repo('lines', {**FILES, 'old.sh': OLD})
    task = server.new_task(repository=repo)
    check_said(server, repo, server.task_done(task))


needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a build without failpoints')


@needs_failpoints
def test_one_check_run_after_a_kill(server):
    """What was written down is not scanned again, and the reviewer is told it all the same."""
    repo = server.new_repo('scanned', {**FILES, 'old.sh': OLD})
    server.kill()
    server.restart(COOP_FAIL_AT='crew-scanned')
    task = server.new_task(repository=repo)
    server.wait_killed()
    server.restart()
    ended = server.task_done(task)
    check_said(server, repo, ended)
    commits = {a['result']['head_oid'] for a in server.agents(task) if a['kind'] == 'review'}
    runs = [r for oid in commits for r in server.get(f'/api/v3/repos/{repo}/commits/{oid}/check-runs?filter=all')['check_runs']]
    assert len(commits) == 2 and len([r for r in runs if r['name'] == 'scan: shellcheck']) == 2, runs


@needs_failpoints
def test_once_after_a_kill(server):
    """The review is there, and its row is not: four of them."""
    repo = server.new_repo('killed', {**FILES, 'old.sh': OLD})
    server.kill()
    server.restart(COOP_FAIL_AT='flow-reviewed')
    task = server.new_task(repository=repo)
    server.wait_killed()
    for _ in range(3):
        server.env['COOP_FAIL_AT'] = 'flow-reviewed'
        server.spawn()
        server.wait_killed()
    server.restart()
    ended = server.task_done(task)
    check_said(server, repo, ended)
    assert len(server.get(f'/api/v3/repos/{repo}/pulls/{ended["pull_number"]}/reviews')) == 4
