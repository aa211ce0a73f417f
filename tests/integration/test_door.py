# SPDX-License-Identifier: Apache-2.0
"""The door: what boxes may reach, who decides, and what happens when one of its processes is killed."""
import json
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from boxserver import need_boxes
from doorserver import INSIDE, PORT, door_server
from harness import PROGRAM, WAIT_S, wait_until


@pytest.fixture(scope='module')
def door():
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    try:
        with door_server(place, door_env={'OPENAI_API_KEY': 'sk-canary-0123456789'}) as server:
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)


def allow_page(server, **more):
    return server.rule('allow', INSIDE, ports=[PORT], inside=True, **more)


def forget_rules(server):
    for rule in server.get('/api/v1/door/rules')['rules']:
        server.ask('DELETE', f'/api/v1/door/rules/{rule["id"]}')


@pytest.fixture
def rules(door):
    yield
    forget_rules(door)
    door.mode('enforce')


def test_denied_allowed_denied(door, rules):
    """Live: the same box, without a restart of anything."""
    with door.box() as box:
        refused = door.through(box)
        assert ' 403 ' in refused.splitlines()[0] and 'coop door allow' in refused, refused
        allow_page(door)
        assert 'page of the test' in door.through(box)
        door.rule('deny', INSIDE)
        assert ' 403 ' in door.through(box).splitlines()[0]


# ---- who decides ----

def test_scopes(door, rules):
    """The nearest scope decides; a rule of one box is none of another's."""
    with door.box() as one, door.box() as other:
        allow_page(door, scope='box', scope_id=one)
        assert 'page of the test' in door.through(one)
        assert ' 403 ' in door.through(other)
        allow_page(door, scope='template', scope_id='tiny')
        assert 'page of the test' in door.through(other)
        door.rule('deny', INSIDE, scope='box', scope_id=other)
        assert 'page of the test' in door.through(one) and ' 403 ' in door.through(other)
        policy = door.get(f'/api/v1/door/rules?box={other}')
        assert [r.get('deny') for r in policy['rules'][:2]] == [INSIDE, None]
        assert policy['rules'][1]['source'] == 'template tiny' and policy['rules'][-1]['source'] == 'built in'
    # With the box its rules are gone.
    assert {r['scope'] for r in door.get('/api/v1/door/rules')['rules']} == {'template'}


def test_squads(door, rules):
    """Rules and limits of a squad are those of its boxes, also after the server was killed."""
    with door.box(squad_id='crew') as one, door.box(squad_id='others') as other:
        allow_page(door, scope='squad', scope_id='crew')
        assert 'page of the test' in door.through(one) and ' 403 ' in door.through(other)
        door.kill()
        door.restart()
        assert 'page of the test' in door.through(one) and ' 403 ' in door.through(other)
        limit(door, bytes_per_day=1, scope='squad', scope_id='crew')
        assert ' 429 ' in door.through(one)
        limit(door, bytes_per_day=None, scope='squad', scope_id='crew')

        def told():
            page = door.get('/api/v1/door/log?squad=crew')['events']
            return [e for e in page if e['box_id'] == one.removeprefix('sb-')]
        wait_until(told, 'the events of the squad')


def test_modes(door, rules):
    allow_page(door)
    with door.box() as box, door.box() as other:
        assert door.mode('deny')['mode'] == 'deny'
        assert ' 403 ' in door.through(box)
        door.mode('enforce', scope='box', scope_id=box)
        assert 'page of the test' in door.through(box) and ' 403 ' in door.through(other)
        door.mode('inherit', scope='box', scope_id=box)
        assert ' 403 ' in door.through(box)
        # Observing opens no private network.
        door.mode('observe')
        forget_rules(door)
        assert ' 403 ' in door.through(box)


def test_plain(door, rules):
    """What is no TLS goes to 443 only where a rule says so, and only while it does."""
    with door.box() as box:
        door.rule('allow', INSIDE, ports=[443], inside=True)
        assert 'page of the test' not in door.through(box, port=443)
        door.cli('door', 'allow', INSIDE, '--port', '443', '--inside', '--plain')
        assert 'page of the test' in door.through(box, port=443)
        assert [r['plain'] for r in door.get('/api/v1/door/rules')['rules']] == [True]
        door.kill()
        door.restart()
        assert 'page of the test' in door.through(box, port=443)


def limit(server, status=200, **change):
    answer = server.ask('PATCH', '/api/v1/door/limits', body=change)
    assert answer.status == status, answer
    return answer.json


def test_limits(door, rules):
    """Live, for the box that is running, and shown."""
    allow_page(door)
    with door.box() as box, door.box() as other:
        assert 'page of the test' in door.through(box)
        limit(door, requests_per_min=1, bytes_per_day=10, scope='box', scope_id=box)
        assert ' 429 ' in door.through(box) and 'page of the test' in door.through(other)
        assert door.get(f'/api/v1/door/limits?box={box}')['bytes_per_day'] == 10
        door.cli('door', 'limits', '--box', box, '--bytes-per-day', '1GiB', '--requests-per-minute', 'inherit')
        assert 'page of the test' in door.through(box)
        assert '1.0\xa0GiB' in door.cli('door', 'limits', '--box', box)
        limit(door, bytes_per_day=1, scope='template', scope_id='tiny')
        assert 'page of the test' in door.through(box) and ' 429 ' in door.through(other)
        limit(door, bytes_per_day=None, scope='template', scope_id='tiny')
        assert 'page of the test' in door.through(other)
    assert door.get('/api/v1/door/limits')['scopes'] == []
    limit(door, status=400, cakes=1)
    limit(door, status=404, scope='box', scope_id='nobody', bytes_per_day=1)


def test_a_new_door_knows_the_day(door, rules):
    allow_page(door)
    with door.box() as box:
        def used():
            return door.get(f'/api/v1/door/limits?box={box}')['bytes_today']

        def all_of_it():
            # The count of the day may be told while the page is under way; its event comes at the end.
            log = door.get('/api/v1/door/log')['events']
            ended = [e['data'] for e in log if e['box_id'] == box.removeprefix('sb-') and e['kind'] == 'door.closed']
            total = sum(data['bytes_in'] + data['bytes_out'] for data in ended)
            return total and used() == total and total
        assert 'page of the test' in door.through(box)
        before = wait_until(all_of_it, 'what it used')
        door.kill_door()
        door.start_door()
        wait_until(door.door_is_up, 'the door')
        assert 'page of the test' in door.through(box)
        wait_until(lambda: used() == 2 * before, 'both days to be one')
        # A server that was killed asks the door, which has counted on.
        door.kill()
        door.restart()
        wait_until(lambda: used() == 2 * before, 'what it used')
        limit(door, bytes_per_day=2 * before, scope='box', scope_id=box)
        assert ' 429 ' in door.through(box)


@pytest.mark.parametrize('body, said', [
    ({'action': 'allow', 'pattern': 'a b'}, ''),
    ({'action': 'allow', 'pattern': 'http://x.org'}, ''),
    ({'action': 'permit', 'pattern': 'x.org'}, 'action'),
    ({'action': 'allow', 'pattern': 'x.org', 'scope': 'world'}, 'scope'),
    ({'action': 'allow', 'pattern': 'x.org', 'scope': 'template'}, 'scope_id'),
    ({'action': 'allow', 'pattern': 'x.org', 'ports': [0]}, ''),
    ({'action': 'allow', 'pattern': 'x.org', 'ports': list(range(1, 20))}, 'ports'),
])
def test_bad_rules(door, body, said):
    answer = door.ask('POST', '/api/v1/door/rules', body=body)
    assert answer.status == 400 and said in answer.json['message'], answer
    assert door.get('/api/v1/door/rules')['rules'] == []


def test_unknown_box_and_rule(door):
    assert door.ask('POST', '/api/v1/door/rules', body={'action': 'allow', 'pattern': 'x.org', 'scope': 'box', 'scope_id': 'nobody'}).status == 404
    assert door.ask('DELETE', '/api/v1/door/rules/none').status == 404
    assert door.ask('PUT', '/api/v1/door/mode', body={'mode': 'open'}).status == 400


# ---- what is told ----

@pytest.mark.parametrize('path', ['door/rules', 'door/log', 'providers', 'budgets'])
def test_what_is_of_all_boxes_is_for_admins(door, path):
    assert door.ask('GET', f'/api/v1/{path}').status == 200
    assert door.ask('GET', f'/api/v1/{path}', key=door.make_key('read')['key']).status == 403


def test_told(door, rules):
    with door.box() as box:
        after = door.get('/api/v1/events?limit=1')['seq']
        door.through(box)
        allow_page(door)
        door.through(box)

        def told():
            page = door.get(f'/api/v1/door/log?after={after}')['events']
            return {e['kind']: e for e in page if e['box_id'] == box.removeprefix('sb-')}
        events = wait_until(lambda: {'door.denied', 'door.allowed'} <= set(e := told()) and e, 'both events')
        assert events['door.denied']['data']['host'] == INSIDE and events['door.denied']['data']['port'] == PORT
    stats = wait_until(lambda: door.get('/api/v1/door/status')['stats'].get('denied'), 'the counters')
    assert stats >= 1
    metrics = door.ask('GET', '/metrics').body.decode()
    assert 'coop_door_up 1' in metrics and 'coop_door_denied_total' in metrics


def test_doctor(door):
    def state():
        done = subprocess.run([PROGRAM, 'doctor', '-o', 'json'], env=door.environment(), capture_output=True, text=True,
                              timeout=WAIT_S)
        return next(p for p in json.loads(done.stdout)['probes'] if p['name'] == 'door')
    assert state()['state'] == 'ok' and state()['fix'] is None
    door.kill_door()
    try:
        wait_until(lambda: not door.door_is_up(), 'the door to be away')
        assert state()['state'] == 'degraded' and state()['fix']
    finally:
        door.start_door()
        wait_until(door.door_is_up, 'the door')


def test_environment(door):
    with door.box() as box:
        env = dict(line.split('=', 1) for line in door.run(box, 'env')['stdout'].splitlines())
    for name in ('http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'npm_config_proxy', 'CARGO_HTTP_PROXY'):
        assert env[name] == 'http://127.0.0.1:3128'
    assert env['OPENAI_BASE_URL'] == 'http://127.0.0.1:3128/openai/v1'
    assert env['ANTHROPIC_BASE_URL'] == 'http://127.0.0.1:3128/anthropic'
    assert '127.0.0.1' in env['no_proxy'] and env['OPENAI_API_KEY'] == 'coop'


# ---- when one of them is killed ----

def parts(server):
    return {d['part'] for d in server.get('/health', key=None)['degraded']}


def echo(server, box, name, seconds):
    """Says a number every tenth of a second through a tunnel and keeps what comes back."""
    line = (f"exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT {INSIDE}:{PORT} HTTP/1.1\\r\\nHost: {INSIDE}:{PORT}\\r\\n\\r\\n' >&3; "
            "while IFS= read -r l <&3 && [ \"$l\" != $'\\r' ]; do :; done; printf 'ECHO\\r\\n\\r\\n' >&3; "
            "read -r l <&3; read -r l <&3; "
            f"for i in $(seq {seconds * 10}); do echo $i >&3 || exit 3; read -r l <&3 || exit 4; echo $l >>/tmp/{name}; sleep 0.1; done")
    return server.start_command(box, argv=['/bin/bash', '-c', line], timeout=WAIT_S)['id']


def heard(server, box, name):
    return server.run(box, f'cat /tmp/{name}')['stdout'].split()


def exit_code(server, box, command):
    return server.ended(box, command)['end']['exit_code']


def test_killed_door(door, rules):
    """A box notices a broken stream and no more: what it sends meanwhile waits."""
    allow_page(door)
    with door.box() as box:
        running = echo(door, box, 'before', 50)
        wait_until(lambda: len(heard(door, box, 'before')) > 3, 'the stream')
        door.kill_door()
        assert exit_code(door, box, running) in (3, 4)
        wait_until(lambda: 'door' in parts(door), 'health')
        waiting = echo(door, box, 'after', 1)
        door.start_door()
        assert exit_code(door, box, waiting) == 0 and len(heard(door, box, 'after')) == 10
        wait_until(lambda: 'door' not in parts(door), 'health')
        assert 'page of the test' in door.through(box)


def test_killed_server(door, rules):
    """Tunnels go on without it, and the next one tells the same boxes."""
    allow_page(door)
    with door.box() as box:
        running = echo(door, box, 'on', 5)
        wait_until(lambda: len(heard(door, box, 'on')) > 3, 'the stream')
        door.kill()
        door.restart()
        assert exit_code(door, box, running) == 0
        assert heard(door, box, 'on') == [str(i + 1) for i in range(50)]
        assert 'page of the test' in door.through(box)


def test_the_canary_is_nowhere(door):
    key = b'sk-canary-0123456789'
    assert door.get('/api/v1/door/status')['own_providers'] == ['openai']
    with door.box() as box:
        found = door.run(box, 'env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null')['stdout']
        assert 'canary' not in found
    for pid in (door.pid, door.door_pid()):
        assert key not in pathlib.Path(f'/proc/{pid}/environ').read_bytes()
        assert key not in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
    for path in (door.folder / 'log', door.door_log, door.home / 'coop.db', *door.door_folder.rglob('*')):
        if path.is_file():
            assert key not in path.read_bytes(), path


def test_the_door_is_confined(door):
    status = dict(line.split(':\t', 1) for line in pathlib.Path(f'/proc/{door.door_pid()}/status').read_text().splitlines() if ':\t' in line)
    assert status['Uid'].split()[0] == '65534' and status['Seccomp'].strip() == '2' and status['NoNewPrivs'].strip() == '1'
    assert status['CapEff'].strip('0 \t') == ''


# ---- the command ----

def test_command(door, rules):
    with door.box() as box:
        allow = ['door', 'allow', INSIDE, '--port', str(PORT), '--inside']
        assert 'every box' in door.cli(*allow)
        assert 'page of the test' in door.through(box)
        listed = door.cli('door', 'rules')
        assert INSIDE in listed and 'github.com' in listed and 'built in' in listed
        door.cli('door', 'deny', INSIDE, '--box', box)
        assert ' 403 ' in door.through(box)
        assert INSIDE in door.cli('door', 'rules', '--box', box)
        door.cli('door', 'rm', INSIDE, '--box', box.removeprefix('sb-'))
        for template in ('a', 'ab', 'b'):
            door.cli('door', 'deny', 'x.test', '--template', template)
        door.cli('door', 'rm', 'x.test', '--template', 'ab')
        kept = {r['scope_id'] for r in door.get('/api/v1/door/rules')['rules'] if r['pattern'] == 'x.test'}
        assert kept == {'a', 'b'}
        assert 'page of the test' in door.through(box)
        door.cli('door', 'mode', 'deny')
        assert ' 403 ' in door.through(box)
        log = wait_until(lambda: (text := door.cli('door', 'log', '--box', box.removeprefix('sb-'))) and 'door.denied' in text and text, 'the log')
        assert INSIDE in log
        assert 'there' in door.cli('door')
