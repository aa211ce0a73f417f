# SPDX-License-Identifier: Apache-2.0
"""coop pr and coop issue against a real server and a real repository."""
import json

import pytest

from v3client import Repo


@pytest.fixture(scope='module')
def repo(server, tmp_path_factory):
    made = Repo(server, tmp_path_factory.mktemp('work'), 'app')
    made.reviewer = server.make_key(scopes='read,box', name='bob')['key']
    return made


@pytest.fixture
def run(coop, repo):
    def call(*words, code=0, key=None, of='app', env=None, **options):
        if of is not None and words[0] in ('pr', 'issue'):
            words = (*words, '-R', of)
        server = repo.server
        who = {'SANDBOX_SERVICE_URL': f'http://{server.host}', 'COOP_API_KEY': key} if key else {'COOP_HOME': str(server.home)}
        done = coop(*words, env={**who, **(env or {})}, **options)
        assert done.returncode == code, done
        return done.stdout + done.stderr
    return call


def open_pull(repo, branch, files=None, **more):
    repo.branch(branch, files or {'a.txt': 'one\n2\nthree\n'})
    return repo.post('/pulls', {'title': f'feat: {branch}', 'head': branch, 'base': 'main', 'body': 'why\nso', **more})['number']


def test_life_of_a_pull_request(repo, run):
    number = str(open_pull(repo, 'lives', draft=True))
    assert 'feat: lives' in run('pr') and 'draft' in run('pr', 'ls', '--head', 'lives')
    assert 'feat: lives' not in run('pr', 'ls', '--base', 'elsewhere')
    said = run('pr', 'show', number)
    for text in ('lives', 'main', '1 (+1 -1)', 'why\nso', 'draft'):
        assert text in said, said
    assert 'ready' in run('pr', 'ready', number)
    assert json.loads(run('pr', 'show', number, '-o', 'json'))['draft'] is False
    assert 'approved' in run('pr', 'review', number, '--approve', key=repo.reviewer)
    run('pr', 'review', number, '--request-changes', '-b', 'not so', key=repo.reviewer)
    assert run('pr', 'show', number).count('\n  ') >= 1  # what is in the way
    # What its author approves does not count, and is refused as the server says.
    assert 'coop: ' in run('pr', 'review', number, '--approve', key=repo.server.key, code=2)
    run('pr', 'comment', number, '-b', '-', input='from the input\n', stdin=None)
    assert 'from the input' in run('issue', 'show', number)
    assert 'closed' in run('pr', 'close', number)
    assert 'closed' in run('pr', 'ls', '--state', 'closed')
    run('pr', 'close', number, '--reopen')
    assert 'open' in run('pr', 'show', number)


def test_diff(repo, run):
    number = str(open_pull(repo, 'differs', {'a.txt': 'one\n\x1b[31mred\n', 'n\u00e4me.txt': 'x\n'}))
    said = run('pr', 'diff', number)
    assert said.startswith('diff --git ') and '+\x1b[31mred\n' in said and '-three\n' in said
    assert run('pr', 'diff', number, '--patch').startswith('From ')
    assert 'has no 9999' in run('pr', 'diff', '9999', code=4)


def test_checks(repo, run):
    number = str(open_pull(repo, 'checked', {'c.txt': 'c\n'}, draft=True))
    assert 'CHECK' in run('pr', 'checks', number)
    head = repo.get(f'/pulls/{number}')['head']['sha']
    repo.post('/check-runs', {'name': 'claims', 'head_sha': head, 'status': 'completed', 'conclusion': 'success'})
    assert 'claims' in run('pr', 'checks', number) and 'success' in run('pr', 'checks', number)
    repo.post('/check-runs', {'name': 'breaks', 'head_sha': head, 'status': 'completed', 'conclusion': 'failure'})
    assert 'breaks' in run('pr', 'checks', number, code=1)


def test_issues(repo, run):
    said = run('issue', 'new', 'It asks twice', '-b', 'I saw it', '-l', 'bug', '-l', 'ui')
    number = said.split('#')[1].strip()
    run('issue', 'comment', number, '-b', 'me too', key=repo.reviewer)
    said = run('issue', 'show', '#' + number)
    for text in ('It asks twice', 'I saw it', 'bug, ui', 'bob', 'me too'):
        assert text in said, said
    assert 'It asks twice' in run('issue')
    run('issue', 'close', number, '--reason', 'not_planned')
    assert 'It asks twice' not in run('issue', 'ls') and 'It asks twice' in run('issue', 'ls', '--state', 'all')
    assert 'coop: ' in run('issue', 'new', 'x' * 300, code=2)
    assert run('issue', 'new', 'x', key=repo.server.make_key(scopes='read', name='reads')['key'], code=5)


def test_several_repositories(repo, run, tmp_path):
    Repo(repo.server, tmp_path, 'second')
    assert '--repo' in run('pr', 'ls', of=None, code=2)
    assert run('pr', 'ls', of='coop/second')
    assert "'coop repo ls'" in run('pr', 'ls', of='third', code=4)
