# SPDX-License-Identifier: Apache-2.0
"""The official clients of both dialects, from npm, against a gate that a script answers for."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest


HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ['COOP_SDK_CACHE'])
WAIT_S = 240


@pytest.fixture(scope='session')
def clients():
    """A folder with the clients, as the lock file names them; kept for the next run."""
    lock = (HERE / 'package-lock.json').read_text()
    done = CACHE / 'installed'
    if done.is_file() and done.read_text() == lock:
        return CACHE
    if shutil.which('npm') is None:
        pytest.skip('npm is not installed')
    CACHE.mkdir(parents=True, exist_ok=True)
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(HERE / name, CACHE / name)
    result = subprocess.run(['npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], cwd=CACHE, text=True,
                            capture_output=True, timeout=WAIT_S, check=False)
    if result.returncode != 0:
        print(result.stderr)
        pytest.skip('no package registry can be reached here')
    done.write_text(lock)
    return CACHE


class Server:
    def __init__(self):
        self.child = subprocess.Popen(
            [os.environ['COOP_GATE_SERVER'], '{"name": "demo", "kind": "script"}', str(HERE / 'clients.yaml')],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.child.stdout.readline().split()[1])

    def close(self):
        """Ends it; the facts it told."""
        rest, _ = self.child.communicate(timeout=60)
        assert self.child.returncode == 0
        return [json.loads(line) for line in rest.splitlines()]


@pytest.mark.parametrize('name, path', [('openai', '/openai/v1'), ('anthropic', '/anthropic')])
def test_client(clients, name, path):
    server = Server()
    # Beside node_modules: that is where node looks for what a module imports.
    shutil.copy(HERE / f'{name}.mjs', clients / f'{name}.mjs')
    env = {key: value for key, value in os.environ.items() if not key.lower().endswith('_proxy')}
    result = subprocess.run(['node', str(clients / f'{name}.mjs'), f'http://127.0.0.1:{server.port}{path}'],
                            text=True, capture_output=True, timeout=WAIT_S, check=False, env=env)
    facts = server.close()
    assert result.returncode == 0, result.stdout + result.stderr
    called = [fact for fact in facts if fact['kind'] == 'model.called']
    assert called
    assert all(fact['brain'] == 'script' and fact['dialect'] == name for fact in called)
    assert any(fact['stream'] and fact['output_tokens'] == 8 for fact in called)
