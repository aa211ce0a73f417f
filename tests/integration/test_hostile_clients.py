# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, vanish, are too many, or stay for ever.  The next one is served."""
import contextlib
import http.client
import re
import resource
import select
import socket
import statistics
import threading
import time

import pytest

from harness import WAIT_S, Stream, limit_files, read_all, read_answer, wait_until

SMALL = {'ASAN_OPTIONS': 'quarantine_size_mb=1'}
STREAMS = 10000


def numbers(server, part='http'):
    return server.get('/api/v1/stats')[part]


def has_closed(sock):
    """Without waiting."""
    ready, _, _ = select.select([sock], [], [], 0)
    if not ready:
        return False
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            assert piece
    return True


# ---- slow ----

def test_slowloris(make_server):
    """Hundreds of heads that drip in, a byte at a time, while an honest client is served."""
    server = make_server(env={'COOP_HTTP_HEADER_TIMEOUT': '2s'})
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(400)]
        request = server.request('GET', '/health', headers={f'X-{i}': 'x' * 50 for i in range(50)})
        waits, turn = [], 0
        while slow:
            for sock in slow:
                with contextlib.suppress(ConnectionError):
                    sock.send(request[turn:turn + 1])
            turn += 1
            start = time.monotonic()
            assert server.is_well()
            waits.append(time.monotonic() - start)
            slow = [sock for sock in slow if not has_closed(sock)]
            assert turn < len(request), 'they were let go on'
        assert statistics.median(waits) < 2
    assert numbers(server)['timeouts'] >= 400
    wait_until(lambda: numbers(server)['connections'] == 1, 'all are gone')


def test_a_slow_head_is_told(make_server):
    server = make_server(env={'COOP_HTTP_HEADER_TIMEOUT': '200ms'})
    assert server.raw(b'GET /health HT').startswith(b'HTTP/1.1 408 ')
    assert server.raw(b'') == b''


def test_silent_connections_are_closed(make_server):
    server = make_server(env={'COOP_HTTP_HEADER_TIMEOUT': '200ms', 'COOP_HTTP_IDLE_TIMEOUT': '200ms'})
    with server.connect() as fresh, server.connect() as used:
        assert server.ask('GET', '/health', sock=used).status == 200
        assert fresh.recv(1) == used.recv(1) == b''


# ---- vanishing ----

def test_vanish_at_every_byte(server):
    """In the request, in its body, and in the answer."""
    request = server.request('POST', '/api/v1/keys', headers={'Transfer-Encoding': 'chunked'})
    request += b'10\r\n{"name":"vanish"\r\n1\r\n}\r\n0\r\n\r\n' + server.request('GET', '/api/v1/keys')
    request += server.request('GET', '/api/v1/events', headers={'Accept': 'text/event-stream'})
    before = server.open_fds()
    for at in range(len(request) + 1):
        for reset in (False, True):
            with server.connect() as sock:
                if reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
                sock.sendall(request[:at])
    wait_until(lambda: numbers(server)['connections'] == 1, 'all are gone')
    wait_until(lambda: server.open_fds() <= before, 'their descriptors too')
    assert numbers(server)['streams'] == 0 and numbers(server)['requests_active'] == 1


def test_half_closed_clients_get_their_answer(server):
    with server.connect() as sock:
        sock.sendall(server.request('GET', '/api/v1/stats'))
        sock.shutdown(socket.SHUT_WR)
        assert b'"seq":' in read_all(sock)


def test_pipelining_is_one_at_a_time(server):
    with server.connect() as sock:
        sock.sendall(server.request('GET', '/api/v1/session') * 500)
        sock.shutdown(socket.SHUT_WR)
        answers = read_all(sock)
    assert len(re.findall(rb'HTTP/1\.1 200 OK\r\n', answers)) == 500


def test_a_reader_that_stops_costs_a_buffer(make_server):
    """A long list asked for by clients that do not read it."""
    server = make_server(env=SMALL)
    with server.connect() as sock:
        for i in range(600):
            server.post('/api/v1/keys', {'name': f'{i} ' + 'long name ' * 9}, sock=sock)
    before = server.resident_kib()
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            sock = stack.enter_context(socket.socket())
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(server.address)
            sock.sendall(server.request('GET', '/api/v1/events?limit=500') * 20)
        wait_until(lambda: numbers(server)['requests_active'] > 30, 'they are being answered')
        assert server.is_well()
        assert server.resident_kib() - before < 40 * 1024
    wait_until(lambda: numbers(server)['connections'] == 1, 'all are gone')


# ---- many ----

def test_connections_have_a_maximum(make_server):
    server = make_server(env={'COOP_HTTP_MAX_CONNECTIONS': '16'})
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(server.connect()) for _ in range(16)]
        for sock in kept:
            assert server.ask('GET', '/health', sock=sock).status == 200
        shed = server.raw(b'')
        assert shed.startswith(b'HTTP/1.1 503 ') and b'\r\nRetry-After: ' in shed
        kept[0].close()
        wait_until(lambda: server.ask('GET', '/health', sock=kept[1]).status == 200
                   and server.raw(server.request('GET', '/health', headers={'Connection': 'close'}))
                   .startswith(b'HTTP/1.1 200 '), 'a place is free')
        assert server.ask('GET', '/health', sock=kept[1]).status == 200
    assert len(server.log_lines('connections are being refused')) == 1


def open_stream(server, request):
    sock = socket.socket()
    sock.settimeout(WAIT_S)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    sock.connect(server.address)
    sock.sendall(request)
    return sock


def read_until(sock, text):
    got = b''
    while text not in got:
        piece = sock.recv(65536)
        assert piece, got
        got += piece
    return got


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_NOFILE)[1] < STREAMS + 200,
                    reason='fewer than 10,200 file descriptors are allowed here')
def test_ten_thousand_streams(make_server):
    """All of them hear of one event, others are served meanwhile, and when they go nothing stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = make_server(env=SMALL)
    request = server.request('GET', '/api/v1/events?kind=key.created', headers={'Accept': 'text/event-stream'})
    before, fds = server.resident_kib(), server.open_fds()
    socks = []
    try:
        for i in range(STREAMS):
            socks.append(open_stream(server, request))
            if i % 1000 == 0:
                assert server.is_well()
        for sock in socks:
            read_until(sock, b'event: beat\n')
        each = (server.resident_kib() - before) / STREAMS
        assert each < 16, f'{each:.1f} KiB for a stream under the sanitizer'
        start = server.cpu_s()
        for _ in range(50):
            assert server.is_well()
        assert server.cpu_s() - start < 10
        server.make_key('read', 'heard by all')
        for sock in socks:
            read_until(sock, b'heard by all')
    finally:
        for sock in socks:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: numbers(server)['connections'] == 1, 'all are gone')
    assert numbers(server, 'events')['followers'] == 0
    assert server.open_fds() <= fds + 2


# ---- no file descriptors ----

def cpu_s_while(server, seconds):
    """What it spends while nobody asks anything."""
    before = server.cpu_s()
    select.select([], [], [], seconds)
    return server.cpu_s() - before


def test_without_file_descriptors(make_server):
    """Who comes too late is told, who is there goes on, nothing spins, and it ends by itself."""
    server = make_server(preexec=limit_files(64))
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(server.connect())
        assert server.ask('GET', '/health', sock=first).status == 200
        crowd = [stack.enter_context(server.connect()) for _ in range(200)]
        shed = wait_until(lambda: [sock for sock in crowd if select.select([sock], [], [], 0)[0]], 'some are shed')
        assert read_all(shed[0]).startswith(b'HTTP/1.1 503 ')
        assert server.ask('GET', '/health', sock=first).status == 200
        made = server.post('/api/v1/keys', {'name': 'written without descriptors'}, sock=first)
        assert cpu_s_while(server, 1) < 0.2
        assert server.get('/api/v1/stats', sock=first)['http']['shed'] >= 100
        assert len(server.log_lines('connections are being refused')) == 1
    wait_until(server.is_well, 'it recovers')
    assert server.ask('GET', '/api/v1/session', key=made['key']).status == 200


def test_not_even_one_in_reserve(make_server):
    """The limit falls below what is open: no client can be accepted, not even to be sent away."""
    server = make_server()
    with server.connect() as first:
        assert server.ask('GET', '/health', sock=first).status == 200
        limits = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (8, limits[1]))
        with server.connect() as waiting:
            waiting.sendall(server.request('GET', '/health', key=None))
            assert cpu_s_while(server, 1) < 0.2
            assert server.ask('GET', '/health', sock=first).status == 200
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, limits)
            assert read_answer(waiting).status == 200
    assert server.is_well()


# ---- stopping ----

def test_stop_under_load(make_server):
    """Answers under way are finished, streams end, half-sent requests do not hold it up."""
    server = make_server()
    broken = []

    def work():
        with server.connect() as sock:
            while True:
                try:
                    answer = server.ask('POST', '/api/v1/keys', body={'name': 'load'}, sock=sock)
                except ConnectionError:
                    return  # between two answers
                except http.client.HTTPException as problem:
                    broken.append(problem)
                    return
                if answer.status != 201:
                    broken.append(answer)

    threads = [threading.Thread(target=work) for _ in range(8)]
    with Stream(server) as stream, server.connect() as half, server.connect() as idle:
        stream.next()
        assert server.ask('GET', '/health', sock=idle).status == 200
        half.sendall(b'POST /api/v1/keys HTTP/1.1\r\nHost: ')
        for thread in threads:
            thread.start()
        stream.until(lambda item: int(item['id']) > 50)
        assert server.stop() == 0
    for thread in threads:
        thread.join()
    assert broken == []
    assert 'were cut' not in server.log()
