# SPDX-License-Identifier: Apache-2.0
"""Providers, budgets and what model calls come to: from the command line to a box and back."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from boxserver import need_boxes
from doorserver import die_with_parent, door_server
from eventlog import open_log
from guide import check_examples
from harness import PROGRAM, WAIT_S, Server, wait_until

KEY = 'sk-canary-0123456789abcdef'
PORT = 9311
ASK = {'model': 'small-1', 'messages': [{'role': 'user', 'content': 'hello'}]}
# A provider: answers every chat with what it was told, and keeps the keys it was shown.
UPSTREAM = r'''
import http.server, json, sys
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, value):
        text = json.dumps(value).encode()
        with open(sys.argv[2], 'a') as f: f.write(self.headers.get('Authorization', 'none') + '\n')
        self.send_response(200); self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(text))); self.end_headers(); self.wfile.write(text)
    def do_GET(self):
        self.answer({'object': 'list', 'data': [{'id': 'small-1', 'object': 'model'}]})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        self.answer({'id': 'x', 'object': 'chat.completion', 'model': body['model'],
            'choices': [{'index': 0, 'finish_reason': 'stop', 'message': {'role': 'assistant', 'content': 'hi there'}}],
            'usage': {'prompt_tokens': 100, 'completion_tokens': 20, 'total_tokens': 120}})
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H)
print('ready', flush=True); s.serve_forever()
'''


# A process of the box that has asked a model, and keeps the answer and a mark of the test's in its memory.
ASKER = r'''
exec 3<>/dev/tcp/127.0.0.1/3128; printf '%s' "$1" >&3; answer=$(cat <&3); exec 3>&-
export MARK="$2$3"; printf '%s' "$MARK" >/tmp/mark; git config --global user.name "$MARK"
printf '%s' "$answer" >/tmp/answer; sleep 600 & echo ready >/tmp/ready; wait
'''
# Where the words of the command line, put together, are to be found: memory, environment and arguments of every process
# but this one, every file of the box, what git is configured with.  Processes whose memory is closed are named.
SEARCH = r'''
word=$1$2; pids=$(cd /proc && echo [0-9]*)
has() { grep -qaF -e "$word"; }
for p in $pids; do
    [ $p = $$ ] && continue
    has 2>/dev/null </proc/$p/environ && echo "environ $p"
    has 2>/dev/null </proc/$p/cmdline && echo "cmdline $p"
    while read -r range perms rest; do
        case $perms in r*) ;; *) continue;; esac
        case $rest in *'[v'*) continue;; esac
        from=$((16#${range%-*})) to=$((16#${range#*-}))
        dd if=/proc/$p/mem bs=1M iflag=skip_bytes,count_bytes skip=$from count=$((to - from)) 2>/tmp/dd-$$ | has && echo "memory $p"
        grep -q denied /tmp/dd-$$ && { echo "closed $p"; break; }
    done 2>/dev/null </proc/$p/maps
done
rm -f /tmp/dd-$$
for top in /*; do
    case $top in /proc|/sys|/dev) continue;; esac
    grep -rlaF -D skip -e "$word" "$top" 2>/dev/null | sed 's/^/file /'
done
git config --list 2>/dev/null | has && echo "git"
exit 0
'''


@pytest.fixture(scope='module')
def place():
    folder = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope='module')
def server(place):
    need_boxes()
    with door_server(place, programs=['curl', 'git', 'grep']) as running:
        running.shown = place / 'keys-shown'
        upstream = subprocess.Popen([*running.networks.enter(), sys.executable, '-c', UPSTREAM, str(PORT), running.shown],
                                    stdout=subprocess.PIPE, preexec_fn=die_with_parent)
        try:
            assert upstream.stdout.readline() == b'ready\n'
            yield running
        finally:
            upstream.kill()
            upstream.wait(WAIT_S)
            upstream.stdout.close()


def coop(server, *words, code=0, env=None, text=None):
    done = subprocess.run([PROGRAM, *words, '-o', 'json'], input=text, capture_output=True, text=True, timeout=WAIT_S,
                          env={**os.environ, 'COOP_HOME': str(server.home), **(env or {})}, check=False)
    assert done.returncode == code, done
    return json.loads(done.stdout) if done.stdout else None


@pytest.fixture
def provider(server):
    coop(server, 'provider', 'add', 'local', '--kind', 'compatible', '--base-url', f'http://127.0.0.1:{PORT}/v1',
         '--model', 'small-*', '--key-file', '-', text=KEY + '\n')
    yield 'local'
    coop(server, 'provider', 'rm', 'local')


def ask(server, box, body=None):
    """Status and body of a chat completion, asked by a process of the box."""
    text = json.dumps(body or ASK)
    line = ("exec 3<>/dev/tcp/127.0.0.1/3128; printf '%s' \"$0\" >&3; cat <&3")
    head = ('POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer of-the-box\r\n'
            f'Content-Type: application/json\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n')
    done = server.run(box, argv=['/bin/bash', '-c', line, head + text], timeout=WAIT_S)
    assert done['stdout'].startswith('HTTP/1.1 '), (done, server.door_log.read_text()[-3000:])
    return int(done['stdout'].split()[1]), done['stdout']


def row_of(server, what, name):
    return next((r for r in server.get(f'/api/v1/usage?by={what}')['rows'] if r['id'] == name), None)


def test_a_call_is_answered_and_accounted(server, provider):
    with server.box() as box:
        status, answer = ask(server, box)
        assert status == 200 and 'hi there' in answer, answer
        row = wait_until(lambda: (r := row_of(server, 'box', box.removeprefix('sb-'))) and r['calls'] and r, 'the account')
        assert (row['calls'], row['input_tokens'], row['output_tokens'], row['failed']) == (1, 100, 20, 0), row
        assert row['unpriced_calls'] == 1 and row['model_cost'] == 0
        assert row['box_hours'] > 0 and row['cost'] >= row['box_cost'] > 0
        assert row_of(server, 'model', 'small-1')['calls'] >= 1 and row_of(server, 'provider', 'local')['calls'] >= 1
    counted = server.ask('GET', '/metrics').body.decode()
    assert 'coop_model_calls_total 1\n' in counted and 'coop_model_output_tokens_total 20\n' in counted
    usage = server.get('/api/v1/usage')
    assert usage['price_per_hour'] == 0.2 and usage['monthly_estimate'] >= usage['total']['cost']


def test_the_key_goes_to_the_provider_and_nowhere_else(server, provider):
    with server.box() as box:
        assert ask(server, box)[0] == 200
        assert set(server.shown.read_text().split('\n')) == {f'Bearer {KEY}', ''}
        seen = server.run(box, argv=['/bin/bash', '-c', 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; env; ls -aR /home /tmp'])
        assert 'OPENAI_BASE_URL' in seen['stdout'] and 'canary' not in seen['stdout']
    assert KEY not in json.dumps(server.get('/api/v1/providers'))
    kept = [*server.folder.rglob('*')]
    assert not [f for f in kept if f.is_file() and f != server.shown and KEY.encode() in f.read_bytes()]


def search(server, box, *halves, user):
    done = server.run(box, argv=['/bin/bash', '-c', SEARCH, 'search', *halves], user=user, timeout=WAIT_S,
                      env={'HOME': '/tmp'})
    assert done['end']['exit_code'] == 0, done
    return done['stdout'].splitlines()


def neighbours(variable):
    """Every process of the box in which one has this in its environment, as this machine counts them."""
    spaces = {}
    marked = None
    for folder in pathlib.Path('/proc').glob('[0-9]*'):
        with contextlib.suppress(OSError):
            spaces[int(folder.name)] = os.readlink(folder / 'ns/pid')
            if variable in (folder / 'environ').read_bytes().split(b'\0'):
                marked = spaces[int(folder.name)]
    return [pid for pid, space in spaces.items() if space == marked]


def memory_of(pid):
    """All of it that can be read; nothing of a process that has gone meanwhile."""
    pieces = []
    with contextlib.suppress(OSError), open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', 0) as memory:
        for line in maps:
            low, high = (int(word, 16) for word in line.split()[0].split('-'))
            if line.split()[1].startswith('r') and '[v' not in line:
                memory.seek(low)
                with contextlib.suppress(OSError):
                    pieces.append(memory.read(high - low))
    return b'\n'.join(pieces)


@pytest.mark.parametrize('user', ['root', 'user'])
def test_the_key_is_nowhere_in_a_box(server, provider, user):
    """L7: a mark of the test's own shows that the search finds what is there."""
    text = json.dumps(ASK)
    request = ('POST /openai/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
               f'Content-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}')
    with server.box() as box:
        server.start_command(box, argv=['/bin/bash', '-c', ASKER, 'asker', request, 'mark-of-', 'the-test'],
                             env={'HOME': '/tmp'}, user=user)
        wait_until(lambda: 'ready' in server.run(box, 'cat /tmp/ready')['stdout'], 'the answer of a model')
        assert 'hi there' in server.run(box, 'cat /tmp/answer')['stdout']
        marks = search(server, box, 'mark-of-', 'the-test', user=user)
        assert {m.split()[0] for m in marks} >= {'environ', 'memory', 'file', 'git'}, marks
        assert 'file /tmp/mark' in marks and 'file /tmp/.gitconfig' in marks
        found = search(server, box, KEY[:10], KEY[10:], user=user)
        assert [f for f in found if not f.startswith('closed')] == [], found
        # What one user of the box may not look at, this machine's root may.
        pids = neighbours(b'MARK=mark-of-the-test')
        assert len(pids) >= 3 and any(b'mark-of-the-test' in memory_of(p) for p in pids), pids
        assert not [p for p in pids if KEY.encode() in memory_of(p)]


def test_a_plain_key_is_refused(server):
    answer = server.ask('PUT', '/api/v1/providers/x', body={'kind': 'openai', 'key': KEY})
    assert answer.status == 400 and 'sealed' in answer.json['message']


def sealed_of(server):
    with open_log(server.home) as db:
        return db.execute("SELECT sealed FROM providers WHERE name = 'local'").fetchone()[0]


def test_a_key_goes_to_no_other_base_url(server, provider):
    sealed = sealed_of(server)
    before = {'kind': 'compatible', 'base_url': f'http://127.0.0.1:{PORT}/v1', 'models': ['small-*']}
    with server.box() as box:
        assert ask(server, box)[0] == 200
        shown = server.shown.read_text()
        # Whoever may read the store, or change providers, cannot have the key sent to themselves.
        for key in ({}, {'sealed_key': sealed}):
            server.shown.write_text('')
            body = {**before, 'base_url': f'http://127.0.0.1:{PORT}/theirs', **key}
            answer = server.ask('PUT', '/api/v1/providers/local', body=body)
            assert answer.status == (400 if key else 200), answer
            assert not key or 'another base URL' in answer.json['message'], answer
            assert ask(server, box)[0] == 200 and KEY not in server.shown.read_text()
        server.shown.write_text(shown)
        wait_until(lambda: 'sealed for another base URL' in server.door_log.read_text(), 'the refusal')
        assert server.ask('PUT', '/api/v1/providers/local', body={**before, 'sealed_key': sealed}).status == 200
        assert ask(server, box)[0] == 200
        # Without one it keeps it: the place is the same, however it is written.
        body = {**before, 'base_url': before['base_url'] + '/'}
        assert server.ask('PUT', '/api/v1/providers/local', body=body).status == 200
        assert sealed_of(server) == sealed and ask(server, box)[0] == 200


def test_bad_providers_are_refused(server):
    for body in ({'kind': 'nobody'}, {'kind': 'compatible', 'base_url': 'http://example.org/v1'},
                 {'kind': 'script'}, {'kind': 'openai', 'script': 'x: y'}, {'kind': 'openai', 'sealed_key': 'zz'}):
        assert server.ask('PUT', '/api/v1/providers/x', body=body).status == 400, body
    assert server.ask('DELETE', '/api/v1/providers/x').status == 404
    assert coop(server, 'provider', 'test', 'nobody', code=1) is None


def test_the_door_has_its_word(server, provider):
    """What it would refuse is not kept; while it is away, what comes is kept and told later."""
    body = {'kind': 'compatible', 'base_url': f'http://127.0.0.1:{PORT}/v1', 'sealed_key': '00' * 80}
    answer = server.ask('PUT', '/api/v1/providers/other', body=body)
    assert answer.status == 400 and 'sealed for another door' in answer.json['message'], answer
    answer = server.ask('PUT', '/api/v1/providers/other', body={'kind': 'script', 'script': 'conversations: [{'})
    assert answer.status == 400, answer
    assert [p['name'] for p in server.get('/api/v1/providers')['providers']] == ['local']
    server.kill_door()
    try:
        answer = server.ask('PUT', '/api/v1/providers/other', body={**body, 'sealed_key': sealed_of(server)})
        assert answer.status == 202 and 'door' in answer.json['note'], answer
    finally:
        server.start_door()
        wait_until(server.door_is_up, 'the door')
    assert coop(server, 'provider', 'test', 'other')['ok']
    coop(server, 'provider', 'rm', 'other')


def test_a_silent_door_is_not_waited_for(server, provider):
    body = {'kind': 'compatible', 'base_url': f'http://127.0.0.1:{PORT}/v1'}
    os.kill(server.door_pid(), signal.SIGSTOP)
    try:
        assert server.ask('PUT', '/api/v1/providers/other', body=body).status == 202
    finally:
        os.kill(server.door_pid(), signal.SIGCONT)
    wait_until(lambda: server.ask('POST', '/api/v1/providers/other/test').json['ok'], 'the door')
    coop(server, 'provider', 'rm', 'other')


def test_a_provider_is_tested(server, provider):
    assert coop(server, 'provider', 'test', 'local')['ok']
    assert coop(server, 'provider', 'ls')[0]['key'] is True


def test_a_budget_stops_calls_before_they_are_made(server, provider):
    with server.box() as box:
        scope = f'box:{box}'
        coop(server, 'budget', 'set', scope, '--calls', '1')
        assert ask(server, box)[0] == 200
        shown = server.shown.read_text()
        status, answer = ask(server, box, {**ASK, 'temperature': 0})
        assert status in (402, 429) and 'budget' in answer, (status, answer)
        assert server.shown.read_text() == shown
        wait_until(lambda: coop(server, 'budget', 'ls')[0]['spent']['calls'] == 1, 'what was spent')
        # A new door knows what was spent, and from whom.
        server.kill_door()
        server.start_door()
        wait_until(server.door_is_up, 'the door')
        assert ask(server, box, {**ASK, 'temperature': 0})[0] == status
        coop(server, 'budget', 'rm', scope)
        assert ask(server, box, {**ASK, 'temperature': 0})[0] == 200


def test_a_long_name_has_a_budget_too(server, provider):
    task, alike = 't' * 127 + 'a', 't' * 127 + 'b'
    with server.box(task_id=task) as box, server.box(task_id=alike) as other:
        coop(server, 'budget', 'set', f'task:{task}', '--calls', '1')
        assert ask(server, box)[0] == 200
        assert ask(server, box)[0] == 402
        assert ask(server, other)[0] == 200
        coop(server, 'budget', 'rm', f'task:{task}')


def test_a_squad_has_a_budget_and_an_account(server, provider):
    with server.box(squad_id='crew') as one, server.box(squad_id='crew') as two, server.box() as other:
        coop(server, 'budget', 'set', 'squad:crew', '--calls', '1')
        assert ask(server, one)[0] == 200
        assert ask(server, two)[0] == 402 and ask(server, other)[0] == 200
        wait_until(lambda: coop(server, 'budget', 'ls')[0]['spent']['calls'] == 1, 'what was spent')
        row = next(r for r in server.get('/api/v1/usage?by=squad')['rows'] if r['id'] == 'crew')
        assert row['calls'] == 1 and row['box_hours'] > 0
        coop(server, 'budget', 'rm', 'squad:crew')


def test_the_door_forgets_a_budget_that_went_meanwhile(server, provider):
    with server.box() as box:
        coop(server, 'budget', 'set', f'box:{box}', '--calls', '1')
        assert ask(server, box)[0] == 200
        assert ask(server, box, {**ASK, 'temperature': 1})[0] == 402
        server.kill()
        with open_log(server.home) as db, db:
            db.execute('DELETE FROM budgets')
        Server.start(server)
        wait_until(lambda: ask(server, box, {**ASK, 'temperature': 1})[0] == 200, 'the door to forget it')


def test_bad_budgets_are_refused(server):
    for scope, bounds in (('nobody:1', {'calls': 1}), ('box:', {'calls': 1}), ('all', {}), ('all', {'calls': -1}),
                          ('all', {'cakes': 1})):
        assert server.ask('PUT', f'/api/v1/budgets/{scope}', body=bounds).status == 400, (scope, bounds)
    assert server.ask('DELETE', '/api/v1/budgets/all').status == 404


def test_bad_prices_do_not_close_the_door(server, provider):
    prices = server.door_folder / 'state' / 'prices.yaml'
    server.kill_door()
    prices.write_text('models: [')
    try:
        server.start_door()
        wait_until(server.door_is_up, 'the door')
        assert 'prices.yaml is left out' in server.door_log.read_text()
        with server.box() as box:
            assert ask(server, box)[0] == 200
    finally:
        prices.unlink()


def test_models_survive_a_restart_of_the_server(server, provider):
    with server.box() as box:
        server.kill()
        Server.start(server)
        wait_until(server.door_is_up, 'the door')
        assert ask(server, box)[0] == 200


def test_a_restore_brings_back_what_was(server, place):
    saved = str(place / 'saved')
    coop(server, 'backup', saved)
    coop(server, 'provider', 'add', 'later', '--kind', 'compatible', '--base-url', f'http://127.0.0.1:{PORT}/v1')
    server.rule('allow', 'example.org')
    with server.box() as box:
        assert ask(server, box)[0] == 200
        coop(server, 'budget', 'set', 'all', '--calls', '1')
        assert ask(server, box, {**ASK, 'temperature': 0})[0] == 402
    coop(server, 'restore', saved, '--yes')
    assert server.get('/api/v1/providers')['providers'] == server.get('/api/v1/budgets')['budgets'] == []
    assert server.get('/api/v1/door/rules')['rules'] == []
    with server.box() as box:
        status, answer = ask(server, box)
        assert status == 404 and 'model_not_found' in answer, answer


def test_the_guide(server, place):
    programs = pathlib.Path(PROGRAM).parent
    guide = pathlib.Path(__file__).parents[2] / 'docs' / 'models.md'
    env = {'PATH': f'{programs}:/usr/bin:/bin', 'COOP_HOME': str(server.home)}
    check_examples(guide, env, cwd=place)
    coop(server, 'budget', 'rm', 'all')
    coop(server, 'provider', 'rm', 'demo')
