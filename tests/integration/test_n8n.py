# SPDX-License-Identifier: Apache-2.0
"""docs/n8n-flow.json, read and played with n8n's own code, against a real server."""
import copy
import json
import os
import pathlib
import sys
import tempfile

import pytest

from hookserver import HookServer

TREE = pathlib.Path(__file__).resolve().parents[2]
SDK = TREE / 'tests' / 'sdk'
FLOW = TREE / 'docs' / 'n8n-flow.json'
sys.path.append(str(SDK))
import npm  # noqa: E402

TASKS = '/api/v1/tasks'


@pytest.fixture(scope='module')
def n8n():
    cache = os.environ.get('COOP_SDK_CACHE') or os.path.join(tempfile.gettempdir(), 'coop-n8n-cache')
    return npm.install(SDK / 'n8n', pathlib.Path(cache))


def run(n8n, *args, flow=FLOW, **env):
    done = npm.run(n8n, SDK / 'n8n' / 'play.mjs', str(flow), *args, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def play(n8n, server, trigger, body, headers=(), secret=''):
    """What each node that was reached gave on, by its outputs."""
    return dict(run(n8n, 'play', trigger, json.dumps({'headers': dict(headers), 'body': body}),
                    COOP_URL=f'http://{server.host}', COOP_API_KEY=server.key, COOP_HOOK_SECRET=secret))


# ---- as it is imported ----

def test_it_is_a_flow(n8n):
    assert run(n8n, 'check') == []


@pytest.mark.parametrize('spoil, word', [
    (lambda f: f['nodes'][1].update(typeVersion=9), 'of version 9'),
    (lambda f: f['nodes'][1].update(type='n8n-nodes-base.httpRequests'), 'n8n has no'),
    (lambda f: f['nodes'][1]['parameters'].update(uri='x'), "no parameter 'uri'"),
    (lambda f: f['nodes'][1]['parameters'].pop('url'), 'url'),
    (lambda f: f['nodes'][4]['parameters'].update(action='generate'), 'not used'),
    (lambda f: f['connections'].pop('Look'), 'Result: nothing leads there'),
    (lambda f: f['connections']['Look']['main'][0][0].update(node='Nowhere'), 'no node Nowhere'),
])
def test_what_is_wrong_is_seen(n8n, tmp_path, spoil, word):
    flow = copy.deepcopy(json.loads(FLOW.read_text()))
    spoil(flow)
    (tmp_path / 'flow.json').write_text(json.dumps(flow))
    assert any(word in problem for problem in run(n8n, 'check', flow=tmp_path / 'flow.json'))


# ---- as it works ----

def test_intake(n8n, server):
    body = json.dumps({'text': 'build "a" wheel', 'trigger_id': '7', 'squad': 'default'})
    passed = play(n8n, server, 'Request', body)
    task = server.get(TASKS)['tasks'][0]
    assert (task['request'], task['source']) == ('build "a" wheel', 'n8n')
    assert passed['Answer'] == [{'text': f'Task #{task["number"]}: build "a" wheel'}]
    assert play(n8n, server, 'Request', body)['Answer'] == passed['Answer'] and server.get(TASKS)['total'] == 1


def test_progress(n8n, make_server):
    server = make_server(env={'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'true'})
    server.post('/api/v1/squads', {'name': 'shop', 'config': {'planner': 'person'}})
    with HookServer() as heard:
        server.post('/api/v1/squads/shop/hooks', {'url': heard.url('/webhook/coop-progress'), 'secret': heard.secret})
        task = server.post(TASKS, {'request': 'Söll mehr', 'squad': 'shop'}, status=201)
        server.post(f'{TASKS}/{task["id"]}/stop', {}, status=200)
        created, ended = heard.of('task.created'), heard.of('task.cancelled')

    def told(delivery, body=None, **more):
        return play(n8n, server, 'Progress', body or delivery.body.decode(),
                    {name.lower(): value for name, value in delivery.headers.items()}, **{'secret': heard.secret, **more})

    assert told(ended)['Result'] == [{'text': f'Task #{task["number"]} cancelled, tests 0/0'}]
    assert 'Look' not in told(created) and 'Ended?' in told(created)
    # Nobody else is believed.
    for forged in (told(ended, body=ended.body.decode().replace('cancelled', 'completed')), told(ended, secret='another')):
        assert 'Ended?' not in forged and forged['Signed?'][0] is None
