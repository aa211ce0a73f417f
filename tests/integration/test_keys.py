# SPDX-License-Identifier: Apache-2.0
"""Keys: what they look like, where they lie, when they stop working, what refusals tell."""
import concurrent.futures
import re
import sqlite3
import stat
import time

import pytest

from harness import Stream, check_error, read_answer, wait_until

HELD_BACK_S = 10  # then what was counted meanwhile is told


def test_a_key_is_shown_once(server):
    made = server.make_key('read', 'once')
    assert re.fullmatch(r'e2b_[0-9a-f]{40}', made['key'])
    listed = server.get('/api/v1/keys')
    mine = [key for key in listed['keys'] if key['id'] == made['id']]
    assert [set(key) for key in mine] == [set(made) - {'key'}]
    assert mine[0]['prefix'] == made['key'][:len(mine[0]['prefix'])]
    assert len(mine[0]['prefix']) < 16
    assert listed['seq'] == server.last_seq()


def test_first_key_is_its_owners(server):
    path = server.home / 'key'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert re.fullmatch(r'e2b_[0-9a-f]{40}\n', path.read_text())


BODIES = [
    ({}, 'name'), ({'name': ''}, 'name'), ({'name': 5}, 'name'), ({'name': None}, 'name'),
    ({'name': 'x' * 101}, 'name'), ({'name': 'a\nb'}, 'name'), ({'name': 'a\x1b[31m'}, 'name'),
    ({'name': 'a\u202eb'}, 'name'), ({'name': 'a', 'scopes': ''}, 'scopes'), ({'name': 'a', 'scopes': 'root'}, 'root'),
    ({'name': 'a', 'scopes': 'read;box'}, 'read;box'), ({'name': 'a', 'scopes': ['read']}, 'scopes'),
    ({'name': 'a', 'scopes': 'ü' * 31}, 'scope'), ({'name': 'a', 'scopes': 'x' * 31 + 'ü'}, 'scope'),
    ({'name': 'a', 'expires_in': 0}, 'expires_in'), ({'name': 'a', 'expires_in': -1}, 'expires_in'),
    ({'name': 'a', 'expires_in': 1.5}, 'expires_in'), ({'name': 'a', 'expires_in': 2 ** 62}, 'expires_in'),
    ({'name': 'a', 'expires_in': '1'}, 'expires_in'), ({'name': 'a', 'secret': 'e2b_' + '1' * 40}, 'secret'),
    ({'name': 'a', 'id': 'x'}, 'id'), ({'name': 'a', 'x' * 63 + 'é': 1}, 'unknown field'), ([], 'object'),
]


@pytest.mark.parametrize('body,word', BODIES)
def test_bad_bodies_are_named(server, body, word):
    before = len(server.get('/api/v1/keys')['keys'])
    answer = server.ask('POST', '/api/v1/keys', body=body)
    check_error(server, answer, 400)
    assert word in answer.json['message']
    assert len(server.get('/api/v1/keys')['keys']) == before


@pytest.mark.parametrize('id_', ['nothing', '00000000-0000-0000-0000-000000000000', '%ff%fe', 'x' * 2000, '%27%20OR%201'])
def test_revoking_an_unknown_key(server, id_):
    answer = server.ask('DELETE', f'/api/v1/keys/{id_}')
    check_error(server, answer, 404)


def test_revoking_twice_is_fine(server):
    made = server.make_key('read')
    for _ in range(2):
        assert server.ask('DELETE', f"/api/v1/keys/{made['id']}").status == 204
    assert len(server.events(kind='key.revoked')) == len({e['data']['id'] for e in server.events(kind='key.revoked')})


def test_revoking_at_once_is_one_event(server):
    made = server.make_key('read')
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: server.ask('DELETE', f"/api/v1/keys/{made['id']}").status, range(8)))
    assert statuses == [204] * 8
    assert [e['data']['id'] for e in server.events(kind='key.revoked')].count(made['id']) == 1


def test_a_revoked_key_stops_at_once_and_for_ever(make_server):
    server = make_server()
    made = server.make_key('admin')
    assert server.ask('GET', '/api/v1/keys', key=made['key']).status == 200
    assert server.ask('DELETE', f"/api/v1/keys/{made['id']}", key=made['key']).status == 204
    assert server.ask('GET', '/api/v1/keys', key=made['key']).status == 401
    assert server.stop() == 0
    server.start()
    assert server.ask('GET', '/api/v1/keys', key=made['key']).status == 401


def test_a_body_that_ends_after_its_key_does_nothing(server):
    """The gate saw a good key; by the time the body is there it may be revoked."""
    made = server.make_key('admin')
    body = b'{"name": "too late"}'
    with server.connect() as sock:
        sock.sendall(server.request('POST', '/api/v1/keys', body=body, key=made['key'])[:-1])
        wait_until(lambda: server.get('/api/v1/stats')['http']['requests_active'] > 1, 'the half request')
        assert server.ask('DELETE', f"/api/v1/keys/{made['id']}").status == 204
        sock.sendall(body[-1:])
        check_error(server, read_answer(sock, 'POST'), 401)
    assert 'too late' not in [key['name'] for key in server.get('/api/v1/keys')['keys']]


def test_streams_end_with_their_key(server):
    """What was opened with a key that is gone tells nothing more."""
    made = server.make_key('read')
    with Stream(server, key=made['key']) as stream:
        assert stream.next()['event'] == 'beat'
        assert server.ask('DELETE', f"/api/v1/keys/{made['id']}").status == 204
        server.make_key('read', 'after it was revoked')
        rest = stream.next()
        if rest is not None:
            assert rest['event'] == 'key.revoked'
            rest = stream.next()
        assert rest is None


def test_streams_end_when_their_key_expires(server):
    short = server.make_key('read', expires_in=1)['key']
    with Stream(server, key=short) as stream:
        stream.next()
        wait_until(lambda: server.ask('GET', '/api/v1/session', key=short).status == 401, 'the key expires')
        server.make_key('read', 'after it expired')
        assert stream.next() is None


def test_without_an_admin_key_a_new_one_is_made(make_server):
    """Whoever revokes the last admin key is not locked out of the next start."""
    server = make_server()
    first = server.key
    own = [key['id'] for key in server.get('/api/v1/keys')['keys']]
    assert server.ask('DELETE', f'/api/v1/keys/{own[0]}').status == 204
    assert server.stop() == 0
    server.start()
    assert server.link is not None
    assert server.key != first
    assert server.ask('GET', '/api/v1/keys').status == 200
    assert server.ask('GET', '/api/v1/keys', key=first).status == 401


def test_secrets_are_nowhere(make_server):
    """Not in any file but HOME/key, and in no log line, however much is logged."""
    server = make_server(env={'COOP_LOG': 'debug', 'E2B_API_KEY': 'e2b_' + '12345678' * 5})
    ticket = server.post('/api/v1/tickets', b'')['ticket']
    cookie = server.sign_in().partition('=')[2]
    secrets = [server.key, server.env['E2B_API_KEY'], server.make_key('admin')['key'], ticket, cookie,
               server.link.partition('ticket=')[2]]
    wrong = 'e2b_' + 'f' * 39 + 'e'
    for secret in [*secrets[:3], wrong, cookie, ticket]:
        for headers in ({'X-API-Key': secret}, {'Authorization': f'Bearer {secret}'}, {'Cookie': f'coop_session={secret}'}):
            server.ask('GET', f'/api/v1/session?key={secret}', key=None, headers=headers)
            server.ask('POST', '/api/v1/session', body={'ticket': secret}, key=None, headers=headers)
    assert server.ask('GET', '/api/v1/session', key=server.env['E2B_API_KEY']).json['scopes'] == 'box,read'
    for stopped in (False, True):
        if stopped:
            assert server.stop() == 0
        files = [path for path in server.home.rglob('*') if path.is_file() and path != server.home / 'key']
        assert server.home / 'coop.db' in files
        for path in [*files, server.log_path]:
            content = path.read_bytes()
            for secret in [*secrets, wrong]:
                assert secret.encode() not in content, path
                assert bytes.fromhex(secret.removeprefix('e2b_')) not in content, path


# ---- refusals are events, and cannot fill the log ----

def refusals(server, kind):
    return [event['data'] for event in server.events(kind=kind)]


def test_refused_keys_are_events(make_server):
    server = make_server()
    server.ask('GET', '/api/v1/stats?secret=1', key='e2b_wrong')
    found = wait_until(lambda: refusals(server, 'key.refused'), 'the event')
    assert found == [{'address': '127.0.0.1', 'method': 'GET', 'path': '/api/v1/stats', 'why': 'malformed', 'count': 1,
                      'seen_by': 'coop'}]


def test_refused_origins_are_events(make_server):
    server = make_server()
    server.ask('POST', '/api/v1/keys', headers={'Origin': 'http://evil.example'})
    found = wait_until(lambda: refusals(server, 'origin.refused'), 'the event')
    assert found == [{'address': '127.0.0.1', 'method': 'POST', 'path': '/api/v1/keys', 'why': 'origin', 'count': 1,
                      'origin': 'http://evil.example', 'seen_by': 'coop'}]


def test_no_key_is_no_event(server):
    before = server.last_seq()
    server.ask('GET', '/api/v1/stats', key=None)
    assert server.events(after=before) == []


def test_a_flood_of_bad_keys_is_counted_not_written(make_server):
    """A few events for a thousand refusals, and none of the thousand is lost."""
    server = make_server()
    start = time.monotonic()
    with server.connect() as sock:
        for i in range(1000):
            answer = server.ask('GET', '/api/v1/stats', key=f'e2b_{i:040x}', sock=sock)
            assert answer.status == 401
    few = 3 + (time.monotonic() - start) // HELD_BACK_S
    assert len(refusals(server, 'key.refused')) <= few
    assert len(server.log_lines('key.refused')) <= few
    wait_until(lambda: sum(r['count'] for r in refusals(server, 'key.refused')) == 1000, 'every refusal counted')
    assert len(refusals(server, 'key.refused')) <= few
    metrics = server.ask('GET', '/metrics').body.decode()
    assert 'coop_api_refused_total{why="key"} 1000' in metrics


def test_what_is_held_back_is_written_at_the_stop(make_server):
    server = make_server()
    for _ in range(5):
        server.ask('GET', '/', key=None, headers={'Origin': 'null'})
    assert server.stop() == 0
    with sqlite3.connect(server.home / 'coop.db') as db:
        counts = db.execute("SELECT SUM(json_extract(data, '$.count')) FROM events WHERE kind = 'origin.refused'")
        assert counts.fetchone() == (5,)
