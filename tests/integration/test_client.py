# SPDX-License-Identifier: Apache-2.0
"""Commands that talk to a server: `status`, `key`, `link`, `events`, and how they find it."""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess

import pytest

from client import WHO, make_client
from commands import known_commands
from fake import Fake, answer
from harness import IS_ROOT, WAIT_S, free_port, wait_until

PLAN = str(pathlib.Path(__file__).parents[1] / 'data' / 'plan.yaml')
UNKNOWN_KEY = 'e2b_' + '0' * 40
HEALTH = {'status': 'ok', 'service': 'coop', 'version': '9', 'uptime_s': 90061, 'tiers': [], 'degraded': []}
# Every command that talks to a server, with arguments that are right.
COMMANDS = {
    ('status',): [],
    ('link',): [],
    ('key', 'ls'): [],
    ('key', 'new'): ['name'],
    ('key', 'revoke'): ['0'],
    ('events',): [],
    ('events', 'verify'): [],
    ('backup',): ['-'],
    ('restore',): ['/dev/null', '--yes'],
    ('doctor',): ['--self-test'],
    ('run',): ['--', 'true'],
    ('shell',): [],
    ('ps',): [],
    ('top',): ['--once'],
    ('exec',): ['sb-x', '--', 'true'],
    ('logs',): ['sb-x'],
    ('cp',): ['/etc/hostname', 'sb-x:/tmp/'],
    ('rm',): ['sb-x'],
    ('sandbox', 'create'): [],
    ('sandbox', 'ls'): [],
    ('sandbox', 'show'): ['sb-x'],
    ('sandbox', 'exec'): ['sb-x', '--', 'true'],
    ('sandbox', 'logs'): ['sb-x'],
    ('sandbox', 'cp'): ['/etc/hostname', 'sb-x:/tmp/'],
    ('sandbox', 'stats'): [],
    ('sandbox', 'pause'): ['sb-x'],
    ('sandbox', 'resume'): ['sb-x'],
    ('sandbox', 'rm'): ['sb-x'],
    ('template',): [],
    ('template', 'ls'): [],
    ('template', 'show'): ['base'],
    ('template', 'build'): ['base'],
    ('template', 'update'): ['base'],
    ('template', 'rm'): ['base'],
    ('door',): [],
    ('door', 'allow'): ['example.org'],
    ('door', 'deny'): ['example.org'],
    ('door', 'rm'): ['example.org'],
    ('door', 'rules'): [],
    ('door', 'mode'): ['enforce'],
    ('door', 'limits'): [],
    ('door', 'log'): [],
    ('provider',): [],
    ('provider', 'ls'): [],
    ('provider', 'add'): ['demo', '--kind', 'compatible', '--base-url', 'http://127.0.0.1:1/v1'],
    ('provider', 'rm'): ['demo'],
    ('provider', 'test'): ['demo'],
    ('budget',): [],
    ('budget', 'ls'): [],
    ('budget', 'set'): ['all', '--usd', '1'],
    ('budget', 'rm'): ['all'],
    ('cost',): [],
    ('report',): [],
    ('repo',): [],
    ('repo', 'ls'): [],
    ('repo', 'create'): ['one'],
    ('repo', 'add'): ['https://example.org/one.git'],
    ('repo', 'show'): ['one'],
    ('repo', 'fetch'): ['one'],
    ('repo', 'rm'): ['one'],
    ('repo', 'set'): ['one', 'up_to_date=true'],
    ('pr',): ['--repo', 'one'],
    ('pr', 'ls'): ['--repo', 'one'],
    ('pr', 'show'): ['1', '--repo', 'one'],
    ('pr', 'diff'): ['1', '--repo', 'one'],
    ('pr', 'checks'): ['1', '--repo', 'one'],
    ('pr', 'receipt'): ['1', '--repo', 'one'],
    ('pr', 'review'): ['1', '--repo', 'one', '--approve'],
    ('pr', 'comment'): ['1', '--repo', 'one', '--body', 'fine'],
    ('pr', 'ready'): ['1', '--repo', 'one'],
    ('pr', 'merge'): ['1', '--repo', 'one'],
    ('pr', 'close'): ['1', '--repo', 'one'],
    ('issue',): ['--repo', 'one'],
    ('issue', 'ls'): ['--repo', 'one'],
    ('issue', 'show'): ['1', '--repo', 'one'],
    ('issue', 'new'): ['title', '--repo', 'one'],
    ('issue', 'comment'): ['1', '--repo', 'one', '--body', 'fine'],
    ('issue', 'close'): ['1', '--repo', 'one'],
    ('github',): [],
    ('github', 'login'): ['--token-file', '/etc/hostname'],
    ('github', 'status'): [],
    ('github', 'rotate'): ['--token-file', '/etc/hostname'],
    ('github', 'logout'): [],
    ('github', 'work'): [],
    ('sandbox', 'git', 'clone'): ['sb-x', 'one'],
    ('sandbox', 'git', 'branch'): ['sb-x'],
    ('sandbox', 'git', 'commit'): ['sb-x', '--message', 'fix: it'],
    ('sandbox', 'git', 'push'): ['sb-x'],
    ('sandbox', 'git', 'pr'): ['sb-x'],
    ('queue',): [],
    ('agent',): [],
    ('agent', 'ls'): [],
    ('agent', 'spawn'): ['coder', 'do it'],
    ('agent', 'show'): ['x'],
    ('agent', 'stop'): ['x'],
    ('agent', 'log'): ['x'],
    ('demo',): [],
    ('plan', 'show'): ['1'],
    ('plan', 'set'): ['1', PLAN],
    ('plan', 'edit'): ['1'],
    ('plan', 'approve'): ['1'],
    ('room', 'show'): ['1'],
    ('room', 'post'): ['1', 'hello'],
    ('room', 'watch'): ['1'],
    ('identity',): [],
    ('identity', 'ls'): [],
    ('identity', 'create'): ['one'],
    ('identity', 'revoke'): ['one'],
    ('squad',): [],
    ('squad', 'ls'): [],
    ('squad', 'show'): ['default'],
    ('squad', 'new'): ['one'],
    ('squad', 'set'): ['one'],
    ('squad', 'rm'): ['one'],
    ('squad', 'add'): ['one', 'coder'],
    ('squad', 'change'): ['one', 'coder-1'],
    ('squad', 'drop'): ['one', 'coder-1'],
    ('squad', 'roles'): [],
    ('squad', 'hook', 'add'): ['one', 'http://example.com/'],
    ('squad', 'hook', 'ls'): ['one'],
    ('squad', 'hook', 'rm'): ['one', '1'],
    ('squad', 'hook', 'test'): ['one', '1'],
    ('squad', 'hook', 'log'): ['one', '1'],
    ('squad', 'hook', 'again'): ['one', '1', '1'],
    ('task',): [],
    ('task', 'new'): ['Do it'],
    ('task', 'ls'): [],
    ('task', 'show'): ['1'],
    ('task', 'log'): ['1'],
    ('task', 'stop'): ['1'],
    ('task', 'retry'): ['1'],
    ('task', 'answer'): ['1', 'yes'],
    ('task', 'kept'): [],
}
# A shell asks for a terminal before it asks a server.
ASKING = {path: args for path, args in COMMANDS.items() if path != ('shell',)}
# What a key that may only read can do.
READING = {('status',), ('events',), ('ps',), ('top',), ('logs',), ('sandbox', 'ls'), ('sandbox', 'show'),
           ('sandbox', 'logs'), ('sandbox', 'stats'), ('cp',), ('sandbox', 'cp'), ('template',), ('template', 'ls'),
           ('template', 'show'), ('door',), ('repo',), ('repo', 'ls'), ('repo', 'show'), ('pr',),
           ('pr', 'ls'), ('pr', 'show'), ('pr', 'diff'),
           ('pr', 'checks'), ('pr', 'receipt'), ('issue',), ('issue', 'ls'), ('issue', 'show'), ('github', 'work'), ('queue',), ('identity',),
           ('identity', 'ls'), ('agent',), ('agent', 'ls'), ('agent', 'show'), ('agent', 'log'), ('squad',), ('squad', 'ls'),
           ('squad', 'show'), ('squad', 'roles'), ('task',), ('task', 'ls'), ('task', 'show'), ('task', 'log'), ('task', 'kept'),
           ('plan', 'show'), ('plan', 'edit'), ('room', 'show'), ('room', 'watch'), ('report',)}


@pytest.fixture(params=WHO)
def client(request, coop, make_server):
    return make_client(request.param, coop, make_server)


def remote_env(client, key=None):
    return {'SANDBOX_SERVICE_URL': f'http://{client.server.host}', **({'COOP_API_KEY': key} if key else {})}


# ---- status ----

def test_status(client):
    text = client.ok('status')
    assert re.search(r'^Status: +ok$', text, re.M)
    assert re.search(rf'^Address: +http://{client.server.host}$', text, re.M)
    told = client.json('status')
    assert told['status'] == 'ok' and told['degraded'] == []
    assert told['reached_at'] == client.server.control_path
    assert told['seq'] == client.server.last_seq()
    by_tcp = client.json('status', env=remote_env(client))
    assert by_tcp['reached_at'] == f'http://{client.server.host}'
    assert by_tcp['http']['connections'] >= 1


@pytest.mark.parametrize('as_json', [False, True])
def test_status_of_a_degraded_server(coop, as_json):
    health = {**HEALTH, 'status': 'degraded', 'degraded': [{'part': 'store', 'reason': 'disk \x1b[31mfull'}]}
    with Fake({'/health': answer(health)}) as fake:
        done = coop('status', '--server', fake.url(), *(['-o', 'json'] if as_json else []))
    assert done.returncode == 1
    assert '\x1b' not in done.stdout + done.stderr
    if as_json:
        assert json.loads(done.stdout)['degraded'] == health['degraded']
    else:
        assert 'store: disk \\x1b[31mfull\n' in done.stdout
        assert re.search(r'^Uptime: +1d 1h$', done.stdout, re.M)


def test_status_without_a_key_shows_the_health(client):
    url = f'http://{client.server.host}'
    done = client.coop('status', '--server', url)
    assert done.returncode == 0 and 'only the health' in done.stderr
    assert 'Version:' in done.stdout and 'Connections:' not in done.stdout


def test_status_with_a_key_that_may_not_read(client):
    key = client.server.make_key('box')['key']
    done = client('status', env=remote_env(client, key))
    assert done.returncode == 0 and 'it needs the scope read' in done.stderr
    assert 'Connections:' not in done.stdout


# ---- keys ----

def test_key(client):
    assert client.ok('key') == client.server.key + '\n'
    assert client.json('key') == {'key': client.server.key}


def test_key_needs_no_server(client):
    client.server.stop()
    assert client.ok('key') == client.server.key + '\n'


def test_key_before_the_first_start(coop):
    done = coop('key', env={'COOP_HOME': str(coop.folder / 'nothing')})
    assert done.returncode == 4 and "'coop start' makes the first one" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason='only root can become another user')
def test_key_of_somebody_else(coop, make_server):
    server = make_server()
    done = coop('key', who='user', env={'COOP_HOME': str(server.home)})
    assert done.returncode in (5, 78) and server.key not in done.stdout + done.stderr


@pytest.mark.parametrize('content', ['', 'e2b_', 'x' * 44, UNKNOWN_KEY + '0', 'e2b_' + 'G' * 40])
def test_key_file_that_holds_none(coop, content):
    home = coop.folder / 'home'
    home.mkdir()
    (home / 'key').write_text(content)
    done = coop('key', env={'COOP_HOME': str(home)})
    assert done.returncode == 2 and 'does not hold a key' in done.stderr
    assert done.stdout == ''


def test_key_new(client):
    key = client.ok('key', 'new', 'ci').strip()
    assert re.fullmatch('e2b_[0-9a-f]{40}', key)
    assert client.server.get('/api/v1/session', key=key)['scopes'] == 'box,read'
    made = client.json('key', 'new', 'robot', '--scopes', 'read', '--expires', '30d')
    assert made['scopes'] == 'read' and made['expires_at'] > made['created_at']
    assert client.server.get('/api/v1/stats', key=made['key'])


@pytest.mark.parametrize('args, message', [
    (['x', '--scopes', 'root'], "unknown scope 'root'"),
    (['x', '--expires', 'soon'], "option --expires: 'soon' is not a duration"),
    (['x', '--expires', '0s'], "option --expires: '0s'"),
    (['x' * 101], 'longer than 100'),
    (['bad\x1bname'], 'do not print'),
    (['\udcff'], 'UTF-8'),
])
def test_key_new_refused(client, args, message):
    assert message in client.error(2, 'key', 'new', *args)


def test_key_ls(client):
    revoked = client.json('key', 'new', 'away')
    client.ok('key', 'revoke', revoked['id'])
    names = [key['name'] for key in client.json('key', 'ls')]
    assert names == ['first']
    assert [key['name'] for key in client.json('key', 'ls', '--all')] == ['first', 'away']
    text = client.ok('key', 'ls')
    assert text.startswith('KEY ') and 'REVOKED' not in text and client.server.key not in text
    assert client.server.key[:11] in text and 'away' not in text
    assert 'REVOKED' in client.ok('key', 'ls', '-a')


@pytest.mark.parametrize('how', ['id', 'id begins', 'shown', 'shown begins', 'key'])
def test_key_revoke(client, how):
    made = client.json('key', 'new', 'away')
    word = {'id': made['id'], 'id begins': made['id'][:12], 'shown': made['prefix'],
            'shown begins': made['prefix'][:10], 'key': made['key']}[how]
    assert client.json('key', 'revoke', word) == {'revoked': made['id'], 'name': 'away', 'prefix': made['prefix']}
    assert client.server.ask('GET', '/api/v1/session', key=made['key']).status == 401
    assert client.server.ask('GET', '/api/v1/session').status == 200


def test_key_revoke_refused(client):
    made = client.json('key', 'new', 'stays')
    assert 'keys begin with' in client.error(2, 'key', 'revoke', 'e2b_')
    assert 'there is no key' in client.error(4, 'key', 'revoke', UNKNOWN_KEY)
    assert 'is empty' in client.error(2, 'key', 'revoke', '')
    assert client.server.ask('GET', '/api/v1/session', key=made['key']).status == 200


# ---- link ----

@pytest.mark.parametrize('named', [False, True])
def test_link(client, named):
    env = {'SANDBOX_SERVICE_URL': f'http://localhost:{client.server.port}/'} if named else None
    host = f'localhost:{client.server.port}' if named else client.server.host
    link = client.ok('link', env=env).strip()
    assert link.startswith(f'http://{host}/#ticket=')
    opened = client.server.ask('POST', '/api/v1/session', body={'ticket': link.partition('=')[2]}, key=None)
    assert opened.status == 201
    assert client.json('link', env=env)['url'].startswith(f'http://{host}/#ticket=')


# ---- events ----

def seqs(text):
    return [json.loads(line)['seq'] for line in text.splitlines()]


def test_events(client):
    for i in range(5):
        client.server.make_key(name=f'n{i}')
    last = client.server.last_seq()
    everything = list(range(1, last + 1))
    assert seqs(client.ok('events', '-o', 'json')) == everything
    assert seqs(client.ok('events', '-o', 'json', '--limit', '3')) == everything[-3:]
    assert seqs(client.ok('events', '-o', 'json', '--after', '2')) == everything[2:]
    assert seqs(client.ok('events', '-o', 'json', '--after', '2', '--limit', '2')) == everything[2:4]
    assert seqs(client.ok('events', '-o', 'json', '--after', last)) == []
    text = client.ok('events', '--limit', '1')
    assert re.fullmatch(rf'{last} \S+Z key.created key:\S+ \{{.*"name":"n4".*\}}\n', text)


def test_events_of_some_kinds(client):
    for i in range(3):
        client.server.make_key(name=f'n{i}')
    made = [e['seq'] for e in client.server.events(kind='key.created')]
    assert len(made) == 4
    assert seqs(client.ok('events', '-o', 'json', '--kind', 'key.created')) == made
    assert seqs(client.ok('events', '-o', 'json', '--kind', 'key.*', '--limit', '2')) == made[-2:]
    both = client.ok('events', '-o', 'json', '--kind', 'key.created', '--kind', 'server.started')
    assert seqs(both) == sorted(made + [e['seq'] for e in client.server.events(kind='server.started')])
    assert client.ok('events', '--task', 'none', '--squad', 'a&b=c', '--box', 'x') == ''


@pytest.mark.parametrize('args, message', [
    (['--kind', 'no.such'], "there is no kind of event 'no.such'"),
    (['--after', '-1'], "option --after: '-1'"),
    (['--after', 'x'], "option --after: 'x'"),
    (['--limit', '0'], "option --limit: '0'"),
    (['-f', '--kind', 'no.such'], "there is no kind of event 'no.such'"),
])
def test_events_refused(client, args, message):
    assert message in client.error(2, 'events', *args)


def test_events_over_many_pages(client):
    for i in range(300):
        made = client.server.make_key(name=f'n{i}')
        assert client.server.ask('DELETE', f"/api/v1/keys/{made['id']}").status == 204
    everything = list(range(1, client.server.last_seq() + 1))
    assert len(everything) > 600
    assert seqs(client.ok('events', '-o', 'json', '--after', '0')) == everything
    assert seqs(client.ok('events', '-o', 'json', '--limit', '550')) == everything[-550:]
    assert seqs(client.ok('events', '-o', 'json', '--kind', 'key.*', '--limit', '550')) == everything[-550:]


def sqlite_of(server):
    return sqlite3.connect(f'file:{server.home}/coop.db?mode=rw', uri=True)


def test_events_verify(client):
    client.server.make_key()
    assert 'the log is sound' in client.ok('events', 'verify')
    told = client.json('events', 'verify')
    assert told['sound'] is True and told['bad_seq'] is None and told['events'] == told['seq']


def test_events_verify_finds_a_change(client):
    client.server.make_key()
    client.server.stop()
    with contextlib.closing(sqlite_of(client.server)) as db, db:
        db.execute("UPDATE events SET actor = 'nobody' WHERE seq = 2")
    client.server.start()
    done = client('events', 'verify')
    assert done.returncode == 1 and 'event 2 is not what was written' in done.stderr
    told = client('events', 'verify', '-o', 'json')
    assert told.returncode == 1 and json.loads(told.stdout)['bad_seq'] == 2


# ---- following ----

class Follower:
    def __init__(self, client, *args, env=None):
        self.notes_path = client.coop.folder / 'notes'
        with open(self.notes_path, 'w', encoding='utf-8') as notes:
            self.process = client.coop.popen('events', '-f', '-o', 'json', *args, who=client.who,
                                             env=client.env(env), stdout=subprocess.PIPE, stderr=notes)
        # The first sign of life of a stream is not shown, so the server is asked.
        wait_until(lambda: client.server.get('/api/v1/stats')['events']['followers'] == 1, 'it follows')

    def next(self):
        return json.loads(self.process.stdout.readline())

    def notes(self):
        return self.notes_path.read_text(encoding='utf-8')

    def wait(self):
        code = self.process.wait(WAIT_S)
        self.process.stdout.close()
        return code


@pytest.fixture
def follow(client):
    running = []

    def begin(*args, **options):
        running.append(Follower(client, *args, **options))
        return running[-1]
    yield begin
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
            one.wait()


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_follow_and_stop(client, follow, how):
    one = follow()
    client.server.make_key(name='seen')
    event = one.next()
    assert (event['kind'], event['data']['name']) == ('key.created', 'seen')
    one.process.send_signal(how)
    assert one.wait() == 0
    assert one.notes() == ''


def test_follow_from_a_number(client, follow):
    one = follow('--after', '0', '--kind', 'key.created', '--limit', '2')
    client.server.make_key(name='second')
    assert [one.next()['data']['name'] for _ in range(2)] == ['first', 'second']
    assert one.wait() == 0


def test_follow_ends_with_its_reader(client, follow):
    """Without a further event: the pipe tells."""
    one = follow()
    one.process.stdout.close()
    assert one.process.wait(WAIT_S) == 0
    assert one.notes() == ''


def test_follow_goes_on_after_a_restart(client, follow):
    one = follow('--kind', 'key.*')
    client.server.make_key(name='before')
    assert one.next()['data']['name'] == 'before'
    client.server.kill()
    client.server.start()
    client.server.make_key(name='after')
    assert one.next()['data']['name'] == 'after'
    assert [json.loads(line)['notice'] for line in one.notes().splitlines()] == [
        'the connection was lost; trying again', 'connected again']
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0


def test_follow_waits_for_a_server_that_is_away(client, follow):
    one = follow()
    client.server.kill()
    wait_until(lambda: 'the connection was lost' in one.notes(), 'it tells')
    one.process.send_signal(signal.SIGINT)
    assert one.wait() == 0


def test_follow_ends_with_its_key(client, follow):
    made = client.server.make_key('read')
    one = follow(env=remote_env(client, made['key']))
    assert client.server.ask('DELETE', f"/api/v1/keys/{made['id']}").status == 204
    client.server.make_key(name='an event, so that it need not wait for the next beat')
    assert one.wait() == 5
    assert 'does not take the key' in one.notes()


def stream(*pieces):
    return b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n' + b''.join(pieces)


@pytest.mark.parametrize('bytes_, message', [
    (stream(b'data: not json\n\n'), 'not JSON'),
    (stream(b'data: []\n\n'), 'not JSON'),
    (stream(b'data: ' + b'x' * (2 << 20) + b'\n\n'), 'event'),
], ids=['text', 'list', 'long'])
def test_follow_a_server_that_sends_nonsense(coop, bytes_, message):
    with Fake({'/api/v1/events': bytes_}) as fake:
        done = coop('events', '-f', '--server', fake.url())
    assert done.returncode == 1 and message in done.stderr


def test_follow_cleans_what_it_shows(coop):
    event = {'seq': 1, 'at': 'now', 'kind': 'x\x1b[2J', 'actor': 'a\u202eb', 'data': {'t': '\x07'}}
    bytes_ = stream(b'id: 1\r\nX: y\nevent: x\ndata: ' + json.dumps(event).encode() + b'\n\n')
    with Fake({'/api/v1/events': bytes_}) as fake:
        done = coop('events', '-f', '--limit', '1', '--server', fake.url())
    assert done.returncode == 0
    assert done.stdout == '1 now x\\x1b[2J a\\x202eb {"t":"\\u0007"}\n'


def test_follow_takes_no_header_from_the_server(coop):
    """An id goes back as a header, so it is only taken if it is a number."""
    first = stream(b'id: 7\nevent: beat\ndata: {}\n\n', b'id: 8 x\nevent: beat\ndata: {}\n\n')
    with Fake({'/api/v1/events': first}) as fake:
        process = coop.popen('events', '-f', '--server', fake.url(), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: len(fake.requests) >= 2, 'it comes back')
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(WAIT_S) == 0
    assert 'Last-Event-ID' not in fake.requests[0]
    assert 'Last-Event-ID: 7\r\n' in fake.requests[1]


# ---- finding the server, and being refused ----

def test_every_command_is_in_the_table(coop):
    asking = {path for path, words in known_commands(coop.program).items() if '--server' in words}
    # It only asks a server if it has to, and has something to say without.
    assert asking == {*COMMANDS, ('verify',)}


@pytest.mark.parametrize('path', ASKING, ids=' '.join)
def test_unreachable(coop, path, folder):
    home = {'COOP_HOME': str(folder / 'nothing')}
    url = f'http://127.0.0.1:{free_port()}'
    ways = [(['--server', url], f'no server answered at {url}'), ([], "start one with 'coop start'")]
    # These two work on the folder where no server does.
    for args, told in ways[:1] if path in [('backup',), ('restore',)] else ways:
        env = {**home, 'COOP_LISTEN': url.removeprefix('http://')}
        done = coop(*path, *args, *COMMANDS[path], env=env)
        assert done.returncode == 3 and told in done.stderr and done.stdout == ''
        as_json = coop(*path, *args, '-o', 'json', *COMMANDS[path], env=env)
        assert as_json.returncode == 3 and as_json.stdout == ''
        assert told in json.loads(as_json.stderr)['error']['message']


@pytest.mark.parametrize('path', ASKING, ids=' '.join)
def test_wrong_key(server, coop, path):
    done = coop(*path, '--server', f'http://{server.host}', *COMMANDS[path], env={'COOP_API_KEY': UNKNOWN_KEY})
    assert done.returncode == 5 and done.stdout == ''
    assert 'does not take the key from environment COOP_API_KEY' in done.stderr
    assert UNKNOWN_KEY not in done.stderr


@pytest.mark.parametrize('path', [p for p in ASKING if p != ('status',)], ids=' '.join)
def test_no_key(server, coop, path):
    done = coop(*path, '--server', f'http://{server.host}', *COMMANDS[path])
    assert done.returncode == 5 and 'wants a key: set COOP_API_KEY' in done.stderr and done.stdout == ''


@pytest.mark.parametrize('path', [p for p in ASKING if p not in READING], ids=' '.join)
def test_denied_scope(server, coop, path):
    key = server.make_key('read')['key']
    done = coop(*path, '--server', f'http://{server.host}', *COMMANDS[path], env={'E2B_API_KEY': key})
    assert done.returncode == 5 and re.search('it needs the scope (admin|box)', done.stderr) and done.stdout == ''


STRANGERS = {
    'a page': (answer(b'<html>\x1b[31m', kind='text/html'), 3, 'no Coop server'),
    'a page that is not there': (answer(b'<html>', '404 Not Found', 'text/html'), 3, 'no Coop server (status 404)'),
    'other JSON': (answer({'hello': 'world'}), 3, 'no Coop server'),
    'a list': (answer([1]), 3, 'no Coop server'),
    'a redirect': (answer(b'', '302 Found', Location='http://127.0.0.1:1/'), 3, 'no Coop server'),
    'not HTTP': (b'SSH-2.0-OpenSSH_9.2\r\n', 3, 'no Coop server'),
    'nothing': (b'', 3, 'at http'),
    'half an answer': (answer({'service': 'coop'})[:-4], 1, 'cannot be used'),
    'an error with escapes': (answer({'message': 'no\x1b]0;x\x07'}, '400 Bad Request'), 2, 'no\\x1b]0;x\\x07'),
    'too many calls': (answer({'message': 'slow down'}, '429 Too Many Requests'), 1, 'slow down'),
    'a conflict': (answer({'message': 'not now'}, '409 Conflict'), 6, 'not now'),
    'a time-out': (answer({'message': 'late'}, '504 Gateway Timeout'), 7, 'late'),
}


@pytest.mark.parametrize('name', STRANGERS)
def test_strangers(coop, name):
    reply, code, message = STRANGERS[name]
    with Fake({'/': reply}) as fake:
        done = coop('status', '--server', fake.url())
    assert done.returncode == code, done
    assert message in done.stderr and done.stdout == ''
    assert not re.search('[\x00-\x09\x0b-\x1f]', done.stderr)


@pytest.mark.parametrize('path', [p for p in ASKING if p != ('status',)], ids=' '.join)
@pytest.mark.parametrize('reply', [b'{}', b'[]', b'null', b'{"events":[1],"next_after":0,"keys":[1],"key":2}'])
def test_answers_without_what_they_should_hold(coop, path, reply):
    """Whatever it makes of them, it does not crash."""
    with Fake({'/': answer(reply)}) as fake:
        done = coop(*path, '--server', fake.url(), *COMMANDS[path])
    assert done.returncode in (0, 1, 3, 4)


def test_the_own_key_goes_to_no_other_machine(server, coop):
    home = {'COOP_HOME': str(server.home)}
    with Fake({'/health': answer(HEALTH), '/': answer({})}) as fake:
        coop('status', '--server', fake.url(), env=home)
        assert f'X-API-Key: {server.key}' in fake.requests[0]
        # An address that the resolver understands, and that no rule takes for this machine.
        fake.requests.clear()
        coop('status', '--server', fake.url('127.1'), env=home)
        assert fake.requests and not any('X-API-Key' in r for r in fake.requests)
        fake.requests.clear()
        coop('status', '--server', fake.url('127.1'), env={**home, 'COOP_API_KEY': UNKNOWN_KEY})
        assert f'X-API-Key: {UNKNOWN_KEY}' in fake.requests[0]


def test_order_of_keys(coop):
    keys = {name: 'e2b_' + digit * 40 for name, digit in [('COOP_API_KEY', '1'), ('E2B_API_KEY', '2')]}
    with Fake({'/': answer({})}) as fake:
        coop('status', '--server', fake.url(), env=keys)
        coop('status', '--server', fake.url(), env={'E2B_API_KEY': keys['E2B_API_KEY']})
    assert [re.search('X-API-Key: (.*)\r', r)[1] for r in fake.requests] == list(keys.values())


def test_a_dead_socket_is_passed_by(client):
    client.server.kill()
    assert os.path.exists(client.server.control_path)
    url = f'http://{client.server.host}'
    assert f'no server answered at {url}' in client.error(3, 'status', env={'COOP_LISTEN': client.server.host})
    client.server.start()


def test_config_error(coop):
    done = coop('status', '--server', 'ftp://x')
    assert done.returncode == 78 and 'option --server' in done.stderr


def test_a_path_too_long_for_a_socket_is_passed_by(coop, folder):
    home = folder / ('x' * 100)
    (home / 'run').mkdir(parents=True)
    done = coop('status', env={'COOP_HOME': str(home), 'COOP_LISTEN': f'127.0.0.1:{free_port()}'})
    assert done.returncode == 3


def test_a_listener_that_says_nothing(coop):
    """It is interrupted by the user, not by a deadline of the test."""
    with socket.create_server(('127.0.0.1', 0)) as listener:
        process = coop.popen('status', '--server', f'http://127.0.0.1:{listener.getsockname()[1]}',
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        peer, _ = listener.accept()
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == -signal.SIGINT
        process.stdout.close()
        process.stderr.close()
        peer.close()
