# SPDX-License-Identifier: Apache-2.0
"""What of the code the tests went through, counted while Coop runs them for whoever tests."""
import pytest

from teamserver import plan, step, team_serving, writes

# As they would print it; the real ones are in test_demo.py.
NODE = '''#!/bin/sh
printf 'TAP version 13\\nok 1 - add\\n1..1\\n# tests 1\\n# pass 1\\n# fail 0\\n'
case " $* " in *" --experimental-test-coverage --test "*) echo '# all files |  80.00 |   100.00 |   66.67 |';; esac
'''
PYTHON = '''#!/bin/sh
case $2 in "import pytest_cov") exit 0;; esac
printf 'test_a.py .  [100%%]\\n'
case " $PYTEST_ADDOPTS " in *" --cov "*) printf 'TOTAL           7      1    86%%\\n';; esac
echo '1 passed in 0.08s'
'''
# Whoever counts has put a node of its own before the others.
SHY = 'case $(command -v node) in /tmp/*) echo "not ok 1 - no counting here"; exit 1;; esac\necho "ok 1 - alone"\necho 1..1\n'


def add_tools(root):
    for name, text in (('node', NODE), ('python3', PYTHON)):
        (root / 'bin' / name).write_text(text)
        (root / 'bin' / name).chmod(0o755)


@pytest.fixture(scope='module')
def server():
    with team_serving(add_tools) as running:
        running.script(writes('notes', 'good\n'))
        yield running


def worked(server, name, files, run):
    repo = server.new_repo(name, {**files, 'coop.yaml': f'checks:\n  - {{name: tests, run: {run}}}\n'})
    task = server.new_task(repository=repo, plan=plan(step('one')))
    ended = server.task_done(task)
    [tester] = [a for a in server.agents(task) if a['kind'] == 'test']
    return ended, tester


@pytest.mark.parametrize('name, run, percent', [('node', 'node --test', 80), ('pytest', 'python3 -m pytest -q', 86)])
def test_who_tests_gets_it(server, name, run, percent):
    ended, tester = worked(server, name, {'README': 'x'}, run)
    covered = ended['report']['coverage']
    assert covered['seen_by'] == 'coop' and covered['check'] == 'tests' and covered['agent'] == tester['agent']
    assert covered['percent'] == percent
    [check] = tester['result']['checks']
    assert check['exit_code'] == 0 and check['run'] == run, check
    work = [a for a in server.agents(ended) if a['kind'] == 'work']
    assert all('%' not in c['output'] and '|' not in c['output'] for a in work for c in a['result']['checks']
               if name == 'node'), 'who writes is not slowed down'


def test_counting_fails_nobody(server):
    """What does not pass while it is counted is run as it is, and that counts."""
    ended, tester = worked(server, 'shy', {'shy.sh': SHY}, 'sh shy.sh')
    assert ended['report']['coverage'] is None and ended['round'] == 1
    [check] = tester['result']['checks']
    assert check['exit_code'] == 0 and 'alone' in check['output'] and tester['result']['passed'] is True
