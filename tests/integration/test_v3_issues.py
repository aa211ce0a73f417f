# SPDX-License-Identifier: Apache-2.0
"""Issues, comments and labels in GitHub's dialect."""
import pytest

from v3client import Repo, errors


@pytest.fixture(scope='module')
def repo(server, tmp_path_factory):
    return Repo(server, tmp_path_factory.mktemp('work'), 'issues')


def test_issue(server, repo):
    made = repo.post('/issues', {'title': 'Broken', 'body': 'It **is**.', 'labels': ['bug', {'name': 'Urgent'}],
                                 'assignees': ['nobody'], 'milestone': None})
    number = made['number']
    at = f'http://{server.host}/api/v3/repos/coop/issues/issues/{number}'
    assert (made['title'], made['body'], made['state'], made['comments']) == ('Broken', 'It **is**.', 'open', 0)
    assert made['url'] == at and made['comments_url'] == f'{at}/comments' and made['user']['login']
    assert [label['name'] for label in made['labels']] == ['bug', 'Urgent']
    assert 'pull_request' not in made and made['assignees'] == [] and made['locked'] is False
    assert repo.get(f'/issues/{number}') == made
    changed = repo.patch(f'/issues/{number}', {'title': 'Mended', 'state': 'closed', 'state_reason': 'not_planned',
                                               'labels': []})
    assert (changed['state'], changed['state_reason'], changed['labels']) == ('closed', 'not_planned', [])
    assert changed['closed_at'] and changed['updated_at']
    assert repo.patch(f'/issues/{number}', {'state': 'open'})['closed_at'] is None
    repo.put(f'/issues/{number}/lock', status=404)


@pytest.mark.parametrize('body, status, expected', [
    ({}, 422, ('Issue', 'title', 'missing_field')),
    ({'title': None}, 422, ('Issue', 'title', 'missing_field')),
    ({'title': ['x']}, 422, ('Issue', 'title', 'invalid')),
    ({'title': ' '}, 422, ('Issue', None, 'custom')),
    ({'title': 'x' * 257}, 422, ('Issue', None, 'custom')),
    ({'title': 'x', 'labels': 'bug'}, 422, ('Issue', 'labels', 'invalid')),
    ({'title': 'x', 'labels': [1]}, 422, ('Issue', 'labels', 'invalid')),
    ({'title': 'x', 'labels': ['y' * 51]}, 422, ('Issue', None, 'custom')),
    ({'title': 'x', 'labels': [str(n) for n in range(101)]}, 422, ('Issue', 'labels', 'invalid')),
])
def test_refused(repo, body, status, expected):
    assert errors(repo.post('/issues', body, status)) == [expected]


@pytest.mark.parametrize('body, status', [(b'{', 400), (b'[]', 400), (b'"x"', 400), (b'{"title": "\xff"}', 400),
                                          (b'{"title": "a", "title": "b"}', 400)])
def test_broken_bodies(repo, body, status):
    assert repo.ask('POST', '/issues', body, headers={'Content-Type': 'application/json'}).status == status


def test_list(repo):
    numbers = [repo.post('/issues', {'title': f'listed {n}', 'labels': ['listed', f'l{n}']})['number']
               for n in range(3)]
    assert [i['number'] for i in repo.get('/issues?labels=listed')] == numbers[::-1]
    assert [i['number'] for i in repo.get('/issues?labels=LISTED,l1')] == [numbers[1]]
    pull = repo.pull('as-issue')['number']
    assert repo.get('/issues')[0]['number'] == pull and 'pull_request' in repo.get('/issues')[0]
    me = repo.get(f'/issues/{pull}')['user']['login']
    assert repo.get('/issues?creator=nobody-here') == [] and repo.get(f'/issues?creator={me}')
    for nothing in ('assignee=x', 'assignee=*', 'milestone=1', 'mentioned=x', 'since=2999-01-01T00:00:00Z'):
        assert repo.get(f'/issues?{nothing}') == []
    assert repo.get('/issues?assignee=none&since=2020-01-01T00:00:00Z')
    for field, value in (('state', 'x'), ('sort', 'x'), ('direction', 'x'), ('since', 'yesterday')):
        assert errors(repo.get(f'/issues?{field}={value}', 422)) == [('Issue', field, 'invalid')]
    repo.get('/issues?state=open&state=closed', 422)


def test_comments(server, repo):
    other = repo.as_(server.make_key(scopes='read,box', name='commenter')['key'])
    number = repo.post('/issues', {'title': 'talk'})['number']
    at = f'/issues/{number}/comments'
    first = repo.post(at, {'body': 'one'})
    second = repo.post(at, {'body': 'two\u202e\u0000'.replace('\u0000', '')})
    assert first['issue_url'].endswith(f'/issues/{number}') and first['user']['login']
    assert repo.get(at) == [first, second]
    assert [c['id'] for c in repo.get('/issues/comments?sort=created&direction=desc')][:2] == [second['id'],
                                                                                             first['id']]
    assert repo.get(f'/issues/comments/{first["id"]}') == first
    assert 'another' in other.patch(f'/issues/comments/{first["id"]}', {'body': 'LGTM'}, 403)['message']
    other.delete(f'/issues/comments/{first["id"]}', status=403)
    assert repo.patch(f'/issues/comments/{first["id"]}', {'body': 'eins'})['body'] == 'eins'
    assert repo.get(f'/issues/{number}')['comments'] == 2
    repo.delete(f'/issues/comments/{first["id"]}')
    repo.get(f'/issues/comments/{first["id"]}', 404)
    assert errors(repo.post(at, {'body': ''}, 422)) == [('IssueComment', 'body', 'invalid')]
    assert errors(repo.post(at, {}, 422)) == [('IssueComment', 'body', 'missing_field')]
    repo.post('/issues/999999/comments', {'body': 'x'}, 404)
    repo.get('/issues/999999/comments', 404)


def test_labels(repo):
    made = repo.post('/labels', {'name': 'Odd / name%', 'color': '#A0b1C2', 'description': 'why'})
    assert (made['color'], made['description'], made['default']) == ('a0b1c2', 'why', False)
    path = '/labels/Odd%20%2F%20name%25'
    assert made['url'].endswith(path) and repo.get(path) == made and repo.get(path.lower()) == made
    assert errors(repo.post('/labels', {'name': 'ODD / NAME%'}, 422)) == [('Label', 'name', 'already_exists')]
    assert errors(repo.post('/labels', {'name': 'x', 'color': 'red'}, 422)) == [('Label', None, 'custom')]
    assert repo.patch(path, {'new_name': 'Even', 'description': ''})['description'] is None
    repo.get(path, 404)
    assert 'Even' in [label['name'] for label in repo.get('/labels?per_page=100')]
    repo.delete('/labels/even')
    repo.get('/labels/Even', 404)
    repo.get('/labels/%FF%FE', 422)


def test_labels_of_a_thread(repo):
    number = repo.post('/issues', {'title': 'labelled'})['number']
    at = f'/issues/{number}/labels'
    assert [x['name'] for x in repo.post(at, {'labels': ['a', 'b']}, 200)] == ['a', 'b']
    assert [x['name'] for x in repo.put(at, {'labels': ['b', 'c']})] == ['b', 'c']
    assert [x['name'] for x in repo.delete(f'{at}/B', status=200)] == ['c']
    repo.delete(f'{at}/none', status=404)
    assert [x['name'] for x in repo.get(at)] == ['c']
    repo.delete(at)
    assert repo.get(at) == []
    assert errors(repo.post(at, {}, 422)) == [('Label', 'labels', 'missing_field')]
    assert errors(repo.post(at, {'labels': [{'color': 'x'}]}, 422)) == [('Label', 'labels', 'invalid')]
