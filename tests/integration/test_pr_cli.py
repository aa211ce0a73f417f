# SPDX-License-Identifier: Apache-2.0
"""coop pr and coop issue against a server that says what it is told to."""
import json
import os
import pty
import signal
import subprocess

import pytest

from fake import Fake, answer
from harness import wait_until

V3 = '/api/v3/repos/coop/app'
MERGES = '/api/v1/repos/coop/app/merges'
ESCAPE = '\x1b]0;owned\x07'


def pull(number=7, **more):
    return {'number': number, 'title': f'feat: {ESCAPE}do {number}', 'state': 'open', 'draft': False, 'merged_at': None,
            'user': {'login': 'ann'}, 'head': {'ref': 'topic', 'sha': 'a' * 40}, 'base': {'ref': 'main'},
            'labels': [{'name': 'bug'}], 'body': f'first\nsecond{ESCAPE}', 'created_at': '2026-01-01T00:00:00Z',
            'updated_at': '2026-01-02T00:00:00Z', **more}


def entry(state, **more):
    return {'id': 3, 'number': 7, 'target': 'main', 'state': state, 'reason': None, 'problem': None, 'landing_oid': None, **more}


@pytest.fixture
def play(coop):
    """coop(replies, words...) -> what it said, and the requests."""
    fakes = []

    def run(replies, *words, **options):
        fake = Fake({'/api/v1/repos?limit=2': answer({'repositories': [{'owner': 'coop', 'name': 'app'}]}), **replies})
        fakes.append(fake)
        done = coop(*words, env={'SANDBOX_SERVICE_URL': fake.url(), 'COOP_API_KEY': 'e2b_' + '0' * 40}, **options)
        done.requests = [r.split('\r\n')[0].rsplit(' ', 1)[0] for r in fake.requests]
        done.bodies = fake.requests
        return done
    yield run
    for fake in fakes:
        fake.close()


def test_ls(play):
    pages = {f'{V3}/pulls?state=all&base=a%2Fb&per_page=100&page=1': answer([pull(n) for n in range(1, 101)]),
             f'{V3}/pulls?state=all&base=a%2Fb&per_page=100&page=2': answer([
                 pull(101, draft=True), pull(102, merged_at='2026-01-01T00:00:00Z', state='closed')])}
    done = play(pages, 'pr', 'ls', '--state', 'all', '--base', 'a/b', '--limit', '102')
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 103, done
    assert ESCAPE not in done.stdout and 'draft' in lines[101] and 'merged' in lines[102]
    done = play(pages, 'pr', 'ls', '--state', 'all', '--base', 'a/b', '--limit', '5', '-o', 'json')
    assert [p['number'] for p in json.loads(done.stdout)] == [1, 2, 3, 4, 5]
    assert play(pages, 'pr', 'ls', '--state', 'odd').returncode == 2


@pytest.mark.parametrize('repos, code, word', [([], 4, 'coop repo add'),
                                               ([{'owner': 'a', 'name': 'b'}, {'owner': 'c', 'name': 'd'}], 2, '--repo')])
def test_which_repository(play, repos, code, word):
    done = play({'/api/v1/repos?limit=2': answer({'repositories': repos})}, 'pr', 'ls')
    assert done.returncode == code and word in done.stderr
    done = play({'/api/v3/repos/x/y/pulls': answer([])}, 'pr', 'ls', '-R', 'x/y')
    assert done.returncode == 0 and '/api/v1' not in str(done.requests)
    done = play({}, 'pr', 'ls', '-R', 'x/y')
    assert done.returncode == 4 and 'x/y' in done.stderr and 'coop repo ls' in done.stderr


def test_show(play):
    merge = {'reasons': [{'rule': 'approvals', 'text': f'one approval is missing{ESCAPE}'}]}
    one = pull(coop={'merge': merge, 'task_id': 'T-1'}, commits=2, changed_files=3, additions=4, deletions=5,
               mergeable_state='blocked', requested_reviewers=[{'login': 'bob'}])
    done = play({f'{V3}/pulls/7': answer(one)}, 'pr', 'show', '#7')
    for text in ('one approval is missing', 'T-1', '3 (+4 -5)', 'bob', 'blocked', 'first\nsecond'):
        assert text in done.stdout, done
    assert ESCAPE not in done.stdout
    for words in (['show', '7'], ['diff', '7'], ['merge', '7'], ['close', '7']):
        done = play({}, 'pr', *words)
        assert done.returncode == 4 and 'coop/app' in done.stderr and '7' in done.stderr, done
    assert play({}, 'pr', 'show', 'x7').returncode == 2


DIFF = f'diff --git a/x b/x\n+\ttab{ESCAPE}\n-old\n'.encode()


def test_diff_as_it_is(play):
    done = play({f'{V3}/pulls/7': answer(DIFF, kind='text/plain')}, 'pr', 'diff', '7')
    assert done.returncode == 0 and done.stdout.encode() == DIFF
    assert 'Accept: application/vnd.github.diff' in done.bodies[-1]
    done = play({f'{V3}/pulls/7': answer(DIFF, kind='text/plain')}, 'pr', 'diff', '7', '--patch')
    assert 'Accept: application/vnd.github.patch' in done.bodies[-1]


def on_terminal(coop, fake, pager, *words):
    ours, theirs = pty.openpty()
    with subprocess.Popen(coop.argv(words), stdin=theirs, stdout=theirs, stderr=theirs, cwd=coop.folder,
                          env={**coop.environment({'SANDBOX_SERVICE_URL': fake.url(), 'COOP_API_KEY': 'e2b_' + '0' * 40}),
                               'TERM': 'dumb', **({'PAGER': pager} if pager is not None else {})}) as run:
        os.close(theirs)
        said = b''
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            said += piece
        assert run.wait(30) == 0, said
    os.close(ours)
    return said


@pytest.mark.parametrize('pager, mark', [("sed 's/^/P:/'", b'P:'), ('cat', b''), ('', b''), ('exit 0', None)])
def test_diff_on_a_terminal(coop, pager, mark):
    fake = Fake({f'{V3}/pulls/7': answer(DIFF * 20000, kind='text/plain')})
    said = on_terminal(coop, fake, pager, 'pr', 'diff', '7', '-R', 'app')
    fake.close()
    assert b'\x1b' not in said and b'\x07' not in said
    if mark is None:
        assert said == b''  # whoever reads had enough
    else:
        assert mark + b'+\ttab\\x1b]0;owned\\x07\r\n' in said and said.count(mark + b'-old') == 20000


@pytest.mark.parametrize('words, event, said', [
    (['--approve'], 'APPROVE', 'approved'), (['--request-changes', '-b', 'no'], 'REQUEST_CHANGES', 'asked for changes'),
    (['--comment', '-b', 'hm'], 'COMMENT', 'reviewed'), (['--request-changes'], None, '--body'), ([], None, '--approve'),
    (['--approve', '--comment', '-b', 'x'], None, '--approve')])
def test_review(play, words, event, said):
    done = play({f'{V3}/pulls/7/reviews': answer({'id': 1})}, 'pr', 'review', '7', *words)
    assert said in done.stdout + done.stderr
    assert done.returncode == (0 if event else 2)
    if event:
        assert done.requests[-1] == f'POST {V3}/pulls/7/reviews'


@pytest.mark.parametrize('words, request_, said', [
    (['pr', 'comment', '7', '-b', 'x'], f'POST {V3}/issues/7/comments', 'commented on coop/app#7'),
    (['pr', 'ready', '7'], f'PATCH {V3}/pulls/7', 'made ready coop/app#7'),
    (['pr', 'close', '7'], f'PATCH {V3}/pulls/7', 'closed coop/app#7'),
    (['pr', 'close', '7', '--reopen'], f'PATCH {V3}/pulls/7', 'opened again coop/app#7'),
    (['issue', 'close', '7', '--reason', 'not_planned'], f'PATCH {V3}/issues/7', 'closed coop/app#7'),
    (['issue', 'comment', '7', '-b', 'x'], f'POST {V3}/issues/7/comments', 'commented on coop/app#7'),
    (['issue', 'new', 'a title', '-l', 'bug'], f'POST {V3}/issues', 'opened coop/app#7'),
])
def test_changes(play, words, request_, said):
    done = play({V3: answer({'number': 7})}, *words)
    assert done.returncode == 0 and said in done.stdout, done
    assert done.requests[-1] == request_


def test_refusals_say_why(play):
    wrong = answer({'message': 'Validation Failed', 'errors': [{'message': 'the title is too long'}]}, '422 Unprocessable')
    done = play({V3: wrong}, 'issue', 'new', 'x')
    assert done.returncode == 2 and 'the title is too long' in done.stderr


def test_issues(play):
    list_ = [{**pull(1), 'pull_request': {}}, *({**pull(n), 'head': None, 'base': None} for n in range(2, 50))]
    done = play({f'{V3}/issues?': answer(list_)}, 'issue', 'ls')
    numbers = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert numbers == [str(n) for n in range(2, 32)]
    comments = [{'user': {'login': 'bob'}, 'created_at': '2026', 'body': f'hm{ESCAPE}'}]
    done = play({f'{V3}/issues/2': answer(pull(2)), f'{V3}/issues/2/comments': answer(comments)}, 'issue', 'show', '2')
    assert 'bob, 2026\nhm' in done.stdout and 'bug' in done.stdout and ESCAPE not in done.stdout


def test_checks(play):
    def runs(*list_):
        return {f'{V3}/pulls/7': answer(pull()), f'{V3}/commits/{"a" * 40}/check-runs': answer({'check_runs': [
            {'name': name, 'status': status, 'conclusion': conclusion, 'app': {'slug': 'coop'}} for name, status, conclusion in list_]})}

    done = play(runs(('build', 'completed', 'success'), ('test', 'in_progress', None)), 'pr', 'checks', '7')
    assert done.returncode == 0 and 'success' in done.stdout and 'in_progress' in done.stdout
    assert play(runs(('build', 'completed', 'failure')), 'pr', 'checks', '7').returncode == 1


# ---- merge ----

def merging(*states, first=None):
    return {MERGES: answer(first or entry('queued'), '202 Accepted'),
            f'{MERGES}?target=main': answer({'merges': [{'id': 1}, {'id': 2}, {'id': 3}, {'id': 4}]}),
            f'{MERGES}/3?wait_ms=': [answer(s) for s in states]}


def test_merge(play):
    done = play(merging(entry('queued'), entry('building'), entry('checking'), entry('checking'), entry('landing'),
                        entry('landed', landing_oid='b' * 40)), 'pr', 'merge', '7', '-m', 'squash')
    assert done.returncode == 0 and f'merged coop/app#7 into main: {"b" * 40}' in done.stdout
    told = [line for line in done.stderr.splitlines() if line]
    assert len(told) == 4 and 'behind 2' in told[0] and 'clean box' in told[2], told
    done = play(merging(entry('landed', landing_oid='b' * 40)), 'pr', 'merge', '7', '-o', 'json')
    assert json.loads(done.stdout)['landing_oid'] == 'b' * 40


@pytest.mark.parametrize('last, code, said', [
    (entry('failed', reason='rules', problem='one approval is missing'), 1, 'not merged: one approval is missing'),
    (entry('conflict', conflict={'files': [{'path': 'a.txt'}]}), 6, 'both sides changed a.txt'),
    (entry('cancelled'), 1, 'not merged: cancelled')])
def test_not_merged(play, last, code, said):
    done = play(merging(entry('checking'), last), 'pr', 'merge', '7')
    assert done.returncode == code and said in done.stderr and done.stdout == '', done


def test_merge_refused(play):
    done = play({MERGES: answer({'code': 403, 'message': 'checks did not pass'}, '403 Forbidden')}, 'pr', 'merge', '7')
    assert done.returncode == 5 and 'checks did not pass' in done.stderr


def test_merge_without_waiting(play):
    done = play(merging(), 'pr', 'merge', '7', '--no-wait')
    assert done.returncode == 0 and 'in the queue of main' in done.stdout and len(done.requests) == 2


def test_merge_interrupted(coop):
    fake = Fake(merging(entry('checking')))
    run = coop.popen('pr', 'merge', '7', '-R', 'app', env={'SANDBOX_SERVICE_URL': fake.url(), 'COOP_API_KEY': 'e2b_' + '0' * 40},
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(fake.requests) > 4, 'the command to wait')
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=30)
    fake.close()
    assert run.returncode == 1 and 'stays in the queue' in said


def test_queue(play):
    queue = {'depth': 0, 'limit': 9, 'running': 0, 'work': [],
             'merges': [{**entry('checking'), 'repository': 'coop/app', 'tries': 2}]}
    done = play({'/api/v1/queue': answer(queue)}, 'queue')
    assert '1 to be merged' in done.stdout and done.stdout.splitlines()[-1].split() == ['coop/app', '7', 'main', 'checking', '2']
    assert 'merged' not in play({'/api/v1/queue': answer({**queue, 'merges': []})}, 'queue').stdout
