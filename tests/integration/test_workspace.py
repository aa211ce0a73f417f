# SPDX-License-Identifier: Apache-2.0
"""Work trees in boxes: objects are mounted, the branch is the box's own, and all of it ends with the box."""
import contextlib
import json
import os
import sqlite3
import subprocess

import pytest

import workserver
from boxserver import API
from harness import PROGRAM, check_error, wait_until
from workserver import git

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'),
                                      reason='a release build has no failpoints')


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        made.source = workserver.make_source(made.folder / 'source')
        made.import_repo('one', made.source)
        yield made


def inside(server, box, line, code=0):
    done = server.run(box, line)
    assert done['end']['exit_code'] == code, done
    return done['stdout'].strip()


def test_clone(server):
    head = git(server.source, 'rev-parse', 'HEAD')
    with server.box() as box:
        made = server.clone(box, 'one', task={'id': '42'})
        assert made['branch'] == 'task-42' and made['commit'] == head and made['path'] == '/home/user/one'
        assert made['objects'] == 'mounted' and made['branch_created'] and made['without'] is None
        assert inside(server, box, 'cd one && git status --porcelain --branch') == '## task-42...origin/task-42'
        assert inside(server, box, 'cd one && git rev-parse HEAD v1 origin/main').split() == [head] * 3
        assert inside(server, box, 'cat one/sub/f2.txt') == 'file 2'
        inside(server, box, 'cd one && git fsck --connectivity-only')
        assert inside(server, box, 'cd one && git count-objects -v | grep ^count') == 'count: 0'
        assert git(server.bare('one'), 'rev-parse', 'task-42') == head
        check_error(server, server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one'}), 409)
        kinds = [e['kind'] for e in server.events(box=made_id(server, box))]
        assert 'branch.created' in kinds and 'git.cloned' in kinds


def made_id(server, box):
    return server.get(f'{API}/{box}')['e2b_id']


@pytest.mark.parametrize('body, status', [
    ({'repository': 'none'}, 404), ({}, 400), ({'repository': 'one', 'branch': '../x'}, 400),
    ({'repository': 'one', 'branch': '--mirror'}, 400), ({'repository': 'one', 'base': 'nowhere'}, 404),
    ({'repository': 'one', 'task': {'id': 'a b'}}, 400), ({'repository': 'one', 'identity': 'nobody'}, 404),
    ({'repository': 'one', 'path': '/etc'}, 409), ({'repository': 'one', 'path': '/proc/x'}, 400),
    ({'repository': 'one', 'more': 1}, 400),
])
def test_refused(server, body, status):
    with server.box() as box:
        check_error(server, server.ask('POST', f'{API}/{box}/git/clone', body=body), status)
        made = server.clone(box, 'one')
        assert made['branch'] == f'box-{made_id(server, box)}'


def test_failed_clone_leaves_no_folder(server):
    """Nor anything in one that was there, and was empty."""
    with server.box() as box:
        def listed():
            return server.run(box, 'ls -A one there 2>&1')['stdout']
        before = listed()
        for path in ({}, {'path': 'one'}):
            assert server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one', 'base': 'nowhere', **path}).status == 404
            assert listed() == before
        server.run(box, 'mkdir there')
        assert server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one', 'path': 'there', 'base': 'nowhere'}).status == 404
        assert server.run(box, 'ls -A there; echo still')['stdout'] == 'still\n'
        # What was in the way is nobody's to remove.
        server.run(box, 'echo mine >there/mine')
        assert server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one', 'path': 'there'}).status == 409
        assert server.run(box, 'cat there/mine')['stdout'] == 'mine\n'
        # The box has no room for the files: what was written by then goes, too.
        server.run(box, 'head -c 70000000 /dev/zero >fill')
        failed = server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one', 'path': 'late'})
        server.run(box, 'rm -f fill')
        assert failed.status >= 400 and server.run(box, 'ls -d late 2>&1; true')['stdout'] != 'late\n', failed
        server.clone(box, 'one')


def ready_generations(server, repository):
    with contextlib.closing(sqlite3.connect(f'file:{server.home}/coop.db?mode=ro', uri=True, timeout=30)) as db:
        return {one for one, in db.execute("SELECT id FROM generations WHERE repository_id = ? AND state = 'ready'",
                                           [repository])}


def test_a_generation_stays_while_a_box_has_it(server):
    # Its packs are taken away, so no other test has it.
    repository = server.import_repo('plundered', server.source)['id']
    with server.box() as box:
        first = server.clone(box, 'plundered')['generation']
        with server.box() as other:
            server.clone(other, 'plundered', branch='moves')
        wait_until(lambda: ready_generations(server, repository) - {first}, 'a newer generation')
        assert first in server.generations()
        for pack in (server.bare('plundered') / 'objects' / 'pack').iterdir():
            pack.unlink()
        inside(server, box, 'cd plundered && git fsck --connectivity-only && git log -1')
    wait_until(lambda: first not in server.generations(), 'the end of a generation nobody has')


def test_after_a_restart(server):
    with server.box() as box:
        made = server.clone(box, 'one', branch='stays')
        server.kill()
        server.restart()
        check_error(server, server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one'}), 409)
        assert made['generation'] in server.generations()
        inside(server, box, 'cd one && git log -1')


def slow_git(root):
    """One that is at work for as long as there is /tmp/slow."""
    (root / 'bin/git').rename(root / 'bin/real')
    (root / 'bin/git').write_text('#!/bin/sh\n[ ! -e /tmp/slow ] || { : >/tmp/began; exec sleep 600; }\nexec /bin/real "$@"\n')
    (root / 'bin/git').chmod(0o755)


def test_the_server_stops_while_git_works():
    """Nothing stays in memory of who waits for a command in a box: the sanitizer would say so."""
    with workserver.serving(furnish=slow_git) as server:
        server.import_repo('one', workserver.make_source(server.folder / 'source'))
        with server.box() as box:
            server.clone(box, 'one', branch='slow')
            inside(server, box, 'echo x >one/new; : >/tmp/slow')
            with server.connect() as sock:
                sock.sendall(server.request('POST', f'{API}/{box}/git/commit', body={'message': 'feat: wait'}))
                wait_until(lambda: inside(server, box, 'ls /tmp/began 2>/dev/null || :'), 'git at work')
                server.stop()
            server.restart()
            assert inside(server, box, 'cd one && /bin/real log -1 --format=%s slow') != 'feat: wait'


@needs_failpoints
@pytest.mark.parametrize('point', ['generation-row', 'generation-linked', 'generation-made', 'clone-prepared',
                                   'clone-written', 'clone-checked-out'])
def test_killed_on_the_way(point):
    with workserver.serving() as server:
        server.import_repo('one', workserver.make_source(server.folder / 'source'))
        with server.box() as box:
            server.kill()
            server.env['COOP_FAIL_AT'] = point
            server.restart()
            with pytest.raises((ConnectionError, AssertionError, OSError)):
                server.clone(box, 'one', branch='b')
            server.wait_killed()
            del server.env['COOP_FAIL_AT']
            server.restart()
            assert not [name for name in server.generations() if '.' in name]
            cut_short = point.startswith('clone-') and point != 'clone-prepared'
            for what, body in ('commit', {'message': 'feat: x'}), ('push', {}), ('pr', {'title': 'x'}):
                check_error(server, server.ask('POST', f'{API}/{box}/git/{what}', body=body), 409 if cut_short else 404)
            again = server.clone(box, 'one', branch='c')
            assert again['path'] == '/home/user/one' and again['objects'] == 'mounted'
            assert inside(server, box, 'cd one && git status --porcelain --branch') == '## c...origin/c'
            inside(server, box, 'cd one && git fsck --connectivity-only')
            check_error(server, server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one'}), 409)
        with server.box() as box:
            made = server.clone(box, 'one', branch='d')
            inside(server, box, 'cd one && git fsck --connectivity-only')
        wait_until(lambda: server.generations() == [server.generations()[-1]] or
                   made['generation'] in server.generations(), 'one generation')


# ---- who commits ----

def test_identities(server):
    made = server.post('/api/v1/identities', {'name': 'ann', 'email': 'ann@example.org'})
    assert made['public_key'].startswith('ssh-ed25519 ') and 'secret' not in str(made)
    assert made['rights'] == [{'repository': '*', 'access': 'write'}]
    check_error(server, server.ask('POST', '/api/v1/identities', body={'name': 'ann'}), 409)
    check_error(server, server.ask('POST', '/api/v1/identities', body={'name': 'x y'}), 400)
    check_error(server, server.ask('POST', '/api/v1/identities', body={'name': 'x', 'email': 'a b@c'}), 400)
    reader = server.make_key('read,box', name='reader')['key']
    check_error(server, server.ask('POST', '/api/v1/identities', body={'name': 'y'}, key=reader), 403)
    assert made in server.get('/api/v1/identities', key=reader)['identities']
    server.kill()
    server.restart()
    assert server.get('/api/v1/identities/ann') == made
    only = server.post('/api/v1/identities', {'name': 'only', 'rights': [{'repository': 'one', 'access': 'read'}]})
    with server.box() as box:
        answer = server.ask('POST', f'{API}/{box}/git/clone', body={'repository': 'one', 'identity': only['id']})
        check_error(server, answer, 403)


def verify(server, oid, folder):
    signers = folder / 'signers'
    signers.write_text(server.get('/api/v1/allowed-signers')['allowed_signers'])
    return subprocess.run(['git', '-C', server.bare('one'), '-c', f'gpg.ssh.allowedSignersFile={signers}',
                           'verify-commit', oid], capture_output=True, text=True)


def test_signed_commit_and_push(server, tmp_path):
    who = server.post('/api/v1/identities', {'name': 'signer'})
    with server.box() as box:
        made = server.clone(box, 'one', task={'id': '7', 'role': 'coder'}, identity='signer')
        assert made['branch'] == 'task-7--coder-1' and made['identity'] == 'signer'
        inside(server, box, 'cd one && echo more >> sub/f1.txt')
        check_error(server, server.ask('POST', f'{API}/{box}/git/commit', body={'message': 'what I did'}), 400)
        done = server.post(f'{API}/{box}/git/commit', {'message': 'feat: say more'}, status=200)
        check_error(server, server.ask('POST', f'{API}/{box}/git/commit', body={'message': 'feat: none'}), 409)
        pushed = server.post(f'{API}/{box}/git/push', {}, status=200)
        assert pushed['commit'] == done['commit'] == git(server.bare('one'), 'rev-parse', made['branch'])
        good = verify(server, done['commit'], tmp_path)
        assert good.returncode == 0 and who['email'] in good.stderr, good
        # Under another's name nothing is signed, whatever the box says.
        assert 'another e-mail' in server.run(
            box, 'cd one && echo x >> sub/f1.txt && git -c user.email=ann@example.org commit -qam "feat: as ann"')['stderr']
        # And to another's branch nothing is pushed.
        inside(server, box, 'cd one && git push -q origin HEAD:refs/heads/main', code=1)
        server.ask('DELETE', f"/api/v1/identities/{who['id']}")
        assert 'revoked' in server.run(box, 'cd one && git commit -qam "feat: late"')['stderr']
        assert verify(server, done['commit'], tmp_path).returncode == 0


def test_branch(server):
    server.post('/api/v1/identities', {'name': 'brancher'})
    with server.box() as box:
        server.clone(box, 'one', branch='first', identity='brancher')
        done = server.post(f'{API}/{box}/git/branch', {'branch': 'second'}, status=200)
        assert done['branch'] == 'second' and inside(server, box, 'cd one && git branch --show-current') == 'second'
        inside(server, box, 'cd one && echo y >> sub/f1.txt && git commit -qam "feat: y" && git push -q')
        inside(server, box, 'cd one && git push -q origin HEAD:refs/heads/first', code=1)
        assert git(server.bare('one'), 'rev-parse', 'second') == inside(server, box, 'cd one && git rev-parse HEAD')


# ---- what only an admin moves ----

CHANGE = 'cd {0} && echo {1} >> sub/f0.txt && git -c user.name=A -c user.email=a@example.org commit -qam "feat: {1}" && '


@pytest.fixture
def guarded(server):
    """A repository of its own, and how to say what of it is protected."""
    name = f'guarded-{len(server.get("/api/v1/repos")["repositories"])}'
    server.import_repo(name, server.source)

    def protect(*branches):
        with contextlib.closing(sqlite3.connect(server.home / 'coop.db', timeout=10)) as db, db:
            db.execute('UPDATE repositories SET settings = ? WHERE name = ?',
                       (json.dumps({'protected_branches': branches}), name))
    return name, protect


def test_protected_is_not_handed_out(server, guarded):
    name, protect = guarded
    key = server.make_key('read,box', name=name)['key']
    with server.box(key=key) as box:
        def ask(what, branch):
            body = {'repository': name, 'branch': branch, 'force': True}
            return server.ask('POST', f'{API}/{box}/git/{what}', body=body, key=key)

        check_error(server, ask('clone', 'main'), 403)
        assert ask('clone', 'own').status == 200
        check_error(server, ask('branch', 'main'), 403)
        protect('release')
        check_error(server, ask('branch', 'release'), 403)
        assert 'release' not in git(server.bare(name), 'branch', '--list', '--format=%(refname:short)').split()
        assert ask('branch', 'main').status == 200


def test_protected_since(server, guarded):
    name, protect = guarded
    with server.box() as box:
        server.clone(box, name, branch='soon', force=True)
        inside(server, box, CHANGE.format(name, 'a') + 'git push -q')
        protect('soon')
        said = server.run(box, CHANGE.format(name, 'b') + 'git push -q')
        assert said['end']['exit_code'] == 1 and 'is protected' in said['stderr'], said


def test_protected_from_an_admin(server, guarded):
    name, _ = guarded
    with server.box() as box:
        server.clone(box, name, branch='main', force=True)
        server.kill()
        server.restart()
        inside(server, box, CHANGE.format(name, 'a') + 'git push -q')
        inside(server, box, f'cd {name} && git reset -q --hard HEAD~1 && git push -q -f', code=1)
        server.post(f'{API}/{box}/git/branch', {'branch': 'other'}, status=200)
        inside(server, box, f'cd {name} && git push -q origin HEAD:main', code=1)


def test_pull_request(server):
    server.post('/api/v1/identities', {'name': 'puller'})
    with server.box() as box:
        check_error(server, server.ask('POST', f'{API}/{box}/git/pr', body={'title': 'x'}), 404)
        server.clone(box, 'one', branch='wanted', identity='puller')
        inside(server, box, 'cd one && echo z >> sub/f0.txt && git commit -qam "feat: z" && git push -q')
        made = server.post(f'{API}/{box}/git/pr', {'title': 'feat: z', 'draft': True}, status=200)
        assert made['number'] >= 1 and made['title'].endswith('feat: z')
        check_error(server, server.ask('POST', f'{API}/{box}/git/pr', body={'title': 'x'}), 409)


def test_several_work_trees(server, guarded):
    name, _ = guarded
    with server.box() as box:
        server.clone(box, 'one', branch='many')
        server.clone(box, name, branch='many')
        for what, body in [('commit', {'message': 'feat: x'}), ('push', {}), ('pr', {'title': 'x'}),
                           ('branch', {'branch': 'other'})]:
            answer = server.ask('POST', f'{API}/{box}/git/{what}', body=body)
            check_error(server, answer, 400)
            assert f'coop/one, coop/{name}' in answer.json['message'], answer.json
        server.post(f'{API}/{box}/git/branch', {'branch': 'other', 'repository': name}, status=200)


def test_message_is_written_for_a_commit(server):
    server.post('/api/v1/identities', {'name': 'writer'})
    with server.box(task_id='99') as box:
        server.clone(box, 'one', branch='written', identity='writer')
        check_error(server, server.ask('POST', f'{API}/{box}/git/commit', body={}), 409)
        inside(server, box, 'cd one && mkdir docs && echo x > docs/a.md && git mv sub/f0.txt sub/g0.txt && rm sub/f1.txt')
        done = server.post(f'{API}/{box}/git/commit', {}, status=200)
        said = git(server.bare('one'), 'rev-parse', 'HEAD') and inside(server, box, 'cd one && git log -1 --format=%B')
        assert done['generated'] and done['message'].strip() == said
        subject, body = said.split('\n', 1)
        assert subject.startswith('docs') or ': ' in subject
        for line in ('- added docs/a.md (+1 -0)', '- renamed sub/g0.txt', '- removed sub/f1.txt (+0 -1)', 'Task: 99', 'Agent: writer'):
            assert line in body, said
        server.post(f'{API}/{box}/git/push', {}, status=200)
        inside(server, box, 'cd one && echo y > docs/b.md')
        done = server.post(f'{API}/{box}/git/commit', {'message': 'docs: say y'}, status=200)
        assert not done['generated'] and 'message' not in done


@pytest.mark.parametrize('pattern, task, branch', [
    (None, {'id': '5'}, 'task-5'),
    (None, {'id': '5', 'role': 'coder', 'n': 2}, 'task-5--coder-2'),
    ('feature/{id}-{slug}', {'id': '5', 'title': 'Fix the Login!'}, 'feature/5-fix-the-login'),
    ('feature/{id}-{slug}', {'id': '5', 'title': 'Fix it', 'role': 'tester'}, 'feature/5-fix-it--tester-1'),
    ('{role}/{id}', {'id': '5', 'role': 'coder'}, 'coder/5'),
    ('feature/{id}-{slug}', {'id': '5', 'pattern': 'own-{id}'}, 'own-5'),
    ('feature/{id}-{slug}', {'id': '5'}, None),
])
def test_branches_are_named_as_the_repository_says(server, guarded, pattern, task, branch):
    name, _ = guarded
    path = f'/api/v1/repos/coop/{name}/settings'
    if pattern is not None:
        assert server.ask('PATCH', path, body={'branch_pattern': pattern}).json['branch_pattern'] == pattern
    with server.box() as box:
        if branch is None:
            check_error(server, server.ask('POST', f'{API}/{box}/git/clone', body={'repository': name, 'task': task}), 400)
            return
        assert server.clone(box, name, branch='start')['branch'] == 'start'
        assert server.post(f'{API}/{box}/git/branch', {'task': task}, status=200)['branch'] == branch
        check_error(server, server.ask('POST', f'{API}/{box}/git/branch', body={'task': task, 'branch': 'x'}), 400)
    with server.box() as box:
        assert server.clone(box, name, task=task)['branch'] == branch


def test_body_of_a_pull_request(server):
    server.post('/api/v1/identities', {'name': 'bodied'})
    with server.box(task_id='T-1') as box:
        server.clone(box, 'one', branch='has/body', identity='bodied')
        inside(server, box, 'cd one && echo b >> sub/f2.txt && git commit -qam "feat: b" && git push -q')
        check_error(server, server.ask('POST', f'{API}/{box}/git/pr', body={}), 400)
        for bad in {'task_url': 'javascript:x'}, {'plan': [1]}:
            check_error(server, server.ask('POST', f'{API}/{box}/git/pr', body={'title': 'x', **bad}), 400)
        made = server.post(f'{API}/{box}/git/pr', {'summary': 'Say [b](x)\nmore', 'plan': ['first', 'then'], 'role': 'coder',
                                                  'task_url': 'https://example.org/t/1', 'draft': True}, status=200)
        assert made['title'] == '[WIP] Say [b](x)' and made['task_id'] == 'T-1'
        for text in ('[T\\-1](https://example.org/t/1)', '1. first\n2. then', 'By bodied, coder', '> Say \\[b\\]\\(x\\)',
                     f'/api/v3/repos/coop/one/commits/has%2Fbody/check-runs)'):
            assert text in made['body'], made['body']


def test_progress_comment(server):
    with server.box() as box:
        server.clone(box, 'one', branch='progressing')
        inside(server, box, 'cd one && echo p >> sub/f2.txt && git -c user.name=A -c user.email=a@example.org '
                            'commit -qam "feat: p" && git push -q')
        number = server.post(f'{API}/{box}/git/pr', {'title': 'feat: p', 'body': ''}, status=200)['number']
    path = f'/api/v1/repos/coop/one/issues/{number}/comments/progress'

    def put(text, key=None):
        return server.ask('PUT', path, body={'body': text}, key=key or '')

    first, again = put('1 of 3').json, put('2 of 3').json
    assert first['id'] == again['id'] and again['body'] == '2 of 3'
    check_error(server, put('mine', key=server.make_key('read,box', name='intruder')['key']), 403)
    check_error(server, put(''), 400)
    check_error(server, server.ask('PUT', path.replace(f'/{number}/', '/999/'), body={'body': 'x'}), 404)
    check_error(server, server.ask('PUT', path.replace(f'/{number}/', '/0x1/'), body={'body': 'x'}), 404)


def test_removing_asks_about_work_trees(server, guarded):
    name, _ = guarded
    path = f'/api/v1/repos/coop/{name}'
    with server.box() as box:
        server.clone(box, name, branch='used')
        answer = server.ask('DELETE', path)
        check_error(server, answer, 409)
        assert made_id(server, box) in answer.json['message']
        check_error(server, server.ask('DELETE', path + '?force=2'), 400)
        assert server.ask('DELETE', path.replace('/api/v1', '/api/v3')).status == 409
        assert server.ask('DELETE', path + '?force=1').status == 204
        check_error(server, server.ask('POST', f'{API}/{box}/git/push', body={}), 404)


def coop(server, *words, code=0):
    run = subprocess.run([PROGRAM, *words], env=server.environment(), capture_output=True, text=True)
    assert run.returncode == code, run
    return run.stdout + run.stderr


def test_cli(server, guarded):
    name, _ = guarded
    server.post('/api/v1/identities', {'name': f'by-{name}'})
    assert 'feature/{id}' in coop(server, 'repo', 'set', name, 'branch_pattern=feature/{id}', 'required_approvals=1')
    assert json.loads(coop(server, 'repo', 'set', name, '-o', 'json'))['required_approvals'] == 1
    assert 'NAME=VALUE' in coop(server, 'repo', 'set', name, 'up_to_date', code=2)
    with server.box() as box:
        said = coop(server, 'sandbox', 'git', 'clone', box, name, '--task', '3', '--role', 'coder', '--n', '2', '--identity', f'by-{name}')
        assert 'feature/3--coder-2' in said and 'mounted' in said
        assert 'is no value' in coop(server, 'sandbox', 'git', 'branch', box, '--task', '3', '--n', 'two', code=2)
        assert 'other' in coop(server, 'sandbox', 'git', 'branch', box, name, '--branch', 'other')
        inside(server, box, f'cd {name} && echo c >> sub/f0.txt && echo d >> sub/f1.txt')
        assert 'f0.txt' in coop(server, 'sandbox', 'git', 'commit', box, '--path', 'sub/f0.txt')
        done = json.loads(coop(server, 'sandbox', 'git', 'commit', box, '-m', 'feat: d', '-o', 'json'))
        assert json.loads(coop(server, 'sandbox', 'git', 'push', box, '-o', 'json'))['commit'] == done['commit']
        said = coop(server, 'sandbox', 'git', 'pr', box, '--summary', 'Do d', '--step', 'one', '--step', 'two')
        assert 'Do d' in said and 'other' in said and 'main' in said, said
        assert 'force' in coop(server, 'repo', 'rm', name, code=6)
        coop(server, 'repo', 'rm', name, '--force')
