# SPDX-License-Identifier: Apache-2.0
"""A change that scanners cannot come to the end of has not passed them."""
import pytest

from harness import wait_until
from teamserver import FILES, done, plan, plans, says, step, team_serving, tool


def furnish(root):
    """One that says more than is read, as of a file with too much to find."""
    bandit = root / 'bin/bandit'
    bandit.write_text('#!/bin/sh\nyes "{" | head -c 5000000\n')
    bandit.chmod(0o755)


@pytest.fixture(scope='module')
def server():
    with team_serving(furnish) as running:
        yield running


@pytest.mark.parametrize('name, command, check', [
    ('loud', 'echo "import os" >a.py', 'scan: bandit'), ('odd', r'''echo good >"$(printf 'a\tb.c')"''', 'scan: names'),])
def test_is_refused(server, name, command, check):
    server.script(plans(plan(step('show'))), says('coder*', [tool('shell', command=command)], [done()]))
    repo = server.new_repo(name, FILES)
    task = server.new_task(repository=repo)
    reviewed = wait_until(lambda: [a for a in server.task(task)['agents'] if a['kind'] == 'review' and a['ended_at']], 'a review')
    scans = {c['name']: c for c in reviewed[0]['result']['checks']}
    assert scans[check]['exit_code'] == 1 and reviewed[0]['result']['passed'] is False, scans
    server.post(f'/api/v1/tasks/{task["id"]}/stop', {}, status=200)
