# SPDX-License-Identifier: Apache-2.0
"""Every route, called by every kind of caller.

The routes and their rules come from the program itself; what each caller must get follows from
the rule.  A route without a rule, or with a rule that the gate does not keep, fails here.
"""
import collections
import json
import os
import re
import subprocess

import pytest

from harness import IS_ROOT, PROGRAM, Server, check_error, wait_until

ROUTES = json.loads(subprocess.run([PROGRAM, '__routes', '-o', 'json'], check=True, capture_output=True).stdout)
SAFE = ('GET', 'HEAD')
GATE = (401, 403, 421, 429)
FOREIGN = 'http://evil.example'
UNKNOWN_KEY = 'e2b_' + '0' * 40

Caller = collections.namedtuple('Caller', 'name send expect')


# ---- what a rule means: the status the gate gives, or None where it lets the call pass ----

def with_scopes(*have):
    def expect(route):
        if route['public'] or 'admin' in have or set(have) & set(route['scopes'].split(',')):
            return None
        return 403
    return expect


def nobody(route):
    return None if route['public'] else 401


def always(status):
    return lambda route: status


def only_safe(route):
    return None if route['method'] in SAFE else 403


def only_page(route):
    """Files of the page hold nothing; whoever links to them need not be one of ours."""
    return None if route['public'] and route['method'] in SAFE else 403


# ---- callers ----

def call(server, route, **more):
    """A body that no route understands, so that what passes the gate changes nothing."""
    path = re.sub(r'\{[^}]*\}', 'walk', route['pattern'])
    body = b'' if route['method'] in SAFE or 'Upgrade' in (more.get('headers') or {}) else {'walk': 1}
    return server.ask(route['method'], path, body=body, **more)


def by_key(secret, **headers):
    return lambda server, route: call(server, route, key=secret(server), headers=as_headers(headers))


def by_session(**headers):
    """Each call signs in anew: one of the routes signs out."""
    return lambda server, route: call(server, route, key=None,
                                      headers={'Cookie': server.sign_in(), **as_headers(headers, server)})


def by_nobody(host='', version='1.1', **headers):
    return lambda server, route: call(server, route, key=None, version=version, headers=as_headers(headers),
                                      host=host.format(port=server.port) if host else host)


def by_control(key=None, host='localhost', **headers):
    def send(server, route):
        with server.connect_control() as sock:
            return call(server, route, key=key, sock=sock, host=host, headers=as_headers(headers))
    return send


def as_headers(names, server=None):
    own = f'http://{server.host}' if server else ''
    return {name.replace('_', '-'): value.replace('OWN', own) for name, value in names.items()}


def kept(name):
    return lambda server: server.walk_keys[name]


CALLERS = [
    Caller('nobody', by_nobody(), nobody),
    Caller('malformed key', by_key(lambda s: 'hunter2'), always(401)),
    Caller('empty key', by_key(lambda s: ' '), always(401)),
    Caller('key in upper case', by_key(lambda s: s.key.upper()), always(401)),
    Caller('key and a letter', by_key(lambda s: s.key + '0'), always(401)),
    Caller('unknown key', by_key(lambda s: UNKNOWN_KEY), always(401)),
    Caller('revoked key', by_key(kept('revoked')), always(401)),
    Caller('expired key', by_key(kept('expired')), always(401)),
    Caller('read key', by_key(kept('read')), with_scopes('read')),
    Caller('box key', by_key(kept('box')), with_scopes('box')),
    Caller('read and box key', by_key(kept('both')), with_scopes('read', 'box')),
    Caller('admin key', by_key(kept('admin')), with_scopes('admin')),
    Caller('bearer', lambda s, r: call(s, r, key=None, headers={'Authorization': f'bearer {s.key}'}),
           with_scopes('admin')),
    Caller('bearer of a read key',
           lambda s, r: call(s, r, key=None, headers={'Authorization': 'Bearer ' + s.walk_keys['read']}),
           with_scopes('read')),
    Caller('basic', lambda s, r: call(s, r, key=None, headers={'Authorization': f'Basic {s.key}'}), always(401)),
    Caller('two keys', lambda s, r: call(s, r, headers={'Authorization': f'Bearer {s.key}'}), always(401)),
    Caller('key in the query', lambda s, r: call(s, {**r, 'pattern': f"{r['pattern']}?api_key={s.key}"}, key=None),
           nobody),
    Caller('key as a cookie', lambda s, r: call(s, r, key=None, headers={'Cookie': f'coop_session={s.key}'}), nobody),
    Caller('unknown cookie', by_nobody(Cookie='coop_session=' + '0' * 64), nobody),
    Caller('session, own page', by_session(Origin='OWN', Sec_Fetch_Site='same-origin'), with_scopes('admin')),
    Caller('session, own page without Origin', by_session(Sec_Fetch_Site='same-origin'), with_scopes('admin')),
    Caller('session, old browser', by_session(Origin='OWN'), with_scopes('admin')),
    Caller('session, typed address', by_session(Sec_Fetch_Site='none'), only_safe),
    Caller('session, no Origin', by_session(), only_safe),
    Caller('session, cross-site', by_session(Sec_Fetch_Site='cross-site'), only_page),
    Caller('session, same-site', by_session(Sec_Fetch_Site='same-site'), only_page),
    Caller('session, cross-site with own Origin', by_session(Origin='OWN', Sec_Fetch_Site='cross-site'), only_page),
    Caller('session, foreign Origin', by_session(Origin=FOREIGN), always(403)),
    Caller('session, foreign Origin, same-origin', by_session(Origin=FOREIGN, Sec_Fetch_Site='same-origin'),
           always(403)),
    Caller('session, Origin null', by_session(Origin='null'), always(403)),
    Caller('session, Origin of another port', by_session(Origin='http://127.0.0.1:1'), always(403)),
    Caller('session, Origin with our name as user', by_session(Origin='OWN@evil.example'), always(403)),
    Caller('session, Origin with our name in front', by_session(Origin='OWN.evil.example'), always(403)),
    Caller('session, upgrade without Origin', by_session(Connection='Upgrade', Upgrade='websocket'), always(403)),
    Caller('key, foreign Origin', by_key(kept('admin'), Origin=FOREIGN), always(403)),
    Caller('key, Origin null', by_key(kept('admin'), Origin='null'), always(403)),
    Caller('nobody, foreign Origin', by_nobody(Origin=FOREIGN), always(403)),
    Caller('foreign Host', by_nobody(host='evil.example'), always(421)),
    Caller('foreign Host, our port', by_nobody(host='evil.example:{port}'), always(421)),
    Caller('Host localhost.evil', by_nobody(host='localhost.evil.example:{port}'), always(421)),
    Caller('Host 127.0.0.1.evil', by_nobody(host='127.0.0.1.evil.example:{port}'), always(421)),
    Caller('Host evil.localhost', by_nobody(host='evil.localhost:{port}'), always(421)),
    Caller('Host of another port', by_nobody(host='localhost:1'), always(421)),
    Caller('Host without port', by_nobody(host='localhost'), always(421)),
    Caller('Host with two ports', by_nobody(host='localhost:{port}:1'), always(421)),
    Caller('Host with a user', by_nobody(host='evil@localhost:{port}'), always(421)),
    Caller('Host with a dot', by_nobody(host='localhost.:{port}'), always(421)),
    Caller('empty Host', by_nobody(host=' '), always(421)),
    Caller('Host 0.0.0.0', by_nobody(host='0.0.0.0:{port}'), always(421)),
    Caller('Host of IPv6 loopback', by_nobody(host='[::1]:{port}'), nobody),
    Caller('Host localhost', by_nobody(host='LOCALHOST:{port}'), nobody),
    Caller('HTTP/1.0 without Host', by_nobody(host=None, version='1.0'), always(421)),
    Caller('HTTP/1.0', by_nobody(version='1.0'), nobody),
    Caller('admin key, foreign Host', lambda s, r: call(s, r, host='evil.example'), always(421)),
    Caller('control socket', by_control(), with_scopes('admin')),
    Caller('control socket, unknown key', by_control(key=UNKNOWN_KEY), always(401)),
    Caller('control socket, foreign Host', by_control(host='evil.example'), always(421)),
    Caller('control socket, foreign Origin', by_control(Origin=FOREIGN), always(403)),
]


@pytest.fixture(scope='module')
def walked(server):
    keys = {name: server.make_key(scopes, name) for name, scopes in
            [('read', 'read'), ('box', 'box'), ('both', 'read,box'), ('admin', 'admin'), ('revoked', 'admin')]}
    assert server.ask('DELETE', f"/api/v1/keys/{keys['revoked']['id']}").status == 204
    server.walk_keys = {name: key['key'] for name, key in keys.items()}
    short = server.make_key('admin', 'expired', expires_in=1)['key']
    wait_until(lambda: server.ask('GET', '/api/v1/session', key=short).status == 401, 'the key expires')
    server.walk_keys['expired'] = short
    return server


def check_refusal(server, answer, status):
    check_error(server, answer, status)
    assert 'Access-Control-Allow-Origin' not in answer.headers
    assert 'Access-Control-Allow-Private-Network' not in answer.headers
    assert ('WWW-Authenticate' in answer.headers) == (status == 401)


def test_every_route_has_a_rule():
    assert len(ROUTES) >= 11
    for route in ROUTES:
        assert route['public'] != bool(route['scopes']), route


@pytest.mark.parametrize('caller', CALLERS, ids=[c.name for c in CALLERS])
def test_walk(walked, caller):
    for route in ROUTES:
        expected = caller.expect(route)
        answer = caller.send(walked, route)
        if expected is None:
            assert answer.status not in GATE, (route, answer)
            # This server has no keeper and no template, and says so.
            assert answer.status < 500 or answer.status == 503, (route, answer)
        else:
            check_refusal(walked, answer, expected)


def test_refused_calls_changed_nothing(walked):
    names = [key['name'] for key in walked.get('/api/v1/keys')['keys']]
    assert sorted(names) == sorted(['first', *walked.walk_keys])


@pytest.mark.parametrize('method', ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'TRACE', 'PROPFIND', 'GET', 'POST', 'DELETE'])
def test_other_methods(walked, method):
    """Who has no key learns nothing about which paths and methods there are."""
    known = {(r['method'], r['pattern']) for r in ROUTES}
    for pattern in sorted({r['pattern'] for r in ROUTES} | {'/api/v1/nothing', '/nothing'}):
        path = re.sub(r'\{[^}]*\}', 'walk', pattern)
        rows = {m for m, p in known if p == pattern} | ({'HEAD'} if ('GET', pattern) in known else set())
        if method in rows:
            continue
        assert walked.ask(method, path, key=None).status == 401, pattern
        answer = walked.ask(method, path)
        assert answer.status == (405 if rows else 404), pattern
        if rows:
            assert set(answer.headers['Allow'].split(', ')) == rows


def test_head_follows_the_rule_of_get(walked):
    for route in ROUTES:
        if route['method'] != 'GET':
            continue
        head = {**route, 'method': 'HEAD'}
        assert call(walked, head, key=None).status == (200 if route['public'] else 401)
        answer = call(walked, head)
        assert (answer.status, answer.body) == (call(walked, route).status, b''), route


def test_headers_of_every_answer(walked):
    """Nothing is guessed to be a page, no address is told to others, and data is not kept."""
    for route in ROUTES:
        for key in (None, walked.key):
            answer = call(walked, route, key=key)
            assert answer.headers['X-Content-Type-Options'] == 'nosniff', route
            assert answer.headers['Referrer-Policy'] == 'no-referrer', route
            is_file = answer.headers['ETag'] is not None
            if answer.status != 200 or not (is_file or route['public']):
                assert answer.headers['Cache-Control'] == 'no-store', route


def test_the_page_trusts_only_itself(walked):
    for route in ROUTES:
        if not route['public'] or route['pattern'].startswith(('/api/', '/health', '/slack/', '/webhooks/')):
            continue
        policy = call(walked, route, key=None).headers['Content-Security-Policy']
        rules = dict(rule.split(maxsplit=1) for rule in policy.split('; '))
        assert rules['default-src'] == rules['base-uri'] == rules['frame-ancestors'] == "'none'"
        assert rules['script-src'] == "'self'" and rules['require-trusted-types-for'] == "'script'"
        assert 'unsafe' not in rules['script-src'] and '*' not in policy


TARGETS = ['*', '127.0.0.1:{port}', 'http://127.0.0.1:{port}/health', 'http://evil.example/health', '//health', '/../health', '/./health',
           '/api/v1/%2e%2e/health', '/health/', '/%00', '/%', '/%zz', '/health%2f..', '/api//v1/stats']


@pytest.mark.parametrize('target', TARGETS)
def test_odd_targets_reach_nothing(walked, target):
    for key in (None, walked.key):
        method = {'*': 'OPTIONS', '127.0.0.1:{port}': 'CONNECT'}.get(target, 'GET')
        answer = walked.ask(method, target.format(port=walked.port), key=key)
        assert answer.status in (400, 401, 404), answer


def ask_as_other_uid(server, request):
    """In a process of its own, because there is no way back."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            with server.connect_control() as sock:
                sock.sendall(request)
                os.write(theirs, sock.recv(65536).split(b' ')[1])
        except OSError as problem:
            os.write(theirs, type(problem).__name__.encode())
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    with os.fdopen(ours) as answer:
        return answer.read()


@pytest.mark.skipif(not IS_ROOT, reason='only root can become another user')
def test_control_socket_as_another_user(make_server):
    server = make_server()
    requests = {(r['method'], r['pattern']): server.request(r['method'], re.sub(r'\{[^}]*\}', 'walk', r['pattern']),
                                                            key=None, host='localhost') for r in ROUTES}
    assert ask_as_other_uid(server, requests['GET', '/api/v1/stats']) == 'PermissionError'
    # With the folder and the socket opened by mistake, the kernel still says who calls.
    for path, mode in [(server.folder.parent, 0o711), (server.folder, 0o711), (server.home, 0o711),
                       (server.home / 'run', 0o711), (server.home / 'run' / 'control.sock', 0o666)]:
        path.chmod(mode)
    for route in ROUTES:
        status = ask_as_other_uid(server, requests[route['method'], route['pattern']])
        assert (status != '401') if route['public'] else (status == '401'), route


def test_files_of_the_home_are_closed(server: Server):
    """The folder, the socket, the key and the database are the owner's alone."""
    for path in [server.home, *server.home.rglob('*')]:
        assert path.lstat().st_mode & 0o077 == 0, path
