# SPDX-License-Identifier: Apache-2.0
"""Bodies that are too long, too deep, in the wrong coding or no JSON at all."""
import gzip
import json

import pytest

from harness import check_error, read_answer

KEYS = '/api/v1/keys'
LIMIT = 1024 * 1024
STRANGER_LIMIT = 16 * 1024


def nested(opening, closing, depth):
    return opening * depth + closing * depth


BAD_JSON = {
    'deep lists': b'[' * 100000,
    'deep lists, closed': nested('[', ']', 100000).encode(),
    'deep objects': b'{"a":' * 100000,
    'deep objects, closed': ('{"a":' * 100000 + '1' + '}' * 100000).encode(),
    'deep beside strings': b'{"name":"]]]]","a":' + b'[' * 100000,
    'one level too deep': ('{"name":' + nested('[', ']', 128) + '}').encode(),
    'a million elements': b'[' + b'0,' * 999999 + b'0]',
    'NaN': b'{"name":NaN}', 'Infinity': b'{"name":-Infinity}', 'huge number': b'{"name":1e999}',
    'huge integer': b'{"name":"a","expires_in":99999999999999999999}',
    'long number': b'{"name":' + b'9' * 100000 + b'}',
    'duplicate': b'{"name":"a","name":"b"}', 'duplicate by escape': rb'{"name":"a","\u006eame":"b"}',
    'lone high surrogate': rb'{"name":"\ud800"}', 'lone low surrogate': rb'{"name":"\udc00"}',
    'surrogates swapped': rb'{"name":"\udc00\ud800"}', 'high surrogate and text': rb'{"name":"\ud800x"}',
    'bad UTF-8': b'{"name":"\xff\xfe"}', 'overlong': b'{"name":"\xc0\xaf"}', 'surrogate in UTF-8': b'{"name":"\xed\xa0\x80"}',
    'cut UTF-8': b'{"name":"\xe2\x82"}', 'too large for UTF-8': b'{"name":"\xf5\x80\x80\x80"}',
    'bad UTF-8 in a name': b'{"\xff":1}', 'bad UTF-8 outside': b'\xff{"name":"a"}', 'byte order mark': b'\xef\xbb\xbf{"name":"a"}',
    'UTF-16': '{"name":"a"}'.encode('utf-16'),
    'NUL inside': b'{"name":"a\x00b"}', 'NUL by escape': rb'{"name":"a\u0000b"}', 'NUL behind': b'{"name":"a"}\x00',
    'NUL in a name': rb'{"na\u0000me":"a"}',
    'two values': b'{"name":"a"}{"name":"b"}', 'garbage behind': b'{"name":"a"}x', 'comment': b'{"name":"a"/**/}',
    'single quotes': b"{'name':'a'}", 'trailing comma': b'{"name":"a",}', 'cut': b'{"name":"a"', 'only space': b'   ',
    'control character': b'{"name":"a\x01"}', 'string': b'"name"', 'null': b'null', 'number': b'1', 'list': b'[]',
    'long unknown name': json.dumps({'x' * 500000: 1}).encode(),
    'unknown field': b'{"name":"a","isolation":"none"}', 'prototype': b'{"__proto__":{"name":"a"}}',
    'case': b'{"Name":"a"}',
}


@pytest.mark.parametrize('body', BAD_JSON.values(), ids=BAD_JSON.keys())
def test_bad_json(server, body):
    """Each is refused by name and in a moment, with a key and, where none is needed, without."""
    before = len(server.get(KEYS)['keys'])
    start = server.cpu_s()
    for path, key in ((KEYS, server.key), ('/api/v1/session', None)):
        answer = server.ask('POST', path, body=body, key=key)
        status = 413 if key is None and len(body) > STRANGER_LIMIT else 400
        check_error(server, answer, status)
        assert len(answer.body) < 1000
    assert server.cpu_s() - start < 10
    assert len(server.get(KEYS)['keys']) == before


def test_a_million_keys(make_server):
    server = make_server(env={'COOP_HTTP_BODY_LIMIT': '16MiB'})
    body = ('{' + ','.join(f'"k{i}":0' for i in range(1000000)) + '}').encode()
    answer = server.ask('POST', KEYS, body=body)
    assert answer.status == 400 and 'unknown field' in answer.json['message']
    assert server.is_well()


@pytest.mark.parametrize('name', ['é', '日本語', '😀', 'a' * 100, '\u00a0x', '"\\/'])
def test_good_names(server, name):
    assert server.make_key('read', name)['name'] == name


def test_surrogate_pairs_are_whole(server):
    answer = server.ask('POST', KEYS, body=rb'{"name":"\ud83d\ude00"}')
    assert (answer.status, answer.json['name']) == (201, '😀')


@pytest.mark.parametrize('coding', ['gzip', 'deflate', 'br', 'identity, gzip', 'x', 'GZIP'])
def test_compressed_bodies_are_not_read(server, coding):
    body = gzip.compress(b'{"name":"' + b'a' * 10000000 + b'"}')
    answer = server.ask('POST', KEYS, body=body, headers={'Content-Encoding': coding})
    assert answer.status == 415


def test_no_body_is_an_empty_object(server):
    for headers in ({}, {'Content-Length': '0'}):
        assert server.ask('POST', '/api/v1/tickets', headers=headers).status == 201
        assert 'name' in server.ask('POST', KEYS, headers=headers).json['message']


# ---- too long ----

@pytest.fixture
def tight(make_server):
    """A limit of one MiB."""
    return make_server(env={'COOP_HTTP_BODY_LIMIT': '1MiB', 'ASAN_OPTIONS': 'quarantine_size_mb=1'})


def test_the_limit_is_exact(tight):
    body = b'{"name":"a"}'
    assert tight.ask('POST', KEYS, body=body + b' ' * (LIMIT - len(body))).status == 201
    assert tight.ask('POST', KEYS, body=body + b' ' * (LIMIT - len(body) + 1)).status == 413


def test_strangers_may_send_little(server):
    """What they send is parsed before it is known whether they may."""
    for padding, status in ((STRANGER_LIMIT, 400), (STRANGER_LIMIT + 1, 413), (LIMIT, 413)):
        answer = server.ask('POST', '/api/v1/session', body=b'{}'.ljust(padding), key=None)
        assert answer.status == status


@pytest.mark.parametrize('length', [LIMIT + 1, 10 * 1024 ** 3, 2 ** 62 - 1])
def test_a_length_that_is_too_much_is_refused_unread(tight, length):
    """The answer comes before a byte of the body."""
    with tight.connect() as sock:
        sock.sendall(tight.request('POST', KEYS, headers={'Content-Length': str(length)}))
        answer = read_answer(sock, 'POST')
        assert answer.status == 413 and answer.json['code'] == 413
        assert answer.headers['Connection'] == 'close'


def test_chunks_without_end(tight):
    before = tight.resident_kib()
    with tight.connect() as sock:
        sock.sendall(tight.request('POST', KEYS, headers={'Transfer-Encoding': 'chunked'}))
        chunk = b'10000\r\n' + b' ' * 65536 + b'\r\n'
        try:
            for _ in range(1024):
                sock.sendall(chunk)
        except ConnectionError:
            pass  # it has heard enough
        else:
            raise AssertionError('64 MiB were read')
    assert tight.resident_kib() - before < 16 * 1024
    assert tight.is_well()


def test_chunks_of_one_byte(server):
    body = b'{"name":"one byte at a time"}'
    chunks = b''.join(b'1\r\n%c\r\n' % byte for byte in body) + b'0\r\n\r\n'
    with server.connect() as sock:
        sock.sendall(server.request('POST', KEYS, headers={'Transfer-Encoding': 'chunked'}) + chunks)
        assert read_answer(sock, 'POST').status == 201


# ---- Expect ----

def test_expect_continue(server):
    body = b'{"name":"expected"}'
    with server.connect() as sock:
        sock.sendall(server.request('POST', KEYS, headers={'Expect': '100-continue', 'Content-Length': str(len(body))}))
        assert sock.recv(65536) == b'HTTP/1.1 100 Continue\r\n\r\n'
        sock.sendall(body)
        assert read_answer(sock, 'POST').status == 201


@pytest.mark.parametrize('headers, status', [({'X-API-Key': 'e2b_bad'}, 401), ({'X-API-Key': None}, 401),
                                             ({'Origin': 'null'}, 403), ({'Host': 'evil.example'}, 421),
                                             ({'Content-Length': str(LIMIT * 100)}, 413),
                                             ({'Content-Encoding': 'gzip'}, 415)])
def test_refused_before_the_body_is_asked_for(server, headers, status):
    with server.connect() as sock:
        sock.sendall(server.request('POST', KEYS, headers={'Expect': '100-continue', 'Content-Length': '20', **headers}))
        answer = read_answer(sock, 'POST')
        assert answer.status == status
        assert answer.headers['Connection'] == 'close'


def test_unknown_expectations(server):
    answer = server.ask('GET', '/health', headers={'Expect': 'the-unexpected'})
    assert answer.status == 417
    assert answer.headers['Content-Type'] == 'application/json'
    assert answer.json['code'] == 417
