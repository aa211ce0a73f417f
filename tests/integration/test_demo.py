# SPDX-License-Identifier: Apache-2.0
"""`coop demo`: three sentences become three merges, with nothing but the brain made up."""
import json
import os
import subprocess

import pytest

from harness import PROGRAM
from realserver import real_server

DEMO_S = 300


@pytest.fixture(scope='module')
def server(program):
    with real_server(program) as one:
        yield one


def demo(server, *words):
    env = {**os.environ, 'COOP_API_KEY': server.key, 'SANDBOX_SERVICE_URL': f'http://127.0.0.1:{server.port}'}
    return subprocess.run([PROGRAM, 'demo', *words], capture_output=True, text=True, timeout=DEMO_S, check=False, env=env)


def test_demo(server):
    done = demo(server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'The brain is a script' in done.stdout and done.stdout.count('merged after') == 3
    assert done.stdout.count('they FAIL, whatever the agent says') == 1, done.stdout
    assert 'the conflict goes back to an agent' in done.stdout
    rows = server.get('/api/v1/tasks')['tasks']
    assert [row['state'] for row in rows] == ['done'] * 3
    # What node counted while Coop ran the tests for who tests.
    covered = [server.get(f'/api/v1/tasks/{row["id"]}')['report']['coverage'] for row in rows]
    assert all(c and c['seen_by'] == 'coop' and 0 < c['percent'] <= 100 for c in covered), covered
    # Nothing of it is left but what was merged.
    assert server.get('/api/v1/sandboxes')['sandboxes'] == []
    tree = server.get('/api/v3/repos/coop/demo/contents')
    assert {'multiply.js', 'factorial.js', 'celsius.js', 'fahrenheit.js'} <= {entry['name'] for entry in tree}


def test_demo_again(server):
    """Another repository, the same squad; and for programs."""
    done = demo(server, '-o', 'json')
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(row['name'], row['state']) for row in json.loads(done.stdout)] == [
        ('multiply', 'done'), ('factorial', 'done'), ('conversion', 'done')]
