# SPDX-License-Identifier: Apache-2.0
"""Ports of a sandbox in a browser and for programs: who may look, and what goes through."""
import base64
import json
import re
from urllib.parse import urlsplit

import pytest

from boxclient import Sandbox, WebSocket, serving
from harness import check_error, wait_until

# Answers with what it was sent; the path chooses the rest.
SERVER = r'''
import http.server, json, socketserver
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        n = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(n).decode('latin-1')
        data = json.dumps({'method': self.command, 'path': self.path, 'headers': list(self.headers.items()),
                           'body': body}).encode()
        self.send_response(200)
        if 'hostile' in self.path:
            for name, value in [('Set-Cookie', 'a=1; Domain=localhost; Path=/'), ('Set-Cookie', 'coop_session=x'),
                                ('Set-Cookie', 'coop_preview=x'), ('Service-Worker-Allowed', '/'),
                                ('Clear-Site-Data', '"*"'), ('Strict-Transport-Security', 'max-age=9')]:
                self.send_header(name, value)
        self.send_header('Content-Type', 'text/html' if 'html' in self.path else 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_POST = do_PUT = do_DELETE = do_OPTIONS = do_GET
    def log_message(self, *args): pass
class S(socketserver.ThreadingMixIn, http.server.HTTPServer): daemon_threads = True
S(('127.0.0.1', 3000), H).serve_forever()
'''

ECHO = r'''
import base64, hashlib, socket, struct, threading
def serve(c):
    head = b''
    while b'\r\n\r\n' not in head: head += c.recv(4096)
    key = [l.split(b': ')[1] for l in head.split(b'\r\n') if l.lower().startswith(b'sec-websocket-key')][0]
    accept = base64.b64encode(hashlib.sha1(key + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())
    c.sendall(b'HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nService-Worker-Allowed: /\r\n'
              b'Sec-WebSocket-Accept: ' + accept + b'\r\n\r\n')
    def take(n):
        got = b''
        while len(got) < n:
            piece = c.recv(n - len(got))
            if not piece: raise SystemExit
            got += piece
        return got
    while True:
        first, second = take(2)
        n = second & 127
        if n == 126: n = struct.unpack('!H', take(2))[0]
        mask, data = take(4), take(n)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        c.sendall(bytes([first]) + (bytes([n]) if n < 126 else b'\x7e' + struct.pack('!H', n)) + data)
l = socket.create_server(('127.0.0.1', 3001))
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
'''


@pytest.fixture(scope='module')
def box_server():
    with serving(python=True) as server:
        yield server


@pytest.fixture(scope='module')
def box(box_server):
    with Sandbox(box_server, limits={'disk_mb': 512, 'inodes': 65536}) as one:
        for name, text, port in [('server.py', SERVER, 3000), ('echo.py', ECHO, 3001)]:
            one.write(f'/tmp/{name}', text.encode())
            one.start(f'python3 /tmp/{name}', timeout=0)
            wait_until(lambda: look(one, port=port, headers={'X-Probe': '1'}).status != 502 if port == 3000 else
                       socket_is_open(one), f'the server on {port}')
        yield one


def socket_is_open(box):
    with WebSocket(box.server, '/', host=host_of(box, 3001), expect=None) as ws:
        return ws.status == 101


def host_of(box, port=3000, name='localhost'):
    return f'{port}-{box.id}.{name}:{box.server.port}'


def look(box, path='/', method='GET', port=3000, key='', **more):
    return box.server.ask(method, path, key=key, host=host_of(box, port), **more)


def names(answer):
    return {name.lower(): value for name, value in answer.json['headers']}


def link(box, **more):
    made = box.ok('POST', '/previews', 201, body={'port': 3000, **more}).json
    url = urlsplit(made['url'])
    assert (url.scheme, url.netloc) == ('http', host_of(box, more.get('port', 3000)))
    return f'{url.path}?{url.query}'


def cookie(box):
    answer = look(box, link(box), key=None)
    assert answer.status == 303, answer
    return answer.headers['Set-Cookie'].split(';')[0]


# ---- programs ----

def test_a_key_in_either_header(box):
    by_header = look(box, '/a%20b?c=%26')
    assert by_header.json['path'] == '/a%20b?c=%26'
    assert 'x-api-key' not in names(by_header)
    bearer = look(box, key=None, headers={'Authorization': f'Bearer {box.server.key}'})
    assert bearer.status == 200 and 'authorization' not in names(bearer)


def test_what_a_box_is_told(box):
    sent = names(look(box, headers={'X-Forwarded-For': '6.6.6.6', 'Forwarded': 'for=6.6.6.6', 'X-Own': 'y',
                                    'Cookie': 'a=1; coop_session=s; coop_preview=p; b=2'}))
    assert sent['host'] == sent['x-forwarded-host'] == host_of(box)
    assert sent['cookie'] == 'a=1; b=2' and sent['x-own'] == 'y' and sent['x-forwarded-for'] == '127.0.0.1'
    assert 'forwarded' not in sent and box.server.key not in json.dumps(sent)


def test_the_programs_own_authorization(box):
    """With our key in the one header, the other is the program's."""
    sent = names(look(box, headers={'Authorization': 'Bearer of-the-app'}))
    assert sent['authorization'] == 'Bearer of-the-app'
    sent = names(look(box, key=None, headers={'Cookie': cookie(box), 'X-API-Key': 'of-the-app'}))
    assert sent['x-api-key'] == 'of-the-app'
    # Two of ours: neither goes in.
    sent = names(look(box, headers={'Authorization': f'Bearer {box.server.key}'}))
    assert 'authorization' not in sent and 'x-api-key' not in sent


def test_bodies_and_methods(box):
    data = bytes(range(256)) * 4000
    answer = look(box, '/x', method='PUT', body=data)
    assert answer.json['method'] == 'PUT' and answer.json['body'].encode('latin-1') == data


def test_answers_are_judged(box):
    answer = look(box, '/hostile')
    assert answer.headers.get_all('Set-Cookie') == ['a=1; Path=/']
    for name in ('Service-Worker-Allowed', 'Clear-Site-Data', 'Strict-Transport-Security'):
        assert name not in answer.headers


def test_by_headers(box):
    def ask(id_, port, **more):
        return box.server.ask('GET', '/x', headers={'E2b-Sandbox-Id': id_, 'E2b-Sandbox-Port': port}, **more)
    for id_ in (box.id, f'sb-{box.id}', box.info['id']):
        answer = ask(id_, '3000')
        sent = names(answer)
        assert sent['host'] == 'localhost:3000' and 'e2b-sandbox-id' not in sent and 'x-api-key' not in sent
        assert 'sandbox' in answer.headers['Content-Security-Policy']
    for port in ('0', '65536', 'x', '', '-1', '+80', '3000 '):
        assert ask(box.id, port).status in (400, 200 if port == '3000 ' else 400), port
    check_error(box.server, box.server.ask('GET', '/', headers={'E2b-Sandbox-Id': box.id}), 400)
    check_error(box.server, box.server.ask('GET', '/', headers={'E2b-Sandbox-Port': '3000'}), 400)
    check_error(box.server, ask(box.id, '3000', key=None), 401)
    check_error(box.server, ask('0' * 20, '3000'), 404)


@pytest.mark.parametrize('headers', [{'Origin': 'OWN'}, {'Sec-Fetch-Site': 'same-origin'}])
def test_no_browser_by_headers(box, headers):
    """Under our own host a box says nothing to a browser, not to a page of ours either."""
    own = {name: value.replace('OWN', f'http://{box.server.host}') for name, value in headers.items()}
    ask = {'E2b-Sandbox-Id': box.id, 'E2b-Sandbox-Port': '3000', **own}
    check_error(box.server, box.server.ask('GET', '/', headers=ask), 403)
    session = {**ask, 'Cookie': box.server.sign_in()}
    check_error(box.server, box.server.ask('GET', '/', key=None, headers=session), 403)
    plain = {'E2b-Sandbox-Id': box.id, 'E2b-Sandbox-Port': '3000', 'Cookie': box.server.sign_in()}
    check_error(box.server, box.server.ask('GET', '/', key=None, headers=plain), 403)


# ---- refusals ----

def test_nothing_listens(box):
    check_error(box.server, look(box, port=3999), 502)
    page = look(box, port=3999, headers={'Accept': 'text/html,*/*'})
    assert page.status == 502 and b'nothing listens on port 3999' in page.body
    assert page.headers['Content-Type'].startswith('text/html') and 'script' not in page.body.decode()
    assert "default-src 'none'" in page.headers['Content-Security-Policy']


def test_nobody_and_others(box):
    check_error(box.server, look(box, key=None), 401)
    check_error(box.server, look(box, key='e2b_' + '0' * 40), 401)
    check_error(box.server, look(box, key='hunter2'), 401)
    check_error(box.server, look(box, key=None, headers={'Cookie': box.server.sign_in()}), 401)
    check_error(box.server, look(box, key=box.server.make_key('box', 'o')['key']), 404)
    check_error(box.server, look(box, key=box.server.make_key('read', 'r')['key']), 403)
    gone = box.server.ask('GET', '/', host=f"3000-{'0' * 20}.localhost:{box.server.port}")
    check_error(box.server, gone, 404)


def test_a_paused_box(box_server):
    with Sandbox(box_server) as box:
        box.ok('POST', '/pause', 200)
        check_error(box_server, look(box), 409)
        box.ok('POST', '/resume', 200)
        check_error(box_server, look(box), 502)


def test_nothing_of_ours_is_under_a_preview(box):
    """Every path is the box's."""
    for path in ('/', '/health', '/api/v1/stats', '/api/v1/sandboxes', '/app.js', '/metrics', '/openapi.json'):
        assert look(box, path).json['path'] == path
        assert look(box, path, port=3999).status == 502
        assert look(box, path, key=None).status == 401


HOSTS = ['3000-{id}.evil.example:{port}', '3000-{id}.localhost.evil.example:{port}', '3000-{id}.localhost:1',
         '3000-{id}.localhost', '3000-{id}.localhost.:{port}', 'x.3000-{id}.localhost:{port}',
         '3000-{id}.127.0.0.1:{port}', '0-{id}.localhost:{port}', '65536-{id}.localhost:{port}',
         '{id}.localhost:{port}', '3000-sb-{id}.localhost:{port}', '3000-{id}@localhost:{port}']


@pytest.mark.parametrize('host', HOSTS)
def test_names_that_are_not_ours(box, host):
    answer = box.server.ask('GET', '/health', host=host.format(id=box.id, port=box.server.port))
    check_error(box.server, answer, 421)


ORIGINS = ['http://evil.example', 'null', 'http://localhost:PORT', 'http://3001-ID.localhost:PORT',
           'http://3000-ID.localhost', 'http://3000-ID.localhost:PORT.evil.example']


@pytest.mark.parametrize('origin', ORIGINS)
def test_foreign_origins(box, origin):
    origin = origin.replace('ID', box.id).replace('PORT', str(box.server.port))
    held = cookie(box)
    for who in ({'key': ''}, {'key': None, 'headers': {'Cookie': held}}):
        headers = {**who.get('headers', {}), 'Origin': origin}
        check_error(box.server, look(box, method='POST', key=who['key'], headers=headers), 403)
        with WebSocket(box.server, '/', host=host_of(box), key=who['key'], headers=headers, expect=403):
            pass


# ---- browsers ----

def test_a_link(box):
    target = link(box)
    answer = look(box, target, key=None, headers={'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate'})
    assert answer.status == 303
    assert answer.headers['Location'] == f'http://{host_of(box)}/'
    assert (answer.headers['Referrer-Policy'], answer.headers['Cache-Control']) == ('no-referrer', 'no-store')
    set_ = answer.headers['Set-Cookie']
    assert re.fullmatch(r'coop_preview=[0-9a-f]{48}; Path=/; Max-Age=3[56]\d\d; HttpOnly; SameSite=Lax', set_)
    assert 'Domain' not in set_
    held = set_.split(';')[0]
    assert 'cookie' not in names(look(box, key=None, headers={'Cookie': held}))
    assert names(look(box, key=None, headers={'Cookie': f'coop_preview=old; {held}; a=1'}))['cookie'] == 'a=1'
    # Once.
    check_error(box.server, look(box, target, key=None), 401)
    # Only there.
    check_error(box.server, look(box, port=3001, key=None, headers={'Cookie': held}), 401)
    check_error(box.server, box.server.ask('GET', '/api/v1/stats', key=None, headers={'Cookie': held}), 401)
    # The token is in no log.
    assert target.rpartition('=')[2] not in box.server.log()


def test_a_link_keeps_the_rest(box):
    target = link(box).replace('/?', '//evil.example/x?a=1&') + '&b=%26'
    answer = look(box, target, key=None)
    assert answer.headers['Location'] == f'http://{host_of(box)}//evil.example/x?a=1&b=%26'


def test_a_link_for_another_port(box):
    check_error(box.server, look(box, link(box), port=3001, key=None), 401)


def test_a_link_ends(box):
    target = link(box, expires_in=1)
    held = look(box, target, key=None).headers['Set-Cookie'].split(';')[0]
    wait_until(lambda: look(box, key=None, headers={'Cookie': held}).status == 401, 'the end of the cookie')


def test_a_link_ends_with_its_key(box_server):
    key = box_server.make_key('read,box', 'short')
    with Sandbox(box_server, key=key['key']) as box:
        held = cookie(box)
        assert look(box, key=None, headers={'Cookie': held}).status == 502
        box_server.ask('DELETE', f"/api/v1/keys/{key['id']}")
        check_error(box_server, look(box, key=None, headers={'Cookie': held}), 401)
        box.key = ''


FETCHES = [({}, 200), ({'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors'}, 200),
           ({'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate'}, 200),
           ({'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document'}, 200),
           ({'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'iframe'}, 403),
           ({'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'script'}, 403),
           ({'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'image'}, 403)]


@pytest.mark.parametrize('headers,status', FETCHES)
def test_where_a_cookie_comes_from(box, headers, status):
    assert look(box, key=None, headers={'Cookie': cookie(box), **headers}).status == status
    if 'navigate' in headers.values():
        post = look(box, method='POST', key=None, headers={'Cookie': cookie(box), **headers})
        assert post.status == (403 if headers['Sec-Fetch-Site'] == 'cross-site' else 200)


@pytest.mark.parametrize('body', [{}, {'port': 0}, {'port': 65536}, {'port': '3000'}, {'port': 3000, 'expires_in': 0},
                                  {'port': 3000, 'expires_in': 100000}, {'port': 3000, 'host': 'x'}])
def test_bad_links(box, body):
    check_error(box.server, box.ask('POST', '/previews', body=body), 400)


def test_links_of_others(box):
    key = box.server.make_key('box', 'o')['key']
    check_error(box.server, box.ask('POST', '/previews', body={'port': 1}, key=key), 404)


def test_a_link_over_the_control_socket(box):
    with box.server.connect_control() as sock:
        made = box.server.ask('POST', f'{box.root}/previews', body={'port': 3000}, key=None, host='localhost',
                              sock=sock)
    url = urlsplit(made.json['url'])
    assert url.netloc == host_of(box)
    assert look(box, f'/?{url.query}', key=None).status == 303


# ---- WebSockets ----

@pytest.mark.parametrize('by', ['key', 'cookie', 'header'])
def test_websockets_pass(box, by):
    own = f'http://{host_of(box, 3001)}'
    if by == 'cookie':
        made = urlsplit(box.ok('POST', '/previews', 201, body={'port': 3001}).json['url'])
        held = look(box, f'/?{made.query}', port=3001, key=None).headers['Set-Cookie'].split(';')[0]
        more = {'host': host_of(box, 3001), 'key': None, 'headers': {'Cookie': held, 'Origin': own}}
    elif by == 'key':
        more = {'host': host_of(box, 3001)}
    else:
        more = {'headers': {'E2b-Sandbox-Id': box.id, 'E2b-Sandbox-Port': '3001'}}
    with WebSocket(box.server, '/', **more) as ws:
        assert b'service-worker' not in ws.head.lower()
        for size in (1, 125, 126, 60000):
            data = base64.b64encode(bytes(size))[:size]
            ws.send(data.decode())
            assert ws.next() == (1, data)


def test_a_websocket_by_cookie_names_its_page(box):
    held = cookie(box)
    with WebSocket(box.server, '/', host=host_of(box), key=None, headers={'Cookie': held}, expect=403):
        pass


def test_a_box_that_ends(box_server):
    with Sandbox(box_server) as box:
        box.write('/tmp/echo.py', ECHO.encode())
        box.start('python3 /tmp/echo.py', timeout=0)
        wait_until(lambda: socket_is_open(box), 'the server')
        with WebSocket(box_server, '/', host=host_of(box, 3001)) as ws:
            box.ok('DELETE', '', 204)
            with pytest.raises(ConnectionError):
                ws.next()
        check_error(box_server, look(box), 404)
