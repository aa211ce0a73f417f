# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of the team share: tasks with known answers, and a script that answers them."""
import base64
import datetime
import json
import pathlib
import re

import yaml

TASKS = pathlib.Path(__file__).resolve().parents[1] / 'tasks'
PROVIDER = 'bench'
MODEL = 'bench-1'


def load(names=None):
    found = [yaml.safe_load(path.read_text()) for path in sorted(TASKS.glob('*.yaml'))]
    return [task for task in found if names is None or task['name'] in names]


def tool(name, **arguments):
    return {'name': name, 'arguments': json.dumps(arguments)}


def steps_of(task):
    """Name -> tries; a task that names none is one step."""
    solutions = task['solutions']
    return solutions if isinstance(solutions, dict) else {task['name']: solutions}


def plan_of(task):
    steps = [name for name in steps_of(task) if name != 'resolve']
    return {'project': task['name'], 'summary': 'As it was asked for.',
            'features': [{'name': name, 'title': f'The {name} of {task["name"]}'} for name in steps],
            'steps': [{'name': name, 'title': f'Do {name} of {task["name"]}', 'feature': name, 'role': 'coder',
                       'details': task['request']} for name in steps]}


def turns_of(tries, name):
    """Each try writes, commits and says that it is done; only Coop's own look tells whether it is."""
    turns = []
    for files in tries:
        turns += [{'tools': [tool('write', path=path, text=text) for path, text in files.items()]},
                  {'tools': [tool('commit', message=f'feat: {name}')]},
                  {'tools': [tool('done', outcome='done', summary='It is done.')]}]
    return turns


def conversations(task):
    """What planner and coders say about this task."""
    asked = re.escape(task['request'][:60])
    made = [{'role': f'{who}*', 'asked': asked, 'turns': [{'text': json.dumps(plan_of(task))}]} for who in ('planner', 'council')]
    made.append({'role': 'chairman*', 'asked': asked,
                 'turns': [{'text': json.dumps({'plan': plan_of(task), 'dissent': []})}]})
    for name, tries in steps_of(task).items():
        goal = f'^# Goal\\nDo {name} of {task["name"]}\\n' if name != 'resolve' else 'Bring them together'
        if name == 'resolve':
            made.append({'role': 'coder*', 'asked': goal, 'match': 'git fetch origin (\\S+?)`', 'turns': [
                {'tools': [tool('shell', command='git fetch -q origin {{match.1}} && git merge -q FETCH_HEAD; git status')]}]})
            made.append({'role': 'coder*', 'asked': goal, 'turn': 2, 'turns': turns_of(tries, name)})
        else:
            made.append({'role': 'coder*', 'asked': goal, 'turns': turns_of(tries, name)})
    return made


def script(tasks):
    """The whole brain.  A conflict names the branch, not the task, so only one task may have one."""
    everyone = [{'role': 'council*', 'system': '^You judge', 'turns': [{'text': '{"ranking": ["A", "B"], "why": "smaller"}'}]}]
    resolvers, others = [], []
    for task in tasks:
        for one in conversations(task):
            (resolvers if 'Bring them together' in one.get('asked', '') else others).append(one)
    lookers = [{'role': f'{who}*', 'turns': [{'tools': [tool('done', outcome='done', verdict='approve', summary='Good.')]}]}
               for who in ('tester', 'reviewer')]
    return yaml.safe_dump({'conversations': everyone + resolvers + others + lookers}, allow_unicode=True)


def add_brain(wire, tasks):
    wire.call('PUT', f'/api/v1/providers/{PROVIDER}',
              {'kind': 'script', 'script': script(tasks), 'models': ['bench-*']})


def add_squad(wire, name='bench', provider=PROVIDER, model=MODEL, **config):
    """A planner, two coders, a reviewer and a tester, all with this brain."""
    members = [{'name': one, 'role': role, 'llm_provider': provider, 'llm_model': model}
               for one, role in (('planner', 'planner'), ('coder-1', 'coder'), ('coder-2', 'coder'),
                                 ('reviewer', 'reviewer'), ('tester', 'tester'))]
    return wire.call('POST', '/api/v1/squads', {'name': name, 'members': members, 'config': config})


def add_repository(wire, name, files):
    wire.call('POST', '/api/v1/repos', {'name': name})
    for path, text in files.items():
        wire.call('PUT', f'/api/v3/repos/coop/{name}/contents/{path}',
                  {'message': f'chore: add {path}', 'content': base64.b64encode(text.encode()).decode()})


def start(wire, request, squad='bench', repository=None, **more):
    body = {'request': request, 'squad': squad, **more}
    if repository:
        body['repository'] = f'coop/{repository}'
    return wire.call('POST', '/api/v1/tasks', body)


def seconds(row, since, until):
    """Between two times of a row; None: one of them has not come."""
    if not row.get(since) or not row.get(until):
        return None
    began, ended = (datetime.datetime.fromisoformat(row[name]) for name in (since, until))
    return (ended - began).total_seconds()


ENDED = ('done', 'failed', 'cancelled', 'blocked')


def has_ended(wire, task):
    return wire.call('GET', f'/api/v1/tasks/{task["id"]}')['state'] in ENDED
