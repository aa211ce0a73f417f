# SPDX-License-Identifier: Apache-2.0
"""What is left of boxes: files of what failed or was stopped, boxes that are put aside, results without a repository."""
import contextlib
import io
import os
import sqlite3
import subprocess
import tarfile
import time

import pytest

from boxserver import API
from harness import wait_until
from teamserver import done, plan, plans, says, step, team_serving, tool, write, writes

KEPT = '/api/v1/kept'
NEEDS_FAILPOINTS = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')
ONCE = {'tries': 1}  # of a step
DAY_S = 24 * 3600
SECOND_US = 1000 * 1000
# Bad work, and after a question good work.
FAILS = says('coder*', [write('parts/one', 'bad\n')], [done()], [write('parts/one', 'good\n')], [done()])
HANGS = says('coder*', [write('parts/one', 'half\n'), tool('shell', command='sleep 1000')])


@pytest.fixture(scope='module')
def server():
    with team_serving() as running:
        yield running


def begin(server, name, *coders, **policy):
    repo = server.new_repo(name)
    server.script(plans(plan(step('one'))), *coders, FAILS)
    return server.new_task(repository=repo, policy={**ONCE, **policy})


def kept(server, task=None):
    return server.get(KEPT + (f'?task={task["id"]}' if task else ''))['kept']


def blocked(server, task):
    """Its boxes are let go a moment later."""
    server.task_in(task, 'blocked')
    return wait_until(lambda: kept(server, task), 'what is kept')


def names(server, row):
    answer = server.ask('GET', f'{KEPT}/{row["id"]}/archive')
    assert answer.status == 200 and answer.headers['Content-Type'] == 'application/x-tar', answer
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}


def text_of(files, path):
    found = [text.decode() for name, text in files.items() if name.endswith(path)]
    assert len(found) == 1, (path, sorted(files))
    return found[0]


def at_work(server, task):
    """Its agent has written half of it."""
    return wait_until(lambda: [a for a in server.agents(task) if a['state'] == 'working' and server.run(
        a['sandboxId'], f'cat {a["workdir"]}/parts/one 2>/dev/null || true')['stdout'] == 'half\n'], 'an agent at work')[0]


def box_state(server, row):
    return {one['sandbox_id']: one['state'] for one in server.get(API)['sandboxes']}.get(f'sb-{row["box_id"]}')


# ---- files ----

def test_files_of_what_failed(server):
    task = begin(server, 'failed')
    [row] = blocked(server, task)
    [agent] = server.agents(task)
    assert (row['kind'], row['agent'], row['box_id']) == ('files', agent['agent'], agent['sandboxId'])
    assert row['bytes'] > 0 and row['cost_usd'] == 0 and 'path' not in row
    assert text_of(names(server, row), 'parts/one') == 'bad\n'
    assert server.task(task)['kept'][0]['id'] == row['id'] and row['id'] in server.cli('task', 'show', str(task['number']))
    wait_until(lambda: box_state(server, row) is None, 'the end of the box')
    assert server.ask('DELETE', f'{KEPT}/{row["id"]}').status == 204
    assert kept(server, task) == [] and not list((server.home / 'kept').glob(f'{row["id"]}*'))
    assert server.ask('GET', f'{KEPT}/{row["id"]}/archive').status == 404


def test_files_of_what_was_stopped(server):
    """Those of an agent in the middle of its work."""
    task = begin(server, 'stopped', HANGS)
    agent = at_work(server, task)
    assert 'cancelled' in server.cli('task', 'stop', str(task['number']))
    [row] = kept(server, task)
    assert row['box_id'] == agent['sandboxId'] and box_state(server, row) is None
    assert text_of(names(server, row), 'parts/one') == 'half\n'


def test_files_without_a_repository(server):
    """They are what the task comes to: one folder, in which all of its steps worked."""
    server.script(plans(plan(step('one'), step('two', depends=['one']))), writes('one', 'first\n', asked='# Goal\\s+Write one'),
                  says('coder*', [tool('shell', command='cat one one >two')], [done()]))
    task = server.new_task('Write it down')
    assert server.task_done(task)['rung'] == 'tested'
    rows = kept(server, task)
    assert [row['kind'] for row in rows] == ['files', 'files'] and all(row['agent'] for row in rows)
    files = names(server, rows[0])
    assert text_of(files, 'one') == 'first\n' and text_of(files, 'two') == 'first\nfirst\n'
    assert len(names(server, rows[1])) < len(files)
    other = server.make_key('read', 'other')['key']
    assert server.get(KEPT, key=other)['kept'] == []
    assert server.ask('GET', f'{KEPT}/{rows[0]["id"]}/archive', key=other).status == 404


# ---- boxes ----

def test_a_box_is_put_aside(server):
    """Paused, listed with what it costs, there after a restart, and taken up again by whoever goes on."""
    task = begin(server, 'aside', keep='box')
    [row] = blocked(server, task)
    assert (row['kind'], row['bytes']) == ('box', 0) and row['agent'] == server.agents(task)[0]['agent']
    assert box_state(server, row) == 'paused'
    assert server.ask('GET', f'{KEPT}/{row["id"]}/archive').status == 404
    server.kill()
    server.restart()
    # The next one looks at it as well, and leaves it as it is.
    wait_until(lambda: server.events_of(task, 'task.moved') and box_state(server, row) == 'paused', 'the box')
    [again] = kept(server, task)
    assert again['id'] == row['id'] and again['cost_usd'] > 0
    server.cli('task', 'retry', str(task['number']))
    server.task_done(task)
    assert [a['sandboxId'] for a in server.agents(task) if a['kind'] == 'work'] == [row['box_id']] * 2
    assert kept(server, task) == [] and box_state(server, row) is None


def test_a_box_of_what_was_stopped(server):
    """Nothing runs in it any more; whoever asks for it gets rid of it."""
    task = begin(server, 'halted', HANGS, keep='box')
    agent = at_work(server, task)
    server.cli('task', 'stop', str(task['number']))
    [row] = kept(server, task)
    assert row['box_id'] == agent['sandboxId'] and box_state(server, row) == 'paused'
    assert server.ask('POST', f'/api/v1/sandboxes/sb-{row["box_id"]}/resume').status == 200
    assert server.run(row['box_id'], f'cat {agent["workdir"]}/parts/one')['stdout'] == 'half\n'
    assert server.ended(row['box_id'], agent['run'])['end']['reason'] == 'signal'
    assert server.ask('DELETE', f'{KEPT}/{row["id"]}').status == 204
    assert kept(server, task) == [] and box_state(server, row) is None


def test_a_box_that_somebody_ended(server):
    """It is not listed, and whoever goes on has another."""
    task = begin(server, 'ended', writes('parts/one', 'good\n', asked='What Coop saw of the last try'), keep='box')
    [row] = blocked(server, task)
    assert server.ask('DELETE', f'/api/v1/sandboxes/{row["box_id"]}').status == 204
    wait_until(lambda: kept(server, task) == [], 'the end of the row')
    server.cli('task', 'answer', str(task['number']), 'Once more')
    server.task_done(task)
    assert len({a['sandboxId'] for a in server.agents(task) if a['kind'] == 'work'}) == 2


# ---- how long ----

def test_its_time_is_over(server):
    server.stop()
    server.restart(COOP_TEAM_KEEP='3s')
    tasks = [begin(server, f'short-{keep}', keep=keep) for keep in ('box', 'files')]
    for task in tasks:
        server.task_in(task, 'blocked')
    wait_until(lambda: kept(server, tasks[0]) == [] and server.live() == set(), 'the end of the box')
    gone = [e['data']['id'] for e in server.events_of(tasks[1], 'kept.removed')]
    wait_until(lambda: kept(server, tasks[1]) == [] and not list((server.home / 'kept').glob(f'{server.agents(tasks[1])[0]["sandboxId"]}*')),
               'the end of the files')
    assert gone == [], 'its time was over, and nothing needed its room'
    server.stop()
    server.restart(COOP_TEAM_KEEP='1d')


def test_many_are_swept(server):
    """More than are looked at at once: no row without its file, and no file without its row."""
    server.stop()
    now, folder = time.time_ns() // 1000, server.home / 'kept'
    rows = [(f'{state}-{n}', now + (DAY_S if state == 'young' else -DAY_S) * SECOND_US)
            for state in ('old', 'young') for n in range(1200)]
    for name, _ in rows:
        (folder / f'{name}.tar').touch()
    (folder / 'stray.tar').touch()
    (folder / 'firm.tar').mkdir()  # cannot be unlinked
    with sqlite3.connect(server.home / 'coop.db') as db:
        db.executemany("INSERT INTO kept (id, kind, path, created_us, expires_us) VALUES (?, 'files', ?, 0, ?)",
                       [(name, f'kept/{name}.tar', until) for name, until in [*rows, ('firm', now - 2 * DAY_S * SECOND_US)]])
    db.close()
    server.restart()
    wait_until(lambda: not (folder / 'stray.tar').exists(), 'the sweep')

    def listed(name):
        with sqlite3.connect(server.home / 'coop.db') as db:
            return db.execute('SELECT COUNT(*) FROM kept WHERE id GLOB ?', [name]).fetchone()[0]
    assert [listed(name) for name in ('old-*', 'young-*', 'firm')] == [0, 1200, 1]
    assert len(list(folder.glob('old-*'))) == 0 and len(list(folder.glob('young-*'))) == 1200
    server.stop()
    (folder / 'firm.tar').rmdir()
    server.restart()
    wait_until(lambda: listed('firm') == 0, 'the next sweep')


# ---- how much ----

# In the work tree and in git: two of them are in a MiB, three are not.
HALF = 'head -c 130000 /dev/urandom >parts/half; echo bad >parts/one'
FAILS_LARGE = says('coder*', [tool('shell', command=HALF)], [done()])


def sizes(server):
    return {path.name: path.stat().st_size for path in (server.home / 'kept').iterdir()}


@pytest.fixture
def small(server):
    """One with room for a MiB."""
    server.stop()
    with sqlite3.connect(server.home / 'coop.db') as db:
        db.execute('DELETE FROM kept')
    db.close()
    server.restart(COOP_TEAM_KEPT_MAX='1MiB')
    wait_until(lambda: sizes(server) == {}, 'the end of strays')
    yield server
    server.stop()
    server.env.pop('COOP_TEAM_KEPT_MAX')
    server.restart()


def test_the_oldest_makes_room(small):
    tasks = [begin(small, f'large-{n}', FAILS_LARGE) for n in range(2)]
    for task in tasks:
        blocked(small, task)
    assert small.get(KEPT)['total'] == 2 and sum(sizes(small).values()) == small.get(KEPT)['bytes'] <= small.get(KEPT)['bytes_max'] == 1 << 20
    oldest = kept(small)[-1]
    tasks.append(begin(small, 'large-2', FAILS_LARGE))
    [newest] = blocked(small, tasks[-1])
    assert oldest['id'] not in sizes(small) and {row['id'] for row in kept(small)} >= {newest['id']}
    assert len(kept(small)) == 2 and oldest['id'] not in {row['id'] for row in kept(small)}
    assert {f'{row["id"]}.tar': row['bytes'] for row in kept(small)} == sizes(small)
    [told] = small.events(kind='kept.removed', task=oldest['task_id'])
    assert (told['task_id'], told['data']['id'], told['data']['reason']) == (oldest['task_id'], oldest['id'], 'room')
    assert told['data']['bytes'] == oldest['bytes'] and told['data']['bytes_max'] == 1 << 20
    shown = small.cli('task', 'kept')
    assert newest['id'] in shown and '2 kept, ' in shown and 'at most 1.0' in shown
    assert 'made room' in small.cli('task', 'log', str(next(t for t in tasks if t['id'] == oldest['task_id'])['number']))


def test_more_than_there_is_room_for(small):
    """It is not kept, that is said, and nothing else has to go for it."""
    [row] = blocked(small, begin(small, 'fits', FAILS_LARGE))
    task = begin(small, 'huge', says('coder*', [tool('shell', command=HALF.replace('130000', '1300000'))], [done()]))
    small.task_in(task, 'blocked')
    [failed] = wait_until(lambda: small.events_of(task, 'kept.failed'), 'the event')
    assert 'more than the 1 MiB' in failed['data']['problem']
    assert [r['id'] for r in kept(small)] == [row['id']] and set(sizes(small)) == {f'{row["id"]}.tar'}


@NEEDS_FAILPOINTS
def test_killed_while_room_is_made(small):
    """The file of the oldest is gone, its row is not: the next server comes to the same end."""
    for n in range(2):
        blocked(small, begin(small, f'room-{n}', FAILS_LARGE))
    oldest = kept(small)[-1]
    small.stop()
    small.restart(COOP_FAIL_AT='crew-room')
    task = begin(small, 'room-2', FAILS_LARGE)
    small.wait_killed()
    small.restart()
    [newest] = blocked(small, task)
    assert oldest['id'] not in {row['id'] for row in kept(small)} and len(kept(small)) == 2
    assert {f'{row["id"]}.tar': row['bytes'] for row in kept(small)} == sizes(small)
    assert [e['data']['id'] for e in small.events(kind='kept.removed')].count(oldest['id']) == 1 and newest


@contextlib.contextmanager
def full_disk(folder, size):
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'full', folder], check=True)
    try:
        yield
    finally:
        subprocess.run(['umount', '-l', folder], check=True)


def test_a_full_disk(server):
    """What does not fit is named, and nothing else is lost: not what is kept, nor the task."""
    [row] = blocked(server, begin(server, 'before'))
    with full_disk(server.home / 'kept', '64k'):
        task = begin(server, 'full', FAILS_LARGE)
        stopped = server.task_in(task, 'blocked')
        [failed] = wait_until(lambda: server.events_of(task, 'kept.failed'), 'the event')
        assert failed['data']['problem'].endswith('.tar\': No space left on device'), failed
        assert sizes(server) == {} and 'No space left' in server.cli('task', 'log', str(task['number']))
        # Files that are the result: the agent has not done what it was asked for.
        server.script(plans(plan(step('one'))), says('coder*', [tool('shell', command='head -c 400000 /dev/zero >one')], *[[done()]] * 9))
        alone = server.new_task('Write it down', policy=ONCE)
        waits = server.task_in(alone, 'blocked')
        assert 'its files could not be kept' in waits['problem'] and 'No space left on device' in waits['problem']
    assert text_of(names(server, row), 'parts/one') == 'bad\n' and stopped['branch'] in server.branches('coop/full')
    server.cli('task', 'retry', str(alone['number']))
    server.task_done(alone)
    assert len(text_of(names(server, kept(server, alone)[0]), 'one')) == 400000


# ---- kill -9 ----

@NEEDS_FAILPOINTS
@pytest.mark.parametrize('keep, places', [('files', ['crew-stopped', 'crew-release', 'flow-stop']),
                                          ('box', ['crew-stopped', 'crew-paused', 'flow-stop'])])
def test_killed_while_it_stops(server, keep, places):
    """The server dies at each place when it comes to it, and the last one has nothing left to do but to say so."""
    task = begin(server, f'kill-{keep}', HANGS, keep=keep)
    agent = at_work(server, task)
    server.stop()
    server.restart(COOP_FAIL_AT=places[0])
    wait_until(lambda: at_work(server, task)['id'] == agent['id'], 'the agent')
    server.request_only('POST', f'/api/v1/tasks/{task["id"]}/stop')
    for place in places[1:]:
        server.wait_killed()
        server.env['COOP_FAIL_AT'] = place
        server.spawn()
    server.wait_killed()
    server.restart()
    ended = server.task_in(task, 'cancelled')
    [row] = kept(server, task)
    assert (row['kind'], row['box_id']) == (keep, agent['sandboxId'])
    assert box_state(server, row) == ('paused' if keep == 'box' else None)
    assert [a['state'] for a in server.agents(task)] == ['stopped'] and ended['problem'] == 'stopped by a person'
    told = [e['kind'] for e in server.events_of(task)]
    assert told.count('task.cancelled') == told.count('agent.left') == 1
    assert server.ask('DELETE', f'{KEPT}/{row["id"]}').status == 204


@NEEDS_FAILPOINTS
def test_killed_before_files_have_a_row(server):
    server.script(plans(plan(step('one'))), writes('one', 'good\n'))
    server.stop()
    before = set((server.home / 'kept').iterdir())
    server.restart(COOP_FAIL_AT='crew-kept')
    task = server.new_task('Write it down')
    server.wait_killed()
    server.restart()
    server.task_done(task)
    [row] = kept(server, task)
    assert {path.name for path in set((server.home / 'kept').iterdir()) - before} == {f'{row["id"]}.tar'}
    assert text_of(names(server, row), 'one') == 'good\n'
