# SPDX-License-Identifier: Apache-2.0
"""Where agents work and what they are told: by the server's settings, by the squad, and by the repository."""
import json

import pytest

from boxserver import TINY
from teamserver import done, plan, says, step, team_serving, tool

MARK = tool('shell', command='echo "mark=${MARK-none}."')


def add_templates(root):
    """As `tiny` is, and each has its own name in the environment."""
    for n, name in enumerate(('mine', 'yours')):
        row = {**TINY, 'name': name, 'hash': f'8{n}' * 20, 'key': name, 'env': [*TINY['env'], f'MARK={name}']}
        (root.parent / f'{name}.json').write_text(json.dumps(row))


@pytest.fixture(scope='module')
def server():
    with team_serving(add_templates, E2B_TEMPLATE_CODER='mine', E2B_TEMPLATE_REVIEWER='yours',
                      E2B_TEMPLATE_TESTER='mine') as running:
        yield running


def marks(server, task):
    """Which template each kind of agent was in, by what its shell says."""
    kinds = {a['id']: a['kind'] for a in server.agents(task)}
    return {kinds[e['execution_id']]: e['data']['output'].split('mark=')[1].split('.')[0]
            for e in server.events_of(task, 'tool.used') if 'mark=' in (e['data'].get('output') or '')}


def show_marks(server):
    server.script(says('coder*', [MARK, tool('write', path='parts/one', text='good\n')], [done()]),
                  says('tester*', [MARK], [done(verdict='approve')]), says('reviewer*', [MARK], [done(verdict='approve')]))


def test_templates_of_the_settings(server):
    show_marks(server)
    task = server.new_task(repository=server.new_repo('settings'), plan=plan(step('one')))
    server.task_done(task)
    assert marks(server, task) == {'work': 'mine', 'review': 'yours', 'test': 'mine'}


def test_a_member_chooses_before_them(server):
    show_marks(server)
    members = [{'role': 'coder', 'template': 'yours'}, {'role': 'tester', 'template': 'tiny'}, {'role': 'reviewer'}]
    server.post('/api/v1/squads', {'name': 'choosers', 'members': members}, status=201)
    task = server.new_task(repository=server.new_repo('members'), squad='choosers', plan=plan(step('one')))
    server.task_done(task)
    assert marks(server, task) == {'work': 'yours', 'review': 'yours', 'test': 'none'}
