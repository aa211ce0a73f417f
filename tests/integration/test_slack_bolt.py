# SPDX-License-Identifier: Apache-2.0
"""Slack's own framework, from npm, takes the requests that we take, and no others."""
import json
import os
import pathlib
import sys
import tempfile
import time
from urllib.parse import urlencode

import pytest

from test_slack import SECRET, sign

SDK = pathlib.Path(__file__).resolve().parents[1] / 'sdk'
sys.path.append(str(SDK))
import npm  # noqa: E402

# Far from the bound of five minutes: this machine may be slow.
RECENT_S, OLD_S = 30, 3600


@pytest.fixture(scope='module')
def bolt():
    cache = os.environ.get('COOP_SDK_CACHE') or os.path.join(tempfile.gettempdir(), 'coop-slack-cache')
    return npm.install(SDK / 'slack', pathlib.Path(cache))


def request(name, text='build a wheel', age=RECENT_S, secret=SECRET, body=None, signature=None, stamp=None):
    """As Slack's server makes one; what is said otherwise is changed afterwards."""
    signed = urlencode({'command': '/code-team', 'text': text, 'user_id': 'U1', 'trigger_id': name}).encode()
    at = str(int(time.time()) - age)
    return {'name': name, 'stamp': stamp or at, 'body': (body or (lambda b: b))(signed).decode(),
            'signature': (signature or (lambda s: s))(sign(signed, at, secret))}


def requests():
    return [
        request('plain'), request('letters', text='räder & <b> = "50%" +1 \u2028 🚲'), request('empty', text=''), request('long', text='x' * 30000),
        request('old', age=OLD_S), request('very-old', stamp='0'), request('another-secret', secret='another'), request('no-secret', secret=''),
        request('body-longer', body=lambda b: b + b'&x=1'), request('body-shorter', body=lambda b: b[:-1]), request('body-changed', body=lambda b: b.replace(b'U1', b'U2')),
        request('stamp-changed', stamp=str(int(time.time()) - RECENT_S - 1)), request('signature-cut', signature=lambda s: s[:-1]),
        request('signature-other-case', signature=lambda s: 'v0=' + s[3:].upper()), request('signature-version', signature=lambda s: 'v1' + s[2:]),
        request('signature-bare', signature=lambda s: s[3:]), request('signature-none', signature=lambda s: 'v0='),
        request('signature-of-another', signature=lambda s: 'v0=' + '0' * 64),
    ]


def takes(server, one):
    answer = server.ask('POST', '/slack/commands', key=None, body=one['body'].encode(),
                        headers={'Content-Type': 'application/x-www-form-urlencoded', 'X-Slack-Request-Timestamp': one['stamp'],
                                 'X-Slack-Signature': one['signature']})
    assert answer.status in (200, 401), answer
    return answer.status == 200


def test_the_same_are_taken(bolt, make_server):
    server = make_server(env={'SLACK_SIGNING_SECRET': SECRET})
    sent = requests()
    done = npm.run(bolt, SDK / 'slack' / 'verify.mjs', SECRET, json.dumps(sent))
    assert done.returncode == 0, done.stderr
    theirs = dict(zip((one['name'] for one in sent), json.loads(done.stdout), strict=True))
    ours = {one['name']: takes(server, one) for one in sent}
    assert ours == theirs
    assert [name for name, taken in ours.items() if taken] == ['plain', 'letters', 'empty', 'long']


def test_of_tomorrow(bolt, make_server):
    """They look at old requests alone; one of tomorrow could be sent again until then."""
    server = make_server(env={'SLACK_SIGNING_SECRET': SECRET})
    one = request('tomorrow', age=-24 * 3600)
    done = npm.run(bolt, SDK / 'slack' / 'verify.mjs', SECRET, json.dumps([one]))
    assert json.loads(done.stdout) == [True] and not takes(server, one)
