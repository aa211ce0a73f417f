# SPDX-License-Identifier: Apache-2.0
"""docs/n8n-flow.json, read and played with n8n's own code, against a real server."""
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


def run(n8n, *args, **env):
    done = npm.run(n8n, SDK / 'n8n' / 'play.mjs', *args, **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def play(n8n, server, trigger, *requests, secret=''):
    """For each of (headers, body): what the nodes that were reached gave on, by their outputs."""
    told = [json.dumps({'headers': dict(headers), 'body': body}) for headers, body in requests]
    return [dict(passed) for passed in run(n8n, 'play', str(FLOW), trigger, *told, COOP_URL=f'http://{server.host}',
                                           COOP_API_KEY=server.key, COOP_HOOK_SECRET=secret)]


# ---- as it is imported ----

SPOILT = [
    (lambda f: f['nodes'][1].update(typeVersion=9), 'of version 9'),
    (lambda f: f['nodes'][1].update(type='n8n-nodes-base.httpRequests'), 'n8n has no'),
    (lambda f: f['nodes'][1]['parameters'].update(uri='x'), "no parameter 'uri'"),
    (lambda f: f['nodes'][1]['parameters'].pop('url'), 'url'),
    (lambda f: f['nodes'][4]['parameters'].update(action='generate'), 'not used'),
    (lambda f: f['connections'].pop('Look'), 'Result: nothing leads there'),
    (lambda f: f['connections']['Look']['main'][0][0].update(node='Nowhere'), 'no node Nowhere'),
]


def test_it_is_a_flow(n8n, tmp_path):
    """And what is wrong in one is seen."""
    for i, (spoil, _) in enumerate(SPOILT):
        flow = json.loads(FLOW.read_text())
        spoil(flow)
        (tmp_path / f'{i}.json').write_text(json.dumps(flow))
    good, *bad = run(n8n, 'check', str(FLOW), *(str(tmp_path / f'{i}.json') for i in range(len(SPOILT))))
    assert good == []
    for problems, (_, word) in zip(bad, SPOILT, strict=True):
        assert any(word in problem for problem in problems), (word, problems)


# ---- as it works ----

def test_intake(n8n, server):
    body = json.dumps({'text': 'build "a" wheel', 'trigger_id': '7', 'squad': 'default'})
    first, again = play(n8n, server, 'Request', ({}, body), ({}, body))
    task = server.get(TASKS)['tasks'][0]
    assert (task['request'], task['source']) == ('build "a" wheel', 'n8n')
    assert first['Answer'] == again['Answer'] == [{'text': f'Task #{task["number"]}: build "a" wheel'}]
    assert server.get(TASKS)['total'] == 1


def test_progress(n8n, make_server):
    server = make_server(env={'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'true'})
    server.post('/api/v1/squads', {'name': 'shop', 'config': {'planner': 'person'}})
    with HookServer() as heard:
        server.post('/api/v1/squads/shop/hooks', {'url': heard.url('/webhook/coop-progress'), 'secret': heard.secret})
        task = server.post(TASKS, {'request': 'Söll mehr', 'squad': 'shop'}, status=201)
        server.post(f'{TASKS}/{task["id"]}/stop', {}, status=200)
        told = {delivery.event: delivery for delivery in heard.all_of('task.created', 'task.cancelled')}
        created, ended = told['task.created'], told['task.cancelled']

    def request(delivery, body=None):
        return {name.lower(): value for name, value in delivery.headers.items()}, body or delivery.body.decode()

    forged = request(ended, ended.body.decode().replace('cancelled', 'completed'))
    whole, early, changed = play(n8n, server, 'Progress', request(ended), request(created), forged, secret=heard.secret)
    assert whole['Result'] == [{'text': f'Task #{task["number"]} cancelled, tests 0/0'}]
    assert 'Look' not in early and 'Ended?' in early
    # Nobody else is believed.
    of_another, = play(n8n, server, 'Progress', request(ended), secret='another')
    for refused in (changed, of_another):
        assert 'Ended?' not in refused and refused['Signed?'][0] is None
