# SPDX-License-Identifier: Apache-2.0
"""Pull requests in GitHub's dialect: opening, changing, files, patches, reviews."""
import re

import pytest

from gitserver import Work, url_of
from harness import wait_until
from v3client import Repo, errors


@pytest.fixture(scope='module')
def repo(server, tmp_path_factory):
    return Repo(server, tmp_path_factory.mktemp('work'), 'pulls')


@pytest.fixture(scope='module')
def other(server, repo):
    """Somebody else, who may write."""
    return repo.as_(server.make_key(scopes='read,box', name='reviewer')['key'])


@pytest.fixture(scope='module')
def reader(server, repo):
    return repo.as_(server.make_key(scopes='read', name='reader')['key'])


# ---- opening ----

def test_open(server, repo):
    head = repo.branch('opened', {'a.txt': 'one\n2\nthree\n', 'new.txt': 'x\ny\n'})
    made = repo.post('/pulls', {'title': 'Open it', 'head': 'coop:opened', 'base': 'main', 'body': 'why',
                                'draft': True, 'maintainer_can_modify': True})
    at = f'http://{server.host}/api/v3/repos/coop/pulls'
    number = made['number']
    assert made['url'] == f'{at}/pulls/{number}' and made['issue_url'] == f'{at}/issues/{number}'
    assert made['_links']['self']['href'] == made['url']
    assert made['_links']['commits']['href'] == made['commits_url'] == f'{at}/pulls/{number}/commits'
    assert (made['state'], made['title'], made['body'], made['draft']) == ('open', 'Open it', 'why', True)
    assert (made['head']['ref'], made['head']['sha'], made['head']['label']) == ('opened', head, 'coop:opened')
    assert made['base']['ref'] == 'main' and made['base']['repo']['full_name'] == 'coop/pulls'
    assert made['base']['user']['login'] == 'coop' and made['user']['type'] == 'User'
    assert (made['commits'], made['changed_files'], made['additions'], made['deletions']) == (1, 2, 3, 1)
    assert (made['merged'], made['mergeable'], made['mergeable_state']) == (False, True, 'draft')
    assert made['merge_commit_sha'] is made['merged_at'] is made['closed_at'] is made['merged_by'] is None
    assert made['labels'] == made['requested_reviewers'] == made['assignees'] == []
    assert {r['rule'] for r in made['coop']['merge']['reasons']} == {'draft', 'checks_missing'}
    assert repo.get(f'/pulls/{number}') == made
    as_issue = repo.get(f'/issues/{number}')
    assert as_issue['pull_request']['url'] == made['url'] and as_issue['id'] == made['id']


@pytest.mark.parametrize('change, expected', [
    ({'head': None}, ('PullRequest', 'head', 'missing_field')),
    ({'title': ''}, ('PullRequest', 'title', 'invalid')),
    ({'title': 7}, ('PullRequest', 'title', 'invalid')),
    ({'head': 'nowhere'}, ('PullRequest', None, 'custom')),
    ({'head': 'main'}, ('PullRequest', None, 'custom')),
    ({'head': 'other:branch'}, ('PullRequest', 'head', 'invalid')),
    ({'head': '--upload-pack=x'}, ('PullRequest', None, 'custom')),
    ({'base': 'refs/../../x'}, ('PullRequest', None, 'custom')),
    ({'title': 'x' * 300}, ('PullRequest', None, 'custom')),
    ({'body': 'x' * 70000}, ('PullRequest', None, 'custom')),
    ({'issue': 1}, ('PullRequest', 'issue', 'invalid')),
    ({'draft': 'yes'}, ('PullRequest', 'draft', 'invalid')),
])
def test_refused(repo, change, expected):
    repo.branch('refused')
    refused = repo.post('/pulls', {'title': 'T', 'head': 'refused', 'base': 'main', **change}, 422)
    assert refused['message'] == 'Validation Failed' and errors(refused) == [expected]


def test_twice(repo):
    repo.pull('twice')
    again = repo.post('/pulls', {'title': 'Again', 'head': 'twice', 'base': 'main'}, 422)
    assert 'open already' in again['errors'][0]['message']


def test_who_may(repo, reader, other):
    number = repo.pull('who-may')['number']
    assert reader.get(f'/pulls/{number}')['number'] == number
    reader.post('/pulls', {'title': 'T', 'head': 'who-may', 'base': 'main'}, 403)
    reader.patch(f'/pulls/{number}', {'title': 'T'}, 403)
    reader.put(f'/pulls/{number}/merge', status=403)
    assert other.patch(f'/pulls/{number}', {'title': 'Other'})['title'] == 'Other'


# ---- listing ----

def test_list(repo):
    made = [repo.pull(f'listed-{n}')['number'] for n in range(3)]
    listed = repo.get('/pulls?per_page=3')
    assert [p['number'] for p in listed] == made[::-1] and 'mergeable' not in listed[0]
    assert [p['number'] for p in repo.get('/pulls?head=coop:listed-1')] == [made[1]]
    assert [p['number'] for p in repo.get('/pulls?head=listed-1&base=main')] == [made[1]]
    for nothing in ('head=somebody:listed-1', 'head=none', 'base=none', 'page=100000'):
        assert repo.get(f'/pulls?{nothing}') == []
    repo.patch(f'/pulls/{made[0]}', {'state': 'closed'})
    assert made[0] not in [p['number'] for p in repo.get('/pulls?per_page=100')]
    assert made[0] in [p['number'] for p in repo.get('/pulls?state=closed&per_page=100')]
    repo.patch(f'/pulls/{made[1]}', {'title': 'newest'})
    assert repo.get('/pulls?state=all&sort=updated')[0]['number'] == made[1]
    assert repo.get('/pulls?state=all&sort=created&direction=asc')[0]['number'] == 1
    for field, value in (('state', 'odd'), ('sort', 'odd'), ('direction', 'up')):
        assert errors(repo.get(f'/pulls?{field}={value}', 422)) == [('PullRequest', field, 'invalid')]


def test_pages(repo):
    for n in range(4):
        repo.pull(f'paged-{n}')
    seen, path = [], '/pulls?state=all&per_page=3'
    while path:
        answer = repo.ask('GET', path)
        seen += [p['number'] for p in answer.json]
        found = re.search(r'<[^>]*?(/pulls\?[^>]*)>; rel="next"', answer.headers.get('Link') or '')
        path = found and found[1]
    assert len(seen) == len(set(seen)) and seen == sorted(seen, reverse=True) and seen[-1] == 1


# ---- changing ----

def test_change(repo):
    number = repo.pull('changed', draft=True)['number']
    at = f'/pulls/{number}'
    changed = repo.patch(at, {'title': 'New', 'body': 'text'})
    assert (changed['title'], changed['body'], changed['draft']) == ('New', 'text', True)
    # GitHub has no such call in its REST API: `draft` is ours.
    ready = repo.patch(at, {'draft': False})
    assert ready['draft'] is False and ready['mergeable_state'] == 'blocked'
    assert repo.patch(at, {'draft': True, 'title': 'Both'})['draft'] is True
    closed = repo.patch(at, {'state': 'closed'})
    assert closed['state'] == 'closed' and closed['closed_at'] and closed['mergeable'] is None
    assert errors(repo.patch(at, {'draft': False}, 422)) == [('PullRequest', None, 'custom')]
    assert repo.patch(at, {'state': 'open'})['state'] == 'open'
    assert errors(repo.patch(at, {'state': 'gone'}, 422)) == [('PullRequest', None, 'custom')]
    assert errors(repo.patch(at, {'base': 'none'}, 422)) == [('PullRequest', None, 'custom')]
    issue = repo.post('/issues', {'title': 'no pull'})['number']
    repo.patch(f'/pulls/{issue}', {'title': 'x'}, 404)


@pytest.mark.parametrize('number', ['0', '-1', '999999', 'x', '1.5', '18446744073709551617', '1.zip', '%00'])
def test_no_such_number(repo, number):
    answer = repo.ask('GET', f'/pulls/{number}')
    assert answer.status == (400 if number == '%00' else 404), answer


def test_states(repo, other):
    """mergeable_state follows what is in the way."""
    number = repo.pull('states', {'a.txt': 'one\nTWO\nthree\n'})['number']
    at = f'/pulls/{number}'
    assert repo.get(at)['mergeable_state'] == 'blocked'
    repo.branch('states-base', {'a.txt': 'one\nZWEI\nthree\n'})
    repo.work.push('HEAD:main')
    wait_until(lambda: repo.get(at)['mergeable_state'] == 'dirty', 'the conflict')
    seen = repo.get(at)
    assert seen['mergeable'] is seen['rebaseable'] is False
    assert (seen['commits'], seen['changed_files'], seen['additions']) == (1, 1, 1)
    repo.put(f'{at}/merge', status=405)


# ---- what git knows ----

def test_files(repo):
    repo.branch('files-base', {'old.txt': 'same\n' * 20, 'gone.txt': 'x\n', 'bin': b'\0\1\2'})
    repo.work.push('HEAD:main')
    repo.work.git('fetch', '-q')
    repo.work.git('checkout', '-q', '-B', 'files', 'origin/main')
    repo.work.git('mv', 'old.txt', 'moved.txt')
    repo.work.git('rm', '-q', 'gone.txt')
    (repo.work.folder / 'bin').write_bytes(b'\0\1\2\3')
    (repo.work.folder / 'big.txt').write_text('line\n' * 80000)
    name = 'a b/ü"\n.txt'
    (repo.work.folder / 'a b').mkdir()
    (repo.work.folder / name).write_text('odd\n')
    repo.work.git('add', '-A')
    repo.work.git('commit', '-q', '-m', 'feat: files')
    repo.work.push('HEAD:files')
    pull = repo.post('/pulls', {'title': 'Files', 'head': 'files', 'base': 'main'})
    files = {f['filename']: f for f in repo.get(f'/pulls/{pull["number"]}/files')}
    assert {n: f['status'] for n, f in files.items()} == {
        'moved.txt': 'renamed', 'gone.txt': 'removed', 'bin': 'modified', 'big.txt': 'added', name: 'added'}
    assert files['moved.txt']['previous_filename'] == 'old.txt' and files['moved.txt']['changes'] == 0
    assert files['gone.txt']['deletions'] == 1 and files['gone.txt']['patch'].startswith('@@')
    assert 'patch' not in files['bin'] and 'patch' not in files['big.txt']
    assert files['big.txt']['additions'] == 80000 and files[name]['patch'].endswith('+odd')
    assert files[name]['sha'] == repo.work.head(f'HEAD:{name}')
    pages = [repo.get(f'/pulls/{pull["number"]}/files?per_page=2&page={n}') for n in (1, 2, 3, 4)]
    assert [len(p) for p in pages] == [2, 2, 1, 0]
    assert sorted(f['filename'] for p in pages for f in p) == sorted(files)


def test_commits(repo):
    number = repo.pull('commits')['number']
    for n in range(3):
        repo.work.commit('c.txt', f'{n}\n', f'fix: {n}')
    repo.work.push('HEAD:commits')
    at = f'/pulls/{number}'
    listed = repo.get(f'{at}/commits')
    assert [c['commit']['message'].strip() for c in listed] == ['feat: commits', 'fix: 0', 'fix: 1', 'fix: 2']
    assert listed[-1]['sha'] == repo.work.head() == repo.get(at)['head']['sha']
    answer = repo.ask('GET', f'{at}/commits?per_page=3')
    assert len(answer.json) == 3 and 'rel="next"' in answer.headers['Link']
    wait_until(lambda: repo.get(at)['commits'] == 4, 'what git says')


def test_patches(server, repo, tmp_path):
    """What is served applies, and gives the tree that was pushed."""
    number = repo.pull('patches', {'p.txt': 'p\n', 'q.bin': b'\0q'})['number']
    repo.work.commit('p.txt', 'p\nr\n', 'fix: r')
    repo.work.push('HEAD:patches')
    tree, base = repo.work.head('HEAD^{tree}'), repo.work.head('HEAD~2')
    at = f'/pulls/{number}'
    diff = repo.ask('GET', at, headers={'Accept': 'application/vnd.github.v3.diff'})
    patch = repo.ask('GET', at, headers={'Accept': 'application/vnd.github.patch'})
    assert diff.headers['Content-Type'].startswith('application/vnd.github.diff')
    assert repo.ask('GET', f'{at}.diff').body == diff.body and repo.ask('GET', f'{at}.patch').body == patch.body
    assert diff.body.startswith(b'diff --git a/p.txt b/p.txt\n') and patch.body.count(b'\nSubject: ') == 2
    clone = Work(tmp_path / 'am', url_of(server, '/git/coop/pulls.git')).clone()
    clone.git('checkout', '-q', base)
    (tmp_path / 'p').write_bytes(patch.body)
    clone.git('am', '-q', str(tmp_path / 'p'))
    assert clone.head('HEAD^{tree}') == tree


def test_patches_of_merged_base(repo):
    """The base goes on, and the patch stays what the branch changed."""
    number = repo.pull('stays', {'s.txt': 's\n'})['number']
    before = repo.ask('GET', f'/pulls/{number}.diff').body
    repo.branch('elsewhere', {'t.txt': 't\n'})
    repo.work.push('HEAD:main')
    wait_until(lambda: repo.get(f'/pulls/{number}')['mergeable'] is not None, 'what git says')
    assert repo.ask('GET', f'/pulls/{number}.diff').body == before
    assert [f['filename'] for f in repo.get(f'/pulls/{number}/files')] == ['s.txt']


# ---- reviewers and reviews ----

def test_reviewers(server, repo, other):
    number = repo.pull('reviewers')['number']
    at = f'/pulls/{number}/requested_reviewers'
    me, them = (r.server.ask('GET', '/api/v3/user', key=r.key).json['login'] for r in (repo, other))
    asked = repo.post(at, {'reviewers': [them]})
    assert [r['login'] for r in asked['requested_reviewers']] == [them]
    assert [r['login'] for r in repo.get(at)['users']] == [them]
    assert errors(repo.post(at, {'reviewers': [me]}, 422)) == [('PullRequest', None, 'custom')]
    assert errors(repo.post(at, {'reviewers': ['nobody-here']}, 422)) == [('PullRequest', None, 'custom')]
    assert errors(repo.post(at, {'reviewers': [7]}, 422)) == [('PullRequest', 'reviewers', 'invalid')]
    assert repo.delete(at, {'reviewers': [them]}, 200)['requested_reviewers'] == []


def test_reviews(server, repo, other):
    third = repo.as_(server.make_key(scopes='read,box', name='third')['key'])
    number = repo.pull('reviews', {'a.txt': 'one\nzwei\nthree\n'})['number']
    at = f'/pulls/{number}/reviews'
    own = repo.post(at, {'event': 'APPROVE'}, 422)
    assert 'author' in own['errors'][0]['message']
    assert errors(repo.post(at, {'event': 'REQUEST_CHANGES', 'body': 'x'}, 422)) == [
        ('PullRequestReview', None, 'custom')]
    assert errors(other.post(at, {'event': 'MAYBE'}, 422)) == [('PullRequestReview', 'event', 'invalid')]
    assert errors(other.post(at, {'event': 'REQUEST_CHANGES'}, 422)) == [('PullRequestReview', None, 'custom')]
    refused = other.post(at, {'event': 'REQUEST_CHANGES', 'body': 'Not yet', 'comments': [
        {'path': 'a.txt', 'line': 2, 'body': 'why German?'}]}, 200)
    assert refused['state'] == 'CHANGES_REQUESTED' and refused['submitted_at'] and refused['body'] == 'Not yet'
    lines = repo.get(f'{at}/{refused["id"]}/comments')
    assert [(c['path'], c['line'], c['side'], c['pull_request_review_id']) for c in lines] == [
        ('a.txt', 2, 'RIGHT', refused['id'])]
    assert 'changes_requested' in {r['rule'] for r in repo.get(f'/pulls/{number}')['coop']['merge']['reasons']}
    assert 'another' in third.put(f'{at}/{refused["id"]}/dismissals', {'message': 'why not'}, 403)['message']
    dismissed = repo.put(f'{at}/{refused["id"]}/dismissals', {'message': 'it is English now', 'event': 'DISMISS'})
    assert dismissed['state'] == 'DISMISSED'
    approved = other.post(at, {'event': 'APPROVE'}, 200)
    assert [r['state'] for r in repo.get(at)] == ['DISMISSED', 'APPROVED']
    assert repo.get(f'{at}/{approved["id"]}') == approved
    assert other.put(f'{at}/{approved["id"]}', {'body': 'fine'})['body'] == 'fine'
    repo.put(f'{at}/{approved["id"]}', {'body': 'mine'}, 403)


def test_pending_review(repo, other):
    number = repo.pull('pending')['number']
    at = f'/pulls/{number}/reviews'
    pending = other.post(at, {'comments': [{'path': 'b.txt', 'line': 1, 'body': 'hm'}]}, 200)
    assert pending['state'] == 'PENDING' and 'submitted_at' not in pending
    assert other.get(at) == [pending] and repo.get(at) == []
    repo.get(f'{at}/{pending["id"]}', 404)
    assert repo.get(f'/pulls/{number}/comments') == []
    other.post(at, {}, 422)
    assert errors(other.post(f'{at}/{pending["id"]}/events', {}, 422)) == [
        ('PullRequestReview', 'event', 'missing_field')]
    done = other.post(f'{at}/{pending["id"]}/events', {'event': 'COMMENT', 'body': 'so far'}, 200)
    assert done['state'] == 'COMMENTED' and repo.get(at) == [done]
    assert len(repo.get(f'/pulls/{number}/comments')) == 1
    gone = other.post(at, {}, 200)
    assert other.delete(f'{at}/{gone["id"]}', status=200)['id'] == gone['id']
    other.get(f'{at}/{gone["id"]}', 404)
    other.delete(f'{at}/{done["id"]}', status=422)


def test_line_comments(repo, other):
    number = repo.pull('lines', {'a.txt': 'one\nzwei\ndrei\n'})['number']
    at = f'/pulls/{number}/comments'
    head = repo.get(f'/pulls/{number}')['head']['sha']
    made = other.post(at, {'body': 'Both?', 'commit_id': head, 'path': 'a.txt', 'start_line': 2, 'line': 3,
                           'side': 'RIGHT'})
    assert (made['start_line'], made['line'], made['commit_id'], made['subject_type']) == (2, 3, head, 'line')
    assert 'in_reply_to_id' not in made and made['pull_request_url'].endswith(f'/pulls/{number}')
    reply = repo.post(f'{at}/{made["id"]}/replies', {'body': 'Both.'})
    assert reply['in_reply_to_id'] == made['id'] and reply['line'] == 3
    assert repo.post(at, {'body': 'And more', 'in_reply_to': reply['id']})['in_reply_to_id'] == made['id']
    assert [c['id'] for c in repo.get(f'{at}?direction=desc')][-1] == made['id']
    assert repo.get(f'/pulls/comments/{made["id"]}') == made
    other.patch(f'/pulls/comments/{reply["id"]}', {'body': 'No.'}, 403)
    other.delete(f'/pulls/comments/{reply["id"]}', status=403)
    assert repo.patch(f'/pulls/comments/{reply["id"]}', {'body': 'Yes.'})['body'] == 'Yes.'
    repo.delete(f'/pulls/comments/{reply["id"]}')
    repo.get(f'/pulls/comments/{reply["id"]}', 404)
    assert made['id'] in [c['id'] for c in repo.get('/pulls/comments?per_page=100')]
    assert repo.get(f'/pulls/{number}')['review_comments'] == 2
    for body, expected in (
            ({'body': 'x', 'line': 1}, ('PullRequestReviewComment', 'path', 'missing_field')),
            ({'body': 'x', 'path': 'a.txt'}, ('PullRequestReviewComment', 'line', 'missing_field')),
            ({'path': 'a.txt', 'line': 1}, ('PullRequestReviewComment', 'body', 'missing_field')),
            ({'body': 'x', 'path': 'a.txt', 'line': -1}, ('PullRequestReviewComment', 'line', 'invalid')),
            ({'body': 'x', 'path': 'a.txt', 'line': 1, 'side': 'UP'}, ('PullRequestReviewComment', None, 'custom')),
            ({'body': 'x', 'path': 'a.txt', 'line': 1, 'commit_id': 'HEAD'},
             ('PullRequestReviewComment', None, 'custom'))):
        assert errors(other.post(at, body, 422)) == [expected]
    other.post(at, {'body': 'x', 'in_reply_to': 999999}, 404)


def test_resolved(repo, other):
    number = repo.pull('resolved', {'a.txt': 'one\nzwei\nthree\n'})['number']
    first = other.post(f'/pulls/{number}/comments', {'body': 'Why?', 'path': 'a.txt', 'line': 2})
    reply = repo.post(f'/pulls/{number}/comments/{first["id"]}/replies', {'body': 'So.'})
    alone = other.post(f'/pulls/{number}/comments', {'body': 'And?', 'path': 'a.txt', 'line': 2})
    at = '/api/v1/repos/coop/pulls/pulls/comments'

    def resolved():
        return [c['coop']['resolved'] for c in repo.get(f'/pulls/{number}/comments')]

    assert resolved() == [False, False, False] and alone['coop'] == {'resolved': False}
    assert repo.server.ask('PUT', f'{at}/{reply["id"]}/resolved', body=b'').json['resolved'] is True
    assert resolved() == [True, True, False]
    event = repo.server.events(kind='review.changed')[-1]['data']
    assert (event['action'], event['line_comment_id']) == ('resolved', reply['id'])
    assert repo.server.ask('DELETE', f'{at}/{first["id"]}/resolved').status == 200
    assert resolved() == [False, False, False]
    reader = repo.server.make_key(scopes='read', name='looks')['key']
    assert repo.server.ask('PUT', f'{at}/{first["id"]}/resolved', body=b'', key=reader).status == 403
    assert repo.server.ask('PUT', f'{at}/999999/resolved', body=b'').status == 404
    assert repo.server.ask('PUT', f'{at}/x/resolved', body=b'').status == 404


def test_hunks(repo, other):
    """A comment keeps what it was made on."""
    long = [f'line {n}\n' for n in range(1, 31)]
    old = ''.join(f'{n}\n' for n in range(40))
    repo.branch('hunks-base', {'long.txt': ''.join(long), 'old.txt': old})
    long[1] = 'zwei\n'
    long[19:21] = ['twenty\n', 'and one\n', 'and two\n']
    repo.branch('hunks', {'long.txt': ''.join(long), 'old.txt': None, 'new.txt': old.replace('39', 'last')},
                base='origin/hunks-base')
    pull = repo.post('/pulls', {'title': 'Hunks', 'head': 'hunks', 'base': 'hunks-base'})
    at = f'/pulls/{pull["number"]}'
    top = '@@ -1,5 +1,5 @@\n line 1\n-line 2\n'
    mid = '@@ -17,8 +17,9 @@ line 16\n line 17\n line 18\n line 19\n-line 20\n-line 21\n'
    cases = [({'path': 'long.txt', 'line': 2}, top + '+zwei'),
             ({'path': 'long.txt', 'line': 2, 'side': 'LEFT'}, top.rstrip()),
             ({'path': 'long.txt', 'line': 3, 'start_line': 1}, top + '+zwei\n line 3'),
             ({'path': 'long.txt', 'line': 21, 'start_line': 20}, mid + '+twenty\n+and one'),
             ({'path': 'long.txt', 'line': 21, 'start_line': 20, 'side': 'LEFT'}, mid.rstrip()),
             ({'path': 'long.txt', 'line': 10}, ''), ({'path': 'nowhere', 'line': 1}, ''),
             ({'path': 'new.txt', 'line': 40}, '@@ -37,4 +37,4 @@\n 36\n 37\n 38\n-39\n+last')]
    made = [other.post(f'{at}/comments', {'body': 'x', 'diff_hunk': 'mine', **place}) for place, _ in cases]
    assert [m['diff_hunk'] for m in made] == [hunk for _, hunk in cases]
    reply = repo.post(f'{at}/comments/{made[0]["id"]}/replies', {'body': 'Yes.'})
    assert reply['diff_hunk'] == cases[0][1]
    # Together, and of a file that is changed since then.
    repo.branch('hunks', {'long.txt': 'gone\n'}, base='origin/hunks')
    review = other.post(f'{at}/reviews', {'event': 'COMMENT', 'commit_id': pull['head']['sha'], 'comments': [
        {'body': 'x', 'diff_hunk': 'mine', **place} for place, _ in cases]}, 200)
    assert [c['diff_hunk'] for c in repo.get(f'{at}/reviews/{review["id"]}/comments')] == [h for _, h in cases]
    assert [repo.get(f'/pulls/comments/{m["id"]}')['diff_hunk'] for m in made] == [hunk for _, hunk in cases]
    later = other.post(f'{at}/comments', {'body': 'x', 'path': 'long.txt', 'line': 1})
    assert later['diff_hunk'].endswith('\n+gone')


# ---- update-branch ----

def test_update_branch(repo, other, reader):
    number = repo.pull('behind', {'behind.txt': 'x\n'})['number']
    at = f'/pulls/{number}'
    head = repo.get(at)['head']['sha']
    none = repo.put(f'{at}/update-branch', status=422)
    assert 'no new commits' in none['errors'][0]['message']
    repo.branch('ahead-of-it', {'more.txt': 'y\n'})
    repo.work.push('HEAD:main')
    assert errors(repo.put(f'{at}/update-branch', {'expected_head_sha': '0' * 40}, 422)) == [
        ('PullRequest', 'expected_head_sha', 'invalid')]
    reader.put(f'{at}/update-branch', status=403)
    assert other.put(f'{at}/update-branch', {'expected_head_sha': head}, 202)['message']
    seen = repo.get(at)
    merge = repo.get(f'/commits/{seen["head"]["sha"]}')
    assert [p['sha'] for p in merge['parents']] == [head, seen['base']['sha']]
    assert merge['commit']['author']['name'] == 'reviewer' and merge['commit']['committer']['name'] == 'Coop'
    wait_until(lambda: repo.get(at)['commits'] == 2, 'what git says')
    assert [f['filename'] for f in repo.get(f'{at}/files')] == ['behind.txt']


def test_update_branch_conflict(repo):
    number = repo.pull('clash', {'clash.txt': 'one\n'})['number']
    repo.branch('clash-base', {'clash.txt': 'two\n'})
    repo.work.push('HEAD:main')
    clash = repo.put(f'/pulls/{number}/update-branch', status=422)
    assert 'conflict' in clash['errors'][0]['message']
    repo.patch(f'/pulls/{number}', {'state': 'closed'})
    assert errors(repo.put(f'/pulls/{number}/update-branch', status=422)) == [('PullRequest', None, 'custom')]
