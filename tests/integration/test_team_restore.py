# SPDX-License-Identifier: Apache-2.0
"""A backup that was made while agents work is restored: each of them is taken up again, or is lost and tried again."""
import pytest

from harness import wait_until
from teamserver import done, plan, says, step, team_serving, tool

BODY = plan(step('one'))
# It waits for a person's hand, and does the same when it is begun once more.
WORKS = says('coder*', [tool('shell', command='until test -e /tmp/go; do sleep 0.05; done; echo good >one')], [done()])
GOES = says('coder*', [tool('shell', command='echo good >one')], [done()])


@pytest.fixture(scope='module')
def server():
    with team_serving() as running:
        yield running


def at_work(server, task):
    return wait_until(lambda: [a for a in server.agents(task) if a['state'] == 'working' and a['run']], 'the agent')[0]


def begin(server):
    """One whose agent works by now."""
    server.script(WORKS)
    task = server.new_task('Write it down', plan=BODY)
    return task, at_work(server, task)


def go(server, agent):
    server.run(agent['sandboxId'], ': >/tmp/go')


def backup(server, name):
    path = server.folder / name
    server.cli('backup', str(path))
    return path


def restore(server, path):
    server.cli('restore', str(path), '--yes')


def states(server, task):
    return [a['state'] for a in reversed(server.agents(task))]


def test_it_still_works(server):
    """Nobody begins it twice."""
    task, agent = begin(server)
    restore(server, backup(server, 'works'))
    assert states(server, task) == ['working']
    go(server, agent)
    server.task_done(task)
    assert states(server, task) == ['done'] and [a['id'] for a in server.agents(task)] == [agent['id']]


def test_its_box_is_gone(server):
    """It had ended since: the rows say that it works, and it is lost and tried again."""
    task, agent = begin(server)
    path = backup(server, 'gone')
    go(server, agent)
    server.task_done(task)
    restore(server, path)
    again = wait_until(lambda: states(server, task) == ['lost', 'working'] and at_work(server, task), 'another agent')
    go(server, again)
    ended = server.task_done(task)
    assert states(server, task) == ['lost', 'done'] and ended['rung'] == 'tested'
    assert server.live() == set()


def test_agents_by_hand(server):
    server.script(WORKS)
    agent = server.post('/api/v1/agents', {'role': 'coder', 'requirements': ['Write one']})
    agent = wait_until(lambda: (a := server.get(f'/api/v1/agents/{agent["id"]}'))['state'] == 'working' and a['run'] and a, 'the agent')
    path = backup(server, 'hand')
    assert server.ask('DELETE', f'/api/v1/agents/{agent["id"]}').status in (200, 204)
    wait_until(lambda: server.live() == set(), 'its end')
    restore(server, path)
    lost = wait_until(lambda: (a := server.get(f'/api/v1/agents/{agent["id"]}'))['state'] == 'lost' and a, 'its end')
    assert 'box' in lost['problem']


def test_what_came_after_it(server):
    """It is in no row any more, and its agent holds nobody up."""
    path = backup(server, 'before')
    task, agent = begin(server)
    restore(server, path)
    assert server.ask('GET', f'/api/v1/tasks/{task["id"]}').status == 404
    server.script(GOES)
    server.task_done(server.new_task('Write it down', plan=BODY))
    server.ask('DELETE', f'/api/v1/sandboxes/{agent["sandboxId"]}')
