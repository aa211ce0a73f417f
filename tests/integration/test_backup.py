# SPDX-License-Identifier: Apache-2.0
"""Backup and restore, through a server and on a folder, and what is left when either dies."""
import contextlib
import hashlib
import io
import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import threading

import pytest

import eventlog
from client import WHO, make_client
from fake import Fake, answer
from gitserver import Work, make_repo, url_of
from harness import IS_ROOT, Stream, WAIT_S, wait_until

NEEDS_FAILPOINTS = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='this build has no failpoints')


@pytest.fixture(params=WHO)
def client(request, coop, make_server):
    return make_client(request.param, coop, make_server)


@pytest.fixture
def one(coop, make_server):
    """The same, where it does not matter which user."""
    return make_client('user', coop, make_server)


@pytest.fixture
def other(client, make_server):
    """A second server of the same user, with a key file of its own."""
    return make_client(client.who, client.coop, make_server)


def names(client):
    return [key['name'] for key in client.json('key', 'ls')]


def files_of(client):
    """What is in the data folder beside what belongs there."""
    known = {'coop.db', 'coop.db-wal', 'coop.db-shm', 'forge-key', 'generations', 'key', 'lock', 'receipt-key', 'repos', 'run',
             'run/control.sock', 'tmp'}
    return {str(p.relative_to(client.server.home)) for p in client.server.home.rglob('*')} - known


def test_what_is_left_out(one):
    """The key that seals is never beside what it seals, in no form."""
    one.server.post('/api/v1/identities', {'name': 'sealed'})
    key = (one.server.home / 'forge-key').read_bytes()
    path = one.coop.folder / 'without'
    done = one('backup', path)
    for name in ('repos', 'forge-key'):
        assert name in done.stderr
    left_out = one.json('backup', path)['left_out']
    assert left_out[:2] == ['repos', 'forge-key']
    with tarfile.open(path) as tar:
        assert tar.getnames() == ['manifest.json', 'coop.db']
        content = b''.join(tar.extractfile(name).read() for name in tar.getnames())
    for form in (key, key.strip(), key.hex().encode(), key[:16]):
        assert form not in content


def test_restored_without_its_key(one, make_server):
    """What was sealed there cannot be opened here; everything else works."""
    one.server.post('/api/v1/identities', {'name': 'sealed'})
    other = make_client(one.who, one.coop, make_server)
    other.ok('restore', backup(one), '--yes')
    other.server.stop()
    other.server.start()
    key = (one.server.home / 'key').read_text().strip()
    assert [i['name'] for i in other.server.get('/api/v1/identities', key=key)['identities']] == ['coder-1', 'coder-2', 'planner', 'reviewer', 'sealed', 'tester']
    assert other.server.post('/api/v1/identities', {'name': 'fresh'}, key=key)['public_key']


def backup(client, name='backup', **options):
    path = client.coop.folder / name
    client.ok('backup', path, **options)
    return path


def content(path):
    """What SQLite finds in a backup: table -> rows."""
    with tarfile.open(path) as tar:
        assert tar.getnames() == ['manifest.json', 'coop.db']
        manifest = json.load(tar.extractfile('manifest.json'))
        database = tar.extractfile('coop.db').read()
    member = manifest['members'][0]
    assert (member['name'], member['size']) == ('coop.db', len(database))
    assert member['blake2b'] == hashlib.blake2b(database, digest_size=32).hexdigest()
    assert manifest['format'] == 1
    with contextlib.closing(sqlite3.connect(':memory:')) as db:
        db.deserialize(database)
        return {table: db.execute(f'SELECT * FROM {table} ORDER BY 1').fetchall() for table in ('keys', 'events')}


def archive(database, **changes):
    """A backup that another Coop might have written."""
    manifest = {'format': 1, 'version': '1', 'schema': 1, 'created_at': '2026-01-31T12:00:00.000000Z',
                'members': [{'name': 'coop.db', 'size': len(database),
                             'blake2b': hashlib.blake2b(database, digest_size=32).hexdigest()}], **changes}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode='w:gz') as tar:
        for name, text in [('manifest.json', json.dumps(manifest).encode()), ('coop.db', database)]:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return made.getvalue()


def sqlite_bytes(script='CREATE TABLE t (a); DROP TABLE t'):
    with contextlib.closing(sqlite3.connect(':memory:')) as db:
        db.executescript(script)
        db.commit()
        return db.serialize()


def restore_by_api(server, body, **headers):
    return server.ask('POST', '/api/v1/restore', body=body,
                      headers={'Content-Type': 'application/octet-stream', **headers})


# ---- there and back ----

@pytest.mark.parametrize('way', ['server', 'url', 'folder'])
def test_round_trip(client, way):
    env = {'SANDBOX_SERVICE_URL': f'http://{client.server.host}'} if way == 'url' else None
    client.server.make_key(name='kept')
    if way == 'folder':
        client.server.stop()
    path = backup(client, env=env)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [row[1] for row in content(path)['keys']].count('kept') == 1
    if way == 'folder':
        client.server.start()
    client.server.make_key(name='lost')
    if way == 'folder':
        client.server.stop()
    result = client.json('restore', path, '--yes', env=env)
    assert result['key_file_valid'] is True and result['schema'] >= 1
    if way == 'folder':
        client.server.start()
    assert names(client) == ['first', 'kept']
    kinds = [e['kind'] for e in client.server.events()]
    assert 'backup.restored' in kinds
    assert client.json('events', 'verify')['sound'] is True
    assert files_of(client) == set()
    client.server.stop()
    eventlog.verify(client.server.home)


def test_texts(one):
    path = one.coop.folder / 'b'
    assert one.ok('backup', path).startswith(f'wrote {path} (')
    told = one.json('backup', path)
    assert told.pop('left_out')[:1] == ['repos'] and told == {'file': str(path), 'bytes': path.stat().st_size}
    assert 'restored the backup of 20' in one.ok('restore', path, '-y')


@pytest.mark.parametrize('way', ['server', 'folder'])
def test_through_pipes(client, way):
    client.server.make_key(name='kept')
    path = client.coop.folder / 'b'
    if way == 'folder':
        client.server.stop()
    writer = client.coop.popen('backup', '-', who=client.who, env=client.env(None), stdout=subprocess.PIPE)
    with writer.stdout, open(path, 'wb') as file:
        file.write(writer.stdout.buffer.read())
    assert writer.wait(WAIT_S) == 0
    assert len(content(path)['keys']) == 2
    reader = client.coop.popen('restore', '-', '--yes', who=client.who, env=client.env(None), stdin=subprocess.PIPE)
    with reader.stdin:
        reader.stdin.buffer.write(path.read_bytes())
    assert reader.wait(WAIT_S) == 0
    if way == 'folder':
        client.server.start()
    assert names(client) == ['first', 'kept']


def test_backup_while_writers_append(client, other):
    """What was acknowledged before is in it, and nothing in it is half."""
    stop = threading.Event()
    made = []

    def write():
        with client.server.connect() as sock:
            while not stop.is_set():
                made.append(client.server.post('/api/v1/keys', {'name': 'w', 'scopes': 'read'}, sock=sock)['id'])

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        for round_ in range(5):
            wait_until(lambda n=20 * (round_ + 1): len(made) > n, 'keys are made')
            before = set(made)
            path = backup(client)
            assert before <= {row[0] for row in content(path)['keys']}
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    other.ok('restore', path, '--yes')
    assert {key['id'] for key in other.json('key', 'ls')} == {row[0] for row in content(path)['keys']}
    other.server.stop()
    eventlog.verify(other.server.home)


def test_restore_while_others_work(one):
    """Calls before, during and after are answered; those that were acknowledged after it stay."""
    path = backup(one)
    stop, failed = threading.Event(), []

    def work():
        with one.server.connect_control() as sock:
            while not stop.is_set():
                answer_ = one.server.ask('POST', '/api/v1/keys', body={'name': 'w', 'scopes': 'read'}, key=None,
                                         host='localhost', sock=sock)
                if answer_.status not in (201, 503):
                    failed.append(answer_)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(4):
            one.ok('restore', path, '--yes')
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    assert not failed
    assert one.json('events', 'verify')['sound'] is True
    known = {key['id'] for key in one.json('key', 'ls')}
    assert known == {e['data']['id'] for e in one.server.events(kind='key.created')}


# ---- what becomes of keys, sessions and streams ----

def test_keys_and_sessions_are_those_of_the_backup(client):
    kept = client.server.make_key(name='kept')
    cookie = client.server.sign_in()
    path = backup(client)
    assert client.server.ask('DELETE', f"/api/v1/keys/{kept['id']}").status == 204
    lost = client.server.make_key(name='lost')
    later = client.server.sign_in()
    client.ok('restore', path, '--yes')

    def status(**more):
        return client.server.ask('GET', '/api/v1/session', **more).status
    assert status(key=kept['key']) == 200
    assert status(key=lost['key']) == 401
    assert status(key=None, headers={'Cookie': cookie}) == 200
    assert status(key=None, headers={'Cookie': later}) == 401


def test_followers_are_told(one):
    path = backup(one)
    one.server.make_key(name='lost')
    with Stream(one.server) as stream:
        stream.next()
        one.ok('restore', path, '--yes')
        items = stream.until(lambda item: item['event'] == 'backup.restored')
        assert [i['event'] for i in items if i['event'] != 'beat'] == ['resync', 'backup.restored']
        assert int(items[-1]['id']) == one.server.last_seq()


def test_a_following_command_goes_on(one):
    path = backup(one)
    notes = one.coop.folder / 'notes'
    with open(notes, 'w', encoding='utf-8') as file:
        process = one.coop.popen('events', '-f', '-o', 'json', who=one.who, env=one.env(None),
                                 stdout=subprocess.PIPE, stderr=file)
    try:
        wait_until(lambda: one.server.get('/api/v1/stats')['events']['followers'] == 1, 'it follows')
        one.ok('restore', path, '--yes')
        assert json.loads(process.stdout.readline())['kind'] == 'backup.restored'
        assert 'events are missing here' in notes.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
        process.stdout.close()


@pytest.mark.parametrize('way', ['server', 'folder'])
def test_from_another_machine(client, other, way):
    """Its keys come along; the one in the folder is not among them, and that is said."""
    path = backup(client)
    if way == 'folder':
        other.server.stop()
    done = other('restore', path, '--yes')
    assert done.returncode == 0 and "'coop key new NAME --scopes admin'" in done.stderr
    if way == 'folder':
        other.server.start()
    assert other.server.ask('GET', '/api/v1/session').status == 401
    assert other.server.ask('GET', '/api/v1/session', key=client.server.key).status == 200
    other.ok('key', 'new', 'mine', '--scopes', 'admin')
    assert names(other) == ['first', 'mine']


def test_to_an_empty_folder(client, coop):
    path = backup(client)
    home = coop.folder / 'fresh'
    if client.who == 'root':
        home.mkdir(mode=0o700)  # a folder that is not there would be the user coop's
    done = coop('restore', path, '--yes', '--home', home, who=client.who)
    assert done.returncode == 0, done.stderr
    assert eventlog.verify(home) == len(content(path)['events']) + 1
    done = coop('key', '--home', home, who=client.who)
    assert done.returncode == 4 and "'coop key new NAME --scopes admin' makes one" in done.stderr
    assert home.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not IS_ROOT, reason='only root works in the folder of another user')
def test_root_leaves_everything_to_the_owner(coop, make_server):
    client = make_client('user', coop, make_server)
    path = client.coop.folder / 'of-root'
    client.server.stop()
    env = {'COOP_HOME': str(client.server.home)}
    for args in [('backup', path), ('restore', path, '--yes')]:
        done = coop(*args, env=env)
        assert done.returncode == 0, done.stderr
        for file in client.server.home.glob('coop.db*'):
            if args[0] == 'backup':
                file.unlink()
    assert path.stat().st_uid == 0
    owners = {p.stat().st_uid for p in [client.server.home, *client.server.home.rglob('*')]}
    assert owners == {client.server.home.stat().st_uid} != {0}
    client.server.start()
    done = coop('backup', path, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not IS_ROOT, reason='only root works in the folder of another user')
def test_root_follows_no_link_of_the_owner(coop, make_server):
    """Whoever owns the folder could otherwise have root read and write for them."""
    client = make_client('user', coop, make_server)
    path = backup(client)
    client.server.stop()
    closed, database = client.server.folder.parent / 'closed', client.server.home / 'coop.db'
    closed.mkdir(mode=0o700)
    shutil.move(database, closed)
    before = (closed / 'coop.db').read_bytes()
    database.symlink_to(closed / 'coop.db')
    for args in [('backup', client.coop.folder / 'c'), ('restore', path, '--yes')]:
        done = coop(*args, env={'COOP_HOME': str(client.server.home)})
        assert done.returncode != 0, args
    assert (closed / 'coop.db').read_bytes() == before
    assert [p.name for p in closed.iterdir()] == ['coop.db']


# ---- what is no backup ----

def good_database(client):
    with tarfile.open(backup(client)) as tar:
        return tar.extractfile('coop.db').read()


def changed(database, sql):
    with contextlib.closing(sqlite3.connect(':memory:')) as db:
        db.deserialize(database)
        db.executescript(sql)
        db.commit()
        return db.serialize()


BAD = {
    'nothing': lambda good: b'',
    'a text': lambda good: b'hello\n',
    'a database': lambda good: good,
    'cut in the middle': lambda good: archive(good)[:-200],
    'another hash': lambda good: archive(good, members=[{'name': 'coop.db', 'size': len(good), 'blake2b': '0' * 64}]),
    'a later format': lambda good: archive(good, format=2),
    'not a database': lambda good: archive(b'x' * 8192),
    'an empty database': lambda good: archive(sqlite_bytes()),
    'a database of somebody else': lambda good: archive(sqlite_bytes('CREATE TABLE t (a); INSERT INTO t VALUES (1)')),
    'a later schema': lambda good: archive(changed(good, 'PRAGMA user_version = 99999')),
    'a damaged page': lambda good: archive(good[:4096] + b'\xff' * 4096 + good[8192:]),
    'half a database': lambda good: archive(good[:len(good) // 2 // 4096 * 4096]),
}


@pytest.mark.parametrize('name', BAD)
def test_bad_backups_change_nothing(one, name):
    one.server.make_key(name='kept')
    bytes_ = BAD[name](good_database(one))
    seq = one.server.last_seq()
    refused = restore_by_api(one.server, bytes_)
    assert refused.status == 400, refused
    assert refused.json['message'] and str(one.server.home) not in refused.json['message']
    path = one.coop.folder / 'bad'
    path.write_bytes(bytes_)
    assert one.error(1, 'restore', path, '--yes') == refused.json['message']
    assert one.server.last_seq() == seq
    assert names(one) == ['first', 'kept'] and files_of(one) == set()
    one.server.stop()
    one.error(1, 'restore', path, '--yes')
    assert files_of(one) - {'run/control.sock'} == set()
    one.server.start()
    assert names(one) == ['first', 'kept']


@pytest.mark.parametrize('headers, status', [
    ({'Content-Type': 'application/json'}, 415),
    ({'Content-Type': None}, 415),
    ({'Content-Encoding': 'gzip'}, 415),
    ({'Content-Length': str(1 << 40)}, 413),
])
def test_refused_before_it_is_read(server, headers, status):
    assert restore_by_api(server, b'x', **headers).status == status
    assert list((server.home / 'tmp').iterdir()) == []


def test_one_restore_at_a_time(one):
    good = backup(one).read_bytes()
    head = one.server.request('POST', '/api/v1/restore', body=good,
                              headers={'Content-Type': 'application/octet-stream'})
    with one.server.connect() as sock:
        sock.sendall(head[:-10])
        wait_until(lambda: one.server.get('/api/v1/stats')['http']['requests_active'] == 2, 'it is read')
        second = restore_by_api(one.server, good)
        assert second.status == 409, second
    # The first has gone away in the middle.
    wait_until(lambda: restore_by_api(one.server, good).status == 200, 'the next one is taken')
    wait_until(lambda: files_of(one) == set(), 'nothing is left of it')


def test_a_backup_is_whole(one):
    """It is another one at each call, so pieces of two must not be put together."""
    got = one.server.ask('GET', '/api/v1/backup', headers={'Range': 'bytes=100-'})
    assert got.status == 200 and got.headers['Accept-Ranges'] == 'none'
    assert got.headers['Content-Type'] == 'application/gzip'
    assert got.headers['Content-Disposition'].startswith('attachment; filename="coop-20')
    (one.coop.folder / 'b').write_bytes(got.body)
    content(one.coop.folder / 'b')
    made = one.server.events(kind='backup.made')[-1]
    assert made['data']['bytes'] == len(got.body) and made['actor'].startswith('key:')
    assert one.server.ask('HEAD', '/api/v1/backup').body == b''


def test_a_failed_backup_does_not_stand_in_the_way(one):
    tmp = one.server.home / 'tmp'
    tmp.chmod(0o500)
    assert one.server.ask('GET', '/api/v1/backup').status >= 400
    assert restore_by_api(one.server, b'x').status >= 400
    tmp.chmod(0o700)
    assert one.server.ask('GET', '/api/v1/backup').status == 200
    assert restore_by_api(one.server, b'x').status == 400


def test_a_client_that_leaves(one):
    """Nothing stays behind, and the next one is served."""
    for _ in range(5):
        with one.server.connect() as sock:
            sock.sendall(one.server.request('GET', '/api/v1/backup'))
    wait_until(lambda: one.server.ask('GET', '/api/v1/backup').status == 200, 'the next one is made')
    wait_until(lambda: files_of(one) == set(), 'the files are gone')


# ---- the file ----

def test_the_file_is_replaced_as_a_whole(one):
    path = one.coop.folder / 'b'
    path.write_text('old')
    backup(one, 'b')
    content(path)
    assert [p.name for p in one.coop.folder.iterdir() if p.name.startswith('b')] == ['b']


@pytest.mark.parametrize('place, code, message', [
    ('/dev/full', 2, 'is not a file'),
    ('.', 2, 'is not a file'),
    ('no/such/folder', 4, 'No such file'),
])
def test_places_that_take_no_file(one, place, code, message):
    assert message in one.error(code, 'backup', place)


def test_a_full_disk(one):
    with open('/dev/full', 'wb') as full:
        done = one('backup', '-', stdout=full)
    assert done.returncode == 1 and 'No space left' in done.stderr


def test_a_backup_is_not_for_a_terminal(one):
    ours, theirs = pty.openpty()
    done = one('backup', '-', stdout=theirs)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2 and 'not for a terminal' in done.stderr


@pytest.mark.parametrize('body, message', [
    (b'{}', 'this is no backup of Coop'),
    (archive(sqlite_bytes('CREATE TABLE t (a)'))[:-100], 'damaged'),
], ids=['no archive', 'cut archive'])
def test_what_came_is_looked_at(coop, body, message):
    path = coop.folder / 'b'
    with Fake({'/api/v1/backup': answer(body)}) as fake:
        done = coop('backup', path, '--server', fake.url())
    assert done.returncode == 1 and message in done.stderr
    assert not list(coop.folder.glob('b*'))


def half_answer():
    body = archive(os.urandom(100000))
    return answer(body)[:-50000]


def test_a_cut_download_leaves_nothing(coop):
    path = coop.folder / 'b'
    path.write_text('old')
    with Fake({'/api/v1/backup': half_answer()}) as fake:
        done = coop('backup', path, '--server', fake.url())
    assert done.returncode == 1 and path.read_text() == 'old'
    assert len(list(coop.folder.glob('b*'))) == 1


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_interrupted(coop, how):
    path = coop.folder / 'b'
    with Fake({'/api/v1/backup': half_answer()}, hold=True) as fake:
        process = coop.popen('backup', path, '--server', fake.url(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: any(p.stat().st_size > 0 for p in coop.folder.glob('b*')), 'it comes')
        process.send_signal(how)
        _, told = process.communicate(timeout=WAIT_S)
        assert process.returncode == 1 and 'interrupted' in told
    assert not list(coop.folder.glob('b*'))


# ---- asking ----

def restore_on_terminal(client, path, typed):
    ours, theirs = pty.openpty()
    process = client.coop.popen('restore', path, who=client.who, env=client.env(None), stdin=theirs,
                                stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    text = b''
    while b'[y/N]' not in text:
        assert select.select([ours], [], [], WAIT_S)[0]
        text += os.read(ours, 4096)
    os.write(ours, typed)
    code = process.wait(WAIT_S)
    process.stdout.close()
    os.close(ours)
    return code


@pytest.mark.parametrize('typed, done', [(b'y\n', True), (b'YES\n', True), (b'n\n', False), (b'\n', False),
                                         (b'yo\n', False), (b'\x04', False)])
def test_it_asks_on_a_terminal(one, typed, done):
    path = backup(one)
    one.server.make_key(name='lost')
    assert restore_on_terminal(one, path, typed) == (0 if done else 1)
    assert names(one) == (['first'] if done else ['first', 'lost'])


def test_it_does_not_guess_without_one(one):
    path = backup(one)
    assert 'add --yes' in one.error(2, 'restore', path)


def test_files_that_cannot_be_read(one):
    assert 'No such file' in one.error(4, 'restore', one.coop.folder / 'none', '--yes')
    assert 'is a folder' in one.error(2, 'restore', one.coop.folder, '--yes')


# ---- a folder without a server ----

def test_no_database(coop):
    home = coop.folder / 'nothing'
    done = coop('backup', coop.folder / 'b', '--home', home)
    assert done.returncode == 4 and 'there is no database to back up' in done.stderr
    assert not home.exists() and not list(coop.folder.glob('b*'))


def test_a_damaged_database_is_set_aside(client):
    client.server.make_key(name='kept')
    path = backup(client)
    client.server.stop()
    database = client.server.home / 'coop.db'
    broken = b'broken' * 1000
    database.write_bytes(broken)
    assert 'damaged' in client.error(1, 'backup', client.coop.folder / 'c')
    bad = client.coop.folder / 'bad'
    bad.write_bytes(archive(sqlite_bytes()))
    client.error(1, 'restore', bad, '--yes')
    assert database.read_bytes() == broken and files_of(client) <= {'run/control.sock'}
    done = client('restore', path, '--yes')
    assert done.returncode == 0, done.stderr
    aside = [p for p in client.server.home.iterdir() if p.name.startswith('coop.db.unusable-')]
    assert len(aside) == 1 and aside[0].read_bytes() == broken and str(aside[0]) in done.stderr
    client.server.start()
    assert names(client) == ['first', 'kept']


# ---- kill -9 ----

def state(client):
    """Whole, whichever it is."""
    assert client.json('events', 'verify')['sound'] is True
    assert files_of(client) == set()
    return names(client)


@NEEDS_FAILPOINTS
@pytest.mark.parametrize('point', ['restore.before:1', 'restore.unpacked:1', 'store.restore.middle:1',
                                   'store.restore.middle:2'])
def test_killed_while_it_restores(one, point):
    path = backup(one)
    one.server.make_key(name='later')
    one.server.stop()
    one.server.env['COOP_FAIL_AT'] = point
    one.server.start()
    assert one('restore', path, '--yes').returncode in (1, 3)
    one.server.wait_killed()
    del one.server.env['COOP_FAIL_AT']
    one.server.start()
    assert state(one) in (['first', 'later'], ['first'])
    one.ok('restore', path, '--yes')
    assert state(one) == ['first']


@NEEDS_FAILPOINTS
@pytest.mark.parametrize('point', ['backup.pack:1', 'store.restore.middle:1'])
def test_killed_while_it_backs_up(one, point):
    one.server.stop()
    one.server.env['COOP_FAIL_AT'] = point
    one.server.start()
    path = one.coop.folder / 'b'
    done = one('backup', path)
    assert done.returncode in (1, 3) and not list(one.coop.folder.glob('b*'))
    one.server.wait_killed()
    del one.server.env['COOP_FAIL_AT']
    one.server.start()
    assert state(one) == ['first']
    content(backup(one))


@NEEDS_FAILPOINTS
@pytest.mark.parametrize('point', ['restore.before:1', 'restore.unpacked:1', 'store.restore.middle:1',
                                   'store.restore.middle:2', 'store.commit.before:1', 'store.commit.after:1'])
def test_killed_while_it_restores_the_folder(client, point):
    path = backup(client)
    client.server.make_key(name='later')
    client.server.stop()
    done = client('restore', path, '--yes', env={'COOP_FAIL_AT': point})
    assert done.returncode == -signal.SIGKILL
    client.server.start()
    assert state(client) in (['first', 'later'], ['first'])


@NEEDS_FAILPOINTS
@pytest.mark.parametrize('point', ['backup.pack:1', 'store.restore.middle:1'])
def test_killed_while_it_backs_up_the_folder(client, point):
    path = client.coop.folder / 'b'
    client.server.stop()
    done = client('backup', path, env={'COOP_FAIL_AT': point})
    assert done.returncode == -signal.SIGKILL and not path.exists()
    client.server.start()
    assert state(client) == ['first']


def test_repositories_are_saved_beside_it(make_server, coop, tmp_path):
    """As docs/repositories.md says: the backup, then the folder, and the two keys once."""
    server, other = make_server(), make_server()
    path, repo = make_repo(server, 'saved')
    work = Work(tmp_path / 'work', url_of(server, path)).init()
    work.commit()
    work.push('HEAD:main')
    server.post('/api/v3/repos/coop/saved/issues', {'title': 'kept'})
    key = server.get('/api/v1/receipts/key')
    file = tmp_path / 'backup'
    assert coop('backup', str(file), env={'COOP_HOME': str(server.home)}).returncode == 0
    work.commit('later')
    work.push('HEAD:main')  # behind the backup: newer than the rows
    server.stop()
    other.stop()
    for name in ('forge-key', 'receipt-key'):
        shutil.copy2(server.home / name, other.home / name)
    shutil.copytree(server.home / 'repos', other.home / 'repos', dirs_exist_ok=True, symlinks=True)
    done = coop('restore', str(file), '--yes', env={'COOP_HOME': str(other.home)})
    assert done.returncode == 0, done
    other.start()
    other.key = server.key  # the keys are those of the backup
    assert other.get('/api/v1/repos/coop/saved')['state'] == 'ready' and other.get('/api/v1/receipts/key') == key
    assert [i['title'] for i in other.get('/api/v3/repos/coop/saved/issues')] == ['kept']
    again = Work(tmp_path / 'again', url_of(other, path)).clone()
    assert again.head() == work.head()
    again.git('fsck', '--strict')
    again.commit('more')
    again.push('HEAD:main')
    server.start()
