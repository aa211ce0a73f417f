# SPDX-License-Identifier: Apache-2.0
"""The guides say what happens."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from guide import check_examples
from harness import PROGRAM
from realserver import real_server

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope='module')
def server(program):
    with real_server(program) as one:
        yield one


@pytest.mark.parametrize('name', ['troubleshooting', 'maintenance'])
def test_examples(server, tmp_path, name):
    programs = tmp_path / 'bin'
    programs.mkdir()
    (programs / 'coop').symlink_to(pathlib.Path(PROGRAM).resolve())
    env = {'PATH': f'{programs}:/usr/bin:/bin', 'KEY': server.key, 'COOP_API_KEY': server.key, 'HOME': str(tmp_path),
           'SANDBOX_SERVICE_URL': f'http://127.0.0.1:{server.port}'}
    check_examples(ROOT / 'docs' / f'{name}.md', env, cwd=tmp_path,
                   prepare='curl() { command curl -sS --fail-with-body "$@"; }\n',
                   replace=[('http://localhost:8003', f'http://127.0.0.1:{server.port}')])


def test_installation_check(server):
    """The five ticks."""
    done = subprocess.run([sys.executable, ROOT / 'examples' / 'test_sandbox_integration.py'], text=True, check=False,
                          capture_output=True, timeout=120,
                          env={**os.environ, 'E2B_API_KEY': server.key,
                               'SANDBOX_SERVICE_URL': f'http://127.0.0.1:{server.port}'})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['✓ Sandbox service healthy', '✓ Coder service healthy', '✓ Sandbox created',
                                        '✓ Code executed successfully', '✓ Tests passed', '🎉 All tests passed!']


def test_dashboard(server):
    """It asks for nothing that is not measured."""
    panels = json.loads((ROOT / 'docs' / 'grafana.json').read_text())['panels']
    asked = {name for panel in panels for target in panel.get('targets', [])
             for name in re.findall(r'coop_[a-z_]+', target['expr'])}
    measured = set(re.findall(r'^coop_[a-z_]+', server.ask('GET', '/metrics').body.decode(), re.M))
    assert asked and not asked - measured
