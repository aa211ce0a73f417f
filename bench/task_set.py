# SPDX-License-Identifier: Apache-2.0
"""Twenty small tasks with known answers: how many a team brings to a merge that is right.

The brain is a script that knows them, so what is measured is Coop; COOP_BENCH_PROVIDER and COOP_BENCH_MODEL name another,
whose key the environment has, and then it is that brain with Coop around it.  What was merged is judged by tests
that no agent has seen, in a box of their own.
"""
import os
import time

from support import boxes, team

ENOUGH = {'merged': 0.85, 'right': 0.95, 'reviewed': 0.90, 'opened': 0.95}
SECONDS = 1800


def brain(wire, tasks):
    """Provider and model."""
    if 'COOP_BENCH_PROVIDER' in os.environ:
        return os.environ['COOP_BENCH_PROVIDER'], os.environ['COOP_BENCH_MODEL']
    team.add_brain(wire, tasks)
    return team.PROVIDER, team.MODEL


def is_right(wire, task):
    """The hidden tests on what the main branch has."""
    box = boxes.create(wire)
    try:
        wire.call('POST', f'{boxes.SANDBOXES}/{box}/git/clone', {'repository': f'coop/{task["name"]}', 'path': '/home/user/w'})
        files = {f'/home/user/w/{path}': text for path, text in task['answer']['files'].items()}
        done = wire.call('POST', f'/sandbox/{box}/execute',
                         {'files': files, 'commands': [f'cd /home/user/w && {task["answer"]["run"]}'], 'timeout': 300})
        return done['success']
    finally:
        boxes.delete(wire, box)


def judge(wire, task, row):
    pull = row.get('pull_number')
    reviews = wire.call('GET', f'/api/v3/repos/coop/{task["name"]}/pulls/{pull}/reviews') if pull else []
    return {'name': task['name'], 'state': row['state'], 'problem': row.get('problem'), 'opened': bool(pull),
            'reviewed': any(r['state'] == 'APPROVED' for r in reviews), 'merged': row['state'] == 'done',
            'right': row['state'] == 'done' and is_right(wire, task),
            'seconds': team.seconds(row, 'started_at', 'ended_at')}


def run(bench):
    tasks = team.load()
    with boxes.serving(bench) as server:
        wire = server.wire()
        provider, model = brain(wire, tasks)
        team.add_squad(wire, provider=provider, model=model)
        for task in tasks:
            team.add_repository(wire, task['name'], task['files'])
        began = time.perf_counter()
        rows = [team.start(wire, task['request'], repository=task['name']) for task in tasks]
        boxes.wait_until('the end of all tasks', lambda: all(team.has_ended(wire, row) for row in rows), SECONDS, 0.5)
        took = time.perf_counter() - began
        results = [judge(wire, task, wire.call('GET', f'/api/v1/tasks/{row["id"]}')) for task, row in zip(tasks, rows)]
        wire.close()
    rates = {what: sum(r[what] for r in results) / len(results) for what in ENOUGH}
    for what, least in ENOUGH.items():
        bench.at_least(f'tasks {what}', rates[what], least)
    return {'brain': f'{provider}/{model}', 'seconds': took, 'rates': rates, 'tasks': results}
