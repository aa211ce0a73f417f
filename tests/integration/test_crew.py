# SPDX-License-Identifier: Apache-2.0
"""Agents in boxes: what they find there, what Coop sees of their work, and what is left when something dies."""
import contextlib
import http.client
import json
import os
import tarfile

import pytest

from crewserver import crew_serving
from harness import WAIT_S, wait_until


@pytest.fixture(scope='module')
def server():
    with crew_serving() as running:
        yield running


def test_work_is_pushed_and_checked(server):
    agent = server.begin_agent('echo new >added.txt', 'printf \'{"say": "said", "text": "I added a file"}\\n\'',
                         repository='coop/work')
    assert agent['sandboxId'] and agent['role'] == 'coder'
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done', (ended['problem'], ended['result'], server.log()[-3000:])
    assert ended['report'] == {'outcome': 'done', 'summary': 'I added a file'}
    assert ended['result']['passed'] is True and len(ended['result']['commits']) == 1
    check, = ended['result']['checks']
    assert (check['name'], check['exit_code'], check['seen_by']) == ('made', 0, 'coop')
    assert server.events_of(agent, 'agent.said')[0]['data']['seen_by'] == 'agent'


def test_the_face_knows_its_box(server):
    agent = server.begin_agent(
        'face GET /agent/v1/brief', 'face POST /agent/v1/report \'{"events": [{"kind": "thought", "text": "hm"}]}\'',
        'face POST /agent/v1/report \'{"events": [{"kind": "shouted", "text": "hm"}]}\'',
        'face POST /agent/v1/ask \'{"question": "why?"}\'', 'face GET /agent/v1/ask/x',
        'face POST /agent/v1/done \'{"outcome": "done", "summary": "well", "verdict": null, "findings": [{"body": "x"}]}\'',
        'face POST /agent/v1/done \'{"outcome": "perhaps"}\'', 'face GET /api/v1/agents', 'env', repository='coop/work')
    ended = server.agent_ended(agent)
    said = server.output_of(ended)
    answers = [part.split('\r\n\r\n', 1) for part in said.split('HTTP/1.1 ')[1:]]
    assert [int(head.split()[0]) for head, _ in answers] == [200, 200, 400, 409, 404, 200, 400, 404], said
    brief = json.loads(answers[0][1])
    assert brief['execution_id'] == agent['id'] and brief['workdir'].endswith('/work') and brief['room'] is None
    assert ended['report']['summary'] == 'well' and ended['state'] == 'done'
    assert [e['data']['text'] for e in server.events_of(agent, 'agent.thought')] == ['hm']
    for name in ('TASK_ID', 'AGENT_ROLE', 'GIT_USERNAME', 'GIT_EMAIL', 'ROOM_ID', 'MAIN_AGENT_ID', 'CURRENT_TASK_ID'):
        assert f'\n{name}=' in said, name


def test_files_are_kept_without_a_repository(server):
    agent = server.begin_agent('mkdir a; echo hello >a/b.txt; pwd; cat ../.coop/agent.json')
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done', ended
    with tarfile.open(server.home / ended['result']['files']) as tar:
        assert tar.extractfile(next(m for m in tar.getmembers() if m.name.endswith('a/b.txt'))).read() == b'hello\n'
    wait_until(lambda: not server.has_box(ended), 'the end of the box')


@pytest.mark.parametrize('lines, state, says', [
    (['exit 3'], 'failed', ''),
    (['kill -9 $$'], 'lost', 'SIGKILL'),
    (['face POST /agent/v1/done \'{"outcome": "failed", "summary": "too hard"}\''], 'failed', 'too hard'),
    (['rm -rf .git'], 'failed', 'committed'),
])
def test_how_it_may_end(server, lines, state, says):
    ended = server.agent_ended(server.begin_agent(*lines, repository='coop/work'))
    assert ended['state'] == state and says in (ended['problem'] or ''), ended


def archive_of(server, agent):
    return server.home / 'kept' / f'{agent["sandboxId"]}.tar'


def test_what_failed_is_kept(server):
    ended = server.agent_ended(server.begin_agent('echo half >half.txt; exit 3', repository='coop/work'))
    wait_until(lambda: not server.has_box(ended), 'the end of the box')
    archive = archive_of(server, ended)
    with tarfile.open(archive) as tar:
        assert [m.name for m in tar.getmembers() if m.name.endswith('work/half.txt')]
    stray = server.home / 'kept' / 'stray.tar'
    stray.write_text('')
    server.stop()
    server.restart()
    wait_until(lambda: not stray.exists(), 'the end of a stray')
    assert archive.exists()


def test_what_failed_is_kept_by_the_next_server(server):
    """One that is stopped while the files come lets them go at once; they are in the box all the same."""
    agent = server.begin_agent('for i in 1 2 3 4; do dd of=hole$i bs=1M seek=60 count=0; done; exit 3', repository='coop/work')
    archive = archive_of(server, agent)
    wait_until(archive.with_suffix('.tar.part').exists, 'the archive')
    assert server.stop() == 0
    server.restart()
    wait_until(lambda: not server.has_box(agent), 'the end of the box')
    with tarfile.open(archive) as tar:
        assert len([m for m in tar.getmembers() if 'work/hole' in m.name]) == 4, tar.getnames()[:20]


def test_stop(server):
    agent = server.begin_agent('sleep 600', repository='coop/work')
    server.agent_in(agent, 'working')
    assert server.has_box(agent)
    stopped = server.ask('DELETE', f'/api/v1/agents/{agent["id"]}')
    assert stopped.status == 200 and stopped.json['state'] == 'stopped', stopped
    assert not server.has_box(agent)
    assert [e['data']['state'] for e in server.events_of(agent, 'agent.left')] == ['stopped']


@pytest.mark.parametrize('body, status', [
    ({'role': 'coder', 'requirements': []}, 400), ({'role': 'coder', 'requirements': ['x'], 'adapter': 'nobody'}, 400),
    ({'role': 'coder', 'requirements': ['x'], 'repository': 'coop/none'}, 404),
    ({'role': 'coder', 'requirements': ['x'], 'taskId': '9999'}, 404),
    ({'role': 'coder', 'requirements': ['x'], 'taskId': '1st'}, 404),
    ({'role': 'coder', 'requirements': ['x'], 'gitCredentials': {'token': 'secret'}}, 400)])
def test_what_is_refused(server, body, status):
    assert server.ask('POST', '/api/v1/agents', body=body).status == status


def test_a_lie_is_seen(server):
    agent = server.begin_agent('echo >broken.txt', 'face POST /agent/v1/done \'{"outcome": "done", "summary": "all green"}\'',
                               repository='coop/work')
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done' and ended['report']['summary'] == 'all green'
    assert ended['result']['passed'] is False and ended['result']['checks'][0]['exit_code'] == 1


POINTS = ('crew-leased', 'crew-cloned', 'crew-prepared', 'crew-started', 'crew-done', 'crew-ran', 'crew-proving', 'crew-committed',
          'crew-pushed', 'crew-checked', 'crew-proved', 'crew-ending', 'crew-ended')


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='needs failpoints')
@pytest.mark.parametrize('point', POINTS)
def test_killed_and_nothing_is_done_twice(server, point):
    """kill -9 of the server at that place: the next one goes on, in the same box."""
    server.stop()
    server.env['COOP_FAIL_AT'] = f'{point}:1'
    server.restart()
    before = server.live()
    with contextlib.suppress(OSError, AssertionError, http.client.HTTPException):
        server.begin_agent('echo once >>made.txt', 'face POST /agent/v1/done \'{"outcome": "done", "summary": "made"}\'',
                           repository='coop/work')
    server.process.wait(WAIT_S)
    server._reap()
    del server.env['COOP_FAIL_AT']
    server.restart()
    agent = server.get('/api/v1/agents')['agents'][0]
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done' and ended['result']['passed'], ended
    assert ended['result']['checks'][0]['output'] == 'once\n' and len(ended['result']['commits']) == 1
    assert len(server.events_of(agent, 'agent.left')) == 1 and len(server.events_of(agent, 'agent.joined')) == 1
    wait_until(lambda: server.live() <= before, 'the end of the box')


@pytest.fixture(scope='module')
def task(server):
    """One that waits for a person's plan."""
    return server.post('/api/v1/tasks', {'request': 'a thing', 'repository': 'coop/work', 'policy': {'planner': 'person'}})


def test_a_question_waits_for_a_person(server, task):
    agent = server.begin_agent(
        r'''id=$(face POST /agent/v1/ask '{"question": "red or blue?", "options": ["red", "blue"]}' | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')''',
        'face GET "/agent/v1/ask/$id?wait_ms=300"',
        'face GET "/agent/v1/ask/$id?wait_ms=60001"', 'while ! test -e /tmp/go; do sleep 0.05; done', taskId=task['id'])
    assert server.agent_in(agent, "asking", "failed", "lost", "done")["state"] == "asking", (server.agent(agent), server.log()[-1500:])
    # People may be asleep: the box waits as long as any may live.
    wait_until(lambda: server.get(f'/api/v1/sandboxes/{agent["sandboxId"]}')['timeout'] == 24 * 3600, 'a long life')
    asked = server.events_of(agent, 'human.asked')
    assert asked[0]['data']['text'] == 'red or blue?' and asked[0]['data']['options'] == ['red', 'blue']
    server.run(agent['sandboxId'], 'echo >/tmp/go')
    ended = server.agent_ended(agent)
    said = server.output_of(ended)
    assert '"state":"open","answer":null' in said and ' 400 ' in said, said
    assert ended['taskId'] == task['id'] and ended['git_branch'].startswith(task['branch'])


def test_its_time_is_what_the_policy_says(server):
    """Also where that is less than what one is left after a restart."""
    task = server.post('/api/v1/tasks', {'request': 'a thing', 'repository': 'coop/work', 'policy': {'planner': 'person', 'agent_s': 5}})
    ended = server.agent_ended(server.begin_agent('exec sleep 600', taskId=task['id']))
    assert ended['state'] == 'failed' and 'within 5 s' in ended['problem'], ended


def test_an_agent_of_a_task_knows_it(server, task):
    agent = server.begin_agent('face GET /agent/v1/brief', taskId=f'#{task["number"]}')
    ended = server.agent_ended(agent)
    brief = json.loads(server.output_of(ended).split('\r\n\r\n', 1)[1])
    assert brief['task']['id'] == task['id'] and brief['task']['request'] == 'a thing'
    assert brief['system'] and brief['plan_text'] and 'a thing' in brief['plan_text'], brief


def test_floods_are_bounded(server):
    """More than a hundred events at once, a body of a megabyte, and then as many as it can."""
    agent = server.begin_agent(
        'e=\'{"kind": "thought", "text": "x"}\'; many=$e; for i in $(seq 99); do many="$many, $e"; done',
        'answer() { face POST /agent/v1/report "$1" | head -n 1; }', 'answer "{\\"events\\": [$many, $e]}"',
        'long=x; for i in $(seq 20); do long=$long$long; done; answer "{\\"events\\": [{\\"kind\\": \\"said\\", \\"text\\": \\"$long\\"}]}"',
        'for i in $(seq 8); do answer "{\\"events\\": [$many]}"; done')
    ended = server.agent_ended(agent)
    codes = [int(line.split()[1]) for line in server.output_of(ended).splitlines() if line.startswith('HTTP/1.1')]
    assert codes[:2] == [400, 413] and codes[2:7] == [200] * 5 and codes[-1] == 429, codes


SCRIPT = '''conversations:
  - match: "make it"
    turns: [{text: "I make it.", tools: [{name: shell, arguments: '{"command": "echo made >made.txt"}'}, {name: test, arguments: "{}"}]}]
  - last: tool
    turn: 2
    turns: [{tools: [{name: done, arguments: '{"outcome": "done", "summary": "It is made."}'}]}]
'''


@pytest.fixture(scope='module')
def brain(server):
    (server.folder / 'script.yaml').write_text(SCRIPT)
    server.cli('provider', 'add', 'script', '--kind', 'script', '--script', str(server.folder / 'script.yaml'), '--model', 'demo-*')
    return {'provider': 'script', 'model': 'demo-1'}


def test_our_own_agent(server, brain):
    agent = server.begin_agent('make it', adapter='coop', repository='coop/work', **brain)
    ended = server.agent_ended(agent)
    assert ended['state'] == 'done' and ended['result']['passed'], (ended, server.output_of(ended))
    assert ended['result']['checks'][0]['output'] == 'made\n' and ended['report']['summary'] == 'It is made.'
    used = {e['data']['name']: e['data'] for e in server.events_of(agent, 'tool.used')}
    assert 'shell' in used
    # What Coop runs afterwards, though nobody named any checks.
    assert used['test']['exit_code'] == 0 and 'made\n' in used['test']['output'] and '1 checks, 0 failed' in used['test']['output'], used
    assert ended['turns'] == 2 and ended['first_call_at'] > ended['created_at'], ended
