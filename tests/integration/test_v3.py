# SPDX-License-Identifier: Apache-2.0
"""GitHub's dialect below /api/v3: its frame, and the repository's side of it."""
import base64

import pytest

from gitserver import make_repo

V3 = '/api/v3'


def ask(server, method, path, **more):
    return server.ask(method, V3 + path, **more)


def get(server, path, status=200, **more):
    answer = ask(server, 'GET', path, **more)
    assert answer.status == status, answer
    return answer


# ---- who is calling ----

@pytest.mark.parametrize('scheme', ['token {}', 'Token {}', 'Bearer {}', 'bearer {}'])
def test_key_as_a_token(server, scheme):
    who = get(server, '/user', key=None, headers={'Authorization': scheme.format(server.key)}).json
    assert who['type'] == 'User' and who['login'] and who['id'] > 0
    assert get(server, f'/users/{who["login"]}').json == who


def test_key_as_a_password(server):
    coded = base64.b64encode(f'anybody:{server.key}'.encode()).decode()
    assert get(server, '/user', key=None, headers={'Authorization': f'Basic {coded}'}).json['login']


@pytest.mark.parametrize('headers, message', [
    ({}, 'Requires authentication'),
    ({'Authorization': 'token e2b_' + '0' * 40}, 'Bad credentials'),
    ({'Authorization': 'token'}, 'Bad credentials'),
    ({'Authorization': 'Basic !!!'}, 'Bad credentials'),
])
def test_no_key(server, headers, message):
    answer = get(server, '/user', 401, key=None, headers=headers)
    assert answer.json['message'] == message and answer.json['status'] == '401'


def test_nothing_there(server):
    for path in ('/repos/coop/none', '/nothing', '/users/nobody-at-all'):
        error = get(server, path, 404).json
        assert error['message'] == 'Not Found' and error['status'] == '404'
        assert error['documentation_url'] == f'http://{server.host}/docs/github-api.md'


# ---- repositories ----

def test_repository(server):
    _, repo = make_repo(server, 'shown', description='one')
    seen = get(server, '/repos/COOP/Shown').json
    assert seen['id'] == repo['number'] and seen['full_name'] == 'coop/shown' and seen['description'] == 'one'
    assert seen['owner']['login'] == 'coop' and seen['default_branch'] == 'main'
    assert seen['url'] == f'http://{server.host}{V3}/repos/coop/shown'
    assert seen['clone_url'] == f'http://{server.host}/git/coop/shown.git'
    assert seen['permissions'] == {'admin': True, 'maintain': True, 'push': True, 'triage': True, 'pull': True}
    assert seen['allow_squash_merge'] and seen['open_issues_count'] == 0
    assert len(seen['created_at']) == len('2026-01-31T12:00:00Z') and seen['pushed_at'] is None


def test_etag(server):
    make_repo(server, 'tagged')
    first = get(server, '/repos/coop/tagged')
    tag = first.headers['ETag']
    assert tag.startswith('W/"')
    for known in (tag, tag[2:], f'"x", {tag}', '*'):
        again = get(server, '/repos/coop/tagged', 304, headers={'If-None-Match': known})
        assert again.body == b'' and again.headers['ETag'] == tag
    assert get(server, '/repos/coop/tagged', headers={'If-None-Match': '"x"'}).body == first.body
