# SPDX-License-Identifier: Apache-2.0
"""Where agents work and what they are told: by the server's settings, by the squad, and by the repository."""
import json

import pytest

from boxserver import TINY, copy_program
from teamserver import FILES, done, plan, plans, says, step, team_serving, tool, write, writes
from workserver import git

MARK = tool('shell', command='echo "mark=${MARK-none}."')


def add_templates(root):
    """As `tiny` is, and each has its own name in the environment."""
    copy_program(root, 'make')
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


POET = '''team:
  roles:
    - name: poet
      archetype: coder
      specialization: songs
      template: yours
      brain: demo/coder
      prompt: Everything rhymes here.
      tools: [shell, read, write, done, nonsense]
      limits: {turns: 7, seconds: 86400}
    - name: reviewer
      template: mine
      prompt: Look for rhymes.
      tools: [shell, read, done, commit]
    - name: coder
      specialization: frontend
      prompt: Only of the front.
'''
# What an agent is told, as the face of agents tells it.
ASK = r'''exec 3<>/dev/tcp/127.0.0.1/3128
printf 'GET /agent/v1/brief HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' >&3
cat <&3 >/tmp/brief
for part in limits tools; do sed -n "s/.*\\(\"$part\":[^]}]*\\).*/\\1/p" /tmp/brief; done
'''
BRIEF = tool('shell', command=f"cat >/tmp/ask <<'END'\n{ASK}END\nbash /tmp/ask")


def outputs(server, task, kind):
    kinds = {a['id']: a['kind'] for a in server.agents(task)}
    return ' '.join(e['data'].get('output') or '' for e in server.events_of(task, 'tool.used')
                    if kinds[e['execution_id']] == kind)


def test_roles_of_the_repository(server):
    """A role of its own, which a step of the plan has, and more words for one that there is."""
    repo = server.new_repo('poets', {**FILES, 'coop.yaml': FILES['coop.yaml'] + POET})
    server.script(plans(plan(step('one', role='poet')), match='- poet: coder, songs'),
                  says('coder*', [MARK, BRIEF, write('parts/one', 'good\n')], [done()], system='Everything rhymes here'),
                  says('tester*', [MARK], [done(verdict='approve')]),
                  says('reviewer*', [MARK, BRIEF], [done(verdict='approve')], system='Look for rhymes'))
    task = server.new_task(repository=repo)
    server.task_done(task)
    assert marks(server, task) == {'work': 'yours', 'review': 'mine', 'test': 'mine'}
    poet, reviewer = outputs(server, task, 'work'), outputs(server, task, 'review')
    assert '"turns":7,' in poet and '"seconds":1800,' in poet, 'less than the server gives, and not more'
    assert '"tools":["shell","read","done"' in reviewer and 'commit' not in reviewer, 'tools are taken away, and not given'
    [work] = [a for a in server.agents(task) if a['kind'] == 'work']
    assert (work['provider'], work['model']) == ('demo', 'coder')


def test_config_of_a_member(server):
    """What a squad says of one alone: more than the role gives, unless the task bounds it; tools are only taken away."""
    config = {'turns': 70, 'seconds': 77, 'context_tokens': 54321, 'output_tokens': 1234, 'tools': ['shell', 'write', 'done', 'odd']}
    server.post('/api/v1/squads', {'name': 'bounded', 'members': [
        {'role': role, 'config': config if role == 'coder' else {}, 'llm_provider': 'demo', 'llm_model': 'coder'}
        for role in ('planner', 'coder', 'reviewer', 'tester')]})
    server.script(says('coder*', [BRIEF, write('parts/one', 'good\n')], [done()]))
    task = server.new_task(repository=server.new_repo('bounded'), squad='bounded', plan=plan(step('one')), policy={'agent_s': 70})
    server.task_done(task)
    said = outputs(server, task, 'work')
    assert '"turns":70,"seconds":70,"context_tokens":54321,"output_tokens":1234' in said, said
    assert '"tools":["shell","write","done"' in said, said


def test_what_an_agent_writes_counts_later(server):
    """Not for the task that wrote it, not for one that had begun before it was merged, but for the next."""
    repo = server.new_repo('later')
    more = 'team: {roles: [{name: reviewer, prompt: Nothing is good enough.}]}\n'
    server.script(says('coder*', [write('coop.yaml', FILES['coop.yaml'] + more)], [done()], asked='Change the file'),
                  says('coder*', [write('parts/one', 'good\n')], [done()], asked='Begun before'),
                  says('coder*', [write('parts/two', 'good\n')], [done()]),
                  says('reviewer*', [done('Again.', verdict='changes')], system='Nothing is good enough'))
    before = server.new_task('Begun before', repository=repo, policy={'planner': 'person'})
    server.task_in(before, 'approving')
    writer = server.new_task('Change the file', repository=repo, plan=plan(step('one', title='Change the file')))
    assert server.task_done(writer)['round'] == 1
    assert 'Nothing is good' in server.file(repo, 'coop.yaml')
    server.give_plan(before, plan(step('one', title='Begun before')))
    assert server.task_done(before)['round'] == 1
    after = server.new_task('Begun after', repository=repo, plan=plan(step('two')), policy={'rounds': 1})
    blocked = server.task_in(after, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and '1 rounds' in blocked['problem'], blocked['problem']


@pytest.mark.parametrize('name, roles, says_what', [
    ('brain', '[{name: coder, brain: other/huge}]', "the brain 'other/huge', which nobody in the squad has"),
    ('template', '[{name: coder, template: guarded}]', "the template 'guarded', which has rules of its own"),
    ('adapter', '[{name: coder, adapter: codex}]', "line 4: a role of a repository has no 'adapter'"),
    ('secrets', '[{name: coder, secrets: [KEY]}]', "line 4: a role has no 'secrets'"),
    ('member-brain', '[], members: [{role: coder, llm_provider: other, llm_model: huge}]',
     "line 4: a member asks for the brain 'other/huge', which nobody in the squad has"),
    ('member-template', '[], members: [{role: coder, template: guarded}]',
     "line 4: a member asks for the template 'guarded', which has rules of its own"),
    ('member-adapter', '[], members: [{role: coder, adapter: codex}]',
     "line 4: a member asks for the adapter 'codex', which nobody in the squad has"),
    ('member-more', '[], members: [{role: reviewer}, {role: reviewer}]', 'line 4: the squad has no further reviewer'),
    ('member-budget', '[], members: [{role: coder, budget: 9}]', "line 4: unknown field 'budget'"),
])
def test_what_a_repository_cannot_have(server, name, roles, says_what):
    answer = server.ask('POST', '/api/v1/door/rules', body={'scope': 'template', 'scope_id': 'guarded', 'action': 'allow',
                                                             'pattern': 'example.org'})
    assert answer.status in (200, 201, 409), answer
    repo = server.new_repo(f'no-{name}', {**FILES, 'coop.yaml': FILES['coop.yaml'] + f'team: {{roles: {roles}}}\n'})
    task = server.new_task(repository=repo, plan=plan(step('one')))
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and says_what in blocked['problem'], blocked['problem']
    assert server.agents(task) == []


SINGER = '''team:
  roles: [{name: coder, prompt: Of every coder., brain: demo/coder}]
  members:
    - role: coder
      specialization: songs
      llm_provider: second
      llm_model: singer
      system_prompt: Everything rhymes here.
      template: yours
'''


def second_provider(server, *conversations):
    body = {'kind': 'script', 'script': json.dumps({'conversations': list(conversations)}), 'models': ['singer']}
    assert server.ask('PUT', '/api/v1/providers/second', body=body).status in (200, 201)


def new_choir(server):
    """Two coders, and a tester whose brain is the second one."""
    members = [{'role': 'coder', 'specialization': 'front', 'system_prompt': 'As the squad has it.'}, {'role': 'coder'},
               {'role': 'reviewer'}, {'role': 'tester', 'llm_provider': 'second', 'llm_model': 'singer'}]
    return server.post('/api/v1/squads', {'name': 'choir', 'members': members}, status=201)


def test_members_of_the_repository(server):
    """One who stands for a coder of the squad works with the repository's brain, words and template, for its tasks alone."""
    approve = says('tester*', [done(verdict='approve')])
    second_provider(server, approve, says('coder*', [MARK, write('parts/one', 'good\n')], [done()], system='Everything rhymes'))
    server.script(plans(plan(step('one')), match='- coder-1: coder, songs'), says('coder*', [write('parts/two', 'good\n')], [done()]))
    choir = new_choir(server)
    identities = server.get('/api/v1/identities')
    repo = server.new_repo('singers', {**FILES, 'coop.yaml': FILES['coop.yaml'] + SINGER})
    task = server.new_task(repository=repo, squad='choir')
    ended = server.task_done(task)
    work = {a['kind']: a for a in ended['agents']}['work']
    first = choir['members'][0]
    assert (work['role'], work['specialization'], work['provider'], work['model']) == ('coder', 'songs', 'second', 'singer')
    assert work['member_id'] == first['id'] and marks(server, task)['work'] == 'yours'
    assert sorted(a['kind'] for a in ended['agents']) == ['review', 'test', 'work'], 'who is not named stays'
    [line] = [line for line in server.cli('task', 'show', str(task['number'])).splitlines() if work['agent'] in line]
    assert 'singer' in line
    assert 'choir-coder-1' in git(server.bare('singers'), 'log', '--format=%an', 'main').splitlines(), 'as who it stands for'

    other = server.new_task(repository=server.new_repo('no-singers'), squad='choir', plan=plan(step('two')))
    work = {a['kind']: a for a in server.task_done(other)['agents']}['work']
    assert (work['provider'], work['model']) == ('demo', 'coder'), 'other repositories see nothing of it'
    assert server.get('/api/v1/identities') == identities
    now = server.get(f'/api/v1/squads/{choir["id"]}')
    assert [{**m, 'updated_at': 0} for m in now['members']] == [{**m, 'updated_at': 0} for m in choir['members']]


def test_a_member_that_an_agent_writes_counts_later(server):
    server.script(writes('coop.yaml', FILES['coop.yaml'] + 'team: {members: [{role: coder, llm_model: huge}]}\n'))
    repo = server.new_repo('late-member')
    server.task_done(server.new_task(repository=repo, plan=plan(step('one'))))
    task = server.new_task(repository=repo, plan=plan(step('two')))
    blocked = server.task_in(task, 'blocked', 'done')
    assert blocked['state'] == 'blocked' and "line 4: a member asks for the brain 'demo/huge'" in blocked['problem']
    assert server.agents(task) == []


def test_a_file_about_the_team_alone(server):
    """Its checks are those that are recognised."""
    files = {'Makefile': 'test:\n\tsh check.sh\n', 'check.sh': FILES['check.sh'], 'parts/start': 'good\n',
             'coop.yaml': 'team: {until: reviewed}\n'}
    server.script(says('coder*', [write('parts/one', 'bad\n')], [done()], [write('parts/one', 'good\n')], [done()]))
    task = server.new_task(repository=server.new_repo('alone', files), plan=plan(step('one')))
    ended = server.task_done(task)
    assert ended['rung'] == 'reviewed'
    seen = [e['data']['passed'] for e in server.events_of(task, 'step.ended')]
    assert seen == [False, True], seen


def test_a_member_chooses_before_them(server):
    show_marks(server)
    members = [{'role': 'coder', 'template': 'yours'}, {'role': 'tester', 'template': 'tiny'}, {'role': 'reviewer'}]
    server.post('/api/v1/squads', {'name': 'choosers', 'members': members}, status=201)
    task = server.new_task(repository=server.new_repo('members'), squad='choosers', plan=plan(step('one')))
    server.task_done(task)
    assert marks(server, task) == {'work': 'yours', 'review': 'yours', 'test': 'none'}
