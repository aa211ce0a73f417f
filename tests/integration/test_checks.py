# SPDX-License-Identifier: Apache-2.0
"""Coop's own checks: commands of the base on the tree of the head, in a clean box; only that decides."""
import contextlib
import hashlib
import json
import os
import sqlite3
import subprocess

import pytest

import leaks
import workserver
from boxserver import API
from fake import Fake, answer
from gitserver import Work, url_of
from harness import PROGRAM, check_error, free_port, wait_until
from workserver import git

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')
FOREVER_S = 120


class Project:
    """A repository of the server, made of files, and a clone of it."""

    def __init__(self, server, name, files):
        self.server, self.name = server, name
        source = server.folder / f'source-{name}'
        source.mkdir()
        git(source, 'init', '--quiet', '--initial-branch=main')
        write(source, files)
        git(source, 'add', '-A')
        git(source, 'commit', '--quiet', '-m', 'feat: begin')
        server.import_repo(name, source)
        self.work = Work(server.folder / f'work-{name}', url_of(server, f'/git/coop/{name}.git')).clone()

    @property
    def path(self):
        return f'/api/v1/repos/coop/{self.name}/checks'

    def branch(self, name, files, base='origin/main'):
        """A branch with one commit more, pushed; the commit."""
        self.work.git('checkout', '-q', '-B', name, base)
        write(self.work.folder, files)
        self.work.git('add', '-A')
        self.work.git('commit', '-q', '--allow-empty', '-m', 'feat: change')
        self.work.push('-f', name)
        return self.work.head()

    def ask(self, **body):
        return self.server.post(self.path, body, status=202)['id']

    def suite(self, suite):
        return self.server.get(f'{self.path}/{suite}')

    def ended(self, suite):
        def over():
            now = self.suite(suite)
            return now['state'] not in ('queued', 'running') and now
        return wait_until(over, 'the end of a suite', FOREVER_S)

    def check(self, branch, files):
        """The suite of a branch with this change, ended."""
        self.branch(branch, files)
        return self.ended(self.ask(branch=branch))

    def log(self, suite, check):
        return self.server.ask('GET', f'{self.path}/{suite}/log/{check}').body

    def receipt(self, suite):
        return self.server.ask('GET', f'{self.path}/{suite}/receipt').body

    def suites(self, **query):
        words = '&'.join(f'{name}={value}' for name, value in query.items())
        return self.server.get(f'{self.path}?{words}')['suites']


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(text)


def plan(*commands, setup=(), **more):
    """A coop.yaml: YAML reads JSON."""
    return json.dumps({**more, **({'setup': list(setup)} if setup else {}), 'checks': list(commands)})


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        yield made


def states(suite):
    return [(c['name'], c['conclusion'], c['exit_code']) for c in suite['checks']]


def no_box_is_left(server):
    state = server.keeper.folder / 'state'
    wait_until(lambda: not server.get(API)['sandboxes'], 'no box')
    wait_until(lambda: not leaks.records_of(state), 'nothing of the boxes')


# ---- what is run, and on what ----

def test_passes(server):
    project = Project(server, 'passes', {'coop.yaml': plan({'name': 'one', 'run': 'cat a; echo no >&2', 'env': {'WORD': 'x'}},
                                                            {'name': 'two', 'run': 'echo $WORD $CI; pwd', 'workdir': 'sub',
                                                             'env': {'WORD': 'y'}}, setup=['echo made >b']),
                                         'a': 'old\n', 'sub/c': ''})
    head = project.branch('change', {'a': 'new\n'})
    suite = project.ended(project.ask(branch='change'))
    assert suite['state'] == 'passed' and suite['problem'] is None and suite['tries'] == 1
    assert suite['source'] == 'coop.yaml' and suite['template'].startswith('tiny ')
    assert states(suite) == [('echo made >b', 'success', 0), ('one', 'success', 0), ('two', 'success', 0)]
    assert suite['head_oid'] == head and suite['tree_oid'] == project.work.head('HEAD^{tree}')
    assert project.log(suite['id'], suite['checks'][1]['id']) == b'new\nno\n'
    assert suite['checks'][1]['output_sha256'] == hashlib.sha256(b'new\nno\n').hexdigest()
    assert project.log(suite['id'], suite['checks'][2]['id']).split() == [b'y', b'true', b'/home/user/checkout/sub']
    receipt = suite['receipt']['receipt']
    assert receipt['tree_compared'] and receipt['result'] == 'passed' and receipt['commands_from'] == 'base'
    assert [c['exit_code'] for c in receipt['commands']] == [0, 0, 0] and receipt['tree'] == suite['tree_oid']
    kinds = [(e['kind'], e['data'].get('state')) for e in server.events() if e['data'].get('suite') == suite['id']
             and e['kind'].startswith('checks.')]
    assert kinds == [('checks.started', None), ('checks.ended', 'passed')]
    no_box_is_left(server)


def test_every_kind_of_file(server):
    """What is in the box is the tree, whatever attributes the tree has."""
    project = Project(server, 'kinds', {'coop.yaml': plan('true'), '.gitattributes': '*.txt text eol=crlf\n*.sub export-ignore\n'
                                        '*.id ident\n*.f filter=none\n'})
    work = project.work
    work.git('checkout', '-q', '-B', 'kinds')
    write(work.folder, {'a.txt': 'x\r\ny\n', 'b.sub': 'kept', 'c.id': '$Id$\n', 'd.f': 'f', 'name with spaces': '', 'ümläut': 'u',
                        'bin': bytes(range(256)), 'deep/er/and/deeper': 'd', '.hidden': 'h', 'coop.sh': 'echo'})
    (work.folder / 'coop.sh').chmod(0o755)
    (work.folder / 'link').symlink_to('deep/er')
    (work.folder / 'broken').symlink_to('nowhere')
    work.git('-c', 'core.autocrlf=false', 'add', '-A')
    work.git('update-index', '--add', '--cacheinfo', f'160000,{"1" * 40},module')
    work.git('commit', '-q', '-m', 'feat: kinds')
    work.push('kinds')
    suite = project.ended(project.ask(branch='kinds'))
    assert suite['state'] == 'passed' and suite['receipt']['receipt']['tree_compared'], suite


def test_nothing_else_is_in_the_box(server):
    look = 'ls -a; ls -a ..; env; git -C . log 2>&1; git ls-remote http://127.0.0.1:3128/git/coop/alone.git 2>&1; true'
    project = Project(server, 'alone', {'coop.yaml': plan(look)})
    suite = project.check('c', {})
    said = project.log(suite['id'], suite['checks'][0]['id']).decode()
    files = said.partition('PATH=')[0].split()
    assert suite['state'] == 'passed' and 'checkout' in files and not {'.git', 'checkout-compared'} & set(files)
    assert 'not a git repository' in said and server.key not in said and 'refs/heads/main' not in said
    assert 'this box has no such repository' in said or '404' in said or 'not found' in said, said


def test_failures(server):
    project = Project(server, 'fails', {'coop.yaml': plan({'name': 'bad', 'run': 'exit 3'}, {'name': 'good', 'run': 'true'},
                                                          {'name': 'signal', 'run': 'kill -9 $$'},
                                                          {'name': 'none', 'run': '/no/such/program'},
                                                          {'name': 'slow', 'run': 'sleep 1000', 'timeout': 1},
                                                          {'name': 'folder', 'run': 'true', 'workdir': 'nowhere'})})
    suite = project.check('c', {})
    assert suite['state'] == 'failed'
    conclusions = {c['name']: (c['conclusion'], c['reason'], c['exit_code']) for c in suite['checks']}
    assert conclusions['bad'] == ('failure', 'exit', 3) and conclusions['good'] == ('success', 'exit', 0)
    assert conclusions['slow'] == ('timed_out', 'timeout', 124) and conclusions['none'][:1] == ('failure',)
    assert conclusions['signal'] == ('failure', 'signal', 137) and conclusions['folder'][0] == 'failure'
    assert suite['receipt']['receipt']['result'] == 'failed'


def test_setup_fails(server):
    project = Project(server, 'setup', {'coop.yaml': plan('echo c', setup=['echo a', 'exit 1', 'echo b'])})
    suite = project.check('c', {})
    assert suite['state'] == 'failed'
    assert states(suite) == [('echo a', 'success', 0), ('exit 1', 'failure', 1), ('echo b', 'skipped', None),
                             ('echo c', 'skipped', None)]
    assert [c['conclusion'] for c in suite['receipt']['receipt']['commands']] == ['success', 'failure', 'skipped', 'skipped']


@pytest.mark.parametrize('files, words', [
    ({'README': 'x'}, 'has no checks: put a coop.yaml'),
    ({'coop.yaml': 'checks: [true]\nmatrix: 1\n'}, "line 2: there is no 'matrix' here"),
    ({'coop.yaml': 'checks: []\n'}, 'has no checks'),
    ({'coop.yaml': 'x' * (300 * 1024)}, 'is not a file of at most'),
])
def test_no_plan(server, files, words):
    project = Project(server, f'none-{len(words)}', files)
    suite = project.check('c', {})
    assert suite['state'] == 'failed' and words in suite['problem'] and suite['checks'] == []
    receipt = suite['receipt']['receipt']
    assert receipt['result'] == 'failed' and receipt['commands'] == [] and words in receipt['problem']


def test_none_is_allowed(server):
    project = Project(server, 'allowed', {'README': 'x'})
    set_settings(server, 'allowed', {'checks': 'none'})
    suite = project.check('c', {})
    assert suite['state'] == 'passed' and suite['receipt']['receipt']['commands'] == []
    # It is no leave to skip what is there.
    project.branch('main', {'coop.yaml': plan('false')})
    assert project.check('d', {})['state'] == 'failed'


def set_settings(server, name, settings):
    assert server.ask('PATCH', f'/api/v1/repos/coop/{name}/settings', body=settings).status == 200


def test_detected(server):
    project = Project(server, 'detected', {'Makefile': 'test:\n\ttrue\n'})
    suite = project.check('c', {})
    assert suite['source'] == 'detected: Makefile' and states(suite)[0][0] == 'make test'
    assert suite['state'] == 'failed'  # this template has no make
    bare = Project(server, 'fresh', {'README': 'x'})
    suite = bare.check('c', {'coop.yaml': plan('true')})
    assert suite['state'] == 'passed' and suite['source'] == 'coop.yaml of the head'
    assert suite['receipt']['receipt']['commands_from'] == 'head'


def test_template(server):
    project = Project(server, 'template', {'coop.yaml': plan('true', template='nowhere')})
    suite = project.check('c', {})
    assert suite['state'] == 'failed' and 'nowhere' in suite['problem'] and suite['tries'] == 1


# ---- whoever would like to choose his own checks ----

def test_the_change_cannot_choose(server):
    project = Project(server, 'choose', {'coop.yaml': plan({'name': 't', 'run': 'sh test.sh'}), 'test.sh': 'grep -q good a\n', 'a': 'good\n'})
    suite = project.check('c', {'coop.yaml': plan('true'), 'a': 'bad\n'})
    assert suite['state'] == 'failed' and states(suite)[0][0] == 't'
    # The honest limit: what the change has of the tests themselves is the change's.
    assert project.check('d', {'test.sh': 'exit 0\n', 'a': 'bad\n'})['state'] == 'passed'


def test_flood(server):
    size = 1 << 30
    project = Project(server, 'flood', {'coop.yaml': plan({'name': 'f', 'run': f'head -c {size} /dev/zero; echo last'})})
    before = resident(server)
    suite = project.check('c', {})
    check = suite['checks'][0]
    digest = hashlib.sha256()
    for _ in range(size >> 20):
        digest.update(bytes(1 << 20))
    digest.update(b'last\n')
    assert suite['state'] == 'passed' and check['output_bytes'] == size + 5
    assert check['output_sha256'] == digest.hexdigest()
    kept = project.log(suite['id'], check['id'])
    assert kept.endswith(b'last\n') and b'bytes are left out here' in kept and len(kept) < 300_000
    assert resident(server) - before < 300 << 20  # what is freed stays a while under ASan


def resident(server):
    with open(f'/proc/{server.pid}/status', encoding='ascii') as status:
        return next(int(line.split()[1]) for line in status if line.startswith('VmRSS')) << 10


def test_never_ends(server):
    """It forks, leaves its session where it can, and does not end."""
    hang = '(while :; do sleep 1; done) & (sleep 1000 >/dev/null 2>&1 &) ; while :; do sleep 1; done'
    project = Project(server, 'hang', {'coop.yaml': plan({'name': 'h', 'run': hang, 'timeout': 2}, {'name': 'next', 'run': 'true'})})
    suite = project.check('c', {})
    assert states(suite) == [('h', 'timed_out', 124), ('next', 'success', 0)] and suite['state'] == 'failed'
    all_time = Project(server, 'hang-all', {'coop.yaml': plan({'name': 'h', 'run': hang}, {'name': 'next', 'run': 'true'}, timeout=3)})
    suite = all_time.check('c', {})
    assert states(suite) == [('h', 'timed_out', 124), ('next', 'skipped', None)] and suite['state'] == 'failed'
    no_box_is_left(server)


def test_leaves_a_process(server):
    """Its leader ends, others hold its output."""
    project = Project(server, 'stays', {'coop.yaml': plan({'name': 's', 'run': 'sleep 1000 & exit 0', 'timeout': 20}, 'true')})
    suite = project.check('c', {})
    assert suite['state'] in ('passed', 'failed') and len(suite['checks']) == 2
    no_box_is_left(server)


# ---- pull requests ----

def open_pull(server, project, branch, files, **more):
    """By an agent, from its box.  Its number."""
    with server.box() as box:
        assert server.clone(box, project.name, branch=branch)
        for name, text in files.items():
            server.run(box, f"cat >{project.name}/{name} <<'END'\n{text}END\n")
        done = server.run(box, f'cd {project.name} && git add -A && git -c user.name=A -c user.email=a@b commit -qm "feat: change" '
                               '&& git push -q')
        assert done['end']['exit_code'] == 0, done
        return server.post(f'{API}/{box}/git/pr', {'title': 'feat: change', **more}, status=200)['number']


def only(list_):
    assert len(list_) == 1, list_
    return list_[0]


def test_pull_request(server):
    project = Project(server, 'pull', {'coop.yaml': plan({'name': 't', 'run': 'grep -q good a'}), 'a': 'good\n'})
    number = open_pull(server, project, 'wip', {'b': 'x\n'}, draft=True)
    assert project.suites(number=number) == []
    number = open_pull(server, project, 'right', {'b': 'x\n'})
    suite = project.ended(only(project.suites(number=number))['id'])
    assert suite['state'] == 'passed' and suite['number'] == number
    assert suite['receipt']['receipt']['number'] == number
    line = server.cli('pr', 'receipt', str(number), '--repo', 'pull')
    assert json.loads(line) == suite['receipt'] and 'The signature holds.' in verify(line.encode(), home=server.home)
    # A push to it: a suite of its own.
    project.work.git('fetch', '-q')
    project.branch('right', {'a': 'bad\n'}, base='origin/right')
    newest = wait_until(lambda: len(project.suites(number=number)) == 2 and project.suites(number=number)[0], 'a second suite')
    assert project.ended(newest['id'])['state'] == 'failed'
    assert json.loads(server.cli('pr', 'receipt', str(number), '--repo', 'pull'))['receipt']['result'] == 'failed'
    again = project.ended(project.ask(number=number))
    assert again['state'] == 'failed' and again['number'] == number


def test_a_claim_decides_nothing(server):
    """The author says that the tests pass; they do not.  What a merge looks at is what Coop saw."""
    project = Project(server, 'claims', {'coop.yaml': plan({'name': 'tests', 'run': 'grep -q good a'}), 'a': 'good\n'})
    number = open_pull(server, project, 'liar', {'a': 'bad\n', 'coop.yaml': plan('true')}, body='All tests pass.')
    suite = project.ended(only(project.suites(number=number))['id'])
    assert suite['state'] == 'failed' and states(suite) == [('tests', 'failure', 1)]
    repo, head = '/api/v3/repos/coop/claims', suite['head_oid']
    server.post(f'{repo}/check-runs', {'name': 'tests', 'head_sha': head, 'status': 'completed', 'conclusion': 'success'})
    server.post(f'{repo}/statuses/{head}', {'state': 'success', 'context': 'tests'})
    runs = server.get(f'{repo}/commits/{head}/check-runs')['check_runs']
    assert sorted(run['conclusion'] for run in runs) == ['failure', 'success']
    mine = next(run['id'] for run in runs if run['conclusion'] == 'failure')
    assert server.ask('PATCH', f'{repo}/check-runs/{mine}', body={'conclusion': 'success'}).status == 403
    assert server.get(f'{repo}/pulls/{number}')['mergeable_state'] in ('blocked', 'unstable')
    assert server.ask('PUT', f'{repo}/pulls/{number}/merge', body={}).status != 200
    assert not server.get(f'{repo}/pulls/{number}')['merged']
    with contextlib.closing(sqlite3.connect(f'file:{server.home}/coop.db?mode=ro', uri=True, timeout=30)) as db:
        rows = db.execute("SELECT k.seen_by, k.author, k.conclusion FROM checks k JOIN threads t ON t.head_oid = k.head_oid "
                          "WHERE t.head = 'liar' AND k.seen_by = 'coop'").fetchall()
    assert rows == [('coop', 'coop', 'failure')]


def test_cancel(server):
    project = Project(server, 'cancel', {'coop.yaml': plan('sleep 1000')})
    project.branch('c', {})
    suites = [project.ask(branch='c') for _ in range(4)]
    wait_until(lambda: [project.suite(s)['state'] for s in suites].count('running') == 2, 'two at once')
    shown = [row for row in server.get('/api/v1/queue')['checks'] if row['repository'] == 'coop/cancel']
    assert sorted(row['state'] for row in shown) == ['running', 'running', 'waiting', 'waiting']
    for suite in suites:
        assert server.ask('DELETE', f'{project.path}/{suite}').status == 200
    assert [project.suite(s)['state'] for s in suites] == ['cancelled'] * 4
    assert project.suite(suites[0])['receipt'] is None
    check_error(server, server.ask('GET', f'{project.path}/{suites[0]}/receipt'), 404)
    check_error(server, server.ask('DELETE', f'{project.path}/{suites[0]}'), 409)
    wait_until(lambda: not server.get('/api/v1/queue')['checks'], 'an empty queue')
    no_box_is_left(server)


@pytest.mark.parametrize('body, status', [({}, 400), ({'branch': 'x', 'number': 1}, 400), ({'branch': 'nowhere'}, 404),
                                          ({'number': 999}, 404), ({'branch': '--x'}, 400), ({'more': 1}, 400)])
def test_refused(server, body, status):
    if not (server.folder / 'work-refused').exists():
        Project(server, 'refused', {'coop.yaml': plan('true')})
    check_error(server, server.ask('POST', '/api/v1/repos/coop/refused/checks', body=body), status)


# ---- receipts ----

def verify(text, *words, input_=True, status=0, home='/nowhere'):
    """Where no server is, unless `home` has one."""
    env = {**os.environ, 'COOP_HOME': str(home)}
    if str(home) == '/nowhere':
        env['SANDBOX_SERVICE_URL'] = f'http://127.0.0.1:{free_port()}'
    done = subprocess.run([PROGRAM, 'verify', '-' if input_ else text, *words], input=text if input_ else None, capture_output=True,
                          check=False, timeout=60, env=env)
    assert done.returncode == status, done
    return (done.stdout + done.stderr).decode()


def test_verify(server, tmp_path):
    project = Project(server, 'verify', {'coop.yaml': plan({'name': 'tests', 'run': 'echo fine'})})
    suite = project.check('c', {'a': 'b'})
    text = project.receipt(suite['id'])
    key = server.get('/api/v1/receipts/key')
    (tmp_path / 'key').write_text(json.dumps(key))
    (tmp_path / 'receipt').write_bytes(text)
    known = ('--key', key['key'])
    said = verify(text, *known)
    assert 'The signature holds.' in said and suite['tree_oid'] in said and 'tests: echo fine' in said and 'anyone' not in said
    assert 'The signature holds.' in verify(str(tmp_path / 'receipt'), '--key', str(tmp_path / 'key'), input_=False)
    assert json.loads(verify(text, *known, '-o', 'json'))['result'] == 'passed'
    verify(text, *known, '--repo', str(project.work.folder))
    assert 'not what was checked' in verify(text, *known, '--repo', str(project.work.folder), '--commit', 'origin/main', status=1)
    assert 'has no commit' in verify(text, *known, '--repo', str(project.work.folder), '--commit', 'f' * 40, status=1)
    assert 'another key' in verify(text, '--key', '0' * 64, status=1)
    for changed in (text.replace(b'"exit_code":0', b'"exit_code":1'), text.replace(b'echo fine', b'echo good'), text[:-3], b'', b'{}'):
        for words in (known, ('--any-key',), ()):
            assert 'does not hold' in verify(changed, *words, status=1)
    verify(str(tmp_path / 'none'), input_=False, status=4)
    assert oct((server.home / 'receipt-key').stat().st_mode & 0o777) == '0o600'
    failed = Project(server, 'verify-failed', {'coop.yaml': plan('false')}).check('c', {})
    for words in (known, ('--any-key',), ()):
        assert 'did not pass' in verify(json.dumps(failed['receipt']).encode(), *words, status=1)


def test_verify_whose_key(server, tmp_path):
    """Anyone can make a key and sign with it: that alone never ends with 0."""
    text = json.dumps(Project(server, 'whose', {'coop.yaml': plan('true')}).check('c', {})['receipt']).encode()
    said = verify(text, status=8)
    assert 'who signed it is not known (no server answered' in said and '--any-key' in said
    assert 'anyone can have signed this' in verify(text, '--any-key')
    verify(text, '--any-key', '--key', '0' * 64, status=2)
    assert f'that of the server at {server.home}' in verify(text, home=server.home)
    with workserver.serving() as other:
        assert 'another key (that of another server needs its --key)' in verify(text, home=other.home, status=1)
        verify(text, '--any-key', home=other.home)
        verify(text, '--key', server.get('/api/v1/receipts/key')['key'], home=other.home)
    stranger = {'HTTP': ({'hello': 1}, 'says no key'), 'a key that is none': ({'key': 'x' * 64}, 'says no key')}
    for answered, told in stranger.values():
        with Fake({'/': answer(answered)}) as fake:
            assert told in verify(text, '--server', fake.url(), status=8)


# ---- what dies in the middle ----

def test_box_is_killed(server):
    waits = 'until [ -e /tmp/go ]; do sleep 0.05; done; echo done'
    project = Project(server, 'killed', {'coop.yaml': plan({'name': 's', 'run': waits})})
    project.branch('c', {})
    suite = project.ask(branch='c')
    box = wait_until(lambda: project.suite(suite)['box_id'], 'a box')
    assert server.ask('DELETE', f'{API}/{box}').status == 204
    second = wait_until(lambda: (b := project.suite(suite)['box_id']) not in (None, box) and b, 'a second box')
    server.run(second, 'echo > /tmp/go')
    done = project.ended(suite)
    assert done['state'] == 'passed' and done['tries'] == 2 and done['box_id'] != box and len(done['checks']) == 1


def test_box_is_killed_always(server):
    project = Project(server, 'suicide', {'coop.yaml': plan('sleep 1000')})
    project.branch('c', {})
    suite = project.ask(branch='c')
    seen = set()

    def kill():
        now = project.suite(suite)
        if now['state'] == 'running' and now['box_id'] not in seen | {None}:
            seen.add(now['box_id'])
            server.ask('DELETE', f'{API}/{now["box_id"]}')
        return now['state'] not in ('queued', 'running') and now
    done = wait_until(kill, 'the end', FOREVER_S)
    assert done['state'] == 'error' and done['tries'] == 3 and len(seen) == 3 and done['receipt'] is None
    assert [c['conclusion'] for c in done['checks']] == ['cancelled']


POINTS = ('checks-planned', 'checks-boxed', 'checks-filled', 'checks-command-began', 'checks-command-ended', 'checks-ending',
          'checks-ended')


@needs_failpoints
@pytest.mark.parametrize('point', [*POINTS, 'checks-command-began:2'])
def test_server_is_killed(point):
    with workserver.serving() as server:
        project = Project(server, 'one', {'coop.yaml': plan({'name': 'a', 'run': 'echo a'}, {'name': 'b', 'run': 'echo b'})})
        project.branch('c', {})
        server.kill()
        server.env['COOP_FAIL_AT'] = point if ':' in point else f'{point}:1'
        server.restart()
        suite = project.ask(branch='c')
        server.wait_killed()
        del server.env['COOP_FAIL_AT']
        server.restart()
        done = project.ended(suite)
        assert done['state'] == 'passed' and states(done) == [('a', 'success', 0), ('b', 'success', 0)]
        assert done['tries'] == (1 if point == 'checks-ended' else 2)
        ends = [e for e in server.events() if e['kind'] == 'checks.ended' and e['data']['suite'] == suite]
        assert len(ends) == 1
        verify(project.receipt(suite), home=server.home)
        no_box_is_left(server)


@needs_failpoints
def test_server_is_killed_always():
    with workserver.serving() as server:
        project = Project(server, 'one', {'coop.yaml': plan('true')})
        project.branch('c', {})
        server.kill()
        server.env['COOP_FAIL_AT'] = 'checks-filled:1'
        server.restart()
        suite = project.ask(branch='c')
        for _ in range(3):
            server.wait_killed()
            with contextlib.suppress(AssertionError, OSError):
                server.restart()
        if server.process is not None:
            done = project.ended(suite)
        else:
            del server.env['COOP_FAIL_AT']
            server.restart()
            done = project.ended(suite)
        assert done['state'] == 'error' and 'cut' in done['problem']
        no_box_is_left(server)
