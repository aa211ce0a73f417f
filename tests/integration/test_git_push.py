# SPDX-License-Identifier: Apache-2.0
"""Pushes side by side, and a server that is killed in the middle of one."""
import concurrent.futures
import os
import subprocess

import pytest

from gitserver import VERSIONS, Work, environment, folder_of, make_repo, url_of
from harness import Server, wait_until

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')
KINDS = ('commit.pushed', 'branch.created', 'branch.removed')


def moves(server):
    """What was told, oldest first."""
    return [(e['kind'], e['data']['name'], e['data']['before'], e['data']['after']) for e in server.events()
            if e['kind'] in KINDS]


def refs(server, repo):
    out = subprocess.run(['git', '--git-dir', str(folder_of(server, repo)), 'for-each-ref',
                          '--format=%(refname:short) %(objectname)'], check=True, capture_output=True, text=True,
                         env=environment(server.folder)).stdout
    return dict(line.split() for line in out.splitlines())


def told_refs(server):
    """Where the events leave each branch; every move begins where the one before it ended."""
    at = {}
    for _, name, before, after in moves(server):
        assert at.get(name, '0' * 40) == before, (name, at.get(name), before)
        at[name] = after
    return {name: oid for name, oid in at.items() if oid != '0' * 40}


@pytest.fixture
def server(tmp_path):
    s = Server(tmp_path).start()
    yield s
    s.finish()


# ---- side by side ----

def test_many_branches_at_once(server, tmp_path):
    path, repo = make_repo(server, 'many')
    Work(tmp_path / 'first', url_of(server, path)).init().commit()
    Work(tmp_path / 'first', url_of(server, path)).push('main')

    def work(i):
        w = Work(tmp_path / f'w{i}', url_of(server, path), VERSIONS[i % 2]).clone()
        for n in range(3):
            w.commit(f'f{i}', f'{n}\n', f'feat: step {n}')
            w.push(f'HEAD:refs/heads/task-{i}')
        return f'task-{i}', w.head()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = dict(pool.map(work, range(8)))
    assert {k: v for k, v in refs(server, repo).items() if k != 'main'} == made
    assert told_refs(server) == refs(server, repo)
    assert len(moves(server)) == 1 + 8 * 3


def test_one_branch_by_many(server, tmp_path):
    """Who is late is told, fetches, rebases and comes again; nothing is lost."""
    path, repo = make_repo(server, 'one')
    first = Work(tmp_path / 'first', url_of(server, path)).init()
    first.commit()
    first.push('main')

    def work(i):
        w = Work(tmp_path / f'w{i}', url_of(server, path), VERSIONS[i % 2]).clone()
        for n in range(2):
            w.commit(f'f{i}-{n}', 'x\n', f'feat: add {i} {n}')
            while w.push('main', status=None).returncode != 0:
                w.git('pull', '-q', '--rebase', 'origin', 'main')
        return w

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    last = Work(tmp_path / 'last', url_of(server, path)).clone()
    assert int(last.git('rev-list', '--count', 'HEAD').stdout) == 1 + 10
    assert told_refs(server) == refs(server, repo) == {'main': last.head()}


def test_rows_are_written_when_the_push_returns(server, tmp_path):
    path, _ = make_repo(server, 'at-once')
    w = Work(tmp_path / 'w', url_of(server, path)).init()
    for n in range(5):
        oid = w.commit('f', f'{n}\n')
        w.push('main')
        assert moves(server)[-1][3] == oid


def test_nothing_is_said_about_a_good_push(server, tmp_path):
    path, _ = make_repo(server, 'quiet')
    w = Work(tmp_path / 'w', url_of(server, path)).init()
    for name in ('main', 'topic'):
        w.commit(name)
        assert 'remote:' not in w.push(f'HEAD:{name}').said


def test_deleted_branch(server, tmp_path):
    path, repo = make_repo(server, 'less')
    w = Work(tmp_path / 'w', url_of(server, path)).init()
    w.commit()
    w.push('main', 'main:topic')
    w.push(':topic')
    assert moves(server)[-1][:2] == ('branch.removed', 'topic')
    assert told_refs(server) == refs(server, repo)


# ---- kill -9 ----

@needs_failpoints
@pytest.mark.parametrize('point', ['push-received', 'push-moved', 'push-writing'])
def test_killed_in_a_push(tmp_path, point):
    """What moved is told of once, by this server or by the next; what did not can be pushed again."""
    server = Server(tmp_path).start()
    path, repo = make_repo(server, 'killed')
    w = Work(tmp_path / 'w', url_of(server, path)).init()
    first = w.commit()
    w.push('main')
    server.stop()
    server.env['COOP_FAIL_AT'] = f'{point}:1'
    server.start()
    second = w.commit('more')
    w.push('main', 'main:topic', status=None)
    server.wait_killed()
    del server.env['COOP_FAIL_AT']
    server.start()
    wait_until(lambda: told_refs(server) == refs(server, repo), 'rows and refs agree')
    assert refs(server, repo)['main'] in (first, second)
    if point != 'push-received':
        assert refs(server, repo)['main'] == second
    w.push('main', 'main:topic')
    assert refs(server, repo) == {'main': second, 'topic': second}
    assert told_refs(server) == refs(server, repo)
    assert len(moves(server)) == 3
    assert not list((folder_of(server, repo) / 'objects').glob('tmp_objdir-*'))
    server.finish()


@needs_failpoints
def test_moved_behind_its_back(tmp_path):
    """By somebody with a shell on the machine, while no server ran."""
    server = Server(tmp_path).start()
    path, repo = make_repo(server, 'behind')
    w = Work(tmp_path / 'w', url_of(server, path)).init()
    first = w.commit()
    second = w.commit('more')
    w.push(f'{first}:refs/heads/main', f'{second}:refs/heads/topic', f'{second}:refs/heads/gone')
    server.stop()
    folder = folder_of(server, repo)
    for args in (['update-ref', 'refs/heads/main', second], ['update-ref', '-d', 'refs/heads/gone']):
        subprocess.run(['git', '--git-dir', str(folder), *args], check=True, env=environment(tmp_path))
    server.start()
    wait_until(lambda: told_refs(server) == refs(server, repo), 'rows and refs agree')
    assert sorted(m[:2] for m in moves(server)[3:]) == [('branch.removed', 'gone'), ('commit.pushed', 'main')]
    server.finish()
