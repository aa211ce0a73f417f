# SPDX-License-Identifier: Apache-2.0
"""Webhooks: what they send, signed, and that none is lost."""
import contextlib

import pytest

from gitserver import ZERO
from harness import wait_until
from hookserver import HookServer, due_now
from v3client import Repo, errors

LOOPBACK = {'COOP_WEBHOOKS_ALLOW_LOOPBACK': 'true'}


@pytest.fixture
def hooked(make_server, tmp_path):
    """A server, a repository and somebody who hears of all that happens in it."""
    server = make_server(env=LOOPBACK)
    with HookServer() as heard:
        repo = Repo(server, tmp_path, 'hooked')
        repo.heard = heard
        repo.hook = repo.post('/hooks', {'config': {'url': heard.url('/in'), 'secret': heard.secret,
                                                    'content_type': 'json'}, 'events': ['*']})
        yield repo


def deliveries(repo, **more):
    return repo.get(f'/hooks/{repo.hook["id"]}/deliveries', **more)


# ---- rows ----

def test_hooks(hooked):
    at = f'/hooks/{hooked.hook["id"]}'
    seen = hooked.get(at)
    assert seen == hooked.hook and hooked.get('/hooks') == [seen]
    assert seen['config']['secret'] == '********' and hooked.heard.secret not in str(seen)
    assert (seen['name'], seen['type'], seen['active'], seen['events']) == ('web', 'Repository', True, ['*'])
    assert hooked.patch(at, {'events': ['push'], 'active': False})['events'] == ['push']
    hooked.post('/issues', {'title': 'nobody hears'})
    assert deliveries(hooked) == []
    hooked.delete(at)
    hooked.get(at, 404)


@pytest.mark.parametrize('body, expected', [
    ({}, ('Hook', 'config', 'missing_field')),
    ({'config': {}}, ('Hook', 'url', 'missing_field')),
    ({'config': {'url': 'ftp://x'}}, ('Hook', None, 'custom')),
    ({'config': {'url': 'http://user:word@127.0.0.1/'}}, ('Hook', None, 'custom')),
    ({'config': {'url': 'http://127.0.0.1/', 'content_type': 'form'}}, ('Hook', 'content_type', 'invalid')),
    ({'config': {'url': 'http://127.0.0.1/', 'insecure_ssl': '1'}}, ('Hook', 'insecure_ssl', 'invalid')),
    ({'config': {'url': 'http://127.0.0.1/', 'secret': 7}}, ('Hook', 'secret', 'invalid')),
    ({'config': {'url': 'http://127.0.0.1/'}, 'events': ['none']}, ('Hook', None, 'custom')),
    ({'config': {'url': 'http://127.0.0.1/'}, 'name': 'email'}, ('Hook', 'name', 'invalid')),
    ({'config': {'url': 'http://127.0.0.1/'}, 'add_events': ['push']}, ('Hook', 'add_events', 'invalid')),
])
def test_refused(hooked, body, expected):
    assert errors(hooked.post('/hooks', body, 422)) == [expected]


def test_who_may(hooked):
    box = hooked.as_(hooked.server.make_key(scopes='read,box')['key'])
    box.get('/hooks', 403)
    box.post('/hooks', {'config': {'url': 'http://127.0.0.1/'}}, 403)


@pytest.mark.parametrize('url', ['http://127.0.0.1:9/', 'http://[::1]/', 'http://169.254.169.254/', 'http://10.0.0.1/'])
def test_places(server, tmp_path, url):
    """Without the setting nothing goes to this machine or its neighbours."""
    repo = Repo(server, tmp_path, f'place-{abs(hash(url))}')
    repo.post('/hooks', {'config': {'url': url}}, 403)


def test_place_by_name(server, tmp_path):
    """A name is judged when it is called."""
    repo = Repo(server, tmp_path, 'place-by-name')
    with HookServer() as heard:
        url = heard.url('/').replace('127.0.0.1', 'localhost')
        repo.hook = repo.post('/hooks', {'config': {'url': url}, 'events': ['issues']})
        repo.post('/issues', {'title': 'x'})
        failed = wait_until(lambda: (d := deliveries(repo)) and d[0]['status'] != 'pending' and d[0], 'the refusal')
        assert failed['status_code'] == 0 and heard.got.empty()


# ---- bodies ----

def test_push(hooked):
    main = hooked.work.head('origin/main')
    head = hooked.branch('told', {'b.txt': 'b\n', 'ü.txt': 'x\n'})
    got = hooked.heard.take(2)
    made, push = got['create'][0], got['push'][0]
    assert all(d.is_signed and d.path == '/in' for d in (made, push))
    assert push.headers['User-Agent'].startswith('Coop-Hookshot/')
    assert push.headers['Content-Type'] == 'application/json'
    assert (made.json['ref'], made.json['ref_type'], made.json['master_branch']) == ('told', 'branch', 'main')
    assert push.json['ref'] == 'refs/heads/told' and push.json['created'] is True and push.json['before'] == ZERO
    shown = hooked.get('')
    assert all(push.json['repository'][name] == shown[name] for name in ('id', 'full_name', 'owner', 'clone_url'))
    commit, = push.json['commits']
    assert push.json['head_commit'] == commit and push.json['after'] == commit['id'] == head
    assert (commit['added'], commit['message'], commit['author']['name']) == (['b.txt', 'ü.txt'], 'feat: told', 'Ann')
    hooked.work.git('mv', 'b.txt', 'c.txt')
    (hooked.work.folder / 'a.txt').write_text('changed\n')
    hooked.work.git('commit', '-q', '-a', '-m', 'feat!: move')
    hooked.work.push('HEAD:told')
    push = hooked.heard.next()
    commit, = push.json['commits']
    assert (commit['added'], commit['removed'], commit['modified']) == (['c.txt'], ['b.txt'], ['a.txt'])
    assert push.json['before'] == head and push.json['forced'] is push.json['created'] is False
    hooked.work.push(f'+{main}:refs/heads/told')
    push = hooked.heard.next()
    assert push.json['forced'] is True and push.json['commits'] == []
    hooked.work.push(':told')
    got = hooked.heard.take(2)
    assert got['delete'][0].json['ref'] == 'told'
    assert got['push'][0].json['deleted'] is True and got['push'][0].json['head_commit'] is None
    assert got['push'][0].json['sender']['login'] == got['push'][0].json['pusher']['name']


def test_pull_request(hooked):
    """The object is the one of the API."""
    pull = hooked.pull('asked')
    opened = hooked.heard.of('pull_request').json
    assert opened['action'] == 'opened' and opened['number'] == pull['number']
    # How far Coop's own checks are may have changed meanwhile.
    assert {**opened['pull_request'], 'coop': 0} == {**pull, 'coop': 0} and opened['sender'] == pull['user']
    at = f'/pulls/{pull["number"]}'
    hooked.work.commit('b.txt', 'more\n', 'fix: more')
    hooked.work.push('HEAD:asked')
    moved = hooked.heard.of('pull_request').json
    assert moved['action'] == 'synchronize' and moved['after'] == moved['pull_request']['head']['sha']
    assert moved['before'] == pull['head']['sha']
    hooked.patch(at, {'title': 'Other'})
    edited = hooked.heard.of('pull_request').json
    assert (edited['action'], edited['pull_request']['title']) == ('edited', 'Other')
    hooked.patch(at, {'draft': True})
    hooked.patch(at, {'draft': False})
    assert [hooked.heard.of('pull_request').json['action'] for _ in range(2)] == ['converted_to_draft', 'ready_for_review']
    hooked.post(f'/issues/{pull["number"]}/labels', {'labels': ['big']}, 200)
    labeled = hooked.heard.of('pull_request')
    assert labeled.json['label']['name'] == 'big'
    other = hooked.server.make_key(scopes='read,box', name='second')['key']
    them = hooked.server.ask('GET', '/api/v3/user', key=other).json
    hooked.post(f'{at}/requested_reviewers', {'reviewers': [them['login']]})
    asked = hooked.heard.of('pull_request').json
    assert (asked['action'], asked['requested_reviewer']) == ('review_requested', them)
    review = hooked.as_(other).post(f'{at}/reviews', {'event': 'APPROVE', 'body': 'fine'}, 200)
    said = hooked.heard.of('pull_request_review')
    assert said.json['action'] == 'submitted'
    assert said.json['review'] == {**review, 'state': 'approved'} and said.json['sender'] == them
    comment = hooked.as_(other).post(f'{at}/comments', {'body': 'here', 'path': 'b.txt', 'line': 1})
    got = hooked.heard.take(2)
    alone = got['pull_request_review'][0].json['review']
    assert (alone['state'], alone['id']) == ('commented', comment['pull_request_review_id'])
    assert got['pull_request_review_comment'][0].json['comment'] == comment
    assert got['pull_request_review_comment'][0].json['action'] == 'created'
    hooked.delete(f'/pulls/comments/{comment["id"]}')
    gone = hooked.heard.of('pull_request_review_comment').json
    assert (gone['action'], gone['comment']) == ('deleted', {'id': comment['id']})
    hooked.patch(at, {'state': 'closed'})
    closed = hooked.heard.of('pull_request').json
    assert closed['action'] == 'closed' and closed['pull_request']['merged'] is False


def test_issues(hooked):
    issue = hooked.post('/issues', {'title': 'Heard'})
    opened = hooked.heard.next()
    assert opened.event == 'issues' and opened.json['issue'] == issue and opened.json['action'] == 'opened'
    comment = hooked.post(f'/issues/{issue["number"]}/comments', {'body': 'Me too'})
    said = hooked.heard.next()
    assert said.event == 'issue_comment' and said.json['comment'] == comment
    assert said.json['issue']['comments'] == 1
    hooked.patch(f'/issues/{issue["number"]}', {'state': 'closed'})
    assert hooked.heard.next().json['action'] == 'closed'
    label = hooked.post('/labels', {'name': 'new', 'color': 'ff0000'})
    made = hooked.heard.next()
    assert made.event == 'label' and made.json['label'] == label and made.json['action'] == 'created'


def test_found_out(hooked):
    head = hooked.work.head()
    hooked.post(f'/statuses/{head}', {'state': 'success', 'context': 'ci/x', 'description': 'fine'})
    told = hooked.heard.next()
    assert told.event == 'status' and told.json['commit']['sha'] == told.json['sha'] == head
    assert (told.json['state'], told.json['context'], told.json['name']) == ('success', 'ci/x', 'coop/hooked')
    run = hooked.post('/check-runs', {'name': 'lint', 'head_sha': head})
    told = hooked.heard.next()
    assert told.event == 'check_run' and told.json['check_run'] == run and told.json['action'] == 'created'
    hooked.patch(f'/check-runs/{run["id"]}', {'status': 'completed', 'conclusion': 'failure'})
    told = hooked.heard.next()
    assert told.json['action'] == 'completed' and told.json['check_run']['conclusion'] == 'failure'


def test_ping_and_again(hooked):
    hooked.post(f'/hooks/{hooked.hook["id"]}/pings', status=204)
    ping = hooked.heard.next()
    assert ping.event == 'ping' and ping.is_signed and ping.json['hook'] == hooked.hook and ping.json['zen']
    done = wait_until(lambda: deliveries(hooked)[0]['status_code'] == 200 and deliveries(hooked)[0], 'its end')
    assert (done['event'], done['status'], done['redelivery'], done['guid']) == ('ping', 'OK', False, ping.guid)
    at = f'/hooks/{hooked.hook["id"]}/deliveries/{done["id"]}'
    whole = hooked.get(at)
    assert whole['request']['payload'] == ping.json and hooked.heard.secret not in str(whole)
    hooked.post(f'{at}/attempts', status=202)
    again = hooked.heard.next()
    assert (again.guid, again.body) == (ping.guid, ping.body)
    hooked.get(f'/hooks/{hooked.hook["id"]}/deliveries/999999', 404)
    hooked.post('/hooks/999999/pings', status=404)


def test_hostile_texts(hooked):
    """What somebody wrote is a string in the body, and no more."""
    title = '</script>"\\\u2028\u202e' + '𝕏' * 50
    hooked.post('/issues', {'title': title, 'body': 'X-Injected: 1\r\n\r\n' * 100})
    heard = hooked.heard.next()
    assert heard.is_signed and heard.json['issue']['title'] == title
    assert heard.headers.get('X-Injected') is None


def test_none_for_the_largest(hooked):
    """One near the bound is sent, and those behind it are, side by side with it."""
    hooked.post('/issues', {'title': 'large', 'body': '\u0001'.join(['x' * 10] * 5900)})
    hooked.post('/issues', {'title': 'small'})
    assert {hooked.heard.next().json['issue']['title'] for _ in range(2)} == {'large', 'small'}


# ---- none is lost ----

@pytest.mark.parametrize('answer', [500, 503, 429, 'cut', 'slow'])
def test_again_after(hooked, answer):
    """kill -9 while one waits for its next try, or for its answer."""
    server = hooked.server
    hooked.heard.answers = [answer]
    hooked.post('/issues', {'title': 'late'})
    first = hooked.heard.next()
    if answer != 'slow':
        wait_until(lambda: deliveries(hooked)[0]['tries'] == 1, 'the first try')
    server.kill()
    due_now(server)
    server.start()
    second = hooked.heard.next()
    assert (second.guid, second.body, second.is_signed) == (first.guid, first.body, True)
    done = wait_until(lambda: deliveries(hooked)[0]['status_code'] == 200 and deliveries(hooked), 'the answer')
    assert len(done) == 1 and hooked.heard.got.empty()


@pytest.mark.parametrize('answer', [400, 404, 302])
def test_not_again_after(hooked, answer):
    hooked.heard.answers = [answer]
    hooked.post('/issues', {'title': 'refused'})
    hooked.heard.next()
    failed = wait_until(lambda: deliveries(hooked)[0]['status_code'] == answer and deliveries(hooked)[0], 'the end')
    assert failed['status'] != 'pending' and hooked.heard.got.empty()


@pytest.mark.parametrize('point', ['hook-making', 'hook-sent'])
def test_crash(hooked, point):
    """Killed while deliveries are written, or between the answer and its row: made once, sent at least once."""
    server = hooked.server
    assert server.stop() == 0
    server.env['COOP_FAIL_AT'] = point
    server.start()
    with contextlib.suppress(ConnectionError):  # it may be killed before it answers
        hooked.post('/issues', {'title': 'told'})
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    done = wait_until(lambda: (d := deliveries(hooked)) and d[0]['status_code'] == 200 and d, 'the delivery')
    heard = [hooked.heard.next() for _ in range(2 if point == 'hook-sent' else 1)]
    assert len(done) == 1 and {h.guid for h in heard} == {done[0]['guid']}
    assert all(h.is_signed and h.json['issue']['title'] == 'told' for h in heard)
    assert hooked.heard.got.empty()


def test_check_suite(hooked):
    """This server has no boxes: what could not be found out is told as such."""
    pull = hooked.pull('checked')
    while True:
        heard = hooked.heard.next()
        if heard.event == 'check_suite':
            break
    suite = heard.json['check_suite']
    assert heard.is_signed and heard.json['action'] == 'completed' and heard.json['sender']['login']
    assert (suite['status'], suite['conclusion'], suite['head_branch']) == ('completed', 'stale', 'checked')
    assert suite['head_sha'] == suite['after'] == pull['head']['sha'] and suite['app']['slug'] == 'coop'
    only, = suite['pull_requests']
    assert only['number'] == pull['number'] and only['base']['ref'] == 'main' and only['head']['sha'] == pull['head']['sha']
    assert suite['created_at'] <= suite['updated_at'] and suite['check_runs_url'].endswith(f'/commits/{suite["head_sha"]}/check-runs')


def test_body_that_is_too_large(hooked):
    """It is not sent, and is there to be seen; what follows is sent."""
    work = hooked.work
    for n in range(20):
        for m in range(300):
            (work.folder / f'{n}-{m}-{"x" * 200}').touch()
        work.git('add', '-A')
        work.git('commit', '-q', '-m', f'feat: many {n}')
    work.push('HEAD:many')
    failed = wait_until(lambda: [d for d in deliveries(hooked) if d['event'] == 'push' and d['status'] not in ('OK', 'pending')], 'the delivery')[0]
    assert 'more than 1048576: it was not sent' in failed['status'] and failed['status_code'] == 0
    whole = hooked.get(f'/hooks/{hooked.hook["id"]}/deliveries/{failed["id"]}')
    assert whole['request']['payload'] == {} and hooked.server.log_lines('a delivery is too large to be sent')
    hooked.post('/issues', {'title': 'heard'})
    while hooked.heard.next().event != 'issues':
        pass
