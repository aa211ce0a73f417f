# SPDX-License-Identifier: Apache-2.0
"""Browsers: the one-time link, the cookie, and how a session ends."""
import concurrent.futures
import http.cookies
import re

import pytest

from harness import Stream, wait_until


def open_session(server, ticket, **more):
    return server.ask('POST', '/api/v1/session', body={'ticket': ticket}, key=None, **more)


def with_cookie(server, cookie, method='GET', path='/api/v1/session', **more):
    headers = {'Cookie': cookie, 'Origin': f'http://{server.host}', **more}
    return server.ask(method, path, key=None, headers=headers)


def test_the_link_works_once(make_server):
    server = make_server()
    page, _, ticket = server.link.partition('#ticket=')
    assert page == f'http://{server.host}/'
    assert open_session(server, ticket).status == 201
    again = open_session(server, ticket)
    assert again.status == 403
    assert 'Set-Cookie' not in again.headers


def test_two_at_once_get_one_session(server):
    ticket = server.post('/api/v1/tickets', b'')['ticket']
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: open_session(server, ticket).status, range(8)))
    assert sorted(statuses) == [201] + [403] * 7


def test_a_link_does_not_survive_a_restart(make_server):
    server = make_server()
    ticket = server.post('/api/v1/tickets', b'')['ticket']
    assert server.stop() == 0
    server.start()
    assert open_session(server, ticket).status == 403


def test_the_oldest_link_gives_way(server):
    first = server.post('/api/v1/tickets', b'')['ticket']
    kept = [server.post('/api/v1/tickets', b'')['ticket'] for _ in range(64)]
    assert open_session(server, first).status == 403
    assert open_session(server, kept[0]).status == 201


@pytest.mark.parametrize('ticket', ['', 'x', '0' * 47, '0' * 48, '0' * 49, '0' * 201, 'é' * 24, '%00', '\ud83d\ude00'])
def test_guessed_tickets(server, ticket):
    answer = open_session(server, ticket)
    assert answer.status in (400, 403)
    assert 'Set-Cookie' not in answer.headers


def test_cookie_flags(server):
    answer = open_session(server, server.post('/api/v1/tickets', b'')['ticket'])
    text = answer.headers['Set-Cookie']
    morsel = http.cookies.SimpleCookie(text)['coop_session']
    assert len(morsel.value) == 64
    assert morsel['httponly'] and morsel['samesite'] == 'Strict' and morsel['path'] == '/'
    assert morsel['domain'] == '' and int(morsel['max-age']) == answer.json['expires_in'] == 30 * 24 * 3600
    assert answer.headers['Cache-Control'] == 'no-store'
    assert answer.headers['Referrer-Policy'] == 'no-referrer'


def test_who_am_i(server):
    mine = with_cookie(server, server.sign_in()).json
    assert (mine['caller'], mine['scopes']) == ('session', 'admin')
    assert mine['actor'].startswith('key:')
    assert server.get('/api/v1/session')['caller'] == 'key'
    with server.connect_control() as sock:
        assert server.get('/api/v1/session', key=None, host='localhost', sock=sock)['caller'] == 'local'


def test_a_session_survives_a_restart(make_server):
    server = make_server()
    cookie = server.sign_in()
    server.kill()
    server.start()
    assert with_cookie(server, cookie).status == 200


def test_signing_out(make_server):
    server = make_server()
    cookie, other = server.sign_in(), server.sign_in()
    answer = with_cookie(server, cookie, 'DELETE')
    assert answer.status == 204
    assert 'Max-Age=0' in answer.headers['Set-Cookie']
    assert with_cookie(server, cookie).status == 401
    assert with_cookie(server, other).status == 200
    assert server.stop() == 0
    server.start()
    assert with_cookie(server, cookie).status == 401
    assert with_cookie(server, other).status == 200


def test_only_a_session_can_sign_out(server):
    assert server.ask('DELETE', '/api/v1/session').status == 409


def test_streams_end_with_their_session(server):
    cookie = server.sign_in()
    with Stream(server, key=None, headers={'Cookie': cookie}) as stream:
        stream.next()
        assert with_cookie(server, cookie, 'DELETE').status == 204
        server.make_key('read', 'after signing out')
        assert stream.next() is None


def sign_in_as(server, key):
    ticket = server.post('/api/v1/tickets', b'', key=key)['ticket']
    answer = open_session(server, ticket)
    assert answer.status == 201
    return answer.headers['Set-Cookie'].split(';')[0]


def test_a_session_ends_with_the_key_that_opened_it(make_server):
    server = make_server()
    made = server.make_key('admin', 'lost laptop')
    cookie = sign_in_as(server, made['key'])
    unused = server.post('/api/v1/tickets', b'', key=made['key'])['ticket']
    own = server.sign_in()
    assert with_cookie(server, cookie).json['actor'] == f"key:{made['id']}"
    assert server.ask('DELETE', f"/api/v1/keys/{made['id']}").status == 204
    assert with_cookie(server, cookie).status == 401
    assert open_session(server, unused).status == 403
    assert with_cookie(server, own).status == 200
    assert server.stop() == 0
    server.start()
    assert with_cookie(server, cookie).status == 401
    assert with_cookie(server, own).status == 200


def test_a_session_ends_when_its_key_expires(server):
    made = server.make_key('admin', 'short', expires_in=2)
    cookie = sign_in_as(server, made['key'])
    assert with_cookie(server, cookie).status == 200
    wait_until(lambda: server.ask('GET', '/api/v1/session', key=made['key']).status == 401, 'the key expires')
    assert with_cookie(server, cookie).status == 401


def test_tickets_are_for_admins(server):
    for scopes in ('read', 'box', 'read,box'):
        assert server.ask('POST', '/api/v1/tickets', key=server.make_key(scopes)['key']).status == 403


BODIES = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', None, 'application/jsonx']


@pytest.mark.parametrize('type_', BODIES)
def test_a_form_cannot_use_the_cookie(server, type_):
    """What a form of a foreign page could send is not read as JSON."""
    before = len(server.get('/api/v1/keys')['keys'])
    answer = server.ask('POST', '/api/v1/keys', body=b'{"name":"form"}', key=None,
                        headers={'Cookie': server.sign_in(), 'Origin': f'http://{server.host}', 'Content-Type': type_})
    assert answer.status == 415
    assert len(server.get('/api/v1/keys')['keys']) == before


def forge_writes(server):
    """Every call that changes something of the forge, with names in the place of what is variable."""
    begin = ('/api/v3/', '/api/v1/repos', '/api/v1/identities', '/api/v1/github')
    values = {'owner': 'coop', 'repo': 'kept', 'number': '1', 'id': '1'}
    for path, methods in server.get('/openapi.json')['paths'].items():
        if path.startswith(begin) or '/git/' in path:
            for method in methods.keys() - {'get', 'head', 'parameters'}:
                yield method.upper(), re.sub(r'\{(\w+)(?:\.\.\.)?\}', lambda m: values.get(m[1], 'main'), path)


def test_foreign_pages_cannot_use_the_cookie_for_the_forge(make_server):
    """A real session's cookie, and a page of elsewhere that has it sent."""
    server = make_server()
    server.post('/api/v1/repos', {'name': 'kept', 'first_commit': True})
    cookie, calls = server.sign_in(), sorted(set(forge_writes(server)))
    assert len(calls) > 50 and ('DELETE', '/api/v3/repos/coop/kept') in calls
    before = server.get('/api/v1/repos/coop/kept')
    pushes = [('POST', '/git/coop/kept.git/git-receive-pack')]
    for method, path in calls + pushes:
        for headers in ({'Origin': 'https://evil.example'}, {'Origin': 'null'}, {'Sec-Fetch-Site': 'cross-site'}, {}):
            answer = server.ask(method, path, body=b'{}', key=None, headers={'Cookie': cookie, 'Content-Type': 'application/json', **headers})
            assert answer.status in (401, 403), (method, path, headers, answer)
    assert server.get('/api/v1/repos/coop/kept') == before
    # The same from our own page is looked at.
    own = {'Cookie': cookie, 'Origin': f'http://{server.host}', 'Content-Type': 'application/json'}
    assert server.ask('POST', '/api/v3/repos/coop/kept/issues', body=b'{"title": "x"}', key=None, headers=own).status == 201


@pytest.mark.parametrize('type_', ['application/json', 'application/json; charset=utf-8', 'Application/JSON'])
def test_our_page_can(server, type_):
    answer = server.ask('POST', '/api/v1/keys', body=b'{"name":"page"}', key=None,
                        headers={'Cookie': server.sign_in(), 'Origin': f'http://{server.host}', 'Content-Type': type_})
    assert answer.status == 201


def test_no_cors_by_default(server):
    preflight = {'Origin': 'http://evil.example', 'Access-Control-Request-Method': 'POST',
                 'Access-Control-Request-Private-Network': 'true'}
    answer = server.ask('OPTIONS', '/api/v1/keys', key=None, headers=preflight)
    assert answer.status == 403
    assert not [name for name in answer.headers if name.lower().startswith('access-control')]


def test_listed_origins(make_server):
    """Exactly those that were configured, told apart for caches, and never with the cookie."""
    listed = 'https://board.example'
    server = make_server(args=['--allow-origin', listed])
    preflight = {'Origin': listed, 'Access-Control-Request-Method': 'POST',
                 'Access-Control-Request-Private-Network': 'true'}
    answer = server.ask('OPTIONS', '/api/v1/keys', key=None, headers=preflight)
    assert answer.status == 204
    assert answer.headers['Access-Control-Allow-Origin'] == listed
    assert answer.headers['Vary'] == 'Origin'
    assert 'Access-Control-Allow-Credentials' not in answer.headers
    assert 'Access-Control-Allow-Private-Network' not in answer.headers
    answer = server.ask('GET', '/api/v1/stats', headers={'Origin': listed})
    assert (answer.status, answer.headers['Access-Control-Allow-Origin']) == (200, listed)
    assert server.ask('GET', '/api/v1/stats').headers['Vary'] == 'Origin'
    for near in ('http://board.example', 'https://board.example:8443', 'https://board.example.evil.example',
                 'https://evil.board.example', 'https://BOARD.example/', 'null', f'{listed}, {listed}'):
        answer = server.ask('GET', '/api/v1/stats', headers={'Origin': near})
        assert answer.status == 403, near
        assert 'Access-Control-Allow-Origin' not in answer.headers
    cookie = server.sign_in()
    answer = server.ask('POST', '/api/v1/keys', key=None, body={'name': 'x'},
                        headers={'Origin': listed, 'Cookie': cookie})
    assert answer.status == 403


def test_two_origins(server):
    request = server.request('GET', '/api/v1/stats', headers={'Origin': f'http://{server.host}', 'Connection': 'close'})
    request = request[:-2] + b'Origin: http://evil.example\r\n\r\n'
    assert server.raw(request).startswith(b'HTTP/1.1 403 ')


def test_listed_hosts(make_server):
    server = make_server(args=['--allow-host', 'coop.example'])
    for host, status in [(f'coop.example:{server.port}', 200), (f'COOP.example:{server.port}', 200),
                         ('coop.example:1', 421), (f'x.coop.example:{server.port}', 421),
                         (f'coop.example.evil.example:{server.port}', 421)]:
        assert server.ask('GET', '/api/v1/stats', host=host).status == status, host
