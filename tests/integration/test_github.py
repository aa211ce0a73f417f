# SPDX-License-Identifier: Apache-2.0
"""GitHub as client: accounts, webhooks, and what goes there.  Nothing leaves this machine."""
import json
import os
import secrets
import subprocess
import threading

import pytest

from githubserver import HOOK_SECRET, TOKEN, GithubServer, add_work, coded, deliver, serving, sign
from gitrepo import GitServer, git
from gitserver import Work, make_repo, url_of
from harness import PROGRAM, WAIT_S, check_error, wait_until

API = '/api/v1/github'
NEXT = f'github_pat_hunter3_{secrets.token_hex(16)}'
needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')


@pytest.fixture
def place(tmp_path):
    with serving(tmp_path, GithubServer, TOKEN) as server:
        yield server


def login(server, place, token=TOKEN, status=200, verb='login', **more):
    return server.post(f'{API}/{verb}', {'base_url': place.base, 'token': token, **more}, status=status)


def mirror(server, place):
    server.post('/api/v1/repos', {'name': 'widget', 'source': place.url('acme/widget.git'), 'mirror': True}, status=202)
    return wait_until(lambda: (r := server.get('/api/v1/repos/coop/widget'))['state'] == 'ready' and r, 'the mirror')


def coop(server, *args, stdin=''):
    done = subprocess.run([PROGRAM, *args], env=server.environment(), input=stdin, capture_output=True, text=True,
                          timeout=60)
    assert TOKEN not in done.stdout + done.stderr and NEXT not in done.stdout + done.stderr
    return done


def check_unseen(server, *hidden):
    """In no file, no log, no event, no command line and no environment."""
    for secret in hidden:
        for text in (secret, coded(secret)):
            needle = text.encode()
            for path in server.home.rglob('*'):
                assert not path.is_file() or needle not in path.read_bytes(), path
            assert text not in server.log()
            assert text not in json.dumps(server.events())
    check_family(server, *hidden)


def check_family(server, *hidden):
    """In no command line and no environment of the server and what it has started, whose names these are."""
    names = []
    for process in server.family():
        try:
            seen = (process / 'cmdline').read_bytes() + (process / 'environ').read_bytes()
            names.append((process / 'comm').read_text().strip())
        except OSError:
            continue
        for text in hidden:
            assert text.encode() not in seen and coded(text).encode() not in seen, (process, names[-1])
    return names


# ---- accounts ----

def test_login_and_logout(make_server, place):
    server = make_server()
    place.fields = [('github-authentication-token-expiration', '2999-01-01 00:00:00 UTC')]
    done = coop(server, 'github', 'login', '--base-url', place.base, '--token-file', '-', stdin=TOKEN + '\n')
    assert done.returncode == 0 and 'signed in as robot' in done.stdout, done.stderr
    account, = server.get(API)['accounts']
    assert account['login'] == 'robot' and account['kind'] == 'fine-grained' and account['from'] == 'row'
    assert account['expires_at'].startswith('2999-01-01') and account['warnings'] == []
    assert [e['data']['action'] for e in server.events(kind='github.changed')] == ['login']
    check_unseen(server, TOKEN)
    # It outlives the server.
    server.stop()
    server.start()
    assert server.get(API)['accounts'][0]['login'] == 'robot'
    done = coop(server, 'github', 'status', '--check', '--base-url', place.base, '-o', 'json')
    assert done.returncode == 0 and json.loads(done.stdout)[0]['checked_at'], done
    assert coop(server, 'github', 'logout', '--base-url', place.base).returncode == 0
    assert server.get(API)['accounts'] == []
    assert coop(server, 'github', 'logout', '--base-url', place.base).returncode != 0
    check_unseen(server, TOKEN)


def test_warnings(make_server, place):
    server = make_server(env={'COOP_GITHUB_WRITE_PAUSE': '0s'})
    place.tokens.append('ghp_classic')
    place.fields = [('X-OAuth-Scopes', 'repo, workflow, read:user'),
                    ('github-authentication-token-expiration', '2026-01-01 00:00:00 UTC')]
    warnings = login(server, place, 'ghp_classic')['warnings']
    assert 'expired' in warnings[0] and "'repo'" in warnings[1] and "'workflow'" in warnings[2] and len(warnings) == 3
    place.fields = []
    for name in ('keys', 'branches', 'pulls'):
        place.replies['GET', f'/repos/acme/widget/{name}'] = (200, [], [])
    for name in ('pulls', 'git/refs'):
        place.replies['POST', f'/repos/acme/widget/{name}'] = (422, [], {'message': 'Invalid request.'})
    place.replies['GET', '/user/repos'] = (200, [], [{'full_name': 'acme/widget'}])
    account = login(server, place)
    assert account['may'] == ['administration'] and account['lacks'] == [] and account['probed'] == 'acme/widget'
    # Nothing that could be taken was sent.
    assert {json.dumps(b) for m, _, b in place.asked if m != 'GET'} == {'{}'}
    place.replies['POST', '/repos/acme/widget/issues'] = (422, [], {'message': 'Invalid request.'})
    place.replies['POST', '/repos/acme/widget/pulls'] = (403, [], {'message': 'Resource not accessible'})
    account = login(server, place)
    assert account['may'] == ['administration', 'issues:write'] and account['lacks'] == ['pull_requests:write']
    assert any("lack the permission 'pull_requests:write'" in w for w in account['warnings'])
    del place.replies['POST', '/repos/acme/widget/issues']
    place.replies['POST', '/repos/acme/widget/git/refs'] = (409, [], {'message': 'Git Repository is empty.'})
    place.replies['POST', '/repos/acme/widget/pulls'] = (422, [], {'message': 'Invalid request.'})
    assert login(server, place)['lacks'] == []
    assert "'administration'" in account['warnings'][0]
    del place.replies['GET', '/repos/acme/widget/pulls']
    assert login(server, place)['lacks'] == ['pull_requests']


def test_what_is_refused(make_server, place):
    server = make_server()
    check_error(server, server.ask('POST', f'{API}/login', body={'base_url': place.base, 'token': 'wrong'}), 403)
    for body in ({'base_url': 'http://example.org', 'token': 'x'}, {'base_url': place.base, 'token': 'a b'},
                 {'base_url': place.base}, {'base_url': place.base, 'token': 'x', 'more': 1}):
        check_error(server, server.ask('POST', f'{API}/login', body=body), 400)
    check_error(server, server.ask('POST', f'{API}/rotate', body={'base_url': place.base, 'token': TOKEN}), 404)
    login(server, place)
    # Not taken there, or somebody else's: the old one stays.
    check_error(server, server.ask('POST', f'{API}/rotate', body={'base_url': place.base, 'token': NEXT}), 403)
    place.tokens.append(NEXT)
    place.login = 'other'
    check_error(server, server.ask('POST', f'{API}/rotate', body={'base_url': place.base, 'token': NEXT}), 409)
    place.login = 'robot'
    place.asked.clear()
    assert login(server, place, NEXT, verb='rotate')['login'] == 'robot'
    place.tokens.remove(TOKEN)
    assert server.post(f'{API}/check', {'base_url': place.base}, status=200)['login'] == 'robot'
    key = server.make_key(scopes='box')['key']
    check_error(server, server.ask('GET', API, key=key), 403)
    check_unseen(server, TOKEN, NEXT)


@pytest.mark.parametrize('verb', ['rotate', 'logout'])
def test_a_late_look(make_server, place, verb):
    """A look at the old token that ends behind its end brings it back to nobody."""
    server = make_server()
    place.tokens.append(NEXT)
    login(server, place)
    asked, may_answer, real = threading.Event(), threading.Event(), place.reply

    def slowly(method, path):
        if path == '/user' and not asked.is_set():
            asked.set()
            may_answer.wait(60)
        return real(method, path)
    place.reply = slowly
    looks = []
    look = threading.Thread(target=lambda: looks.append(server.ask('POST', f'{API}/check',
                                                                   body={'base_url': place.base})))
    look.start()
    assert asked.wait(60)
    if verb == 'rotate':
        login(server, place, NEXT, verb='rotate')
    else:
        assert server.ask('DELETE', f'{API}?base_url={place.base}').status == 204
    may_answer.set()
    look.join()
    check_error(server, looks[0], 409)
    place.tokens.remove(TOKEN)
    server.stop()
    server.start()
    assert len(server.get(API)['accounts']) == (verb == 'rotate')
    if verb == 'rotate':
        assert server.ask('POST', f'{API}/check', body={'base_url': place.base}).status == 200


def test_token_of_the_environment(make_server, place):
    server = make_server(env={'GH_TOKEN': TOKEN, 'GITHUB_API_URL': place.base})
    account, = server.get(API)['accounts']
    assert account['from'] == 'environment' and account['login'] == ''
    assert place.asked == []  # nobody is asked before there is something to do
    check_unseen(server, TOKEN)
    assert server.post(f'{API}/check', {'base_url': place.base}, status=200)['login'] == 'robot'
    mirror(server, place)
    check_unseen(server, TOKEN)


# ---- webhooks ----

REPO = {'full_name': 'acme/widget'}


def told(server, kind):
    return [e for e in server.events(kind=kind) if e['data'].get('source') == 'github']


def test_webhooks(make_server, place):
    server = make_server()
    pull = {'id': 5, 'number': 7, 'title': 'A pull', 'state': 'open', 'created_at': '2026-01-01T00:00:00Z',
            'updated_at': '2026-01-01T00:00:00Z'}
    payload = {'action': 'opened', 'pull_request': pull, 'repository': REPO, 'sender': {'login': 'ann'}}
    body = json.dumps(payload).encode()
    deliver(server, 'pull_request', payload, 'g-0', status=404)  # nobody has a secret
    login(server, place, webhook_secret=HOOK_SECRET)
    repo = mirror(server, place)
    for signature in (None, 'sha256=', sign(body, 'other'), sign(b'x'), sign(body).upper(), sign(body)[7:]):
        deliver(server, 'pull_request', payload, 'g-1', signature, status=401)
    assert told(server, 'pr.opened') == []
    assert deliver(server, 'pull_request', payload, 'g-1') == {'result': 'taken'}
    assert deliver(server, 'pull_request', payload, 'g-1', status=200) == {'result': 'known'}
    # The same thing in another delivery.
    assert deliver(server, 'pull_request', payload, 'g-2', status=200) == {'result': 'known'}
    event, = told(server, 'pr.opened')
    assert event['actor'] == 'github:ann' and event['data']['upstream_number'] == 7
    assert event['data']['repository_id'] == repo['id'] and 'number' not in event['data']
    # What is signed and makes no sense is no reason to fall over.
    for text in (b'', b'{', b'[]', b'{"action": 1}', b'[' * 10000):
        answer = server.ask('POST', '/webhooks/github', key=None, body=text,
                            headers={'Content-Type': 'application/json', 'X-GitHub-Event': 'pull_request',
                                     'X-GitHub-Delivery': 'g-3', 'X-Hub-Signature-256': sign(text)})
        assert answer.status in (200, 400), answer
    deliver(server, 'pull_request', {**payload, 'repository': {'full_name': 'evil/widget'}}, 'g-4', status=200)
    deliver(server, 'ping', {'zen': 'x', 'repository': REPO}, 'g-6', status=200)
    head = (f'POST /webhooks/github HTTP/1.1\r\nHost: {server.host}\r\nContent-Type: application/json\r\n'
            f'X-GitHub-Event: push\r\nX-GitHub-Delivery: g-7\r\nContent-Length: {5 << 20}\r\n\r\n')
    assert server.raw(head.encode()).startswith(b'HTTP/1.1 413 ')
    assert 'event=push delivery=g-7 max_bytes=4194304' in wait_until(lambda: server.log_lines('its body is too large'), 'the log')[0]
    answer = server.ask('POST', '/webhooks/github', key=None, body=b'payload=x',
                        headers={'Content-Type': 'application/x-www-form-urlencoded'})
    assert answer.status == 415
    check_unseen(server, TOKEN, HOOK_SECRET)


def test_push_fetches(make_server, place):
    server = make_server()
    login(server, place, webhook_secret=HOOK_SECRET)
    repo = mirror(server, place)
    place.source.commit('more', 'more\n')
    git(place.source.folder, 'push', '-q', str(place.bare), 'main')
    deliver(server, 'push', {'ref': 'refs/heads/main', 'repository': REPO}, 'p-1')
    tip = place.source.head()
    wait_until(lambda: git(server.home / 'repos' / repo['id'], 'rev-parse', 'main') == tip, 'the fetch')


@needs_failpoints
def test_webhook_survives_a_kill(make_server, place):
    server = make_server(start=False)
    server.start()
    login(server, place, webhook_secret=HOOK_SECRET)
    mirror(server, place)
    server.stop()
    payload = {'id': 3, 'state': 'success', 'context': 'ci', 'sha': 'a' * 40, 'repository': REPO}
    server.env = {'COOP_FAIL_AT': 'github-news'}
    server.start()
    with pytest.raises(Exception):
        deliver(server, 'status', payload, 's-1')
    server.wait_killed()
    server.env = {}
    server.start()
    assert told(server, 'status.reported') == []
    assert deliver(server, 'status', payload, 's-1') == {'result': 'taken'}
    assert len(told(server, 'status.reported')) == 1


# ---- what goes there ----

def work(server):
    return {w['kind']: w for w in server.get(f'{API}/work')['work']}


def ended(server, kind, state='done'):
    return wait_until(lambda: (w := work(server).get(kind)) and w['state'] == state and w, f'{kind} {state}')


def branch_of(server, repo, name='task-1', message='feat: work'):
    """A commit on a branch of the mirror, as a box's push leaves it."""
    bare = server.home / 'repos' / repo['id']
    tree = git(bare, 'rev-parse', 'main^{tree}')
    oid = git(bare, 'commit-tree', tree, '-p', 'main', '-m', message)
    git(bare, 'update-ref', f'refs/heads/{name}', oid)
    return oid


def prepare_push(make_server, place):
    server = make_server()
    login(server, place)
    repo = mirror(server, place)
    oid = branch_of(server, repo)
    server.stop()
    add_work(server, repo, 'push', 'task-1', {'branch': 'task-1', 'oid': oid, 'seq': 1})
    return server, repo, oid


def test_push(make_server, place):
    server, _, oid = prepare_push(make_server, place)
    server.start()
    assert ended(server, 'push')['answer'] == {'oid': oid}
    assert git(place.bare, 'rev-parse', 'task-1') == oid
    check_unseen(server, TOKEN)


@pytest.mark.parametrize('service', ['git-receive-pack', 'git-upload-pack'])
def test_token_of_a_running_git(make_server, place, service):
    """While git waits for an answer, in the middle of a push or a fetch."""
    server, repo, oid = prepare_push(make_server, place)
    place.source.commit('more', 'more\n')
    git(place.source.folder, 'push', '-q', str(place.bare), 'main')
    place.gate_at, place.gate = service, threading.Event()
    server.start()
    if service == 'git-upload-pack':
        server.post('/api/v1/repos/coop/widget/fetch', b'', status=202)
    assert place.held.wait(WAIT_S)
    names = check_family(server, TOKEN)
    assert 'git' in names and any(name.startswith('git-remote-http') for name in names), names
    place.gate.set()
    ended(server, 'push')
    assert git(place.bare, 'rev-parse', 'task-1') == oid
    tip = place.source.head()
    if service == 'git-upload-pack':
        wait_until(lambda: git(server.home / 'repos' / repo['id'], 'rev-parse', 'main') == tip, 'the fetch')


def test_push_uses_no_force(make_server, place):
    server, _, _ = prepare_push(make_server, place)
    theirs = git(place.bare, 'commit-tree', git(place.bare, 'rev-parse', 'main^{tree}'), '-m', 'theirs')
    git(place.bare, 'update-ref', 'refs/heads/task-1', theirs)
    server.start()
    assert 'rejected' in ended(server, 'push', 'failed')['problem']
    assert git(place.bare, 'rev-parse', 'task-1') == theirs


@pytest.mark.parametrize('branch, oid', [('main:refs/heads/x', 'a' * 40), ('--mirror', 'a' * 40), ('../main', 'a' * 40),
                                         ('task-1', '+' + 'a' * 40), ('task-1', 'main'), ('task-1', '')])
def test_hostile_rows(make_server, place, branch, oid):
    server, repo, _ = prepare_push(make_server, place)
    before = git(place.bare, 'for-each-ref')
    add_work(server, repo, 'push', 'bad', {'branch': branch, 'oid': oid, 'seq': 1})
    server.start()
    wait_until(lambda: server.get(f'{API}/work')['work'][0]['tries'] >= 1, 'a try')
    wait_until(lambda: git(place.bare, 'for-each-ref') != before, 'the good one')
    assert [line.split()[-1] for line in git(place.bare, 'for-each-ref').splitlines()] == ['refs/heads/main',
                                                                                         'refs/heads/task-1']


def test_redirect_gets_no_token(make_server, place, tmp_path):
    server, _, _ = prepare_push(make_server, place)
    with GitServer(place.root) as elsewhere:
        place.redirect = f'http://127.0.0.1:{elsewhere.http.server_port}'
        server.start()
        wait_until(lambda: work(server)['push']['tries'] >= 1, 'a try')
        assert elsewhere.seen == []
        server.post('/api/v1/repos/coop/widget/fetch', b'', status=202)
        wait_until(lambda: server.events(kind='git.failed'), 'the failure')
        assert elsewhere.seen == []
    assert TOKEN not in json.dumps(server.get(f'{API}/work'))
    check_unseen(server, TOKEN)


@needs_failpoints
@pytest.mark.parametrize('point', ['upstream-marked', 'upstream-pushed', 'upstream-answered'])
def test_push_survives_a_kill(make_server, place, point):
    server, _, oid = prepare_push(make_server, place)
    server.env = {'COOP_FAIL_AT': point}
    server.spawn()
    server.wait_killed()
    server.env = {}
    server.start()
    assert ended(server, 'push')['answer'] == {'oid': oid}
    assert git(place.bare, 'rev-parse', 'task-1') == oid


# ---- from one Coop to another ----

@pytest.fixture
def two(make_server, tmp_path):
    """`upstream` has a repository, `server` mirrors it with an account there."""
    upstream, server = make_server(), make_server(env={'COOP_GITHUB_WRITE_PAUSE': '0s'})
    path, there = make_repo(upstream, 'widget', owner='acme')
    clone = Work(tmp_path / 'clone', url_of(upstream, path)).init()
    clone.commit()
    clone.push('HEAD:refs/heads/main')
    base = f'http://{upstream.host}/api/v3'
    server.post(f'{API}/login', {'base_url': base, 'token': upstream.key}, status=200)
    server.post('/api/v1/repos', {'name': 'widget', 'source': f'http://{upstream.host}{path}', 'mirror': True},
                status=202)
    repo = wait_until(lambda: (r := server.get('/api/v1/repos/coop/widget'))['state'] == 'ready' and r, 'the mirror')
    here = Work(tmp_path / 'here', url_of(server, '/git/coop/widget.git')).clone()
    here.git('checkout', '-q', '-b', 'task-1')
    oid = here.commit('work', 'work\n', 'feat: work')
    here.push('task-1')
    pull = server.post('/api/v3/repos/coop/widget/pulls', {'title': 'Work', 'head': 'task-1', 'base': 'main',
                                                           'body': 'Text'})
    server.stop()
    add_work(server, repo, 'push', 'task-1', {'branch': 'task-1', 'oid': oid, 'seq': 1})
    add_work(server, repo, 'pull', str(pull['number']), {'number': pull['number'], 'seq': 2})
    return upstream, server, pull


def pulls(upstream):
    return upstream.get('/api/v3/repos/acme/widget/pulls?state=all')


def test_pull_request(two):
    upstream, server, pull = two
    server.start()
    answer = ended(server, 'pull')['answer']
    there, = pulls(upstream)
    assert there['title'] == 'Work' and there['body'] == 'Text' and there['number'] == answer['number']
    event = wait_until(lambda: told(server, 'pr.opened'), 'the event')[0]
    assert event['data']['number_here'] == pull['number'] and event['data']['upstream_number'] == there['number']
    check_unseen_but_key(server, upstream.key)


def check_unseen_but_key(server, key):
    """The other server's own key is in its own folder."""
    assert key not in server.log() and key not in json.dumps(server.events())
    for path in server.home.rglob('*'):
        assert not path.is_file() or key.encode() not in path.read_bytes(), path


@needs_failpoints
@pytest.mark.parametrize('count', [1, 2])
@pytest.mark.parametrize('point', ['upstream-marked', 'upstream-answered'])
def test_pull_request_is_opened_once(two, point, count):
    upstream, server, _ = two
    server.env = {**server.env, 'COOP_FAIL_AT': f'{point}:{count}'}
    server.spawn()
    server.wait_killed()
    server.env = {k: v for k, v in server.env.items() if k != 'COOP_FAIL_AT'}
    server.start()
    ended(server, 'pull')
    assert len(pulls(upstream)) == 1
