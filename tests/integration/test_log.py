# SPDX-License-Identifier: Apache-2.0
"""Nothing that comes from outside makes a second line, or a field, in the log."""
import pytest

from harness import LOG_LINE

FORGED = 't=2030-01-01T00:00:00.000000Z level=error mod=daemon msg="forged"'
TEXTS = ['\n' + FORGED, '\r\n' + FORGED, '%0a' + FORGED.replace(' ', '%20'), '%0d%0a' + FORGED.replace(' ', '+'), '\x1b[2J\x1b]0;x\x07',
         '%1b[31m', '" why=good x="', '\\', '\\" a=b', 'a=b', '\x85' + FORGED, '\u2028'.encode().decode('latin-1'), '\xff\xfe',
         '%00', '', '=' * 5000, '"' * 3000, '\x80' * 3000, '\x9b31m', '\t', '%7f', '\x7f']


@pytest.mark.parametrize('text', TEXTS, ids=range(len(TEXTS)))
def test_log_injection(make_server, text):
    """In the path, in headers that are logged, in keys, in bodies."""
    server = make_server(env={'COOP_LOG': 'debug'})
    before = len(server.log().splitlines())
    requests = [
        server.request('GET', '/x' + text),
        server.request('GET', '/api/v1/stats?' + text),
        server.request('GET', '/api/v1/stats', headers={'Origin': 'http://x' + text}),
        server.request('GET', '/api/v1/stats', host='x' + text),
        server.request('GET', '/api/v1/stats', key='e2b_' + text),
        server.request('GET', '/api/v1/stats', key=None, headers={'Authorization': 'Bearer ' + text}),
        server.request('GET', '/api/v1/stats', key=None, headers={'Cookie': 'coop_session=' + text}),
        server.request('DELETE', '/api/v1/keys/x' + text),
        server.request('G' + text, '/health'),
        server.request('GET', '/health', headers={'X' + text: 'y', 'User-Agent': text, 'Referer': text, 'X-Forwarded-For': text}),
        server.request('POST', '/api/v1/keys', body={'name': 'x' + text, text or 'x': 1}),
    ]
    for request in requests:
        head, _, body = request.partition(b'\r\n\r\n')
        server.raw(head + b'\r\nConnection: close\r\n\r\n' + body)
    assert server.stop() == 0
    lines = server.log().splitlines()
    assert len(lines) <= before + 3 * len(requests) + 10
    for line in server.log_path.read_bytes().split(b'\n')[:-1]:
        assert LOG_LINE.fullmatch(line.decode('utf-8')), line
        assert b'msg="forged"' not in line


def test_names_in_the_log_are_whole_lines(make_server):
    server = make_server(env={'COOP_LOG': 'debug'})
    server.make_key('read', '日本 "quoted" \\ back = equals')
    assert server.stop() == 0
    for line in server.log().splitlines():
        assert LOG_LINE.fullmatch(line), line


def test_every_request_is_one_line(make_server):
    server = make_server(env={'COOP_LOG': 'http=debug'})
    for _ in range(20):
        server.ask('GET', '/api/v1/session')
    assert server.stop() == 0  # the line is written after the answer
    lines = server.log_lines(' path=/api/v1/session ')
    assert len(lines) == 20
    assert all('msg="request"' in line and ' status=200 ' in line and ' actor=key:' in line for line in lines)
    assert len({line.partition(' id=')[2].split()[0] for line in lines}) == 20
