# SPDX-License-Identifier: Apache-2.0
"""What tasks came to and how well things go, over real runs: boxes, tests, reviews and merges."""
import json
import os
import re

import pytest

from harness import wait_until
from teamserver import FILES, done, plan, plans, says, step, team_serving, tool, write

# Reports its tests (TAP), says on the standard error what is wrong, and how much was covered.
CHECK = '''set -- parts/*
echo "1..$#"
n=0
for file; do
    n=$((n + 1))
    read -r word <"$file"
    if [ "$word" = good ]; then echo "ok $n - $file"
    else echo "not ok $n - $file"; echo "boom: $file says $word" >&2; bad=1; fi
done
echo 'All files | 95.24 | 90 |'
exit ${bad:-0}
'''
REPO = {**FILES, 'check.sh': CHECK}
STEPS = ['council plans', 'sandbox created', 'code generated', 'tests executed', 'tests passed',
         'feature marked complete', 'sandbox cleaned up']
BAD, GOOD = write('parts/one', 'bad\n'), write('parts/one', 'good\n')
FIXED = [[tool('shell', command='echo no >&2; exit 3')], [BAD], [done()], [GOOD], [done()]]
NEVER = [[BAD], [done('All tests pass!')]] * 3


def add_scanner(root):
    """One that finds nothing, so that a change can be fit."""
    scanner = root / 'bin/detect-secrets'
    scanner.write_text('#!/bin/sh\necho \'{"results": {}}\'\n')
    scanner.chmod(0o755)


@pytest.fixture
def server():
    with team_serving(add_scanner) as running:
        yield running


def run(server, name, turns):
    """A task that came to its end, or to a question."""
    server.script(plans(plan(step('one'))), says('coder*', *turns))
    task = server.new_task(repository=server.new_repo(name, REPO))
    return server.task_in(task, 'done', 'blocked', 'failed')


def rates(server, query=''):
    report = server.get(f'/api/v1/reports{query}')
    return report, {r['name']: (r['good'], r['total']) for r in report['rates']}


def counts(numbers):
    return [numbers[name] for name in ('total', 'passed', 'failed', 'skipped')]


def check_one(server, task):
    """The report of a task whose first try failed."""
    answer = server.get(f'/api/v1/tasks/{task["number"]}/report')
    report = answer['report']
    assert report == task['report'] and answer['state'] == 'done'
    assert report['production_ready'] and report['reasons'] == [], report['reasons']
    assert [report[n] for n in ('steps', 'tries', 'rounds', 'rung')] == [1, 2, 1, 'merged']
    # Two tests, run by Coop for each try of the coder and for the tester.
    assert counts(report['tests']) == [6, 5, 1, 0] and counts(report['final_tests']) == [2, 2, 0, 0]
    assert counts(report['checks']) == [3, 2, 1, 0] and counts(report['scans']) == [1, 1, 0, 0]
    assert report['coverage']['percent'] == 95.2 and report['coverage']['seen_by'] == 'coop'
    agents = {(a['kind'], a['try']): a for a in report['agents']}
    assert set(agents) == {('work', 1), ('work', 2), ('test', 1), ('review', 1)}
    assert [agents['work', n]['passed'] for n in (1, 2)] == [False, True]
    # In one box, and each has its own calls.
    assert [agents['work', n]['usage']['calls'] for n in (1, 2)] == [3, 2]
    spent = [a['usage'] for a in report['agents']] + [report['planning']]
    for name in ('calls', 'input_tokens', 'output_tokens'):
        assert sum(u[name] for u in spent) == report['usage'][name] > 0
    assert report['planning']['calls'] == 1
    assert [(m['provider'], m['model'], m['calls']) for m in report['models']] == [('demo', 'coder', report['usage']['calls'])]


def check_log(server, task):
    text = server.cli('task', 'log', str(task['number']))
    seen = [text.index(words) for words in STEPS]
    assert seen == sorted(seen) and all(f'[{n}/7]' in text for n in range(1, 8)), text
    assert 'stderr: boom: parts/one says bad\n' in text, text
    assert 'tests executed: total 2, passed 1, failed 1' in text and 'tests executed: total 2, passed 2, failed 0' in text
    assert 'tests failed\n' in text and re.search(r'done: tests total 2, passed 2, failed 0; production-ready\n$', text), text


def test_two_tasks(server):
    fixed = run(server, 'fixed', FIXED)
    assert fixed['state'] == 'done', (fixed['problem'], server.said(fixed))
    check_one(server, fixed)
    check_log(server, fixed)
    never = run(server, 'never', NEVER)
    assert never['state'] == 'blocked'
    live = server.get(f'/api/v1/tasks/{never["id"]}/report')['report']
    assert live['state'] == 'blocked' and not live['production_ready'] and live['tries'] == 3
    assert server.ask('POST', f'/api/v1/tasks/{never["id"]}/stop', body={}).status == 200
    check_rates(server)
    check_ranges(server, fixed)
    check_metrics(server)
    check_command(server, fixed)


def check_rates(server):
    report, by_name = rates(server)
    assert {name: by_name[name] for name in ('pull_requests', 'reviews', 'approvals', 'merges', 'tests_passed', 'first_tries',
                                             'scans_passed', 'tasks', 'agents')} == {
        'pull_requests': (2, 2), 'reviews': (1, 1), 'approvals': (2, 2), 'merges': (1, 2), 'tests_passed': (1, 2),
        'first_tries': (0, 2), 'scans_passed': (1, 1), 'tasks': (1, 1), 'agents': (7, 7)}, by_name
    # How fast it was is not a test's to say; what was not known when an agent left is not counted.
    assert by_name['tests'] == (8, 12) and by_name['simple_task'][1] == 1 and by_name['clone'][1] == 4
    assert 0 < by_name['spawn'][1] <= 7 and 0 < by_name['memory'][1] <= 7
    # Each agent's program and each check of Coop's in an agent's box.
    assert by_name['executions'] == (7 + 2, 7 + 6) and by_name['sandboxes'][0] == by_name['sandboxes'][1] > 3
    good, total = by_name['utilisation']
    assert 0 < good <= total
    full = {r['name']: r for r in report['rates']}
    assert full['merges']['target'] == 0.85 and full['merges']['rate'] == 0.5 and full['merges']['met'] is False
    assert full['spawn']['limit'] == 30000 and 0 < full['spawn']['median'] <= full['spawn']['p95'] <= full['spawn']['max']
    assert full['memory']['average'] > 0 and full['pull_requests']['met'] is True and full['executions']['average'] >= 0
    assert {e['class']: e['total'] for e in report['errors']} == {'tests': 4, 'command': 4, 'blocked': 1}
    assert sum(sum(d['errors'].values()) for d in report['days']) == 9
    assert {s['state']: s['total'] for s in report['states']} == {'done': 1, 'cancelled': 1}
    assert {a['role']: (a['total'], a['done']) for a in report['agents']} == {'coder': (5, 5), 'reviewer': (1, 1), 'tester': (1, 1)}
    assert [m['model'] for m in report['models']] == ['coder'] and report['cost']['box_hours'] > 0
    assert [t['state'] for t in report['tasks']] == ['cancelled', 'done'] and report['total'] == 2


def check_ranges(server, fixed):
    """Another squad, repository, time and key."""
    assert rates(server, '?squad=default&repo=coop/fixed')[1]['merges'] == (1, 1)
    assert rates(server, f'?repo=coop/never&since={fixed["created_at"]}')[1]['merges'] == (0, 1)
    for query in ('?until=1h', '?squad=none'):
        report, by_name = rates(server, query)
        assert by_name['merges'] == (0, 0) and report['total'] == 0, query
    # In the middle of what happened: the event of the merge and nothing before it.
    [merged] = server.events_of(fixed, 'pr.merged')
    later = rates(server, f'?since={merged["at"]}&repo=coop/fixed')[1]
    assert later['merges'] == (1, 1) and later['pull_requests'] == (0, 0)
    assert rates(server, f'?until={merged["at"]}&repo=coop/fixed')[1]['merges'] == (0, 0)
    paged = server.get('/api/v1/reports?per_page=1&page=2')
    assert [t['number'] for t in paged['tasks']] == [fixed['number']] and paged['total'] == 2
    for query, status in (('?since=yesterday', 400), ('?since=1d&until=2d', 400), ('?since=2000-01-01', 400),
                          ('?what=1', 400), ('?repo=coop/none', 404), ('?since=999999999999999999d', 400)):
        assert server.ask('GET', f'/api/v1/reports{query}').status == status, query
    other = server.make_key('read')['key']
    answer = server.ask('GET', '/api/v1/reports', key=other)
    assert answer.status == 200 and answer.json['total'] == 0 and not any(r['total'] for r in answer.json['rates'])
    assert answer.json['models'] == answer.json['agents'] == answer.json['errors'] == []
    assert server.ask('GET', f'/api/v1/tasks/{fixed["number"]}/report', key=other).status == 404


def check_metrics(server):
    """The same numbers as the report's, which has counted to the end of the log."""
    _, by_name = rates(server)
    text = server.ask('GET', '/metrics').body.decode()
    found = {(family, name): float(value) for family, name, value in
             re.findall(r'^coop_rate_(\w+)\{rate="(\w+)"\} (\S+)$', text, re.M)}
    assert {name for family, name in found if family == 'counted_total'} == set(by_name)
    for name, (good, total) in by_name.items():
        assert (found['good_total', name], found['counted_total', name]) == (good, total), name
    assert found['target', 'merges'] == 0.85 and found['limit', 'spawn'] == 30000 and found['value_count', 'clone'] == 4
    assert 'coop_errors_total{class="tests"} 4\n' in text


def check_command(server, fixed):
    text = server.cli('report')
    assert re.search(r'pull requests that were merged +GH-23 +1/2 +50\.0% +> 85% +no', text), text
    assert re.search(r"an agent's start.* AG-13 .*< 30\.0 s +(yes|no)", text) and re.search(r'\ntests +4\n', text), text
    shown = json.loads(server.cli('report', '-o', 'json', '--since', '1d', '--squad', 'default', '--repo', 'coop/fixed'))
    assert [t['number'] for t in shown['tasks']] == [fixed['number']]
    one = server.cli('report', str(fixed['number']))
    assert 'Production-ready: yes' in one and 'Tests: total 6, passed 5, failed 1' in one and 'Coverage: 95.2%' in one, one
    assert json.loads(server.cli('report', str(fixed['number']), '-o', 'json'))['report'] == fixed['report']


def test_agents_have_pages(server):
    task = run(server, 'paged', [[GOOD], [done()]])
    assert task['state'] == 'done', task['problem']
    agents = [a['id'] for a in server.agents(task)]
    pages = [server.get(f'/api/v1/agents?task={task["id"]}&per_page=2&page={n}') for n in (1, 2, 3)]
    assert [[a['id'] for a in p['agents']] for p in pages] == [agents[:2], agents[2:], []] and len(agents) == 3
    assert all(p['total'] == 3 for p in pages)
    assert len(json.loads(server.cli('agent', 'ls', '--limit', '2', '-o', 'json'))) == 2
    assert server.ask('GET', '/api/v1/agents?per_page=101').status == 400


@pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='a build without failpoints')
def test_counted_once_after_a_kill(server):
    """Killed whenever something was counted, while a task goes on."""
    server.script(plans(plan(step('one'))), says('coder*', [GOOD], [done()]))
    repo = server.new_repo('killed', REPO)
    rates(server)  # what has happened by now is counted
    task = server.new_task(repository=repo)
    server.kill()
    server.env['COOP_FAIL_AT'] = 'tally-counted'
    server.spawn()  # it may be there before anybody could ask it anything
    server.wait_killed()
    server.restart()
    server.task_done(task)
    # A row may be seen a moment before the log is told of its event.
    wait_until(lambda: rates(server)[1]['tasks'][1], 'its end to be counted')
    _, by_name = rates(server)
    for name in ('pull_requests', 'merges', 'reviews', 'tests_passed', 'tasks'):
        assert by_name[name] == (1, 1), (name, by_name)
    wait_until(lambda: server.live() == set(), 'its boxes to go')
