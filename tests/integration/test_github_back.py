# SPDX-License-Identifier: Apache-2.0
"""What happens to our pull request at GitHub: rows here, and nothing of it goes back there."""
import json
import os

import pytest

from githubpair import V3, Pair, hub, pair, wait_done, works  # pylint: disable=unused-import
from githubserver import sign
from harness import wait_until

REPO = {'full_name': 'acme/widget'}
needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')


class Teller:
    """Tells as GitHub does, by webhooks."""

    def __init__(self, made):
        self.pair, self.count = made, 0

    def __call__(self, name, action, sender='ann', **more):
        self.count += 1
        number = self.pair.there['number']
        payload = {'action': action, 'repository': REPO, 'sender': {'login': sender}, **more}
        if name == 'issue_comment':
            payload['issue'] = {'number': number, 'id': 9, 'pull_request': {}}
        elif name != 'pull_request':
            payload['pull_request'] = self.pair.there
        else:
            payload['pull_request'] = self.pair.hub.pulls[number]
        body = self.pair.server.ask('POST', '/webhooks/github', **hook(name, payload, f'd-{self.count}'), key=None)
        assert body.status in (200, 202), body
        return body.json['result']


def hook(name, payload, guid):
    text = json.dumps(payload).encode()
    return {'body': text, 'headers': {'Content-Type': 'application/json', 'X-GitHub-Event': name,
                                      'X-GitHub-Delivery': guid, 'X-Hub-Signature-256': sign(text)}}


@pytest.fixture
def tell(pair):
    return Teller(pair)


def comments(pair):
    return pair.server.get(f'{V3}/issues/{pair.pull["number"]}/comments')


def writes(pair):
    return [(m, p) for m, p, _ in pair.hub.asked if m != 'GET']


def wait_calm(pair):
    """Whatever follows from what was told has been asked for and done."""
    made = pair.comment('The last')
    wait_until(lambda: [c for c in pair.hub.comments.values() if c['body'].endswith('The last')], 'the last')
    wait_until(lambda: pair.server.get('/api/v1/github/work')['waiting'] == 0, 'the work')
    assert pair.server.ask('DELETE', f'{V3}/issues/comments/{made["id"]}').status == 204


def test_comments(pair, tell):
    before = writes(pair)
    said = pair.hub.say(pair.there['number'], 'Hello <!-- coop:x -->')
    assert tell('issue_comment', 'created', comment=said) == 'taken'
    row, = comments(pair)
    assert row['body'] == said['body'] and row['user']['login'] == 'ann@github'
    assert tell('issue_comment', 'created', comment=said) == 'known'
    edited = dict(said, body='Other')
    assert tell('issue_comment', 'edited', comment=edited) == 'taken'
    assert [c['body'] for c in comments(pair)] == ['Other']
    added, = pair.server.events(kind='comment.added')
    assert added['actor'] == 'github:ann' and added['data']['number'] == pair.pull['number']
    assert tell('issue_comment', 'deleted', comment=edited) == 'taken'
    assert comments(pair) == [] and tell('issue_comment', 'created', comment=said) == 'known'
    wait_calm(pair)
    assert [w for w in writes(pair) if w not in before and w[0] != 'DELETE'] == [
        ('POST', f'/repos/acme/widget/issues/{pair.there["number"]}/comments')]


def test_our_own_come_back(pair, tell):
    """An answer may be slower than the webhook; a stranger's marker is a stranger's."""
    pair.comment('Ours')
    wait_done(pair.server, 'comment')
    said, = pair.hub.comments.values()
    assert tell('issue_comment', 'created', sender='robot', comment=said) == 'known'
    unknown = dict(said, id=4711, body=said['body'].replace('Ours', 'Again'))
    assert tell('issue_comment', 'created', sender='robot', comment=unknown) == 'known'
    assert [c['body'] for c in comments(pair)] == ['Ours']
    other = dict(unknown, id=4712, user={'login': 'mallory'})
    assert tell('issue_comment', 'created', sender='mallory', comment=other) == 'taken'
    assert [c['user']['login'] for c in comments(pair)][1] == 'mallory@github'
    # What is ours is not written over from there.
    assert tell('issue_comment', 'edited', sender='mallory', comment=dict(said, body='evil')) == 'known'
    assert comments(pair)[0]['body'] == 'Ours'


@pytest.mark.parametrize('body', ['', None, 'x' * 70000, 'a\x00b\u202e\x1b[31m', 7])
def test_odd_bodies(pair, tell, body):
    said = dict(pair.hub.say(pair.there['number'], ''), body=body)
    tell('issue_comment', 'created', comment=said)
    assert len(comments(pair)) == (1 if isinstance(body, str) and body else 0)


def state(pair):
    seen = pair.server.get(pair.at)
    return seen['state'], seen['draft'], seen['merged']


def test_state(pair, tell):
    number = pair.there['number']
    pair.hub.set_pull(number, state='closed')
    assert tell('pull_request', 'closed') == 'taken' and state(pair) == ('closed', False, False)
    old = dict(pair.hub.pulls[number])
    pair.hub.set_pull(number, state='open')
    assert tell('pull_request', 'reopened') == 'taken' and state(pair) == ('open', False, False)
    pair.hub.set_pull(number, draft=True)
    tell('pull_request', 'converted_to_draft')
    assert state(pair) == ('open', True, False)
    pair.hub.set_pull(number, draft=False)
    tell('pull_request', 'ready_for_review')
    assert state(pair) == ('open', False, False)
    # What comes late is old.
    pair.hub.pulls[number] = old
    tell('pull_request', 'closed')
    assert state(pair)[0] == 'open'
    pair.hub.pulls[number] = pair.there
    assert {e['actor'] for e in pair.server.events(kind='pr.closed') if 'number' in e['data']} == {'github:ann'}
    wait_calm(pair)
    assert [w for w in writes(pair) if w[0] == 'PATCH'] == []
    # What changes here from then on goes there, though it was last sent long ago.
    pair.hub.set_pull(number, state='closed')
    tell('pull_request', 'closed')
    assert state(pair)[0] == 'closed'
    pair.patch(state='open')
    wait_until(lambda: pair.there['state'] == 'open', 'that it is open again')


def test_merged_there(pair, tell):
    """By a squash, of which no commit tells."""
    pair.hub.set_pull(pair.there['number'], state='closed', merged=True, merge_commit_sha='b' * 40,
                      merged_by={'login': 'ann'})
    assert tell('pull_request', 'closed') == 'taken'
    assert state(pair) == ('closed', False, True)
    seen = pair.server.get(pair.at)
    assert seen['merged_by']['login'] == 'ann@github' and seen['merge_commit_sha'] == 'b' * 40
    wait_until(lambda: [e for e in pair.server.events(kind='git.fetched') if e['actor'] == 'github'], 'the fetch')
    assert works(pair.server, 'merge') == []


@pytest.mark.parametrize('association, kind, here, blocked', [
    ('MEMBER', 'changes_requested', 'CHANGES_REQUESTED', True), ('NONE', 'changes_requested', 'COMMENTED', False),
    ('MEMBER', 'approved', 'APPROVED', False), ('NONE', 'approved', 'COMMENTED', False)])
def test_reviews(pair, tell, association, kind, here, blocked):
    assert pair.server.ask('PATCH', '/api/v1/repos/coop/widget/settings', body={'required_approvals': 1}).status == 200
    review = pair.hub.review(pair.there['number'], kind, 'Words', association=association)
    assert tell('pull_request_review', 'submitted', review=review) == 'taken'
    assert tell('pull_request_review', 'submitted', review=review) == 'known'
    row, = pair.server.get(f'{pair.at}/reviews')
    assert (row['state'], row['body'], row['user']['login']) == (here, 'Words', 'ann@github')
    merge = pair.server.get(pair.at)['coop']['merge']
    rules = [reason['rule'] for reason in merge['reasons']]
    assert ('changes_requested' in rules) == blocked
    assert 'approvals' in rules and merge['approvals'] == 0  # nobody there decides what counts here
    tell('pull_request_review', 'dismissed', review=dict(review, state='dismissed'))
    assert pair.server.get(f'{pair.at}/reviews')[0]['state'] == ('DISMISSED' if here != 'COMMENTED' else here)


def test_lines(pair, tell):
    line = pair.hub.item('ann', body='Here', path='work', line=1, side='RIGHT', commit_id=pair.oid)
    line['diff_hunk'] = '@@ -0,0 +1 @@\n+work'
    assert tell('pull_request_review_comment', 'created', comment=line) == 'taken'
    reply = pair.hub.item('bob', body='Yes', path='work', line=None, original_line=1, in_reply_to_id=line['id'])
    assert tell('pull_request_review_comment', 'created', comment=reply) == 'taken'
    for odd in ({'path': ''}, {'path': '/etc'}, {'path': 'a\nb'}, {'path': 7}, {'path': 'x' * 5000}):
        assert tell('pull_request_review_comment', 'created', comment={**line, **odd, 'id': 99}) == 'known'
    first, second = pair.server.get(f'{pair.at}/comments')
    assert (first['body'], first['path'], first['line']) == ('Here', 'work', 1)
    assert first['diff_hunk'] == second['diff_hunk'] == line['diff_hunk']
    assert second['in_reply_to_id'] == first['id'] and second['user']['login'] == 'bob@github'
    # Ours answers theirs, there.
    pair.server.post(f'{pair.at}/comments/{first["id"]}/replies', {'body': 'Done'}, status=201)
    wait_done(pair.server, 'line')
    assert [x['in_reply_to'] for x in pair.hub.lines.values()] == [line['id']]


def test_threads(pair, tell):
    line = pair.hub.item('ann', body='Here', path='work', line=1, side='RIGHT', commit_id=pair.oid)
    tell('pull_request_review_comment', 'created', comment=line)
    before = writes(pair)

    def here():
        return [c['coop']['resolved'] for c in pair.server.get(f'{pair.at}/comments')]

    for action, result, resolved in (('resolved', 'taken', True), ('resolved', 'known', True), ('moved', 'known', True),
                                     ('unresolved', 'taken', False)):
        assert tell('pull_request_review_thread', action, thread={'node_id': 'PRRT_1', 'comments': [line]}) == result
        assert here() == [resolved]
    for odd in ({}, {'comments': []}, {'comments': [{'id': 4711}]}, {'comments': [7]}):
        assert tell('pull_request_review_thread', 'resolved', thread=odd) == 'known'
    assert here() == [False]
    event = pair.server.events(kind='review.changed')[-1]
    assert event['actor'] == 'github:ann' and event['data']['action'] == 'unresolved'
    wait_calm(pair)
    assert [w for w in writes(pair) if w not in before and 'comments' not in w[1]] == []


def names_here(pair):
    pull = pair.server.get(pair.at)
    return sorted(x['name'] for x in pull['labels']), sorted(p['login'] for p in pull['requested_reviewers'])


def test_labels_and_reviewers(pair, tell):
    number, before = pair.there['number'], writes(pair)
    pair.hub.set_pull(number, labels=[{'name': 'bug'}, {'name': 'x' * 51}, {'name': ''}, {'name': 7}, {}],
                      requested_reviewers=[{'login': 'bob'}, {'login': 'a b'}, {'login': ''}])
    assert tell('pull_request', 'labeled') == 'taken'
    assert names_here(pair) == (['bug'], ['bob@github'])
    event = pair.server.events(kind='review.requested')[-1]
    assert event['actor'] == 'github:ann' and event['data']['reviewers'] == ['github:bob']
    assert pair.server.events(kind='pr.updated')[-1]['data']['label'] == 'bug'
    # What was here only stays, what both had goes.
    pair.server.post(f'{V3}/issues/{pair.pull["number"]}/labels', {'labels': ['ours']}, status=200)
    wait_until(lambda: 'ours' in [x['name'] for x in pair.there['labels'] if 'name' in x], 'ours there')
    wait_until(lambda: works(pair.server, 'pull')[0]['state'] == 'done', 'the row')
    old = dict(pair.hub.pulls[number], labels=[], requested_reviewers=[], updated_at='2001-01-01T00:00:00Z')
    new = pair.hub.set_pull(number, labels=[{'name': 'ours'}], requested_reviewers=[])
    pair.hub.pulls[number] = old  # told of late
    tell('pull_request', 'unlabeled')
    assert names_here(pair) == (['bug', 'ours'], ['bob@github'])
    pair.hub.pulls[number] = new
    assert tell('pull_request', 'unlabeled') == 'taken'
    assert names_here(pair) == (['ours'], [])
    wait_calm(pair)
    again = [w for w in writes(pair) if w not in before and 'comments' not in w[1]]
    assert again == [('POST', f'/repos/acme/widget/issues/{number}/labels')], again


def test_changed_here(pair, tell):
    """What an admin makes here of what they said is no news for them."""
    before = writes(pair)
    said = pair.hub.say(pair.there['number'], 'Theirs')
    review = pair.hub.review(pair.there['number'], 'changes_requested', 'Words')
    line = pair.hub.item('ann', body='Here', path='work', line=1, side='RIGHT', commit_id=pair.oid)
    tell('issue_comment', 'created', comment=said)
    tell('pull_request_review', 'submitted', review=review)
    tell('pull_request_review_comment', 'created', comment=line)
    row, = comments(pair)
    assert pair.server.ask('PATCH', f'{V3}/issues/comments/{row["id"]}', body={'body': 'x'}).status == 200
    row = next(r for r in pair.server.get(f'{pair.at}/reviews') if r['body'] == 'Words')
    assert pair.server.ask('PUT', f'{pair.at}/reviews/{row["id"]}/dismissals', body={'message': 'Old'}).status == 200
    row, = pair.server.get(f'{pair.at}/comments')
    assert pair.server.ask('PATCH', f'{V3}/pulls/comments/{row["id"]}', body={'body': 'x'}).status == 200
    wait_calm(pair)
    assert [w for w in writes(pair) if w not in before and w[0] != 'DELETE'] == [
        ('POST', f'/repos/acme/widget/issues/{pair.there["number"]}/comments')]


def test_poll(make_server, hub, tmp_path):
    """All pages of all lists, without any webhook."""
    pair = Pair(make_server, hub, tmp_path, env={'COOP_GITHUB_POLL_INTERVAL': '1s'})
    number = pair.there['number']
    for n in range(230):
        hub.say(number, f'comment {n}')
    hub.review(number, 'COMMENTED', 'Looked')
    wait_until(lambda: [e for e in pair.server.events(kind='review.submitted')], 'the review')
    at = f'{V3}/issues/{pair.pull["number"]}/comments?per_page=100&page='
    wait_until(lambda: len(pair.server.get(at + '3')) == 30, 'all comments')
    said = [c['body'] for page in '123' for c in pair.server.get(at + page)]
    assert said == [f'comment {n}' for n in range(230)]
    hub.set_pull(number, state='closed')
    wait_until(lambda: state(pair)[0] == 'closed', 'the end')
    assert len(pair.server.get(at + '3')) == 30


@needs_failpoints
def test_kill(pair, tell):
    server = pair.server
    server.stop()
    server.env['COOP_FAIL_AT'] = 'github-news'
    server.start()
    said = pair.hub.say(pair.there['number'], 'Once')
    with pytest.raises(Exception):
        tell('issue_comment', 'created', comment=said)
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    assert comments(pair) == []
    assert tell('issue_comment', 'created', comment=said) == 'taken'
    assert len(comments(pair)) == 1
