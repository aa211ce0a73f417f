# SPDX-License-Identifier: Apache-2.0
"""What becomes of a task that Slack asked for is posted back: to Slack alone, a few times, until it is too late."""
import sqlite3

import pytest

from harness import wait_until
from hookserver import HookServer, due_now
from test_slack import SECRET, check, order

TASKS = '/api/v1/tasks'
PLACE = '/commands/T1/123/secret-place'
PLAN = {'project': 'Wheel', 'steps': [{'name': 'rim', 'title': 'Make a rim', 'role': 'coder'}]}


def env_of(slack):
    return {'SLACK_SIGNING_SECRET': SECRET, 'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'true', 'COOP_TEAM_RETRY_PAUSE': '1ms',
            'COOP_SLACK_REPLY_ORIGINS': slack.url('').rstrip('/')}


@pytest.fixture
def slack():
    with HookServer() as heard:
        yield heard


@pytest.fixture
def server(make_server, slack):
    """A server whose plans come from people."""
    running = make_server(env=env_of(slack))
    assert running.ask('PATCH', '/api/v1/squads/default', body={'config': {'planner': 'person'}}).status == 200
    return running


def ask(server, slack, text='build a wheel', **more):
    check(order(server, text, **{'response_url': slack.url(PLACE), **more}), 'Task #')


def newest(server):
    return wait_until(lambda: server.get(TASKS)['tasks'], 'the task')[0]


def said(slack):
    posted = slack.next()
    assert posted.path == PLACE and posted.json['response_type'] == 'in_channel' and set(posted.json) == {'response_type', 'text'}
    assert not [name for name in posted.headers if name.startswith('X-')]
    return posted.json['text']


def give_plan(server, task):
    assert server.ask('PUT', f'{TASKS}/{task["id"]}/plan', body=PLAN).status == 200


def rows(server, sql):
    with sqlite3.connect(server.home / 'coop.db') as db:
        found = db.execute(sql).fetchall()
    db.close()
    return found


def test_progress(server, slack):
    ask(server, slack, 'build <!channel> & co')
    task = newest(server)
    waiting = said(slack)
    assert waiting.startswith(f'Task #{task["number"]} (build &lt;!channel&gt; &amp; co): a plan waits for a person')
    give_plan(server, task)
    assert 'the plan is ready, 1 steps' in said(slack)
    # This server has no boxes: what it cannot do is asked about.
    asked = said(slack)
    assert 'waits for an answer:\n&gt;' not in asked and 'waits for an answer:\n>' in asked and f'`/code-team answer {task["number"]} …`' in asked
    server.post(f'{TASKS}/{task["id"]}/stop', {}, status=200)
    assert f'Task #{task["number"]} ' in (last := said(slack)) and 'is *cancelled*' in last and 'Tests: 0 total, 0 passed, 0 failed' in last
    assert slack.got.empty()
    # The address is nowhere to be read.
    assert not rows(server, "SELECT 1 FROM hooks WHERE url <> '' OR instr(secret, 'secret-place') > 0")
    wait_until(lambda: not rows(server, "SELECT 1 FROM deliveries WHERE state = 'waiting'"), 'the last answer')
    assert 'secret-place' not in server.log() + str(server.events()) + str(rows(server, 'SELECT * FROM deliveries'))


def test_five_at_most(server, slack):
    ask(server, slack)
    task = newest(server)
    give_plan(server, task)
    wait_until(lambda: server.get(f'{TASKS}/{task["id"]}')['state'] == 'blocked', 'the first question')
    for n in range(5):
        server.post(f'{TASKS}/{task["id"]}/retry', {}, status=200)
        wait_until(lambda: len(server.events(kind='human.asked', task=task['id'])) == n + 2, 'the next question')
        wait_until(lambda: server.get(f'{TASKS}/{task["id"]}')['state'] == 'blocked', 'that it is blocked')
    server.post(f'{TASKS}/{task["id"]}/stop', {}, status=200)
    texts = [said(slack) for _ in range(5)]
    assert 'is *cancelled*' in texts[-1] and slack.got.empty()
    assert rows(server, 'SELECT COUNT(*) FROM deliveries') == [(5,)]


@pytest.mark.parametrize('place', [
    'https://hooks.slack.com.example/commands/x', 'http://hooks.slack.com/commands/x', 'https://x@hooks.slack.com/', 'http://127.0.0.1:1/x',
    'http://10.0.0.1/', 'ftp://hooks.slack.com/', 'hooks.slack.com', '', 'https://hooks.slack.com:8443/', 'x' * 3000])
def test_other_places(make_server, place):
    """The task is made; nothing is posted."""
    server = make_server(env={'SLACK_SIGNING_SECRET': SECRET})
    check(order(server, response_url=place), 'Task #1')
    assert newest(server)['number'] == 1 and rows(server, 'SELECT COUNT(*) FROM hooks') == [(0,)]


@pytest.mark.parametrize('place', ['https://hooks.slack.com/commands/x', 'https://HOOKS.slack.com/commands/x', 'https://hooks.slack-gov.com/commands/x'])
def test_slacks_own_places(make_server, place):
    server = make_server(env={'SLACK_SIGNING_SECRET': SECRET})
    check(order(server, response_url=place), 'Task #1')
    assert newest(server) and rows(server, "SELECT COUNT(*) FROM hooks WHERE task_id IS NOT NULL AND url = ''") == [(1,)]


def test_the_place_is_judged_when_it_is_called(make_server, slack):
    """Named in the settings, and still this machine's."""
    server = make_server(env={**env_of(slack), 'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'false'})
    server.ask('PATCH', '/api/v1/squads/default', body={'config': {'planner': 'person'}})
    ask(server, slack)
    failed = wait_until(lambda: rows(server, "SELECT problem FROM deliveries WHERE state = 'failed'"), 'the end')
    assert 'loopback' in failed[0][0] and slack.got.empty()


@pytest.mark.parametrize('point', ['hook-making', 'hook-sent'])
def test_crash(server, slack, point):
    ask(server, slack)
    said(slack)
    task = newest(server)
    wait_until(lambda: not rows(server, "SELECT 1 FROM deliveries WHERE state = 'waiting'"), 'the first')
    assert server.stop() == 0
    server.env['COOP_FAIL_AT'] = point
    server.start()
    try:
        server.post(f'{TASKS}/{task["id"]}/stop', {}, status=200)
    except ConnectionError:
        pass  # it may be killed before it answers
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    wait_until(lambda: rows(server, "SELECT COUNT(*) FROM deliveries WHERE state = 'done'") == [(2,)], 'the end of both')
    texts = [said(slack) for _ in range(2 if point == 'hook-sent' else 1)]
    assert all('is *cancelled*' in text for text in texts) and slack.got.empty()


def test_again_after_a_while(server, slack):
    slack.answers = [503]
    ask(server, slack)
    first = said(slack)
    wait_until(lambda: rows(server, "SELECT tries FROM deliveries WHERE state = 'waiting'") == [(1,)], 'the first try')
    server.kill()
    due_now(server)
    server.start()
    assert said(slack) == first


# ---- what is asked of a task ----

def test_verbs(server, slack):
    ask(server, slack)
    number = newest(server)['number']
    said(slack)
    check(order(server, f'status {number}', trigger_id='2'), f'Task #{number} (build a wheel) is *approving*')
    check(order(server, f'stop #{number}', trigger_id='3'), 'is *cancelled*')
    wait_until(lambda: newest(server)['state'] == 'cancelled', 'its end')
    check(order(server, f'answer {number} the blue one', trigger_id='4'), 'That did not work')
    assert order(server, f'retry {number}', trigger_id='5').json['response_type'] == 'ephemeral'
    check(order(server, 'status 99', trigger_id='6'), 'That did not work')
    assert server.get(TASKS)['total'] == 1


def test_an_answer(server, slack):
    ask(server, slack)
    task = newest(server)
    give_plan(server, task)
    wait_until(lambda: server.get(f'{TASKS}/{task["id"]}')['state'] == 'blocked', 'a question')
    check(order(server, f'answer {task["number"]} stop', trigger_id='2'), 'The answer is given.')
    answered = wait_until(lambda: server.events(kind='human.answered', task=task['id']), 'the answer')[0]
    assert answered['actor'] == 'slack:U1'


@pytest.mark.parametrize('text', ['status of the build shall be shown', 'stop the leak', 'stop', 'status 12 and 13', 'answer 12', 'retry x'])
def test_words_that_are_no_verbs(server, text):
    check(order(server, text), 'Task #1')
    assert newest(server)['request'] == text


def test_only_what_came_from_there(server):
    other = server.post(TASKS, {'request': 'Something else'}, status=201)
    for verb in ('status', 'stop', 'retry'):
        check(order(server, f'{verb} {other["number"]}', trigger_id=verb), 'That did not work')
    assert server.get(f'{TASKS}/{other["id"]}')['state'] != 'cancelled'
    key = server.make_key('read,box', 'one')['key']
    mine = server.ask('POST', TASKS, key=key, body={'request': 'Mine', 'source': 'slack'}).json
    check(order(server, f'stop {mine["number"]}'), 'That did not work')

