# SPDX-License-Identifier: Apache-2.0
"""GitHub's own client, from npm, against a real server: nothing but its base URL is changed."""
import os
import pathlib
import sys
import tempfile

import pytest

SDK = pathlib.Path(__file__).resolve().parents[1] / 'sdk'
sys.path.append(str(SDK))
import npm  # noqa: E402

SCRIPTS = sorted((SDK / 'octokit').glob('*.mjs'))


@pytest.fixture(scope='session')
def octokit():
    cache = os.environ.get('COOP_OCTOKIT_CACHE') or os.path.join(tempfile.gettempdir(), 'coop-octokit-cache')
    return npm.install(SDK / 'octokit', pathlib.Path(cache))


@pytest.mark.parametrize('script', SCRIPTS, ids=lambda path: path.stem)
def test_octokit(octokit, make_server, script):
    server = make_server(env={'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'true'})
    slow = server.make_key('read', name='reader')['key']
    result = npm.run(octokit, script, f'http://{server.host}/api/v3', server.key, slow)
    assert result.returncode == 0, result.stdout + result.stderr
