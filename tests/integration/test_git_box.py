# SPDX-License-Identifier: Apache-2.0
"""Git from inside boxes, through the door: the repository and the one branch follow from who asks."""
import concurrent.futures
import os
import pathlib

import pytest

import workserver
from gitserver import VERSIONS
from harness import wait_until
from workserver import git

DOOR = 'http://127.0.0.1:3128'
COMMIT = 'git -c user.name=A -c user.email=a@example.org commit -q'
MAKE = 'cd one && echo {0} > {0}.txt && git add . && ' + COMMIT + ' -m "feat: add {0}" && '
needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')


def prepare(made):
    folder = pathlib.Path(made.home).parent
    made.source = workserver.make_source(folder / 'source')
    made.import_repo('one', made.source)
    made.secret = workserver.make_source(folder / 'secret', files=1)
    (made.secret / 'hidden').write_text('not for others\n')
    git(made.secret, 'add', '.')
    git(made.secret, 'commit', '-q', '-m', 'feat: hide')
    made.import_repo('secret', made.secret)
    return made


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        yield prepare(made)


@pytest.fixture
def box(server, request):
    """Its branch has the name of the test."""
    with server.box() as made:
        server.branch = 'b-' + ''.join(c if c.isalnum() else '-' for c in request.node.name)[:60]
        server.clone(made, 'one', branch=server.branch)
        yield made


def run(server, box, line, code=0):
    done = server.run(box, line)
    text = done['stdout'] + done.get('stderr', '')
    assert code is None or done['end']['exit_code'] == code, done
    return text


def refs(server, name='one'):
    lines = git(server.bare(name), 'for-each-ref', '--format=%(refname) %(objectname)').splitlines()
    return dict(line.split() for line in lines)


@pytest.mark.parametrize('version', VERSIONS)
def test_push_and_fetch(server, box, version):
    run(server, box, MAKE.format('x') + f'git -c protocol.version={version} push -q')
    tip = run(server, box, 'cd one && git rev-parse HEAD').strip()
    assert refs(server)[f'refs/heads/{server.branch}'] == tip
    event = [e for e in server.events(kind='commit.pushed') if e['data']['name'] == server.branch][-1]
    assert event['box_id'] == box.removeprefix('sb-') and event['data']['after'] == tip
    run(server, box, f'cd one && git -c protocol.version={version} fetch -q origin main')


REFUSED = ['HEAD:refs/heads/main', 'HEAD:refs/heads/other', 'HEAD:refs/tags/v9', 'HEAD:refs/notes/commits',
           'HEAD:refs/replace/1111111111111111111111111111111111111111', 'HEAD:refs/for/main', 'HEAD:refs/pull/1/head',
           'HEAD:refs/heads/{own}/x', 'HEAD:refs/heads/{own}x', 'HEAD:refs/heads/{OWN}', ':refs/heads/{own}',
           ':refs/heads/main', '+HEAD~1:refs/heads/main', 'HEAD:refs/heads/{own} HEAD:refs/heads/other',
           'HEAD:refs/heads/{own} :refs/heads/main', 'HEAD:refs/heads/--mirror', '--mirror', '--all', '--tags HEAD']


@pytest.mark.parametrize('what', REFUSED)
def test_nothing_but_its_branch(server, box, what):
    before = refs(server)
    refspecs = what.format(own=server.branch, OWN=server.branch.upper())
    run(server, box, MAKE.format('y') + 'git branch more && git tag new', code=0)
    text = run(server, box, f'cd one && git push origin {refspecs} 2>&1', code=None)
    assert refs(server) == before, text


def test_force(server, box):
    run(server, box, MAKE.format('a') + 'git push -q')
    before = refs(server)[f'refs/heads/{server.branch}']
    text = run(server, box, 'cd one && git -c user.name=A -c user.email=a@example.org commit -q --amend -m "feat: other" && git push -f 2>&1; git rev-parse HEAD', code=0)
    assert before in text and text.split()[-1] in text.rsplit(None, 1)[0] and 'rejected' in text
    assert refs(server)[f'refs/heads/{server.branch}'] == before


def test_force_where_it_may(server):
    with server.box() as box:
        server.clone(box, 'one', branch='mine-to-force', force=True)
        run(server, box, MAKE.format('a') + 'git push -q && git -c user.name=A -c user.email=a@example.org commit -q --amend -m "feat: other" && git push -q -f')
        assert refs(server)['refs/heads/mine-to-force'] == run(server, box, 'cd one && git rev-parse HEAD').strip()
        assert run(server, box, 'cd one && git push origin :mine-to-force 2>&1', code=1)


def test_messages(server, box):
    text = run(server, box, 'cd one && echo z > z && git add . && ' + COMMIT + ' --no-verify -m "Did things." && git push 2>&1',
               code=1)
    assert 'type(scope): subject' in text or 'feat' in text
    assert 'amend' in text


def test_the_path_is_decoration(server, box):
    own = run(server, box, f'git ls-remote {DOOR}/git/coop/one.git')
    secret = git(server.secret, 'rev-parse', 'HEAD')
    for path in ('coop/secret.git', 'coop/secret', 'nobody/nothing.git', 'x/y'):
        text = run(server, box, f'git ls-remote {DOOR}/git/{path}')
        assert text == own and secret not in text
    assert 'not our ref' in run(server, box, f'cd one && git fetch origin {secret} 2>&1', code=128)
    before = refs(server, 'secret')
    run(server, box, MAKE.format('q') + f'git push {DOOR}/git/coop/secret.git HEAD:refs/heads/main 2>&1', code=1)
    assert refs(server, 'secret') == before


def test_the_path_tells_two_apart(server):
    with server.box() as box:
        server.clone(box, 'one', branch='of-two')
        server.clone(box, 'secret', branch='of-two')
        assert run(server, box, f'git ls-remote {DOOR}/git/coop/one.git') != \
            run(server, box, f'git ls-remote {DOOR}/git/coop/secret.git')
        before = refs(server), refs(server, 'secret')
        for path in ('coop/renamed.git', 'x/y'):
            text = run(server, box, MAKE.format(f'r{path[0]}').replace('one', 'secret', 1) +
                       f'git push -f {DOOR}/git/{path} HEAD:refs/heads/of-two 2>&1', code=128)
            assert 'not found' in text
        assert (refs(server), refs(server, 'secret')) == before


def ask(server, box, path, method='GET', headers=''):
    """Through the door, byte by byte as written."""
    line = (f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{method} %s HTTP/1.1\\r\\nHost: 127.0.0.1:3128\\r\\n"
            f"Connection: close\\r\\n{headers}\\r\\n' '{path}' >&3; cat <&3")
    return server.run(box, argv=['/bin/bash', '-c', line])['stdout']


PATHS = ['/git/../api/v1/keys', '/git/%2e%2e/api/v1/keys', '/git/coop/one.git/HEAD', '/git/coop/one.git/config', '/git/',
         '/git/coop/one.git/info/refs', '/api/v1/keys', '/api/v1/stats', '/health', '/git/coop/one.git/objects/info/packs',
         '/git//api/v1/keys', '/git/x/y/info/refs?service=git-upload-pack&service=git-receive-pack']


@pytest.mark.parametrize('path', PATHS)
def test_nothing_but_git(server, box, path):
    status = int(ask(server, box, path).split()[1])
    assert status in (400, 403, 404), status


def test_keys_count_for_nothing(server, box):
    """A key that got in is not one here: whoever has it is still that box."""
    headers = f'X-API-Key: {server.key}\\r\\nAuthorization: Bearer {server.key}\\r\\n'
    for path in ('/api/v1/keys', '/git/../api/v1/keys'):
        assert int(ask(server, box, path, headers=headers).split()[1]) in (400, 404)
    before = refs(server)
    run(server, box, MAKE.format('k') + f'git -c http.extraHeader="X-API-Key: {server.key}" push origin HEAD:refs/heads/main 2>&1',
        code=1)
    assert refs(server) == before


def test_box_without_a_repository(server):
    with server.box() as box:
        assert run(server, box, f'git ls-remote {DOOR}/git/coop/one.git 2>&1', code=128)


def test_alias(server, box):
    run(server, box, MAKE.format('s') + 'true')
    bare, own = server.bare('one'), f'refs/heads/{server.branch}'
    main = refs(server)['refs/heads/main']
    git(bare, 'update-ref', '-d', own)
    git(bare, 'symbolic-ref', own, 'refs/heads/main')
    run(server, box, 'cd one && git push 2>&1', code=1)
    assert refs(server)['refs/heads/main'] == main
    git(bare, 'symbolic-ref', '-d', own)


def test_boxes_side_by_side(server):
    def work(i):
        with server.box() as box:
            server.clone(box, 'one', branch=f'side-{i}')
            for n in range(2):
                run(server, box, MAKE.format(f's{n}') + 'git push -q')
            return run(server, box, 'cd one && git rev-parse HEAD').strip()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        tips = list(pool.map(work, range(4)))
    assert [refs(server)[f'refs/heads/side-{i}'] for i in range(4)] == tips


@needs_failpoints
def test_killed_in_a_push():
    with workserver.serving() as server:
        prepare(server)
        with server.box() as box:
            server.clone(box, 'one', branch='killed')
            server.stop()
            server.env['COOP_FAIL_AT'] = 'push-moved:1'
            server.restart()
            line = MAKE.format('k') + 'git push 2>&1'
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: server.run(box, line))
                server.wait_killed()
            del server.env['COOP_FAIL_AT']
            server.restart()
            tip = run(server, box, 'cd one && git rev-parse HEAD').strip()
            wait_until(lambda: [e for e in server.events(kind='commit.pushed') if e['data']['after'] == tip],
                       'the push is told of')
            assert refs(server)['refs/heads/killed'] == tip


def test_a_box_has_as_many_requests_for_git_as_for_all_else(server, box):
    scope = {'scope': 'box', 'scope_id': box}
    run(server, box, 'cd one && git ls-remote')
    wait_until(lambda: server.get(f'/api/v1/door/limits?box={box}')['bytes_today'] > 0, 'what it used')
    assert server.ask('PATCH', '/api/v1/door/limits', body={**scope, 'requests_per_min': 1}).status == 200
    text = run(server, box, 'cd one && git ls-remote && git ls-remote', code=None)
    assert '429' in text, text
