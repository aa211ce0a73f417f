# SPDX-License-Identifier: Apache-2.0
"""Squads and their members: every field, who may see and change them, and whose identities they are."""
import pytest

from gitserver import make_repo
from harness import check_error

SQUADS = '/api/v1/squads'
USUAL = ['planner', 'coder-1', 'coder-2', 'reviewer', 'tester']


def patch(server, path, body, status=200, **more):
    answer = server.ask('PATCH', path, body=body, **more)
    assert answer.status == status, answer
    return answer.json


def delete(server, path, status=204, **more):
    answer = server.ask('DELETE', path, **more)
    assert answer.status == status, answer


def identities(server):
    return {i['id']: i for i in server.get('/api/v1/identities')['identities']}


def test_the_default_squad(server):
    squad = server.get(f'{SQUADS}/default')
    assert [m['name'] for m in squad['members']] == USUAL
    assert [m['specialization'] for m in squad['members']] == [None, 'frontend', 'backend', None, None]
    assert squad['status'] == 'active' and squad['config'] == {} and squad['user_id'] == '' and squad['org_id'] is None
    known = identities(server)
    for member in squad['members']:
        assert (member['llm_provider'], member['llm_model'], member['adapter']) == ('openai', 'gpt-4', 'coop')
        assert member['is_active'] is True and member['config'] == {} and member['archetype'] == member['role']
        for name in ('sandbox_id', 'current_task_id', 'git_context', 'system_prompt'):
            assert member[name] is None
        mine = known[member['identity_id']]
        assert (mine['name'], mine['agent_id'], mine['squad_id']) == (member['name'], member['id'], squad['id'])
    check_error(server, server.ask('DELETE', f'{SQUADS}/default'), 409)
    check_error(server, server.ask('PATCH', f'{SQUADS}/default', body={'name': 'other'}), 409)


def test_a_squad_of_ones_own(server):
    make_repo(server, 'shop')
    squad = server.post(SQUADS, {
        'name': 'Shop Team', 'description': 'Sells', 'org_id': 'org-1', 'repository': 'shop',
        'config': {'until': 'reviewed', 'branch': 'feature/{id}-{slug}', 'tries': 2},
        'members': [{'role': 'Backend Developer', 'llm_provider': 'anthropic', 'llm_model': 'claude'},
                    {'role': 'qa_tester', 'name': 'quinn', 'config': {'turns': 5}, 'is_active': False},
                    {'role': 'wizard', 'system_prompt': 'You are a wizard.', 'template': 'base', 'adapter': 'codex'}]})
    assert squad['repository'] == 'coop/shop' and squad['org_id'] == 'org-1'
    first, second, third = squad['members']
    assert (first['name'], first['archetype'], first['specialization']) == ('coder-1', 'coder', 'backend')
    assert (second['name'], second['archetype'], second['is_active']) == ('quinn', 'tester', False)
    assert (third['archetype'], third['adapter'], third['template']) == ('coder', 'codex', 'base')
    assert identities(server)[first['identity_id']]['name'] == 'shop-team-coder-1'
    task = server.post('/api/v1/tasks', {'request': 'Sell more', 'squad': 'Shop Team', 'policy': {'planner': 'person'}})
    assert task['repository'] == 'coop/shop' and task['branch'] == f'feature/{task["number"]}-sell-more'
    assert task['policy'] == {'until': 'reviewed', 'branch': 'feature/{id}-{slug}', 'tries': 2, 'planner': 'person'}
    check_error(server, server.ask('DELETE', f'{SQUADS}/Shop%20Team'), 409)


def test_members_come_and_go(server):
    squad = server.post(SQUADS, {'name': 'changing', 'members': []})
    members = f'{SQUADS}/changing/members'
    made = server.post(members, {'role': 'coder'})
    assert made['name'] == 'coder-1' and made['identity_id'] in identities(server)
    check_error(server, server.ask('POST', members, body={'role': 'coder', 'name': 'coder-1'}), 409)
    changed = patch(server, f'{members}/coder-1', {'role': 'security_reviewer', 'llm_model': 'm', 'name': 'rita'})
    assert (changed['archetype'], changed['specialization'], changed['name']) == ('reviewer', 'security', 'rita')
    assert changed['id'] == made['id'] and changed['llm_provider'] == 'openai'
    assert patch(server, f'{members}/{made["id"]}', {'specialization': None})['specialization'] is None
    check_error(server, server.ask('PATCH', f'{members}/rita', body={'role': None}), 400)
    delete(server, f'{members}/rita')
    check_error(server, server.ask('DELETE', f'{members}/rita'), 404)
    assert identities(server)[made['identity_id']]['revoked_at'] is not None
    assert server.get(f'{SQUADS}/{squad["id"]}')['members'] == []
    told = [e['data']['change'] for e in server.events(kind='squad.changed') if e['squad_id'] == squad['id']]
    assert told == ['created', 'member added', 'member changed', 'member changed', 'member removed']


def test_an_inactive_squad(server):
    server.post(SQUADS, {'name': 'asleep', 'status': 'inactive'})
    body = {'request': 'x', 'squad': 'asleep', 'policy': {'planner': 'person'}}
    check_error(server, server.ask('POST', '/api/v1/tasks', body=body), 409)
    patch(server, f'{SQUADS}/asleep', {'status': 'active'})
    server.post('/api/v1/tasks', body)


def test_a_removed_squad(server):
    squad = server.post(SQUADS, {'name': 'short'})
    assert [m['name'] for m in squad['members']] == USUAL
    delete(server, f'{SQUADS}/short')
    check_error(server, server.ask('GET', f'{SQUADS}/{squad["id"]}'), 404)
    assert 'short' not in [s['name'] for s in server.get(SQUADS)['squads']]
    revoked = identities(server)
    assert all(revoked[m['identity_id']]['revoked_at'] for m in squad['members'])
    again = server.post(SQUADS, {'name': 'short', 'members': [{'role': 'coder'}]})
    assert again['id'] != squad['id']


def test_owners(server):
    one, other = (server.make_key('box,read', name=n)['key'] for n in ('one', 'other'))
    squad = server.post(SQUADS, {'name': 'mine'}, key=one)
    task = server.post('/api/v1/tasks', {'request': 'x', 'squad': 'mine', 'policy': {'planner': 'person'}}, key=one)
    for path in (f'{SQUADS}/mine', f'{SQUADS}/{squad["id"]}', f'/api/v1/tasks/{task["id"]}', f'/api/v1/tasks/{task["number"]}'):
        assert server.ask('GET', path, key=one).status == 200
        check_error(server, server.ask('GET', path, key=other), 404)
    for method, path in (('PATCH', ''), ('DELETE', ''), ('POST', '/members'), ('PATCH', '/members/coder-1'), ('DELETE', '/members/coder-1')):
        check_error(server, server.ask(method, f'{SQUADS}/{squad["id"]}{path}', body={'role': 'x'} if 'members' in path else {}, key=other), 404)
        check_error(server, server.ask(method, f'{SQUADS}/default{path}', body={'role': 'x'} if 'members' in path else {}, key=other), 403)
    check_error(server, server.ask('POST', '/api/v1/tasks', body={'request': 'x', 'squad': squad['id']}, key=other), 404)
    assert [s['name'] for s in server.get(SQUADS, key=other)['squads']] == ['default']
    assert server.get('/api/v1/tasks', key=other)['tasks'] == []
    assert [t['id'] for t in server.get('/api/v1/tasks', key=one)['tasks']] == [task['id']]
    # The same word of two callers is two tasks, and two may have squads of one name.
    assert server.post(SQUADS, {'name': 'mine'}, key=other)['id'] != squad['id']
    made = [server.post('/api/v1/tasks', {'request': 'x', 'dedupe': 'd', 'policy': {'planner': 'person'}}, key=k)['id'] for k in (one, other)]
    assert made[0] != made[1]
    reader = server.make_key('read', name='reader')['key']
    for method, path in (('POST', '/api/v1/tasks'), ('POST', SQUADS), ('DELETE', f'{SQUADS}/default')):
        check_error(server, server.ask(method, path, body={'request': 'x'}, key=reader), 403)


@pytest.mark.parametrize('body', [
    {}, {'name': ''}, {'name': ' '}, {'name': 'a/b'}, {'name': 'x' * 61}, {'name': 'ok', 'status': 'removed'},
    {'name': '00000000-0000-4000-8000-000000000000'}, {'name': 'ok', 'config': {'what': 1}}, {'name': 'ok', 'more': 1},
    {'name': 'ok', 'config': {'planner': 'dice'}}, {'name': 'ok', 'members': [{}]}, {'name': 'ok', 'members': [7]},
    {'name': 'ok', 'members': [{'role': 'coder', 'id': 'x'}]}, {'name': 'ok', 'members': [{'role': 'coder', 'name': '../x'}]},
    {'name': 'ok', 'members': [{'role': 'coder', 'archetype': 'planner'}]}, {'name': 'ok', 'members': [{'role': ' '}]},
    {'name': 'ok', 'members': [{'role': 'coder', 'config': {'turns': 0}}]},
    {'name': 'ok', 'members': [{'role': 'coder', 'config': {'tools': [1]}}]},
    {'name': 'ok', 'members': [{'role': 'coder'}] * 51}, {'name': 'ok', 'config': {'base': '-x'}},
    {'name': 'ok', 'members': [{'role': 'coder', 'system_prompt': 'x' * 32769}]},
])
def test_what_is_refused(server, body):
    check_error(server, server.ask('POST', SQUADS, body=body), 400)
    assert 'ok' not in [s['name'] for s in server.get(SQUADS)['squads']]


def test_roles(server):
    roles = {r['name']: r for r in server.get('/api/v1/roles')['roles']}
    assert sorted(roles) == ['coder', 'planner', 'reviewer', 'tester']
    assert roles['coder']['aliases']['backend_developer'] == 'backend' and roles['tester']['aliases']['qa_tester'] == ''
    assert all(r['archetype'] == name and len(r['prompt']) > 200 for name, r in roles.items())
    assert 'write' not in roles['reviewer']['tools'] and roles['coder']['tools'] is None


def test_roles_of_a_folder(make_server):
    server = make_server(start=False)
    folder = server.home / 'roles'
    folder.mkdir(parents=True)
    server.home.chmod(0o700)
    (folder / 'poet.yaml').write_text('name: poet\narchetype: coder\naliases: {bard: songs}\nprompt: Rhyme.\nlimits: {turns: 9}\n')
    (folder / 'wrong.yaml').write_text('name: wrong\narchetype: king\n')
    server.start()
    roles = {r['name']: r for r in server.get('/api/v1/roles')['roles']}
    assert roles['poet']['prompt'] == 'Rhyme.' and 'wrong' not in roles
    squad = server.post(SQUADS, {'name': 'poets', 'members': [{'role': 'Bard'}]})
    assert (squad['members'][0]['archetype'], squad['members'][0]['specialization']) == ('coder', 'songs')
    assert any('archetype must be' in line for line in server.log_lines('a role is left out'))


def test_a_restart_changes_nothing(make_server):
    server = make_server(env={'COOP_TEAM_MODEL': 'scripted/small'})
    squad = server.get(f'{SQUADS}/default')
    assert {(m['llm_provider'], m['llm_model']) for m in squad['members']} == {('scripted', 'small')}
    server.stop()
    server.start()
    assert server.get(f'{SQUADS}/default') == squad
    assert len(identities(server)) == 5
