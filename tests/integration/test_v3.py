# SPDX-License-Identifier: Apache-2.0
"""GitHub's dialect below /api/v3: its frame, and the repository's side of it."""
import base64
import http.client
import os
import re
import threading

import pytest

from gitrepo import GitServer, Source
from gitserver import Work, make_repo, url_of
from harness import WAIT_S, wait_until

V3 = '/api/v3'


def ask(server, method, path, **more):
    return server.ask(method, V3 + path, **more)


def get(server, path, status=200, **more):
    answer = ask(server, 'GET', path, **more)
    assert answer.status == status, answer
    return answer


# ---- who is calling ----

@pytest.mark.parametrize('scheme', ['token {}', 'Token {}', 'Bearer {}', 'bearer {}'])
def test_key_as_a_token(server, scheme):
    who = get(server, '/user', key=None, headers={'Authorization': scheme.format(server.key)}).json
    assert who['type'] == 'User' and who['login'] and who['id'] > 0
    assert get(server, f'/users/{who["login"]}').json == who


@pytest.mark.parametrize('form, status', [('anybody:{}', 200), ('{}:', 200), ('{}:x-oauth-basic', 200), ('{}:wrong', 401),
                                          (':', 401), ('{}', 401)])
def test_key_as_a_password(server, form, status):
    """Or as the name, where the password says nothing."""
    coded = base64.b64encode(form.format(server.key).encode()).decode()
    get(server, '/user', status, key=None, headers={'Authorization': f'Basic {coded}'})


@pytest.mark.parametrize('headers, message', [
    ({}, 'Requires authentication'),
    ({'Authorization': 'token e2b_' + '0' * 40}, 'Bad credentials'),
    ({'Authorization': 'token'}, 'Bad credentials'),
    ({'Authorization': 'Basic !!!'}, 'Bad credentials'),
])
def test_no_key(server, headers, message):
    answer = get(server, '/user', 401, key=None, headers=headers)
    assert answer.json['message'] == message and answer.json['status'] == '401'


def test_nothing_there(server):
    for path in ('/repos/coop/none', '/nothing', '/users/nobody-at-all'):
        error = get(server, path, 404).json
        assert error['message'] == 'Not Found' and error['status'] == '404'
        assert error['documentation_url'] == f'http://{server.host}/docs/github-api.md'
    docs = server.ask('GET', '/docs/github-api.md', key=None)
    assert docs.status == 200 and docs.headers['Content-Type'].startswith('text/') and b'/api/v3' in docs.body


# ---- repositories ----

def test_repository(server):
    _, repo = make_repo(server, 'shown', description='one')
    seen = get(server, '/repos/COOP/Shown').json
    assert seen['id'] == repo['number'] and seen['full_name'] == 'coop/shown' and seen['description'] == 'one'
    assert seen['owner']['login'] == 'coop' and seen['default_branch'] == 'main'
    assert seen['url'] == f'http://{server.host}{V3}/repos/coop/shown'
    assert seen['clone_url'] == f'http://{server.host}/git/coop/shown.git'
    assert seen['permissions'] == {'admin': True, 'maintain': True, 'push': True, 'triage': True, 'pull': True}
    assert seen['allow_squash_merge'] and seen['open_issues_count'] == 0
    assert len(seen['created_at']) == len('2026-01-31T12:00:00Z') and seen['pushed_at'] is None


def test_etag(server):
    make_repo(server, 'tagged')
    first = get(server, '/repos/coop/tagged')
    tag = first.headers['ETag']
    assert tag.startswith('W/"')
    for known in (tag, tag[2:], f'"x", {tag}', '*'):
        again = get(server, '/repos/coop/tagged', 304, headers={'If-None-Match': known})
        assert again.body == b'' and again.headers['ETag'] == tag
    assert get(server, '/repos/coop/tagged', headers={'If-None-Match': '"x"'}).body == first.body


# ---- what git has ----

@pytest.fixture(scope='module')
def repo(server, tmp_path_factory):
    """Three commits on main, one on a branch with a slash, odd names, a link, a program."""
    path, row = make_repo(server, 'history')
    work = Work(tmp_path_factory.mktemp('work') / 'clone', url_of(server, path)).init()
    work.commit('readme.md', '# Title\n', 'docs: first')
    (work.folder / 'bin').mkdir()
    (work.folder / 'bin/run').write_text('#!/bin/sh\n')
    (work.folder / 'bin/run').chmod(0o755)
    (work.folder / 'link').symlink_to('readme.md')
    (work.folder / 'a b%ü').write_bytes(b'\xff\x00\xfe')
    work.git('add', '-A')
    work.git('commit', '-q', '-m', 'feat: second\n\nWith a body.')
    work.commit('src/deep/file.c', 'int x;\n', 'feat: third')
    work.push('HEAD:main')
    work.git('tag', '-a', 'v1', '-m', 'one')
    work.git('checkout', '-q', '-b', 'feature/one.two')
    work.commit('src/deep/file.c', 'int x;\nint y;\n', 'fix: fourth')
    work.push('HEAD:feature/one.two', 'v1')
    work.row = row
    work.at = '/repos/coop/history'
    return work


def test_commits(server, repo):
    listed = get(server, f'{repo.at}/commits').json
    assert [c['commit']['message'].split('\n')[0] for c in listed] == ['feat: third', 'feat: second', 'docs: first']
    assert listed[0]['parents'][0]['sha'] == listed[1]['sha'] and listed[2]['parents'] == []
    assert listed[0]['commit']['author']['name'] == 'Ann' and listed[0]['commit']['author']['date'].endswith('Z')
    on_branch = get(server, f'{repo.at}/commits?sha=feature/one.two&path=src').json
    assert [c['commit']['message'].split('\n')[0] for c in on_branch] == ['fix: fourth', 'feat: third']
    get(server, f'{repo.at}/commits?sha=none', 404)
    assert get(server, f'{repo.at}/commits?since=2026', 422).json['errors'][0]['field'] == 'since'


@pytest.mark.parametrize('name', ['main', 'HEAD', 'heads/main', 'refs/heads/main', 'v1', 'tags/v1', None])
def test_commit(server, repo, name):
    oid = repo.head('v1^{commit}')
    seen = get(server, f'{repo.at}/commits/{name or oid}').json
    assert seen['sha'] == oid and seen['stats'] == {'total': 1, 'additions': 1, 'deletions': 0}
    changed = seen['files'][0]
    assert changed['filename'] == 'src/deep/file.c' and changed['status'] == 'added'
    assert changed['patch'] == '@@ -0,0 +1 @@\n+int x;'
    if name is None:
        plain = get(server, f'{repo.at}/git/commits/{oid}').json
        assert plain['sha'] == oid and plain['tree']['sha'] == repo.head(f'{oid}^{{tree}}')
        assert plain['message'] == 'feat: third'


def test_commit_as_text(server, repo):
    at = f'{repo.at}/commits/feature%2Fone.two'
    assert get(server, at, headers={'Accept': 'application/vnd.github.sha'}).body.decode() == repo.head()
    for accept in ('application/vnd.github.diff', 'application/vnd.github.v3.diff'):
        diff = get(server, at, headers={'Accept': accept})
        assert diff.body.startswith(b'diff --git a/src/deep/file.c') and 'vnd.github.diff' in diff.headers['Content-Type']
    patch = get(server, at, headers={'Accept': 'application/vnd.github.patch'}).body.decode()
    assert patch.startswith(f'From {repo.head()}') and 'Subject: [PATCH] fix: fourth' in patch


def test_compare(server, repo):
    seen = get(server, f'{repo.at}/compare/main...feature/one.two').json
    assert (seen['status'], seen['ahead_by'], seen['behind_by'], seen['total_commits']) == ('ahead', 1, 0, 1)
    assert [c['sha'] for c in seen['commits']] == [repo.head()]
    assert [f['filename'] for f in seen['files']] == ['src/deep/file.c']
    assert seen['merge_base_commit']['sha'] == seen['base_commit']['sha'] == repo.head('v1^{commit}')
    back = get(server, f'{repo.at}/compare/coop:feature%2Fone.two...coop:main').json
    assert (back['status'], back['behind_by'], back['commits'], back['files']) == ('behind', 1, [], [])
    diff = get(server, f'{repo.at}/compare/main...feature/one.two', headers={'Accept': 'application/vnd.github.diff'})
    assert diff.body.count(b'diff --git') == 1
    patch = get(server, f'{repo.at}/compare/v1...feature/one.two', headers={'Accept': 'application/vnd.github.patch'})
    assert patch.body.count(b'Subject:') == 1
    for odd in ('main', 'main..feature/one.two', 'none...main', 'main...none', '...main', 'other:main...main'):
        get(server, f'{repo.at}/compare/{odd}', 404)


def test_branches(server, repo):
    listed = get(server, f'{repo.at}/branches').json
    assert [(b['name'], b['protected']) for b in listed] == [('feature/one.two', False), ('main', True)]
    assert [b['name'] for b in get(server, f'{repo.at}/branches?protected=true').json] == ['main']
    assert [b['name'] for b in get(server, f'{repo.at}/branches?protected=false').json] == ['feature/one.two']
    for name in ('feature/one.two', 'feature%2Fone.two'):
        one = get(server, f'{repo.at}/branches/{name}').json
        assert one['name'] == 'feature/one.two' and one['commit']['sha'] == repo.head() and not one['protected']
    for name in ('v1', 'none', 'main%00', 'refs/heads/main'):
        assert ask(server, 'GET', f'{repo.at}/branches/{name}').status in (400, 404)


def test_contents(server, repo):
    top = get(server, f'{repo.at}/contents').json
    assert [(e['name'], e['type']) for e in top] == [
        ('a b%ü', 'file'), ('bin', 'dir'), ('link', 'symlink'), ('readme.md', 'file'), ('src', 'dir')]
    seen = get(server, f'{repo.at}/contents/src%2Fdeep/file.c?ref=feature%2Fone.two').json
    assert base64.b64decode(seen['content']) == b'int x;\nint y;\n' and seen['path'] == 'src/deep/file.c'
    assert seen['sha'] == repo.head('HEAD:src/deep/file.c') and seen['size'] == 14
    odd = get(server, f'{repo.at}/contents/a%20b%25%C3%BC').json
    assert base64.b64decode(odd['content']) == b'\xff\x00\xfe'
    assert get(server, odd['url'].partition(V3)[2]).json == odd
    link = get(server, f'{repo.at}/contents/link').json
    assert (link['type'], link['target']) == ('symlink', 'readme.md')
    raw = get(server, f'{repo.at}/contents/readme.md', headers={'Accept': 'application/vnd.github.raw+json'})
    assert raw.body == b'# Title\n'
    for odd in ('none', 'readme.md/x', 'bin/none', 'readme.md?ref=none', 'readme.md?ref=main~1'):
        get(server, f'{repo.at}/contents/{odd}', 404)


def test_objects(server, repo):
    oid = repo.head('v1^{tree}')
    tree = get(server, f'{repo.at}/git/trees/{oid}').json
    assert tree['sha'] == oid and not tree['truncated']
    assert [(e['path'], e['mode'], e['type']) for e in tree['tree']][1:3] == [
        ('bin', '040000', 'tree'), ('link', '120000', 'blob')]
    for name in ('main', repo.head('v1^{commit}')):
        deep = get(server, f'{repo.at}/git/trees/{name}?recursive=1').json
        assert [e['path'] for e in deep['tree']][-3:] == ['src', 'src/deep', 'src/deep/file.c']
    blob = next(e for e in tree['tree'] if e['path'] == 'readme.md')['sha']
    seen = get(server, f'{repo.at}/git/blobs/{blob}').json
    assert base64.b64decode(seen['content']) == b'# Title\n' and seen['size'] == 8
    assert get(server, f'{repo.at}/git/blobs/{blob}', headers={'Accept': 'application/vnd.github.raw'}).body == b'# Title\n'
    for path in (f'blobs/{oid}', 'blobs/' + '0' * 40, 'trees/' + '0' * 40, f'trees/{blob}', 'trees/none', 'commits/x',
                 f'commits/{oid}'):
        get(server, f'{repo.at}/git/{path}', 404)
    get(server, f'{repo.at}/git/blobs/xyz', 422)


def test_objects_are_made(server, repo):
    """Nothing moves by it; a ref that is made of them has them."""
    git, before = f'{repo.at}/git', repo.remote_refs()
    blob = put(server, f'{git}/blobs', {'content': coded(bytes(range(256))), 'encoding': 'base64'}, 201, 'POST')['sha']
    plain = put(server, f'{git}/blobs', {'content': 'häß\n'}, 201, 'POST')['sha']
    assert get(server, f'{git}/blobs/{plain}').json['content'] == coded('häß\n'.encode())
    base = repo.head('v1^{tree}')
    entries = [{'path': 'made/bin', 'mode': '100755', 'type': 'blob', 'sha': blob}, {'path': 'made/text', 'mode': '100644', 'content': 'hello\n'},
               {'path': 'link', 'mode': '120000', 'sha': None}]
    tree = put(server, f'{git}/trees', {'base_tree': base, 'tree': entries}, 201, 'POST')
    assert 'made' in [e['path'] for e in tree['tree']] and 'link' not in [e['path'] for e in tree['tree']]
    who = {'name': 'Ann', 'email': 'ann@example.org', 'date': '2026-01-02T03:04:05Z'}
    commit = put(server, f'{git}/commits', {'message': 'feat: made', 'tree': tree['sha'], 'parents': [repo.head('v1^{commit}')],
                                            'author': who}, 201, 'POST')
    assert commit['author'] == commit['committer'] == who and commit['tree']['sha'] == tree['sha']
    tag = put(server, f'{git}/tags', {'tag': 'v9', 'message': 'Nine', 'object': commit['sha'], 'type': 'commit', 'tagger': who}, 201, 'POST')
    assert tag['tagger'] == who and tag['object']['sha'] == commit['sha'] and tag['message'] == 'Nine\n'
    assert get(server, f'{git}/tags/{tag["sha"]}').json == tag
    assert repo.remote_refs() == before
    put(server, f'{git}/refs', {'ref': 'refs/tags/v9', 'sha': tag['sha']}, 201, 'POST')
    put(server, f'{git}/refs', {'ref': 'refs/heads/parts', 'sha': commit['sha']}, 201, 'POST')
    repo.git('fetch', '-q', 'origin', 'parts', 'tag', 'v9')
    assert repo.git('show', 'v9:made/text').stdout == 'hello\n' and repo.head('v9^{commit}') == commit['sha']
    assert repo.git('ls-tree', 'v9', 'made/bin').stdout.startswith('100755')
    get(server, f'{git}/tags/{blob}', 404)
    for ref in ('heads/parts', 'tags/v9'):
        put(server, f'{git}/refs/{ref}', b'', 204, 'DELETE')


@pytest.mark.parametrize('what, body', [
    ('blobs', {}), ('blobs', {'content': 'x', 'encoding': 'latin1'}), ('blobs', {'content': '!', 'encoding': 'base64'}),
    ('trees', {'tree': []}), ('trees', {'tree': [{'path': '.git/config', 'mode': '100644', 'content': 'x'}]}),
    ('trees', {'tree': [{'path': '../x', 'mode': '100644', 'content': 'x'}]}),
    ('trees', {'tree': [{'path': 'x', 'mode': '100666', 'content': 'x'}]}), ('trees', {'tree': [{'path': 'x', 'mode': '100644'}]}),
    ('trees', {'tree': [{'path': 'x', 'mode': '040000', 'type': 'blob', 'sha': 'a' * 40}]}),
    ('trees', {'tree': [{'path': 'x', 'mode': '100644', 'sha': 'a' * 40}]}), ('trees', {'tree': ['x']}),
    ('trees', {'base_tree': 'a' * 40, 'tree': [{'path': 'x', 'mode': '100644', 'content': 'x'}]}),
    ('trees', {'base_tree': 'main' + '0' * 36, 'tree': [{'path': 'x', 'mode': '100644', 'content': 'x'}]}),
    ('commits', {'message': 'x', 'tree': 'a' * 40}), ('commits', {'message': 'x', 'tree': 'main'}), ('commits', {'tree': 'a' * 40}),
    ('commits', {'message': 'x', 'tree': 'a' * 40, 'parents': ['main']}), ('commits', {'message': 'x', 'tree': 'a' * 40, 'signature': 's'}),
    ('tags', {'tag': 'v 1', 'message': '', 'object': 'a' * 40, 'type': 'commit'}),
    ('tags', {'tag': 'v', 'message': '', 'object': 'a' * 40, 'type': 'commit'}),
    ('tags', {'tag': 'v\ntagger x', 'message': '', 'object': 'a' * 40, 'type': 'commit'}),
    ('tags', {'tag': 'v', 'message': '', 'object': 'a' * 40, 'type': 'tag'}),
])
def test_objects_that_cannot_be(server, repo, what, body):
    put(server, f'{repo.at}/git/{what}', body, 422, 'POST')


def test_objects_need_the_right(server, repo):
    reader = server.make_key('read')['key']
    for what in ('blobs', 'trees', 'commits', 'tags'):
        assert ask(server, 'POST', f'{repo.at}/git/{what}', body={'content': 'x'}, key=reader).status == 403


def test_parts_of_commits_that_are_not_there(server, repo):
    """No commit is 422, as on GitHub; what GitHub has of commits and this has not is 404."""
    get(server, f'{repo.at}/commits/none', 422)
    for part in ('pulls', 'comments', 'branches-where-head', 'check-suites', 'x/y'):
        get(server, f'{repo.at}/commits/main/{part}', 404)


def test_empty_repository(server):
    make_repo(server, 'empty')
    assert get(server, '/repos/coop/empty/branches').json == []
    for path in ('commits', 'contents', 'contents/x'):
        error = get(server, f'/repos/coop/empty/{path}', 409).json
        assert error['message'] == 'Git Repository is empty.'


# ---- pages ----

def links(answer):
    return dict((rel, url) for url, rel in re.findall(r'<([^>]*)>; rel="(\w+)"', answer.headers['Link'] or ''))


def test_pages(server, repo):
    seen, path = [], f'{repo.at}/commits?per_page=1&sha=main'
    while path:
        answer = get(server, path)
        seen += [c['sha'] for c in answer.json]
        path = links(answer).get('next', '').partition(V3)[2]
    assert seen == [c['sha'] for c in get(server, f'{repo.at}/commits').json]
    last = links(answer)
    assert set(last) == {'prev', 'first'} and last['prev'].endswith('?per_page=1&sha=main&page=2')
    assert last['first'].startswith(f'http://{server.host}{V3}/')


@pytest.mark.parametrize('query', ['page=-1', 'page=0', 'page=x', 'page=', 'page=1e9', 'page=1&page=2', 'per_page=0',
                                   'per_page=-5', 'per_page=1e9', 'per_page=999999999999999999999', 'page=%00',
                                   'per_page=100&page=%ff'])
def test_odd_pages(server, repo, query):
    assert len(get(server, f'{repo.at}/commits?{query}').json) == 3


def test_page_has_an_end(server, repo):
    """Of more than a hundred, a hundred, whatever is asked."""
    path, _ = make_repo(server, 'tagged-often')
    work = Work(repo.folder.parent / 'often', url_of(server, path)).init()
    work.commit()
    work.push('HEAD:main', *(f'HEAD:refs/tags/t{n:03}' for n in range(105)))
    for query, count in (('', 30), ('?per_page=101', 100), ('?per_page=1000000000', 100), ('?per_page=100&page=2', 5)):
        answer = get(server, f'/repos/coop/tagged-often/git/matching-refs/tags/t{query}')
        assert len(answer.json) == count and ('next' in links(answer)) == (count != 5)


def test_page_far_behind(server, repo):
    for number in (2, 10**6, 10**30):
        answer = get(server, f'{repo.at}/commits?page={number}')
        assert answer.json == [] and 'next' not in links(answer)


def test_link_cannot_be_broken_out_of(server, repo):
    answer = get(server, f'{repo.at}/commits?per_page=1&x=%3E;rel="next",<http://evil>')
    assert set(links(answer)) == {'next'} and 'evil>' not in answer.headers['Link'].replace('evil%3E', '')


# ---- refs ----

def put(server, path, body, status=200, method='PUT', **more):
    answer = ask(server, method, path, body=body, **more)
    assert answer.status == status, answer
    return answer.json if answer.body else None


def moves(server, since, **more):
    return [(e['kind'], e['data']['name'], e['actor']) for e in server.events(after=since, **more)
            if e['kind'] in ('branch.created', 'branch.removed', 'commit.pushed')]


def test_refs(server, repo):
    one = get(server, f'{repo.at}/git/ref/heads%2Fmain').json
    assert one['ref'] == 'refs/heads/main' and one['object']['type'] == 'commit'
    assert one['object']['sha'] == repo.head('v1^{commit}')
    tag = get(server, f'{repo.at}/git/ref/tags/v1').json
    assert tag['object'] == {**tag['object'], 'type': 'tag', 'sha': repo.head('v1')}
    names = [r['ref'] for r in get(server, f'{repo.at}/git/matching-refs/heads/f').json]
    assert names == ['refs/heads/feature/one.two']
    assert get(server, f'{repo.at}/git/matching-refs/heads/none').json == []
    assert 'refs/tags/v1' in [r['ref'] for r in get(server, f'{repo.at}/git/refs').json]
    for name in ('heads/none', 'heads', 'heads/feature', 'mai%FFn', 'heads/ma*n', 'heads/main%20', 'pull/1/head'):
        get(server, f'{repo.at}/git/ref/{name}', 404)


def test_ref_life(server, repo):
    at, base, tip = f'{repo.at}/git/refs', repo.head('v1^{commit}'), repo.head()
    actor = 'key:' + server.get('/api/v1/keys')['keys'][0]['id']
    since = server.last_seq()
    made = put(server, at, {'ref': 'refs/heads/made/here', 'sha': base}, 201, 'POST')
    assert made['ref'] == 'refs/heads/made/here' and made['object']['sha'] == base
    again = put(server, at, {'ref': 'refs/heads/made/here', 'sha': base}, 422, 'POST')
    assert again['message'] == 'Validation Failed' and 'Reference already exists' in again['errors'][0]['message']
    put(server, at, {'ref': 'refs/heads/MADE/here', 'sha': base}, 422, 'POST')
    assert put(server, f'{at}/heads/made/here', {'sha': tip}, 200, 'PATCH')['object']['sha'] == tip
    back = put(server, f'{at}/heads%2Fmade%2Fhere', {'sha': base}, 422, 'PATCH')
    assert 'not a fast forward' in back['errors'][0]['message']
    put(server, f'{at}/heads/made/here', {'sha': base, 'force': True}, 200, 'PATCH')
    assert repo.remote_refs()['refs/heads/made/here'] == base
    put(server, f'{at}/heads/made/here', b'', 204, 'DELETE')
    assert 'refs/heads/made/here' not in repo.remote_refs()
    assert 'does not exist' in put(server, f'{at}/heads/made/here', b'', 422, 'DELETE')['errors'][0]['message']
    put(server, f'{at}/heads/made/here', {'sha': tip}, 422, 'PATCH')
    put(server, at, {'ref': 'refs/tags/v2', 'sha': repo.head('v1')}, 201, 'POST')
    assert [(kind, name) for kind, name, _ in moves(server, since)] == [
        ('branch.created', 'made/here'), ('commit.pushed', 'made/here'), ('commit.pushed', 'made/here'),
        ('branch.removed', 'made/here'), ('commit.pushed', 'v2')]
    assert {who for _, _, who in moves(server, since)} == {actor}


@pytest.mark.parametrize('body, field', [
    ({'sha': 'a' * 40}, 'ref'),
    ({'ref': 'refs/heads/x'}, 'sha'),
    ({'ref': 'refs/heads/x', 'sha': 'abc'}, 'sha'),
    ({'ref': 7, 'sha': 'a' * 40}, 'ref'),
    ({'ref': 'refs/heads/x', 'sha': 'a' * 40}, None),
    ({'ref': 'heads/x', 'sha': 'TIP'}, None),
    ({'ref': 'refs/pull/1/head', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/../x', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/x y', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/-x', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/x.lock', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/é', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/x\n', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/HEAD', 'sha': 'TIP'}, None),
    ({'ref': 'refs/heads/x', 'sha': 'TREE'}, None),
    ({'ref': 'refs/heads/x', 'sha': '0' * 40}, None),
])
def test_refs_that_cannot_be(server, repo, body, field):
    known = {'TIP': repo.head(), 'TREE': repo.head('HEAD^{tree}')}
    body = {**body, **({'sha': known[body['sha']]} if body.get('sha') in known else {})}
    before = repo.remote_refs()
    error = put(server, f'{repo.at}/git/refs', body, 422, 'POST')
    assert error['errors'][0].get('field') == field
    assert repo.remote_refs() == before


def test_protected_refs(server, repo):
    """As for pushes: an admin moves it forward, nobody moves it back or removes it."""
    path, _ = make_repo(server, 'guarded', first_commit=True)
    at = '/repos/coop/guarded'
    key = server.make_key('read,box')['key']
    first = get(server, f'{at}/git/ref/heads/main').json['object']['sha']
    body = {'message': 'feat: x', 'content': base64.b64encode(b'x').decode()}
    assert 'protected' in put(server, f'{at}/contents/x', body, 403, key=key)['message']
    second = put(server, f'{at}/contents/x', body, 201)['commit']['sha']
    put(server, f'{at}/git/refs/heads/main', {'sha': second}, 403, 'PATCH', key=key)
    put(server, f'{at}/git/refs/heads/main', {'sha': first, 'force': True}, 422, 'PATCH')
    put(server, f'{at}/git/refs/heads/main', b'', 403, 'DELETE')
    put(server, f'{at}/git/refs', {'ref': 'refs/heads/own', 'sha': first}, 201, 'POST', key=key)
    put(server, f'{at}/contents/y', {**body, 'branch': 'own'}, 201, key=key)
    settings = {'protected_branches': ['main', 'release']}
    assert server.ask('PATCH', '/api/v1/repos/coop/guarded/settings', body=settings).status == 200
    release = {'ref': 'refs/heads/release', 'sha': first}
    assert 'protected' in put(server, f'{at}/git/refs', release, 403, 'POST', key=key)['message']
    put(server, f'{at}/git/refs', release, 201, 'POST')
    reader = server.make_key('read')['key']
    put(server, f'{at}/contents/z', {**body, 'branch': 'own'}, 403, key=reader)
    put(server, f'{at}/git/refs', {'ref': 'refs/heads/z', 'sha': first}, 403, 'POST', key=reader)
    put(server, f'{at}/git/refs/heads/own', b'', 403, 'DELETE', key=reader)


# ---- writing files ----

def coded(bytes_):
    return base64.b64encode(bytes_).decode()


def test_files_are_written(server, repo, tmp_path):
    path, _ = make_repo(server, 'written')
    at = '/repos/coop/written'
    since = server.last_seq()
    first = put(server, f'{at}/contents/docs/deep%2Fa.md', {'message': 'docs: first', 'content': coded(b'one\n')}, 201)
    assert first['content']['path'] == 'docs/deep/a.md' and first['commit']['parents'] == []
    sha = first['content']['sha']
    second = put(server, f'{at}/contents/docs/deep/a.md', {
        'message': 'docs: second', 'content': coded(b'two\n'), 'sha': sha, 'branch': 'main',
        'committer': {'name': 'Bob <x>\n', 'email': 'bob@example.org', 'date': '2024-02-03T04:05:06+01:00'}})
    assert second['commit']['parents'][0]['sha'] == first['commit']['sha']
    assert second['commit']['author'] == {'name': 'Bob x', 'email': 'bob@example.org', 'date': '2024-02-03T03:05:06Z'}
    put(server, f'{at}/contents/docs/b', {'message': 'docs: b', 'content': coded(bytes(range(256)))}, 201)
    for sha_, status in ((sha, 409), (None, 422)):
        body = {'message': 'docs: stale', 'content': coded(b'x'), **({'sha': sha_} if sha_ else {})}
        put(server, f'{at}/contents/docs/deep/a.md', body, status)
    clone = Work(tmp_path / 'clone', url_of(server, path)).clone()
    assert (clone.folder / 'docs/deep/a.md').read_bytes() == b'two\n'
    assert (clone.folder / 'docs/b').read_bytes() == bytes(range(256))
    clone.git('fsck', '--strict')
    gone = put(server, f'{at}/contents/docs/deep/a.md',
               {'message': 'docs: gone', 'sha': second['content']['sha']}, 200, 'DELETE')
    assert gone['content'] is None
    assert [e['path'] for e in get(server, f'{at}/git/trees/main?recursive=1').json['tree']] == ['docs', 'docs/b']
    put(server, f'{at}/contents/docs/deep/a.md', {'message': 'docs: gone', 'sha': sha}, 404, 'DELETE')
    assert [name for _, name, _ in moves(server, since)] == ['main'] * 4
    clone.git('pull', '-q', 'origin', 'main')
    clone.git('fsck', '--strict')


def make_tree(server, at, entries, status=201, **more):
    tree = [{'mode': '100644', 'type': 'blob', **entry} for entry in entries]
    return put(server, f'{at}/git/trees', {'tree': tree, **more}, status, 'POST')


def test_large_trees(server):
    make_repo(server, 'large')
    at = '/repos/coop/large'
    sha = put(server, f'{at}/git/blobs', {'content': 'x'}, 201, 'POST')['sha']
    names = [f'd{n}/x' for n in range(1001)]
    full = make_tree(server, at, [{'path': name, 'sha': sha} for name in names[:1000]])
    answer = make_tree(server, at, [{'path': name, 'sha': sha} for name in names], 422)
    problem = answer['errors'][0]['message']
    assert 'more than 1000 folders' in problem and 'base_tree' in problem
    more = make_tree(server, at, [{'path': names[-1], 'sha': sha}], base_tree=full['sha'])
    assert len(get(server, f'{at}/git/trees/{more["sha"]}').json['tree']) == 1001
    # Those that are there count too, for each is read.
    make_tree(server, at, [{'path': f'{name[:-2]}/y', 'sha': sha} for name in names], 422, base_tree=more['sha'])
    answer = make_tree(server, at, [{'path': f'{n}', 'content': f'{n}'} for n in range(1001)], 422)
    assert 'at most 1000 files' in answer['errors'][0]['message']


def test_twice_in_a_tree(server):
    """The same text, and folders that hold the same."""
    make_repo(server, 'twice')
    tree = make_tree(server, '/repos/coop/twice', [{'path': path, 'content': 'same'} for path in ('a/x', 'b/x', 'x')])
    a, b, x = tree['tree']
    assert a['sha'] == b['sha'] != x['sha']


def test_objects_wait_for_nobody(server, tmp_path):
    """What no ref names is made beside whatever else is written."""
    source = Source(tmp_path / 'root' / 'src')
    with GitServer(tmp_path / 'root') as remote:
        server.post('/api/v1/repos', {'name': 'beside', 'source': remote.url('src'), 'mirror': True}, status=202)
        wait_until(lambda: server.get('/api/v1/repos/coop/beside')['state'] == 'ready', 'the mirror')
        source.commit('more', 'more\n')
        remote.gate = threading.Event()
        server.post('/api/v1/repos/coop/beside/fetch', b'', status=202)
        assert remote.held.wait(WAIT_S)
        at = '/repos/coop/beside'
        sha = put(server, f'{at}/git/blobs', {'content': 'x'}, 201, 'POST')['sha']
        tree = make_tree(server, at, [{'path': 'a/b', 'sha': sha}])['sha']
        put(server, f'{at}/git/commits', {'message': 'feat: x', 'tree': tree, 'parents': []}, 201, 'POST')
        ours = [w for w in server.get('/api/v1/queue')['work'] if w['repository'] == 'coop/beside']
        assert [w['writes'] for w in ours] == [True]
        remote.gate.set()


def test_order_in_trees(server):
    """git compares a folder's name with a slash behind it: a wrong order is a broken tree."""
    make_repo(server, 'ordered')
    for n, name in enumerate(['a/x', 'a.b', 'a-b', 'a0', 'A', 'ab/c', 'ab.c', 'a/b']):
        put(server, f'/repos/coop/ordered/contents/{name}', {'message': f'feat: {n}', 'content': coded(b'%d' % n)}, 201)
    tree = [e['path'] for e in get(server, '/repos/coop/ordered/git/trees/main').json['tree']]
    assert tree == ['A', 'a-b', 'a.b', 'a', 'a0', 'ab.c', 'ab']


@pytest.mark.parametrize('path, body, status', [
    ('.git/config', {}, 422), ('x/.git/hooks/y', {}, 422), ('.GIT/x', {}, 422), ('git~1/x', {}, 422),
    ('x%0Ay', {}, 422), ('..%2f..%2fx', {}, 400), ('x/../y', {}, 400), ('x//y', {}, 400), ('x%00y', {}, 400),
    ('readme.md/x', {}, 422), ('src', {}, 422), ('/'.join(['d'] * 200), {}, 422),
    ('x', {'content': '!!'}, 422), ('x', {'content': 7}, 422), ('x', {'content': None}, 422), ('x', {'message': ''}, 422),
    ('x', {'branch': 'none'}, 404), ('x', {'branch': '../main'}, 422), ('x', {'branch': '-x'}, 422),
    ('x', {'sha': 'a' * 40}, 409), ('x', {'author': 'Ann'}, 422), ('x', {'author': {'date': 'soon'}}, 422),
])
def test_files_that_cannot_be(server, repo, path, body, status):
    before = repo.remote_refs()
    put(server, f'{repo.at}/contents/{path}', {'message': 'feat: x', 'content': coded(b'x'), **body}, status)
    assert repo.remote_refs() == before


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')
def test_killed_behind_the_move(make_server):
    """The branch has moved and no row says so: the next start tells of it, once."""
    server = make_server()
    make_repo(server, 'cut')
    at = '/repos/coop/cut/contents'
    put(server, f'{at}/x', {'message': 'feat: x', 'content': coded(b'x')}, 201)
    server.stop()
    server.env['COOP_FAIL_AT'] = 'ref-moved:1'
    server.start()
    since = server.last_seq()
    with pytest.raises((ConnectionError, http.client.HTTPException)):
        put(server, f'{at}/y', {'message': 'feat: y', 'content': coded(b'y')}, 201)
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    wait_until(lambda: moves(server, since), 'the move is told of')
    put(server, f'{at}/z', {'message': 'feat: z', 'content': coded(b'z')}, 201)
    assert [(kind, name) for kind, name, _ in moves(server, since)] == [('commit.pushed', 'main')] * 2
    assert [e['name'] for e in get(server, at).json] == ['x', 'y', 'z']


# ---- what is known of a commit ----

def test_statuses(server, repo):
    tip = repo.head()
    at = f'{repo.at}/statuses/{tip}'
    empty = get(server, f'{repo.at}/commits/main/status').json
    assert (empty['state'], empty['total_count']) == ('pending', 0)
    for state, context in (('pending', 'ci'), ('success', 'ci'), ('success', 'lint')):
        made = put(server, at, {'state': state, 'context': context, 'description': 'd', 'target_url': 'http://x'}, 201, 'POST')
        assert made['state'] == state and made['context'] == context and made['creator']['login']
    both = get(server, f'{repo.at}/commits/feature%2Fone.two/status').json
    assert (both['state'], both['total_count'], both['sha']) == ('success', 2, tip)
    page = get(server, f'{repo.at}/commits/{tip}/statuses?per_page=2')
    assert [s['context'] for s in page.json] == ['lint', 'ci'] and links(page)['last'].endswith('page=2')
    assert put(server, at, {'state': 'error'}, 201, 'POST')['context'] == 'default'
    assert get(server, f'{repo.at}/commits/{tip}/status').json['state'] == 'failure'
    assert put(server, at, {'state': 'great'}, 422, 'POST')
    assert put(server, at, {}, 422, 'POST')['errors'][0] == {'resource': 'Status', 'field': 'state', 'code': 'missing_field'}
    put(server, f'{repo.at}/statuses/' + 'a' * 40, {'state': 'success'}, 422, 'POST')
    get(server, f'{repo.at}/commits/none/status', 422)


def test_check_runs(server, repo):
    tip, at = repo.head(), f'{repo.at}/check-runs'
    made = put(server, at, {'name': 'unit', 'head_sha': tip, 'unknown': {'x': 1}, 'details_url': None}, 201, 'POST')
    assert (made['status'], made['conclusion'], made['head_sha'], made['seen_by']) == ('queued', None, tip, 'claimed')
    one = f'{at}/{made["id"]}'
    assert get(server, one).json == made
    done = put(server, one, {'conclusion': 'success', 'completed_at': '2026-01-02T03:04:05Z',
                             'output': {'title': 't', 'summary': 's', 'text': 'x'}}, 200, 'PATCH')
    assert (done['status'], done['completed_at'], done['output']['text']) == ('completed', '2026-01-02T03:04:05Z', 'x')
    again = put(server, at, {'name': 'unit', 'head_sha': 'feature/one.two', 'status': 'in_progress'}, 201, 'POST')
    listed = get(server, f'{repo.at}/commits/feature%2Fone.two/check-runs').json
    assert (listed['total_count'], [c['id'] for c in listed['check_runs']]) == (1, [again['id']])
    assert get(server, f'{repo.at}/commits/{tip}/check-runs?filter=all').json['total_count'] == 2
    assert get(server, f'{repo.at}/commits/{tip}/check-runs?filter=all&status=completed').json['total_count'] == 1
    for body in ({'name': 'x'}, {'head_sha': tip}, {'name': 'x', 'head_sha': 'none'}, {'name': 7, 'head_sha': tip},
                 {'name': 'x', 'head_sha': tip, 'status': 'completed'}, {'name': 'x', 'head_sha': tip, 'status': 'odd'},
                 {'name': 'x', 'head_sha': tip, 'started_at': 'soon'}, {'name': 'x', 'head_sha': tip, 'output': []}):
        put(server, at, body, 422, 'POST')
    for number in ('0', '-1', 'x', '999999', '1e9', '99999999999999999999'):
        get(server, f'{at}/{number}', 404)
    other = make_repo(server, 'elsewhere')[1]
    get(server, f'/repos/coop/{other["name"]}/check-runs/{made["id"]}', 404)


# ---- making and changing repositories ----

def test_repository_life(server, tmp_path):
    made = put(server, '/user/repos', {'name': 'lived', 'description': 'd', 'auto_init': True, 'private': False}, 201, 'POST')
    assert made['full_name'] == 'coop/lived' and made['permissions']['admin']
    taken = put(server, '/user/repos', {'name': 'Lived'}, 422, 'POST')
    assert taken['errors'][0]['field'] == 'name' and 'already exists' in taken['errors'][0]['message']
    assert put(server, '/orgs/team/repos', {'name': 'theirs'}, 201, 'POST')['owner']['login'] == 'team'
    assert get(server, '/orgs/team').json['type'] == 'Organization'
    at = '/repos/coop/lived'
    tip = get(server, f'{at}/git/ref/heads/main').json['object']['sha']
    put(server, f'{at}/git/refs', {'ref': 'refs/heads/trunk', 'sha': tip}, 201, 'POST')
    changed = put(server, at, {'description': 'new', 'default_branch': 'trunk', 'allow_squash_merge': False,
                               'name': 'lived'}, 200, 'PATCH')
    assert (changed['description'], changed['default_branch']) == ('new', 'trunk')
    assert (changed['allow_squash_merge'], changed['allow_merge_commit']) == (False, True)
    assert get(server, at).json == changed
    clone = Work(tmp_path / 'clone', url_of(server, '/git/coop/lived.git')).clone()
    assert clone.git('symbolic-ref', '--short', 'HEAD').stdout.strip() == 'trunk'
    for body in ({'default_branch': 'none'}, {'default_branch': '../x'}, {'name': 'other'}, {'description': 7},
                 {'allow_merge_commit': False, 'allow_rebase_merge': False}):
        put(server, at, body, 422, 'PATCH')
    assert get(server, at).json == changed
    box = server.make_key('read,box')['key']
    put(server, at, {'description': 'x'}, 403, 'PATCH', key=box)
    put(server, at, b'', 403, 'DELETE', key=box)
    put(server, '/user/repos', {'name': 'x/y'}, 422, 'POST')
    put(server, at, b'', 204, 'DELETE')
    get(server, at, 404)


def test_change_outlives_a_start(make_server):
    server = make_server()
    make_repo(server, 'kept', first_commit=True)
    tip = get(server, '/repos/coop/kept/git/ref/heads/main').json['object']['sha']
    put(server, '/repos/coop/kept/git/refs', {'ref': 'refs/heads/next', 'sha': tip}, 201, 'POST')
    put(server, '/repos/coop/kept', {'description': 'kept', 'default_branch': 'next'}, 200, 'PATCH')
    server.stop()
    server.start()
    seen = get(server, '/repos/coop/kept').json
    assert (seen['description'], seen['default_branch']) == ('kept', 'next')


def test_lists_of_repositories(make_server):
    server = make_server()
    for number in range(7):
        make_repo(server, f'r{6 - number}', owner='a' if number % 2 else 'B')
    first = get(server, '/user/repos?per_page=3')
    assert [r['full_name'] for r in first.json] == ['a/r1', 'a/r3', 'a/r5']
    assert links(first)['last'].endswith('per_page=3&page=3')
    assert [r['name'] for r in get(server, '/users/b/repos').json] == ['r0', 'r2', 'r4', 'r6']
    assert [r['name'] for r in get(server, '/orgs/B/repos?direction=asc').json] == ['r6', 'r4', 'r2', 'r0']
    assert get(server, '/users/none/repos').json == []


# ---- bodies ----

@pytest.mark.parametrize('body, status, message', [
    (b'{', 400, 'Problems parsing JSON'),
    (b'{"ref": "x", "ref": "y"}', 400, 'Problems parsing JSON'),
    (b'{"ref": "\xff"}', 400, 'Problems parsing JSON'),
    (b'[' * 100000 + b']' * 100000, 400, 'Problems parsing JSON'),
    (b'{"a":' * 5000 + b'1' + b'}' * 5000, 400, 'Problems parsing JSON'),
    (b'[]', 400, 'Body should be a JSON object'),
    (b'7', 400, 'Body should be a JSON object'),
    (b'null', 400, 'Body should be a JSON object'),
    (b'', 422, 'Validation Failed'),
])
def test_odd_bodies(server, repo, body, status, message):
    error = put(server, f'{repo.at}/git/refs', body, status, 'POST')
    assert error['message'] == message and error['status'] == str(status) and error['documentation_url']


def test_large_body(make_server):
    server = make_server(env={'COOP_HTTP_BODY_LIMIT': '64KiB'})
    make_repo(server, 'small')
    body = {'message': 'feat: x', 'content': coded(bytes(100000))}
    error = put(server, '/repos/coop/small/contents/x', body, 413)
    assert error['status'] == '413' and error['message']
    get(server, '/repos/coop/small/contents', 409)


# ---- the rate ----

def test_rate(make_server):
    server = make_server(env={'COOP_HTTP_RATE_PER_KEY': '1', 'COOP_HTTP_RATE_BURST': '20'})
    key = server.make_key('read', name='slow')['key']
    limit = get(server, '/rate_limit', key=key)
    core = limit.json['resources']['core']
    assert core['limit'] == 20 and core['remaining'] == 19 and limit.json['rate'] == core
    assert limit.headers['X-RateLimit-Limit'] == '20' and limit.headers['X-RateLimit-Remaining'] == '19'
    assert int(limit.headers['X-RateLimit-Reset']) == core['reset']
    tag = get(server, '/user', key=key).headers['ETag']
    for _ in range(30):  # more than the bucket has: what did not change does not count
        get(server, '/user', 304, key=key, headers={'If-None-Match': tag})
    statuses = [ask(server, 'GET', '/user', key=key) for _ in range(25)]
    assert statuses[0].status == 200 and statuses[-1].status == 429
    assert statuses[-1].headers['Retry-After'] and statuses[-1].json['status'] == '429'
    assert statuses[-1].headers['X-RateLimit-Remaining'] == '0'
