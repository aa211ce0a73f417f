# SPDX-License-Identifier: Apache-2.0
"""coop pr merge, checks and coop queue against a real queue, whose candidates are checked in real boxes."""
import json
import subprocess

import pytest

import workserver
from harness import PROGRAM, wait_until
from mergeserver import Project


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        yield made


@pytest.fixture(scope='module')
def project(server):
    return Project(server, 'merging')


@pytest.fixture
def run(server):
    def call(*words, code=0):
        done = subprocess.run([PROGRAM, *words], env=server.environment(), capture_output=True, text=True)
        assert done.returncode == code, done
        return done.stdout + done.stderr
    return call


def test_merge(project, run):
    number, state, _ = project.change('lands', {'parts/lands': 'lands\n'})
    assert state == 'passed' and 'words' in run('pr', 'checks', str(number))
    said = run('pr', 'merge', str(number), '--method', 'squash', '--title', 'feat: as one')
    tip = project.bare('rev-parse', 'main')
    assert f'merged coop/merging#{number} into main: {tip}' in said and 'coop: note: ' in said, said
    assert project.bare('log', '-1', '--format=%s', tip).startswith('feat: as one')
    assert 'merged' in run('pr', 'show', str(number)) and tip in run('pr', 'show', str(number))
    assert 'cannot be merged' in run('pr', 'merge', str(number), code=5)
    assert 'to be merged' not in run('queue')


def test_broken(project, run):
    number, state, _ = project.change('breaks', {'parts/breaks': 'start\n'})
    assert state == 'failed'
    run('pr', 'checks', str(number), code=1)
    tip = project.bare('rev-parse', 'main')
    assert 'fail' in run('pr', 'merge', str(number), code=5)
    assert 'fail' in run('pr', 'show', str(number)) and project.bare('rev-parse', 'main') == tip
    # Each is sound, both together are not: seen when it is checked again, before it lands.
    one, _, _ = project.change('sound-1', {'parts/sound-1': 'same\n'})
    two, _, _ = project.change('sound-2', {'parts/sound-2': 'same\n'})
    run('pr', 'merge', str(one))
    tip = project.bare('rev-parse', 'main')
    assert 'not merged: ' in run('pr', 'merge', str(two), code=1)
    assert project.bare('rev-parse', 'main') == tip


def test_conflict(project, run):
    number, _, _ = project.change('clashes', {'lines': 'mine\n'})
    other, _, _ = project.change('first', {'lines': 'theirs\n'})
    run('pr', 'merge', str(other))
    tip = project.bare('rev-parse', 'main')
    said = run('pr', 'merge', str(number), code=6)
    assert 'both sides changed lines' in said and 'push' in said
    assert project.bare('rev-parse', 'main') == tip


def test_rules(project, run):
    number, _, work = project.change('ruled', {'parts/ruled': 'ruled\n'})
    assert 'coop: ' in run('pr', 'merge', str(number), '--head', '0' * 40, code=6)
    run('repo', 'set', 'merging', 'required_approvals=1')
    assert 'approv' in run('pr', 'merge', str(number), '--head', work.head(), code=5)
    assert 'approv' in run('pr', 'show', str(number))
    run('repo', 'set', 'merging', 'required_approvals=null')
    assert 'is in the queue of main' in run('pr', 'merge', str(number), '--no-wait')
    run('queue')
    wait_until(lambda: json.loads(run('pr', 'show', str(number), '-o', 'json'))['merged'], 'the merge')
