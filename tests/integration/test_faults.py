# SPDX-License-Identifier: Apache-2.0
"""A full disk, a locked or broken database, a second server, signals."""
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import pytest

import eventlog
from harness import IS_ROOT, Server, Stream, check_error, read_answer, wait_until

CLONE_NEWNS = 0x00020000
DISK_KIB = 6 * 1024


# ---- full disk ----

@pytest.fixture
def small_disk(folder):
    """A file system of a few MiB that only this process and its children see."""
    if not IS_ROOT:
        pytest.skip('only root can mount a small file system')
    if (ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0
            or subprocess.run(['mount', '--make-rprivate', '/'], stderr=subprocess.DEVNULL).returncode != 0):
        pytest.skip('mounts cannot be made private inside a chroot')
    place = folder / '0'
    place.mkdir()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_KIB}k', 'tmpfs', place], check=True)
    yield place
    subprocess.run(['umount', '-l', place], check=True)


def fill(place):
    with open(place / 'filler', 'wb', buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_full_disk(small_disk):
    server = Server(small_disk)
    server.log_path = small_disk.parent / 'log'  # the log is on another disk
    server.start()
    made = server.make_key('read', 'before')['key']
    with Stream(server) as stream:
        stream.next()
        fill(small_disk)
        refused = wait_until(lambda: (a := server.ask('POST', '/api/v1/keys', body={'name': 'full'})).status != 201 and a,
                             'the disk is full')
        check_error(server, refused, 507)
        health = server.get('/health', key=None)
        assert health['status'] == 'degraded'
        assert [part['part'] for part in health['degraded']] == ['store']
        assert server.ask('GET', '/health', key=None).status == 200
        assert server.ask('GET', '/api/v1/session', key=made).status == 200
        assert server.events()
        assert 'coop_store_degraded 1' in server.ask('GET', '/metrics').body.decode()
        cookie = server.ask('POST', '/api/v1/session', key=None, body={'ticket': server.post('/api/v1/tickets', b'')['ticket']})
        assert cookie.status == 507 and 'Set-Cookie' not in cookie.headers
        known = len(server.get('/api/v1/keys')['keys'])
        last = server.last_seq()
        (small_disk / 'filler').unlink()
        after = server.make_key('read', 'after')
        assert len(server.get('/api/v1/keys')['keys']) == known + 1
        items = stream.until(lambda item: item['event'] == 'key.created' and item['data']['data']['id'] == after['id'])
        assert [int(i['id']) for i in items if i['event'] != 'beat'][-1] == last + 1
    wait_until(lambda: server.get('/health', key=None)['status'] == 'ok', 'it is well again')
    fill(small_disk)
    server.ask('POST', '/api/v1/keys', body={'name': 'full'})
    server.finish()  # with the disk full
    (small_disk / 'filler').unlink()
    server.start()
    assert server.ask('GET', '/api/v1/session', key=after['key']).status == 200
    server.finish()
    eventlog.verify(server.home)


def fill_but(place, kib):
    """Until so much is left."""
    left = os.statvfs(place)
    (place / 'filler').write_bytes(bytes(max(0, left.f_bavail * left.f_frsize - kib * 1024)))


def test_no_room_for_a_backup(small_disk):
    """Neither out nor in; nothing is lost and nothing stays behind."""
    server = Server(small_disk)
    server.log_path = small_disk.parent / 'log'
    server.start()
    server.make_key('read', 'kept')
    good = server.ask('GET', '/api/v1/backup')
    assert good.status == 200
    server.make_key('read', 'later')
    known = [key['id'] for key in server.get('/api/v1/keys')['keys']]
    for kib in [0, 8, 40, 80, 120, 150, 180, 210, 240, 270]:
        fill_but(small_disk, kib)
        out = server.ask('GET', '/api/v1/backup')
        if out.status != 200:
            check_error(server, out, 507)
        back = server.ask('POST', '/api/v1/restore', body=good.body,
                          headers={'Content-Type': 'application/octet-stream'})
        (small_disk / 'filler').unlink()
        if back.status == 200:
            break
        check_error(server, back, 507)
        assert [key['id'] for key in server.get('/api/v1/keys')['keys']] == known
        assert list((server.home / 'tmp').iterdir()) == []
    back = server.ask('POST', '/api/v1/restore', body=good.body, headers={'Content-Type': 'application/octet-stream'})
    assert back.status == 200, back
    assert [key['name'] for key in server.get('/api/v1/keys')['keys']] == ['first', 'kept']
    server.finish()
    eventlog.verify(server.home)


def test_no_room_for_a_start(small_disk):
    fill(small_disk)
    server = Server(small_disk)
    server.log_path = small_disk.parent / 'log'
    server.spawn()
    assert server.wait() == 1
    assert 'No space left' in server.log() or 'full' in server.log()
    (small_disk / 'filler').unlink()
    server.start()
    server.finish()


# ---- a database that is locked, or not what it was ----

def test_a_locked_database(make_server):
    """Somebody else holds it for longer than we wait: 503, whole, and reads go on."""
    server = make_server()
    before = len(server.get('/api/v1/keys')['keys'])
    other = sqlite3.connect(server.home / 'coop.db', isolation_level=None)
    other.execute('BEGIN IMMEDIATE')
    start = time.monotonic()
    with server.connect() as writer:
        writer.sendall(server.request('POST', '/api/v1/keys', body={'name': 'locked'}))
        while time.monotonic() - start < 3:
            assert server.ask('GET', '/api/v1/events').status == 200
            assert server.is_well()
        answer = read_answer(writer, 'POST')
    check_error(server, answer, 503)
    assert int(answer.headers['Retry-After']) >= 1
    assert len(server.get('/api/v1/keys')['keys']) == before
    other.execute('ROLLBACK')
    other.close()
    assert server.make_key('read')
    assert wait_until(lambda: server.get('/health', key=None)['status'] == 'ok', 'it is well again')


def test_internal_errors_tell_an_id_and_nothing_else(make_server):
    server = make_server()
    with contextlib.closing(sqlite3.connect(server.home / 'coop.db')) as other:
        other.execute('ALTER TABLE keys RENAME TO gone')
        other.commit()
    answer = server.ask('POST', '/api/v1/keys', body={'name': 'x'})
    check_error(server, answer, 500)
    found = server.log_lines(f"id={answer.json['request_id']}")
    assert len(found) == 1 and 'level=error' in found[0] and 'keys' in found[0]
    assert server.ask('GET', '/api/v1/stats').status == 200
    with contextlib.closing(sqlite3.connect(server.home / 'coop.db')) as other:
        other.execute('ALTER TABLE gone RENAME TO keys')
        other.commit()
    assert server.make_key('read')


def run_sql(home, sql):
    with contextlib.closing(sqlite3.connect(home / 'coop.db', isolation_level=None)) as db:
        db.execute(sql)


def damage(home):
    with open(home / 'coop.db', 'r+b') as file:
        file.seek(100)
        file.write(b'\xff' * 8000)


STARTS = [
    ('not a database', 1, lambda home: (home / 'coop.db').write_bytes(b'hello ' * 1000)),
    ('damaged', 1, damage),
    ('another program', 78, lambda home: run_sql(home, 'PRAGMA application_id = 7')),
    ('newer Coop', 78, lambda home: run_sql(home, 'PRAGMA user_version = 99999')),
    ('Is a directory', 78, lambda home: ((home / 'coop.db').unlink(), (home / 'coop.db').mkdir())),
]


@pytest.mark.parametrize('name, status, change', STARTS, ids=[name for name, _, _ in STARTS])
def test_a_start_on_a_bad_database(make_server, name, status, change):
    """It says so and ends; what is there is not touched."""
    server = make_server()
    assert server.stop() == 0
    change(server.home)
    path = server.home / 'coop.db'
    before = path.read_bytes() if path.is_file() else None
    server.spawn()
    assert server.wait() == status
    said = server.log().splitlines()[-1]
    assert 'coop.db' in said and name in said
    assert (path.read_bytes() if path.is_file() else None) == before


# ---- two servers, bad configuration ----

def test_not_twice_on_one_folder(make_server):
    server = make_server()
    second = make_server(start=False)
    second.home = server.home
    second.spawn()
    assert second.wait() == 6
    assert f'process {server.pid}' in second.log()
    assert server.is_well()
    with server.connect_control():
        pass  # the second did not take the socket away


def test_not_twice_on_one_address(make_server):
    server = make_server()
    second = make_server(start=False)
    second.port = server.port
    second.spawn()
    assert second.wait() == 6
    assert server.host in second.log()
    assert server.is_well()


def test_a_stale_lock_is_no_obstacle(make_server):
    server = make_server()
    server.kill()
    assert (server.home / 'lock').exists() and (server.home / 'run' / 'control.sock').exists()
    server.start()
    assert server.is_well()


CONFIGS = [
    ('http:\n  lissten: 1\n', 'lissten'), ('http: [1]\n', 'http'), ('a: b: c\n', ':1:5:'), ('\t\n', ':1:1:'),
    ('http:\n  body_limit: 1 furlong\n', 'body_limit'), ('http:\n  header_timeout: -1s\n', 'header_timeout'),
    ('http:\n  max_connections: 0\n', 'max_connections'), ('http:\n  listen: [nowhere]\n', 'nowhere'),
    ('http:\n  allowed_hosts: ["a b"]\n', 'a b'), ('http:\n  allowed_origins: ["*"]\n', '*'),
    ('http:\n  allowed_origins: ["null"]\n', 'null'), ('database:\n  url: mysql://x\n', 'mysql'),
    ('log:\n  level: loud\n', 'loud'), ('- 1\n', ''), ('\xff\xfe', ''), ('x: &a [*a]\n', ''),
    ('a: ' + '[' * 100000, ''), ('events:\n  retention: forever\n', 'retention'),
]


@pytest.mark.parametrize('text, word', CONFIGS, ids=range(len(CONFIGS)))
def test_bad_configuration(make_server, text, word):
    server = make_server(start=False)
    server.home.mkdir(mode=0o700)
    (server.home / 'config.yaml').write_bytes(text.encode('latin-1'))
    server.spawn()
    assert server.wait() == 78
    assert word in server.log() and 'config.yaml' in server.log()


def test_a_path_that_is_too_long_for_a_socket(make_server):
    server = make_server(start=False)
    server.home = server.folder / ('x' * 120)
    server.spawn()
    assert server.wait() not in (0, None)
    assert 'too long' in server.log()


def test_an_address_of_another_machine(make_server):
    """Only a machine without IPv6 does without [::1]; what was named is needed."""
    server = make_server(start=False, args=['--listen', '[2001:db8::1]:8003'])
    server.spawn()
    assert server.wait() == 1
    assert '[2001:db8::1]:8003' in server.log()


# ---- signals ----

def catches(server, number):
    status = pathlib.Path(f'/proc/{server.pid}/status').read_text()
    return int(re.search(r'^SigCgt:\s+(\w+)', status, re.M)[1], 16) >> (number - 1) & 1


def test_a_stop_before_the_start_is_over(make_server):
    """The store is held up, so what is loaded at the start comes while the server ends."""
    server = make_server()
    assert server.stop() == 0
    with contextlib.closing(sqlite3.connect(server.home / 'coop.db', isolation_level=None)) as db:
        db.execute('BEGIN IMMEDIATE')
        server.spawn()
        wait_until(lambda: catches(server, signal.SIGTERM), 'the handler')
        before = len(server.log_lines('msg="stopping"'))
        os.kill(server.pid, signal.SIGTERM)
        wait_until(lambda: len(server.log_lines('msg="stopping"')) > before, 'the stop begins')
        db.execute('ROLLBACK')
    assert server.wait() == 0


def test_signals(make_server):
    server = make_server()
    for ignored in (signal.SIGHUP, signal.SIGPIPE):
        for _ in range(20):
            os.kill(server.pid, ignored)
    assert server.is_well()
    os.kill(server.pid, signal.SIGUSR1)
    line = wait_until(lambda: server.log_lines('msg="state"'), 'the state is told')[0]
    for name in ('connections', 'requests', 'streams', 'writes_waiting', 'reads_waiting', 'followers', 'last_seq'):
        assert re.search(rf' {name}=\d+', line), line
    os.kill(server.pid, signal.SIGINT)
    while server.process.poll() is None:  # again and again, to its last moment
        for again in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            server.process.send_signal(again)
    assert server.wait() == 0
    server.start()
    assert [e['kind'] for e in server.events(kind='server.*')] == ['server.started', 'server.stopped', 'server.started']
