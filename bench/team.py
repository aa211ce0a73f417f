# SPDX-License-Identifier: Apache-2.0
"""The factorial task from plan to merge with a scripted brain; agents at once; memory of one; a restart.

The script answers at once, so what is left is Coop's own time and that of the tests it runs; the same tests run on
the host are the peer.
"""
import os
import pathlib
import signal
import subprocess
import tempfile
import time

import lib
from support import boxes, team

ROUNDS = 5
LIMIT_S, SPAWN_MS, MEMORY_MIB, AT_ONCE, UNDER_WAY, RESTART_S = 5, 300, 30, 20, 50, 2
WAITS, WORKS = 'Wait for a person before you do anything.', 'Count slowly, and say each number.'
TURNS = 400
ASKS = {'role': 'coder*', 'asked': 'Do wait', 'turns': [{'tools': [team.tool('ask', question='May I?')]},
                                                       {'tools': [team.tool('done', outcome='done', summary='x')]}]}

# Each command is another: the same one again and again would be taken for a loop.
COUNTS = {'role': 'coder*', 'asked': 'Do count', 'turns': [{'tools': [team.tool('shell', command=f'sleep 0.5; echo {n}')]}
                                                         for n in range(TURNS)]}


def wait_ended(wire, rows, seconds=300):
    boxes.wait_until('the end of tasks', lambda: all(team.has_ended(wire, row) for row in rows), seconds, 0.01)


def host_tests(task):
    """Milliseconds of the same tests outside, for each of the tries and of Coop's own looks."""
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        for files in (task['files'], *task['solutions']):
            for path, text in files.items():
                pathlib.Path(folder, path).write_text(text)
        began = time.perf_counter()
        subprocess.run(['node', '--test'], cwd=folder, stdout=subprocess.DEVNULL, check=True)
        return (time.perf_counter() - began) * 1e3


def factorial(wire, task):
    """Seconds of whole tasks, and milliseconds from lease to first question of their agents."""
    whole, spawn = [], []
    for n in range(ROUNDS):
        name = f'factorial-{n}'
        team.add_repository(wire, name, task['files'])
        began = time.perf_counter()
        row = team.start(wire, task['request'], repository=name)
        wait_ended(wire, [row])
        whole.append(time.perf_counter() - began)
        row = wire.call('GET', f'/api/v1/tasks/{row["id"]}')
        if row['state'] != 'done':
            raise RuntimeError(row)
        agents = wire.call('GET', f'/api/v1/agents?per_page=100&task={row["id"]}')['agents']
        spawn += [team.seconds(a, 'created_at', 'first_call_at') * 1e3 for a in agents if a['first_call_at']]
    return whole, spawn


def agents_of(wire):
    return [a for a in wire.call('GET', '/api/v1/agents?per_page=100')['agents'] if a['state'] == 'asking']


def memory_mib(server, agents):
    """Private and shared memory of the box of one agent that waits: its init and coop-agent."""
    used = []
    for pid in boxes.descendants(server.keeper):
        try:
            text = pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text()
        except OSError:
            continue
        used.append(int(text.partition('\nPss:')[2].split()[0]) / 1024)
    return sum(used) / max(len(agents), 1)


def run(bench):
    task = team.load(['factorial'])[0]
    lib.go_first()
    with boxes.serving(bench, team__concurrent_tasks=UNDER_WAY) as server:
        wire = server.wire()
        brain = team.yaml.safe_load(team.script([task]))
        idle = [{'name': 'wait', 'request': WAITS, 'solutions': {'wait': []}},
                {'name': 'count', 'request': WORKS, 'solutions': {'count': []}}]
        planned = [c for task_of in idle for c in team.conversations(task_of) if c['turns']]
        brain['conversations'] = [ASKS, COUNTS, *planned, *brain['conversations']]
        wire.call('PUT', f'/api/v1/providers/{team.PROVIDER}',
                  {'kind': 'script', 'script': team.yaml.safe_dump(brain), 'models': ['bench-*']})
        team.add_squad(wire)
        whole, spawn = factorial(wire, task)
        team.add_repository(wire, 'waits', task['files'])
        rows = [team.start(wire, WAITS, repository='waits') for _ in range(AT_ONCE)]
        boxes.wait_until('agents at once', lambda: len(agents_of(wire)) >= AT_ONCE, 120, 0.05)
        memory = memory_mib(server, agents_of(wire))
        for row in rows:
            wire.call('POST', f'/api/v1/tasks/{row["id"]}/stop', {})
        wait_ended(wire, rows)
        restart = restart_s(server, wire)
        wire.close()
    values = {'task_s': lib.summary(whole), 'spawn_ms': lib.summary(spawn), 'host_tests_ms': host_tests(task),
              'agent_mib': memory, 'restart_s': restart}
    bench.at_most('factorial, plan to merge, p50, s', values['task_s']['p50'], LIMIT_S)
    bench.at_most('agent spawn, p50, ms', values['spawn_ms']['p50'], SPAWN_MS)
    bench.at_most('coop-agent and its box, MiB', memory, MEMORY_MIB)
    bench.at_most('50 tasks after a restart, s', restart, RESTART_S)
    return values


def steps_since(wire, seq):
    """The tasks whose agents have told a step after this event."""
    found = set()
    while True:
        page = wire.call('GET', f'/api/v1/events?after={seq}&kind=tool.used&limit=500')['events']
        found |= {event['task_id'] for event in page}
        if not page:
            return found
        seq = page[-1]['seq']


def last_seq(wire):
    return wire.call('GET', '/api/v1/events?limit=1')['seq']


def restart_s(server, wire):
    """Seconds from a killed server until each task under way has told its next step."""
    began_at = last_seq(wire)
    rows = {team.start(wire, WORKS, repository='waits')['id'] for _ in range(UNDER_WAY)}
    boxes.wait_until('tasks under way', lambda: rows <= steps_since(wire, began_at), 300, 0.1)
    killed_at = last_seq(wire)
    os.kill(server.server, signal.SIGKILL)
    began = time.perf_counter()
    wire.close()

    def go_on():
        try:
            fresh = server.wire()
        except OSError:
            return False
        try:
            return rows <= steps_since(fresh, killed_at)
        except (OSError, RuntimeError):
            return False
        finally:
            fresh.close()

    boxes.wait_until('the next step of each task', go_on, 60, 0.02)
    took = time.perf_counter() - began
    server.server = server.pid_of('serve')
    return took
