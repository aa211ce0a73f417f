# SPDX-License-Identifier: Apache-2.0
"""PUT /pulls/{number}/merge: the merge queue behind GitHub's call, in real boxes."""
import threading

import pytest

import workserver
from harness import wait_until
from v3client import Repo, errors


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        yield made


@pytest.fixture(scope='module')
def unchecked(server, tmp_path_factory):
    """A repository that asks for no checks of its own."""
    made = Repo(server, tmp_path_factory.mktemp('work'), 'unchecked')
    answer = server.ask('PATCH', '/api/v1/repos/coop/unchecked/settings', body={'checks': 'none'})
    assert answer.status == 200, answer
    return made


def main_of(repo):
    return repo.get('/commits/main')


def clean(repo, pull):
    """Coop has seen all that it asks for."""
    at = f'/pulls/{pull["number"]}'
    return wait_until(lambda: (p := repo.get(at))['mergeable_state'] == 'clean' and p, 'the checks')


@pytest.mark.parametrize('method, parents', [('merge', 2), ('squash', 1), ('rebase', 1)])
def test_merge(unchecked, method, parents):
    pull = clean(unchecked, unchecked.pull(f'by-{method}'))
    at = f'/pulls/{pull["number"]}'
    unchecked.get(f'{at}/merge', 404)
    done = unchecked.put(f'{at}/merge', {'merge_method': method, 'sha': pull['head']['sha'],
                                         'commit_title': f'feat: by {method}', 'commit_message': 'Why.'})
    main = main_of(unchecked)
    assert done['merged'] is True and done['message'] and done['sha'] == main['sha']
    assert len(main['parents']) == parents
    expected = f'feat: by-{method}' if method == 'rebase' else f'feat: by {method}\n\nWhy.'
    assert main['commit']['message'].strip() == expected
    assert unchecked.ask('GET', f'{at}/merge').status == 204
    seen = unchecked.get(at)
    assert (seen['state'], seen['merged'], seen['merge_commit_sha']) == ('closed', True, done['sha'])
    assert seen['merged_by'] == seen['user'] and seen['merged_at'] and seen['mergeable'] is None
    assert (seen['commits'], seen['changed_files'], seen['additions']) == (1, 1, 1)
    assert [f['filename'] for f in unchecked.get(f'{at}/files')] == ['b.txt']
    assert [c['sha'] for c in unchecked.get(f'{at}/commits')] == [pull['head']['sha']]
    unchecked.put(f'{at}/merge', status=405)
    assert errors(unchecked.patch(at, {'state': 'open'}, 422)) == [('PullRequest', None, 'custom')]


def test_merge_refused(server, unchecked):
    """A rule is 405 with its words, another head 409."""
    draft = unchecked.pull('a-draft', draft=True)['number']
    assert 'draft' in unchecked.put(f'/pulls/{draft}/merge', status=405)['message']
    moved = clean(unchecked, unchecked.pull('has-moved'))['number']
    assert 'modified' in unchecked.put(f'/pulls/{moved}/merge', {'sha': '0' * 40}, 409)['message']
    assert errors(unchecked.put(f'/pulls/{moved}/merge', {'sha': 7}, 422)) == [('PullRequest', 'sha', 'invalid')]
    unchecked.put(f'/pulls/{moved}/merge', {'merge_method': 'octopus'}, 422)
    unchecked.put('/pulls/999999/merge', status=404)


def test_merge_conflict(unchecked):
    """409, and where the three versions are."""
    number = clean(unchecked, unchecked.pull('clashes', {'clash.txt': 'one\n'}))['number']
    unchecked.branch('clash-base', {'clash.txt': 'two\n'})
    unchecked.work.push('HEAD:main')
    answer = unchecked.put(f'/pulls/{number}/merge', status=409)
    assert answer['queue']['state'] == 'conflict'
    path = answer['queue']['url'].partition(unchecked.server.host)[2]
    bundle = unchecked.server.get(path)['conflict']
    assert [f['path'] for f in bundle['files']] == ['clash.txt']
    assert unchecked.get(f'/pulls/{number}')['merged'] is False


def test_merge_of_something_else(unchecked):
    """What waits in the queue is another head, or is merged another way: that is no answer to this request."""
    pull = clean(unchecked, unchecked.pull('else', {'else.txt': 'x\n'}))
    at = f'/pulls/{pull["number"]}/merge'
    gate = threading.Event()
    answers = []

    def merge(**body):
        gate.wait()
        answers.append(unchecked.ask('PUT', at, body=body))

    threads = [threading.Thread(target=merge, kwargs=body) for body in (
        {'merge_method': 'merge', 'sha': pull['head']['sha']}, {'merge_method': 'squash'}, {'sha': main_of(unchecked)['sha']})]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert sum(a.status == 200 for a in answers) == 1, answers
    assert all(a.status in (200, 405, 409) for a in answers), answers


def test_merge_together(unchecked):
    """Whoever asks twice, or loses the answer, gets the same merge; those behind each other all land."""
    pulls = [clean(unchecked, unchecked.pull(f'crowd-{n}', {f'crowd-{n}.txt': 'x\n'})) for n in range(3)]
    before = main_of(unchecked)['sha']
    answers = []

    def merge(pull):
        answers.append((pull['number'], unchecked.ask('PUT', f'/pulls/{pull["number"]}/merge')))

    threads = [threading.Thread(target=merge, args=(pull,)) for pull in pulls for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    landed = {}
    for number, answer in answers:
        assert answer.status in (200, 405), answer  # 405: it was merged before this one came
        if answer.status == 200:
            landed.setdefault(number, set()).add(answer.json['sha'])
    assert sorted(landed) == [p['number'] for p in pulls] and all(len(shas) == 1 for shas in landed.values())
    compared = unchecked.get(f'/compare/{before}...main')
    assert compared['ahead_by'] == 6 and {f['filename'] for f in compared['files']} == {
        f'crowd-{n}.txt' for n in range(3)}
