# SPDX-License-Identifier: Apache-2.0
"""The merge queue with real git, real boxes and a real server: main is never broken, every good change lands,
nothing lands twice."""
import contextlib
import os
import pathlib
import random
import re
import threading

import pytest

import workserver
from gitserver import VERSIONS
from harness import wait_until
from mergeserver import Project, must

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')
METHODS = ('merge', 'squash', 'rebase')
SEED = 20


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        yield made


def all_sound(project):
    for commit in project.history():
        assert project.is_sound(commit), f'{commit} of main is broken'


def tidy(project):
    wait_until(lambda: not project.own_refs(), 'no ref of the queue')


# ---- one at a time ----

@pytest.mark.parametrize('method', METHODS)
def test_lands(server, method):
    project = Project(server, f'lands-{method}')
    before = project.history()
    number, state, work = project.change('task-1', {'parts/one': 'one\n'})
    assert state == 'passed'
    entry = project.land(number, method=method, head_oid=work.head())
    after = project.history()
    assert entry['state'] == 'landed' and entry['landing_oid'] == after[0] and after[1:] == before
    pull = project.pull(number)
    assert pull['merged'] and pull['merge_commit_sha'] == after[0]
    assert sorted(project.words()) == ['one', 'start']
    assert project.count_events('pr.merged') == 1
    assert project.count_events('commit.pushed', ref='refs/heads/main', after=after[0]) == 1
    tidy(project)


def test_main_is_closed_to_what_fails(server):
    """Whatever is claimed about it."""
    project = Project(server, 'claims')
    number, state, work = project.change('task-1', {'parts/one': 'start\n'})
    assert state == 'failed'
    server.post(f'/api/v3/repos/coop/claims/statuses/{work.head()}', {'state': 'success', 'context': 'tests'})
    server.post('/api/v3/repos/coop/claims/check-runs', {'name': 'tests', 'head_sha': work.head(),
                                                         'status': 'completed', 'conclusion': 'success'})
    assert 'saw the checks fail' in project.add(number, status=403)['message']
    # Nor by bringing a check of one's own: the commands are those of the base, its files are not the change's.
    other, state, _ = project.change('task-2', {'parts/two': 'start\n', 'coop.yaml': 'checks:\n  - "true"\n'})
    assert state == 'failed'
    project.add(other, status=403)
    assert len(project.history()) == 1


def test_sound_alone_broken_together(server):
    project = Project(server, 'together')
    one, _, _ = project.change('task-1', {'parts/one': 'same\n'})
    two, state, _ = project.change('task-2', {'parts/two': 'same\n'})
    assert state == 'passed'
    first, second = project.add(one), project.add(two)
    assert project.ended(first['id'])['state'] == 'landed'
    ended = project.ended(second['id'])
    assert (ended['state'], ended['reason']) == ('failed', 'checks')
    all_sound(project)
    tidy(project)


def test_conflict_is_resolved_on_the_branch(server):
    project = Project(server, 'conflict')
    lines = [f'{n}\n' for n in range(40)]
    one, _, _ = project.change('task-1', {'lines': ''.join(['first\n', *lines[1:]])})
    two, _, work = project.change('task-2', {'lines': ''.join(['second\n', *lines[1:]])})
    assert project.land(one)['state'] == 'landed'
    ended = project.land(two)
    assert ended['state'] == 'conflict'
    file = ended['conflict']['files'][0]
    assert file['path'] == 'lines' and file['ours']['text'].startswith('first') and file['theirs']['text'].startswith('second')
    assert ended['conflict']['ours']['title'] == 'feat: task-1' and ended['conflict']['theirs']['title'] == 'feat: task-2'
    notes = server.get(f'/api/v3/repos/coop/conflict/issues/{two}/comments')
    assert len(notes) == 1 and '`lines`' in notes[0]['body']
    work.git('fetch', '-q', 'origin')
    work.git('merge', '-q', '-X', 'ours', '-m', 'Merge branch main', 'origin/main')
    work.push('task-2')
    assert project.suite_of(two, work.head()) == 'passed'
    assert project.land(two)['state'] == 'landed'
    after = server.get(f'/api/v3/repos/coop/conflict/issues/{two}/comments')
    assert [n['id'] for n in after] == [notes[0]['id']] and 'merged' in after[0]['body']
    all_sound(project)


def test_nobody_sees_its_refs(server):
    project = Project(server, 'hidden')
    number, _, work = project.change('task-1', {'parts/one': 'one\n'})
    project.bare('update-ref', 'refs/coop/landing/99', work.head())
    assert not [ref for ref in work.remote_refs() if 'coop' in ref]
    assert work.push(f'{work.head()}:refs/coop/landing/100', status=None).returncode != 0
    assert work.push(':refs/coop/landing/99', status=None).returncode != 0
    assert project.own_refs() == [f'{work.head()} commit\trefs/coop/landing/99']


def test_pushed_by_hand(server):
    project = Project(server, 'by-hand')
    number, _, work = project.change('task-1', {'parts/one': 'one\n'})
    work.push('task-1:main')
    pull = wait_until(lambda: (p := project.pull(number))['merged'] and p, 'it is merged')
    assert pull['merge_commit_sha'] == work.head() and pull['state'] == 'closed'


def test_branch_goes(server):
    project = Project(server, 'goes')
    project.set(delete_merged_branches=True)
    number, _, work = project.change('task-1', {'parts/one': 'one\n'})
    assert project.land(number)['state'] == 'landed'
    wait_until(lambda: 'refs/heads/task-1' not in work.remote_refs(), 'the branch is gone')


def test_taken_out(server):
    project = Project(server, 'out')
    number, _, _ = project.change('task-1', {'parts/one': 'one\n'})
    entry = project.add(number)
    out = server.ask('DELETE', f'{project.api}/merges/{entry["id"]}')
    ended = project.ended(entry['id'])
    assert out.status == 409 and ended['state'] == 'landed' or out.status == 200 and ended['state'] == 'cancelled'
    must(server, 'DELETE', f'{project.api}/merges/{entry["id"]}', status=409)
    must(server, 'DELETE', f'{project.api}/merges/nonsense', status=404)
    must(server, 'GET', f'{project.api}/merges/987654', status=404)
    tidy(project)


def test_is_shown_in_the_queue(server):
    project = Project(server, 'shown')
    number, _, _ = project.change('task-1', {'parts/one': 'one\n'})
    entry = project.add(number)
    seen = [m for m in server.get('/api/v1/queue')['merges'] if m['repository'] == 'coop/shown']
    assert not seen or seen[0]['id'] == entry['id']
    project.ended(entry['id'])
    ended = server.get(f'{project.api}/merges?ended=1')
    assert ended['total'] == 1 and ended['merges'][0]['id'] == entry['id']
    assert server.get(f'{project.api}/merges')['total'] == 0
    metrics = server.ask('GET', '/metrics').body.decode()
    assert re.search(r'^coop_merges_landed_total [1-9]', metrics, re.M)


# ---- many at once ----

class Change(threading.Thread):
    """One who pushes a branch, opens a pull request, waits for its checks and has it merged."""

    def __init__(self, project, name, files, version, method):
        super().__init__()
        self.project, self.name, self.files, self.version, self.method = project, name, files, version, method
        self.state = self.entry = self.number = self.work = self.failure = None

    def run(self):
        try:
            self.number, self.state, self.work = self.project.change(self.name, self.files, version=self.version)
            if self.state == 'passed':
                self.entry = self.project.land(self.number, method=self.method)
        except BaseException as problem:
            self.failure = problem

    def landed(self):
        return self.entry is not None and self.entry['state'] == 'landed'


def make_changes(project, dice):
    """20 branches: good ones, two that conflict, two that are sound only alone, two that are broken."""
    lines = [f'{n}\n' for n in range(40)]
    seeds = [('good', n) for n in range(14)] + [('conflict', 0), ('conflict', 1), ('pair', 0), ('pair', 1),
                                                ('broken', 0), ('broken', 1)]
    changes = {}
    dice.shuffle(seeds)
    for at, (kind, n) in enumerate(seeds):
        files = {f'parts/{kind}-{n}': f'{kind}-{n}\n' + ''.join(f'{kind}-{n}-{i}\n' for i in range(dice.randint(0, 5)))}
        if kind == 'good' and n % 2:
            mine = list(lines)
            mine[n * 2 + 3] = f'changed by {n}\n'
            files['lines'] = ''.join(mine)
        elif kind == 'conflict':
            files['lines'] = ''.join([f'conflict {n}\n', *lines[1:]])
        elif kind == 'pair':
            files[f'parts/pair-{n}'] += 'both\n'
        elif kind == 'broken':
            files[f'parts/broken-{n}'] += 'start\n'
        changes[kind, n] = Change(project, f'{kind}-{n}', files, VERSIONS[at % len(VERSIONS)], dice.choice(METHODS))
    return changes


def test_twenty_branches(server):
    project = Project(server, 'twenty')
    changes = make_changes(project, random.Random(SEED))
    for change in changes.values():
        change.start()
    # Somebody who may pushes to main meanwhile.
    wait_until(lambda: len(project.history()) > 3, 'some have landed', 180)
    hand = project.clone()
    for n in range(3):
        project.write(hand, {f'parts/hand-{n}': f'hand-{n}\n'})
        while hand.push('HEAD:main', status=None).returncode != 0:
            hand.git('pull', '-q', '--rebase', 'origin', 'main')
    for change in changes.values():
        change.join()
        assert change.failure is None, change.failure
    kinds = {kind: [c for (k, _), c in changes.items() if k == kind] for kind, _ in changes}
    assert all(c.landed() for c in kinds['good']), [c.entry for c in kinds['good'] if not c.landed()]
    assert sorted(c.entry['state'] for c in kinds['conflict']) == ['conflict', 'landed']
    # The second was refused by its own checks, where it was opened behind the first; else by those of the queue.
    assert sorted(c.landed() for c in kinds['pair']) == [False, True]
    assert all(c.landed() or c.entry is None or c.entry['reason'] == 'checks' for c in kinds['pair'])
    assert [c.state for c in kinds['broken']] == ['failed', 'failed']
    for change in kinds['broken']:
        project.add(change.number, status=403)
    all_sound(project)
    words = project.words()
    assert len(words) == len(set(words))
    for change in changes.values():
        assert (f'{change.name}' in words) == change.landed()
        assert project.count_events('pr.merged', number=change.number) == change.landed()
    landed = [c for c in changes.values() if c.landed()]
    assert len(project.history()) == 1 + 3 + len(landed), 'each landed once'
    tidy(project)


# ---- kill -9 ----

def failpoints():
    """Of the queue, as its sources name them."""
    folder = pathlib.Path(__file__).parents[2] / 'src/forge'
    return sorted({name for path in folder.glob('landing*.c')
                   for name in re.findall(r'FAILPOINT\("(landing-[a-z]+)"\)', path.read_text())})


def crash(server, project, point, number, **more):
    """The server is killed at this point, and starts again."""
    server.kill()
    server.env['COOP_FAIL_AT'] = f'{point}:1'
    server.restart()
    answer = None
    try:
        answer = server.ask('POST', f'{project.api}/merges', body={'number': number, **more})
    except OSError:
        pass
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.restart()
    return answer


@needs_failpoints
@pytest.mark.parametrize('point', failpoints())
def test_killed(server, point):
    project = Project(server, f'killed-{point}', checked=False)
    project.set(delete_merged_branches=point == 'landing-tidied')
    before = project.history()
    number, _, _ = project.change('task-1', {'parts/one': 'one\n'})
    other, _, _ = project.change('task-2', {'parts/two': 'two\n'})
    crash(server, project, point, number, method='squash')
    # One that ends between the two questions is in both answers.
    left = [*{entry['id']: entry for ended in ('', '&ended=1')
              for entry in server.get(f'{project.api}/merges?number={number}{ended}')['merges']}.values()]
    assert len(left) == (point != 'landing-adding')
    entry = project.ended(left[0]['id']) if left else project.land(number, method='squash')
    assert entry['state'] == 'landed'
    after = project.history()
    assert after[1:] == before and after[0] == entry['landing_oid'] and project.pull(number)['merge_commit_sha'] == after[0]
    assert project.count_events('pr.merged', number=number) == 1
    assert project.count_events('commit.pushed', ref='refs/heads/main', after=after[0]) == 1
    assert project.land(other, method='squash')['state'] == 'landed'
    assert sorted(project.words()) == ['one', 'start', 'two']
    assert len(project.history()) == len(before) + 2
    tidy(project)
    if point == 'landing-tidied':
        wait_until(lambda: 'task-1' not in project.bare('for-each-ref', 'refs/heads'), 'the branch is gone')


@needs_failpoints
def test_killed_again_and_again(server):
    """Whatever is left to do: each start ends at another point."""
    project = Project(server, 'again', checked=False)
    points = [point for point in failpoints() if point not in ('landing-adding', 'landing-tidied')]
    count = len(points) + 1
    changes = [project.change(f'task-{n}', {f'parts/{n}': f'word-{n}\n'})[0] for n in range(count)]
    entries = [project.add(number, method=METHODS[number % len(METHODS)])['id'] for number in changes]
    server.kill()
    for point in points:
        server.env['COOP_FAIL_AT'] = f'{point}:1'
        with contextlib.suppress(OSError, AssertionError):  # it may be gone before it is up
            server.restart()
        server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.restart()
    assert [project.ended(entry)['state'] for entry in entries] == ['landed'] * count
    assert sorted(project.words()) == sorted(['start', *(f'word-{n}' for n in range(count))])
    assert len(project.history()) == 1 + count
    assert project.count_events('pr.merged') == count
    all_sound(project)
    tidy(project)


@needs_failpoints
def test_killed_and_others_go_on(server):
    """The branch has moved, the rows have not: somebody pushes before the server knows that it landed."""
    project = Project(server, 'go-on', checked=False)
    number, _, _ = project.change('task-1', {'parts/one': 'one\n'})
    crash(server, project, 'landing-moved', number, method='merge')
    hand = project.clone()
    project.write(hand, {'parts/hand': 'hand\n'})
    while hand.push('HEAD:main', status=None).returncode != 0:
        hand.git('pull', '-q', '--rebase', 'origin', 'main')
    wait_until(lambda: project.pull(number)['merged'], 'it is merged')
    assert sorted(project.words()) == ['hand', 'one', 'start']
    assert project.count_events('pr.merged', number=number) == 1
    assert len(project.history()) == 3


