# SPDX-License-Identifier: Apache-2.0
"""The raw requests that the HTTP layer's own test sends, against the real program.

tests/data/hostile-requests.json is the table of both.  A character of a request is one byte.
"""
import json
import pathlib
import re

import pytest

from harness import Server, read_all

TABLE = json.loads((pathlib.Path(__file__).parent.parent / 'data' / 'hostile-requests.json').read_text())


def as_bytes(server, text):
    """{post} reads a body and needs no key, {get} neither."""
    for name, value in (('host', server.host), ('post', '/api/v1/session'), ('get', '/health')):
        text = text.replace('{' + name + '}', value)
    return text.encode('latin-1')


def check(answer, status):
    """One answer, in JSON, and the connection is not used again."""
    head, _, body = answer.partition(b'\r\n\r\n')
    assert re.match(rb'HTTP/1\.1 %d ' % status, head), answer
    assert b'\r\nConnection: close' in head
    assert b'\r\nContent-Type: application/json' in head
    assert json.loads(body)['code'] == status
    assert json.loads(body)['message']


@pytest.mark.parametrize('row', TABLE['rows'], ids=lambda row: row['name'])
def test_row(server: Server, row):
    request = as_bytes(server, row['request'])
    check(server.raw(request), row['status'])
    with server.connect() as sock:
        try:
            for byte in request:
                sock.sendall(bytes([byte]))
        except ConnectionError:
            pass  # refused before the end
        check(read_all(sock), row['status'])
    assert server.is_well()


@pytest.mark.parametrize('row', TABLE['rows'], ids=lambda row: row['name'])
def test_row_after_a_good_request(server, row):
    """Nothing that stands behind it on the connection is answered."""
    good = server.request('GET', '/health', key=None)
    answers = server.raw(good + as_bytes(server, row['request']) + good)
    statuses = re.findall(rb'HTTP/1\.1 (\d+) ', answers)
    assert statuses == [b'200', b'%d' % row['status']], answers


@pytest.mark.parametrize('row', TABLE['floods'], ids=lambda row: row['name'])
def test_flood(make_server, row):
    server = make_server(env={'COOP_HTTP_BODY_LIMIT': '1MiB', 'ASAN_OPTIONS': 'quarantine_size_mb=1'})
    assert server.is_well()
    before = server.resident_kib()
    unit = as_bytes(server, row['unit'])
    request = as_bytes(server, row['start']) + unit * (3 * 1024 * 1024 // len(unit))
    for _ in range(5):
        check(server.raw(request), row['status'])
    assert server.resident_kib() - before < 16 * 1024
    assert server.is_well()
