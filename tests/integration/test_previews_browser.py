# SPDX-License-Identifier: Apache-2.0
"""Previews in Chromium: what a page of a box can do there, and what the browser keeps from it."""
import contextlib
import json
import shutil
import signal
import subprocess
import tempfile

import pytest

from boxclient import Sandbox, serving
from harness import wait_until

# A page, what its server was told, a socket that echoes, and a place where the page reports and learns where to go.
SERVER = r'''
import base64, hashlib, socket, sys, threading
PORT = int(sys.argv[1])
def answer(c, body, kind='text/html'):
    c.sendall(b'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n'
              b'Set-Cookie: own=1; Path=/\r\n\r\n' % (kind.encode(), len(body)) + body)
def echo(c, head):
    key = [l.split(b': ')[1] for l in head.split(b'\r\n') if l.lower().startswith(b'sec-websocket-key')][0]
    accept = base64.b64encode(hashlib.sha1(key + b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest())
    c.sendall(b'HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ' + accept + b'\r\n\r\n')
    first, n = c.recv(2)
    mask, data = c.recv(4), c.recv(n & 127)
    c.sendall(bytes([first, len(data)]) + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))
    c.recv(1)
def serve(c):
    text = b''
    while b'\r\n\r\n' not in text: text += c.recv(65536)
    head, _, body = text.partition(b'\r\n\r\n')
    for line in head.split(b'\r\n'):
        if line.lower().startswith(b'content-length:'):
            while len(body) < int(line[15:]): body += c.recv(65536)
    path = head.split()[1]
    if path == b'/socket': echo(c, head)
    elif path == b'/headers': answer(c, head, 'text/plain')
    elif path == b'/report':
        open('/tmp/reports', 'ab').write(body + b'\n')
        n = len(open('/tmp/reports').readlines())
        answer(c, open('/tmp/places', 'rb').read().split()[n:][:1][0] if n < 3 else b'', 'text/plain')
    else: answer(c, open('/tmp/page.html', 'rb').read())
    c.close()
l = socket.create_server(('127.0.0.1', PORT))
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
'''

PAGE = r'''<!doctype html><script>
const others = OTHERS;
const talk = (host) => new Promise((done) => {
  const socket = new WebSocket(`ws://${host}/socket`);
  socket.onopen = () => socket.send('over');
  socket.onmessage = (message) => done(message.data);
  socket.onerror = () => done('refused');
});
const ask = (host, path) => fetch(`http://${host}${path}`, {credentials: 'include'}).then((r) => r.status, () => 'refused');
(async () => {
  const told = {href: location.href, cookie: document.cookie, echo: await talk(location.host),
                headers: await (await fetch('/headers')).text(), others: []};
  for (const [host, path] of others) told.others.push([await ask(host, path), await talk(host)]);
  const next = await (await fetch('/report', {method: 'POST', body: JSON.stringify(told)})).text();
  if (next) location = next;
})();
</script>'''


@pytest.fixture(scope='module')
def chromium():
    program = shutil.which('chromium')
    if program is None:
        pytest.skip('chromium is not installed')
    return program


@pytest.fixture(scope='module')
def box(chromium):
    with serving(python=True) as server, Sandbox(server, limits={'disk_mb': 512, 'inodes': 65536}) as one:
        one.write('/tmp/server.py', SERVER.encode())
        others = [(f'3001-{one.id}.localhost:{server.port}', '/headers'), (f'localhost:{server.port}', '/api/v1/session')]
        one.write('/tmp/page.html', PAGE.replace('OTHERS', json.dumps(others)).encode())
        for port in (3000, 3001):
            one.start(f'python3 /tmp/server.py {port}', timeout=0)
            host = f'{port}-{one.id}.localhost:{server.port}'
            wait_until(lambda h=host: server.ask('GET', '/headers', host=h).status == 200, f'the server on {port}')
        yield one


@contextlib.contextmanager
def browser(program, profile, url):
    """It finds this machine's own names only."""
    process = subprocess.Popen(
        [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
         '--disable-component-update', '--disable-sync', f'--user-data-dir={profile}', '--remote-debugging-port=0',
         '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE *.localhost', url],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def link(box, port):
    return box.ok('POST', '/previews', 201, body={'port': port}).json['url']


def test_pages(box, chromium):
    """From the page of one port by a link to that of another, and there without one."""
    host = f'3000-{box.id}.localhost:{box.server.port}'
    places = [link(box, 3001), link(box, 3000), f'http://{host}/again']
    box.write('/tmp/places', '\n'.join(places).encode())
    with tempfile.TemporaryDirectory(prefix='coop-') as profile, browser(chromium, profile, places[0]):
        wait_until(lambda: box.run('cat /tmp/reports 2>/dev/null')[1].count('\n') == 3, 'the reports of the pages')
    _, told, again = map(json.loads, box.run('cat /tmp/reports')[1].splitlines())
    # The token is gone from the address, and page and program see their own cookie only.
    assert told['href'] == f'http://{host}/' and again['href'] == f'http://{host}/again'
    for one in (told, again):
        assert one['cookie'] == 'own=1' and '\r\nCookie: own=1\r\n' in one['headers'] + '\r\n'
        assert one['echo'] == 'over'
        # Another port of the same box, for which the browser has a cookie, and the board: other origins.
        assert one['others'] == [['refused', 'refused'], ['refused', 'refused']]
