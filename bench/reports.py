# SPDX-License-Identifier: Apache-2.0
"""A report over a million events.

Counted once, page by page, while everything else goes on; afterwards a report reads what was counted.
"""
import contextlib
import json
import sqlite3
import tempfile
import threading
import time

import lib

EVENTS = 1000 * 1000
TASKS = 2000
REPORTS = 20
PAUSE_S = 0.02
SPAN_US = 30 * 24 * 3600 * 1000 * 1000
# Of a hundred events; the others say nothing that counts.
MIX = [('command.ended', 12, {'reason': 'exit', 'exit_code': 0, 'duration_ms': 40}),
       ('model.called', 10, {'status': 200, 'latency_ms': 900}),
       ('tests.reported', 3, {'total': 20, 'passed': 19, 'failed': 1}),
       ('agent.left', 1, {'state': 'done', 'kind': 'work', 'spawn_ms': 250, 'memory_bytes': 9000000, 'duration_ms': 800}),
       ('step.ended', 1, {'state': 'done', 'try': 1, 'last': True, 'passed': True}),
       ('pr.merged', 1, {})]


def kinds():
    """(kind, data) of each place in a hundred."""
    counted = [(kind, json.dumps(data)) for kind, n, data in MIX for _ in range(n)]
    return counted + [('agent.said', '{"text": "Reading the tests first."}')] * (100 - len(counted))


def fill(path, squad):
    """Past the server, which is not there: a month of a busy one."""
    now = time.time_ns() // 1000
    hundred = kinds()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        (last,) = db.execute('SELECT MAX(seq) FROM events').fetchone()
        db.executemany("INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, report, created_us, "
                       "ended_us, updated_us) VALUES (?, ?, ?, '', 'coop', 'api', 't', 'r', 'done', '{}', ?, ?, 1)",
                       ((f't{n}', n + 1, squad, now - SPAN_US, now) for n in range(TASKS)))
        db.executemany("INSERT INTO events (seq, at_us, kind, actor, task_id, squad_id, data, hash) VALUES (?, ?, ?, 'coop', ?, ?, ?, zeroblob(32))",
                       ((last + 1 + i, now - SPAN_US + SPAN_US // EVENTS * i, hundred[i % 100][0], f't{i // 100 % TASKS}', squad,
                         hundred[i % 100][1]) for i in range(EVENTS)))


def timed(work):
    began = time.monotonic()
    answer = work()
    return (time.monotonic() - began) * 1000, answer


def counted(coop):
    report = coop.call('GET', '/api/v1/reports?per_page=1&since=31d')
    return sum(rate['total'] for rate in report['rates'] if rate['name'] == 'executions')


def count(coop):
    """Until all is counted; what somebody else waits for something small meanwhile."""
    others, over = [], threading.Event()

    def ask():
        while not over.wait(PAUSE_S):
            others.append(timed(lambda: coop.call('GET', '/api/v1/squads'))[0])

    asking = threading.Thread(target=ask)
    began = time.monotonic()
    asking.start()
    try:
        while True:
            with contextlib.suppress(TimeoutError):
                if counted(coop) == EVENTS // 100 * MIX[0][1]:
                    return time.monotonic() - began, others
    finally:
        over.set()
        asking.join()


def run(bench):
    with tempfile.TemporaryDirectory() as home:
        with lib.coop(bench, home) as coop:
            squad = coop.call('GET', '/api/v1/squads')['squads'][0]['id']
        fill(f'{home}/coop.db', squad)
        with lib.coop(bench, home) as coop:
            seconds, others = count(coop)
            whole = [timed(lambda: coop.call('GET', '/api/v1/reports?since=31d'))[0] for _ in range(REPORTS)]
            squads = [timed(lambda: coop.call('GET', '/api/v1/reports?since=31d&squad=default'))[0] for _ in range(REPORTS)]
            day = [timed(lambda: coop.call('GET', '/api/v1/reports?since=1d'))[0] for _ in range(REPORTS)]
            rss = lib.rss_bytes(coop.pid)
    values = {'events': EVENTS, 'count_s': seconds, 'report_ms': lib.summary(whole), 'squad_ms': lib.summary(squads),
              'day_ms': lib.summary(day), 'other_ms': lib.summary(others), 'rss_bytes': rss}
    bench.at_most('a report of a month, ms (p50)', values['report_ms']['p50'], 1500)
    bench.at_most('a report of a day, ms (p50)', values['day_ms']['p50'], 250)
    bench.at_most('something else while it is counted, ms (p50)', values['other_ms']['p50'], 100)
    return values
