# SPDX-License-Identifier: Apache-2.0
"""/code-team of Slack: the signature, the window of its time, the task that comes of it."""
import hashlib
import hmac
import time
from urllib.parse import urlencode

import pytest

from harness import check_error, wait_until

SECRET = '8f742231b10e8888abcd99yyyzzz85a5'


@pytest.fixture
def server(make_server):
    return make_server(env={'SLACK_SIGNING_SECRET': SECRET})


def sign(body, stamp, secret=SECRET):
    return 'v0=' + hmac.new(secret.encode(), f'v0:{stamp}:'.encode() + body, hashlib.sha256).hexdigest()


def order(server, text='build a wheel', stamp=None, signature=None, **more):
    body = urlencode({'command': '/code-team', 'text': text, 'user_id': 'U1', 'trigger_id': '13345224609.738474920', **more}).encode()
    stamp = str(int(time.time())) if stamp is None else stamp
    return server.ask('POST', '/slack/commands', key=None, body=body,
                      headers={'Content-Type': 'application/x-www-form-urlencoded', 'X-Slack-Request-Timestamp': stamp,
                               'X-Slack-Signature': sign(body, stamp) if signature is None else signature})


def check(answer, words):
    """Slack gets an answer in time, whatever the disk does: where this machine is slow, it is another."""
    text = answer.json['text']
    assert answer.status == 200 and (words in text or text.startswith('Taken')), text


def test_a_task(server):
    answer = order(server)
    task = wait_until(lambda: server.get('/api/v1/tasks')['tasks'], 'the task')[0]
    assert (task['request'], task['source'], task['actor']) == ('build a wheel', 'slack', 'slack:U1')
    check(answer, f'#{task["number"]}')
    # Slack sends again what it thinks was lost.
    assert order(server).status == 200
    assert server.get('/api/v1/tasks')['total'] == 1
    assert order(server, trigger_id='2').status == 200
    wait_until(lambda: server.get('/api/v1/tasks')['total'] == 2, 'the second')


def test_without_words(server):
    answer = order(server, text='  ')
    assert answer.status == 200 and answer.json['response_type'] == 'ephemeral'
    assert server.get('/api/v1/tasks')['total'] == 0


@pytest.mark.parametrize('wrong', [
    {'signature': ''}, {'signature': 'v0='}, {'signature': 'v0=' + '0' * 64}, {'stamp': '0'}, {'stamp': 'x'}, {'stamp': '-1'},
    {'stamp': str(int(time.time()) - 3600)}, {'stamp': str(int(time.time()) + 3600)}, {'stamp': '9' * 30}])
def test_refused(server, wrong):
    check_error(server, order(server, **wrong), 401)
    assert server.get('/api/v1/tasks')['total'] == 0


def test_signed_for_another(server):
    stamp = str(int(time.time()))
    body = urlencode({'text': 'x'}).encode()
    answer = server.ask('POST', '/slack/commands', key=None, body=body,
                        headers={'X-Slack-Request-Timestamp': stamp, 'X-Slack-Signature': sign(body, stamp, 'another')})
    check_error(server, answer, 401)
    answer = server.ask('POST', '/slack/commands', key=None, body=body + b'y',
                        headers={'X-Slack-Request-Timestamp': stamp, 'X-Slack-Signature': sign(body, stamp)})
    check_error(server, answer, 401)


def test_not_set_up(make_server):
    check_error(make_server(), order(make_server()), 404)


def test_a_huge_order(server):
    assert order(server, text='x' * 70000).status == 413
