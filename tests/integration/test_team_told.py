# SPDX-License-Identifier: Apache-2.0
"""From a word in Slack to merged code, and who is told on the way: the channel, and whoever has a hook on the squad."""
from harness import wait_until
from hookserver import HookServer
from teamserver import FILES, plan, plans, step, team_serving, writes
from test_slack import SECRET, check, order


def test_from_slack_to_the_merge():
    with HookServer() as slack, HookServer() as heard, team_serving(
            SLACK_SIGNING_SECRET=SECRET, COOP_WEBHOOKS_ALLOW_LOOPBACK='true',
            COOP_SLACK_REPLY_ORIGINS=slack.url('').rstrip('/')) as server:
        repo = server.new_repo('told', {**FILES, 'check.sh': 'echo TAP version 13\necho 1..1\necho ok 1 - parts\n'})
        server.script(plans(plan(step('one'))), writes('parts/one', 'good\n'))
        assert server.ask('PATCH', '/api/v1/squads/default', body={'repository': repo}).status == 200
        server.post('/api/v1/squads/default/hooks', {'url': heard.url(), 'secret': heard.secret})
        check(order(server, 'Add a part', response_url=slack.url('/r')), 'Task #')
        task = wait_until(lambda: server.get('/api/v1/tasks')['tasks'], 'the task')[0]
        server.task_done(task)
        texts = [slack.next().json['text'] for _ in range(3)]
        ended = server.task(task)
        assert 'the plan is ready, 1 steps' in texts[0]
        assert texts[1].endswith(f': the pull request is open: {ended["pull_url"]}')
        tests = ended['report']['tests']
        assert 'is *merged*' in texts[2] and texts[2].endswith(ended['pull_url'])
        assert f'Tests: {tests["total"]} total, {tests["passed"]} passed, {tests["failed"]} failed' in texts[2] and tests['passed'] > 0
        kinds = []
        while not kinds or kinds[-1] != 'task.completed':
            told = heard.next()
            assert told.is_signed and told.json['task']['id'] == task['id']
            kinds.append(told.event)
        wanted = ['task.created', 'task.planned', 'pr.opened', 'pr.ready', 'pr.merged', 'task.completed']
        # They are sent side by side, so that the last may come before others.
        while not set(wanted) <= set(kinds):
            kinds.append(heard.next().event)
        assert all(kinds.count(kind) == 1 for kind in wanted)
