# SPDX-License-Identifier: Apache-2.0
"""What happens to a pull request here, done at GitHub too: each thing once, whatever is killed or lost."""
import os

import pytest

from githubpair import V3, Pair, hub, pair, wait_done, works  # pylint: disable=unused-import
from harness import wait_until

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')


def test_state(pair):
    there = pair.there
    assert (there['title'], there['body'], there['draft'], there['state']) == ('Work', 'Text', False, 'open')
    pair.patch(title='Other', body='More')
    wait_until(lambda: there['title'] == 'Other' and there['body'] == 'More', 'the words')
    pair.patch(state='closed')
    wait_until(lambda: there['state'] == 'closed', 'the end')
    pair.patch(state='open')
    wait_until(lambda: there['state'] == 'open', 'the beginning')
    # A base that has not changed is not sent: a closed one would refuse it.
    assert [b for m, p, b in pair.hub.asked if m == 'PATCH' and 'base' in b] == []


def test_draft(make_server, hub, tmp_path):
    pair = Pair(make_server, hub, tmp_path, draft=True)
    assert pair.there['draft'] is True
    pair.patch(draft=False)
    wait_until(lambda: pair.there['draft'] is False, 'that it is ready')
    pair.patch(draft=True)
    wait_until(lambda: pair.there['draft'] is True, 'that it is a draft')
    words = [b['query'] for m, p, b in hub.asked if p == '/api/graphql']
    assert ['markPullRequestReadyForReview' in words[0], 'convertPullRequestToDraft' in words[1]] == [True, True]
    assert len(words) == 2


def test_draft_refused(make_server, hub, tmp_path):
    pair = Pair(make_server, hub, tmp_path, draft=True)
    pair.there['node_id'] = 'PR_other'
    hub.pulls[pair.there['number']] = dict(pair.there, node_id='PR_gone')
    hub.graphql = lambda body: (200, [], {'errors': [{'type': 'FORBIDDEN', 'message': 'not for\x1b[1m you'}]})
    pair.patch(draft=False)
    work = wait_until(lambda: (w := works(pair.server, 'pull')[0])['state'] == 'failed' and w, 'the failure')
    assert 'not for' in work['problem'] and '\x1b' not in work['problem']


def test_comments(pair):
    hub = pair.hub
    made = pair.comment('Look <!-- coop:x --> at @this')
    wait_done(pair.server, 'comment')
    said, = hub.comments.values()
    first, rest = said['body'].split('\n', 1)
    assert first.startswith('<!-- coop:comment-') and rest.endswith('\n\nLook <!-- coop:x --> at @this')
    assert rest.startswith('**')
    answer = pair.server.ask('PATCH', f'{V3}/issues/comments/{made["id"]}', body={'body': 'Other'})
    assert answer.status == 200, answer
    wait_until(lambda: said['body'].endswith('Other'), 'the edit')
    assert pair.server.ask('DELETE', f'{V3}/issues/comments/{made["id"]}').status == 204
    wait_until(lambda: hub.comments == {}, 'the removal')


def test_progress(pair):
    at = f'/api/v1/repos/coop/widget/issues/{pair.pull["number"]}/comments/progress'
    for text in ('10 %', '60 %', '60 %', '100 %'):
        assert pair.server.ask('PUT', at, body={'body': text}).status == 200
        wait_until(lambda: [c for c in pair.hub.comments.values() if c['body'].endswith(text)], text)
    assert len(pair.hub.comments) == 1
    assert pair.count('POST', '/comments') == 1


def test_reviews(pair):
    other = pair.server.make_key(name='rev', scopes='admin')['key']
    answer = pair.server.ask('POST', f'{pair.at}/reviews', key=other,
                             body={'event': 'APPROVE', 'body': 'Good', 'comments': [
                                 {'path': 'work', 'line': 1, 'side': 'RIGHT', 'body': 'Here'},
                                 {'path': 'nowhere', 'line': 9, 'side': 'RIGHT', 'body': 'There'}]})
    assert answer.status == 200, answer
    wait_done(pair.server, 'review')
    wait_done(pair.server, 'line', 2)
    review, = pair.hub.reviews.values()
    assert '**rev** approves these changes' in review['body'] and review['body'].endswith('Good')
    line, = pair.hub.lines.values()
    assert line['body'].endswith('Here') and (line['path'], line['line'], line['commit_id']) == ('work', 1, pair.oid)
    # What is not among the changes there is said all the same.
    comment, = pair.hub.comments.values()
    assert '`nowhere`, line 9' in comment['body'] and comment['body'].endswith('There')
    # An answer finds its line there.
    mine = next(c for c in pair.server.get(f'{pair.at}/comments') if c['path'] == 'work')
    pair.server.post(f'{pair.at}/comments/{mine["id"]}/replies', {'body': 'Yes'}, status=201)
    wait_done(pair.server, 'line', 3)
    assert next(x for x in pair.hub.lines.values() if x['body'].endswith('Yes'))['in_reply_to'] == line['id']
    dismissed = pair.server.ask('PUT', f'{pair.at}/reviews/{answer.json["id"]}/dismissals', body={'message': 'Old'})
    assert dismissed.status == 200, dismissed
    wait_until(lambda: '(dismissed)' in review['body'], 'the dismissal')
    assert len(pair.hub.reviews) == 1


def resolve(pair, comment, method='PUT'):
    at = f'/api/v1/repos/coop/widget/pulls/comments/{comment}/resolved'
    assert pair.server.ask(method, at, body=b'').status == 200


def test_threads(pair):
    made = pair.server.post(f'{pair.at}/comments', {'body': 'Why?', 'path': 'work', 'line': 1}, status=201)
    reply = pair.server.post(f'{pair.at}/comments/{made["id"]}/replies', {'body': 'So.'}, status=201)
    wait_done(pair.server, 'line', 2)
    first = next(i for i in pair.hub.lines.values() if not i['in_reply_to_id'])
    resolve(pair, reply['id'])
    wait_until(lambda: pair.hub.resolved == {first['id']}, 'that it is dealt with')
    resolve(pair, made['id'], 'DELETE')
    wait_until(lambda: pair.hub.resolved == set(), 'that it is open again')
    # What is so there already is not said.
    pair.hub.resolved.add(first['id'])
    before = len([1 for _, p, b in pair.hub.asked if p == '/api/graphql' and 'mutation' in b['query']])
    resolve(pair, made['id'])
    wait_until(lambda: works(pair.server, 'thread')[0]['state'] == 'done', 'the row')
    assert len([1 for _, p, b in pair.hub.asked if p == '/api/graphql' and 'mutation' in b['query']]) == before
    # One that nobody there knows.
    pair.hub.lines.clear()
    resolve(pair, made['id'], 'DELETE')
    row = wait_until(lambda: (w := works(pair.server, 'thread')[0])['state'] == 'failed' and w, 'the failure')
    assert 'no such thread' in row['problem']


def labels_there(pair):
    return sorted(x['name'] for x in pair.there['labels'])


def test_labels(pair):
    at = f'{V3}/issues/{pair.pull["number"]}/labels'
    pair.server.post(at, {'labels': ['bug', 'two words/ä']}, status=200)
    wait_until(lambda: labels_there(pair) == ['bug', 'two words/ä'], 'the labels')
    # Theirs stays, whatever is changed here.
    pair.hub.set_pull(pair.there['number'], labels=pair.there['labels'] + [{'name': 'Theirs'}])
    assert pair.server.ask('DELETE', f'{at}/two%20words%2F%C3%A4').status == 200
    wait_until(lambda: labels_there(pair) == ['Theirs', 'bug'], 'the removal')
    # One that is there by itself is not sent again, and a title sends no labels.
    before = pair.count('POST', '/labels')
    pair.server.post(at, {'labels': ['theirs']}, status=200)
    pair.patch(title='Other')
    wait_until(lambda: pair.there['title'] == 'Other', 'the title')
    wait_done(pair.server, 'pull')
    assert pair.count('POST', '/labels') == before and labels_there(pair) == ['Theirs', 'bug']


def test_labels_at_opening(make_server, hub, tmp_path):
    pair = Pair(make_server, hub, tmp_path, labels=['first'])
    assert labels_there(pair) == ['first']


def test_reviewers(pair):
    at = f'{pair.at}/requested_reviewers'

    def asked():
        return sorted(p['login'] for p in pair.there['requested_reviewers'])

    other = pair.server.make_key(name='rev')
    made = pair.server.post(at, {'reviewers': ['ann@github', 'rev']})
    assert sorted(p['login'] for p in made['requested_reviewers']) == ['ann@github', 'rev'] and other
    wait_until(lambda: asked() == ['ann'], 'the request')  # who is only here is nobody there
    # One that cannot be asked holds nothing up, and is named.
    pair.server.post(at, {'reviewers': ['stranger@github']})
    row = wait_until(lambda: (w := works(pair.server, 'pull')[0])['state'] == 'done' and
                     (w['answer'].get('problems') or None) and w, 'the refusal')
    assert 'collaborators' in row['answer']['problems'][0]
    pair.comment('Still speaking')
    wait_done(pair.server, 'comment')
    assert pair.server.ask('DELETE', at, body={'reviewers': ['ann@github', 'stranger@github']}).status == 200
    wait_until(lambda: asked() == [], 'that nobody is asked')


@needs_failpoints
@pytest.mark.parametrize('point', ['upstream-asking', 'upstream-marked', 'upstream-answered'])
def test_kill_labels(pair, point):
    server = pair.server
    server.stop()
    server.env['COOP_FAIL_AT'] = point
    server.start()
    try:
        server.ask('POST', f'{V3}/issues/{pair.pull["number"]}/labels', body={'labels': ['once']})
    except Exception:  # it may die before it answers
        pass
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    wait_until(lambda: labels_there(pair) == ['once'] and works(server, 'pull')[0]['state'] == 'done', 'the label')
    assert pair.count('POST', '/labels') == 1


def test_lost_answers(pair):
    """They were done, and nobody heard of it: looked for, not repeated."""
    pair.hub.lose = 1
    pair.comment('Only once')
    wait_done(pair.server, 'comment')
    assert len(pair.hub.comments) == 1
    pair.hub.lose = 1
    pair.server.post(f'{pair.at}/reviews', {'event': 'COMMENT', 'body': 'Once'}, status=200)
    wait_done(pair.server, 'review')
    assert len(pair.hub.reviews) == 1


def test_unknown_end(pair):
    """Done there, the answer lost, and nobody could look: the next try looks before it says it again."""
    hub, real = pair.hub, pair.hub.handle
    hub.handle = lambda method, path, *more: (403, [], {'message': 'not now'}) \
        if method == 'GET' and path.endswith('/reviews') else real(method, path, *more)
    hub.lose = 1
    pair.server.post(f'{pair.at}/reviews', {'event': 'COMMENT', 'body': 'Once'}, status=200)
    wait_until(lambda: [w['state'] for w in works(pair.server, 'review')] == ['failed'], 'the failure')
    hub.handle = real
    review = pair.server.get(f'{pair.at}/reviews')[0]
    assert pair.server.ask('PUT', f'{pair.at}/reviews/{review["id"]}', body={'body': 'Once'}).status == 200
    wait_done(pair.server, 'review')
    assert len(hub.reviews) == 1


def test_endless_answer(pair):
    """An answer that is too long counts as a try: nobody asks for it every second for ever."""
    hub, real = pair.hub, pair.hub.handle
    hub.handle = lambda method, path, *more: (201, [], {'id': 1, 'x': 'x' * (9 << 20)}) \
        if method == 'POST' and path.endswith('/reviews') else real(method, path, *more)
    pair.server.post(f'{pair.at}/reviews', {'event': 'COMMENT', 'body': 'Once'}, status=200)
    work = wait_until(lambda: (w := works(pair.server, 'review')) and w[0]['problem'] and w[0], 'the problem')
    assert 'more than 8 MiB' in work['problem'] and work['tries'] == 1


@needs_failpoints
@pytest.mark.parametrize('kind', ['comment', 'review', 'line'])
@pytest.mark.parametrize('point', ['upstream-asking', 'upstream-marked', 'upstream-answered'])
def test_kill(pair, kind, point):
    server, hub = pair.server, pair.hub
    server.stop()
    # The review of a line alone has nothing to say, but its row ends too.
    server.env['COOP_FAIL_AT'] = f'{point}:2' if kind == 'line' and point != 'upstream-asking' else point
    server.start()
    body = {'body': 'Once'} if kind == 'comment' else {'event': 'COMMENT', 'body': '', 'comments': [
        {'path': 'work', 'line': 1, 'body': 'Once'}]} if kind == 'line' else {'event': 'COMMENT', 'body': 'Once'}
    at = f'{V3}/issues/{pair.pull["number"]}/comments' if kind == 'comment' else f'{pair.at}/reviews'
    try:
        server.ask('POST', at, body=body)
    except Exception:  # it may die before it answers
        pass
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    wait_done(server, kind)
    store = {'comment': hub.comments, 'review': hub.reviews, 'line': hub.lines}[kind]
    assert [i['body'].endswith('Once') for i in store.values()] == [True]


@pytest.mark.parametrize('lose', [0, 1])
def test_strangers_marker(pair, lose):
    """Anybody can write a marker: what others wrote is never taken for ours, nor written over."""
    marker = f'<!-- coop:comment-{pair.repo["id"][:8]}-1 -->'
    pair.hub.say(pair.there['number'], marker + '\nmine', login='mallory')
    pair.hub.lose = lose
    made = pair.comment('Ours')
    wait_done(pair.server, 'comment')
    assert sorted(c['body'].rpartition('\n')[2] for c in pair.hub.comments.values()) == ['Ours', 'mine']
    assert pair.server.ask('PATCH', f'{V3}/issues/comments/{made["id"]}', body={'body': 'Other'}).status == 200
    wait_until(lambda: [m for m, _, _ in pair.hub.asked if m == 'PATCH'], 'the edit')
    assert sorted(c['body'].rpartition('\n')[2] for c in pair.hub.comments.values()) == ['Other', 'mine']
