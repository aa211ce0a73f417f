# SPDX-License-Identifier: Apache-2.0
"""The official clients of both dialects, from npm, against a gate that a script answers for."""
import json
import os
import pathlib
import subprocess

import pytest

import npm

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope='session')
def clients():
    return npm.install(HERE, pathlib.Path(os.environ['COOP_SDK_CACHE']))


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
    result = npm.run(clients, HERE / f'{name}.mjs', f'http://127.0.0.1:{server.port}{path}')
    facts = server.close()
    assert result.returncode == 0, result.stdout + result.stderr
    called = [fact for fact in facts if fact['kind'] == 'model.called']
    assert called
    assert all(fact['brain'] == 'script' and fact['dialect'] == name for fact in called)
    assert any(fact['stream'] and fact['output_tokens'] == 8 for fact in called)
