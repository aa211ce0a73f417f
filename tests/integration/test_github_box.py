# SPDX-License-Identifier: Apache-2.0
"""From a real box to GitHub: its branch, its pull request, Coop's checks and the merge; never the token."""
import pytest

import githubserver
import workserver
from fakehub import FakeHub
from githubpair import API, TOKEN, V3
from gitrepo import git
from harness import wait_until

PLAN = 'checks:\n  - name: words\n    run: grep -q good words\n'
COMMIT = 'git -c user.name=A -c user.email=a@example.org commit -q'
LONG_S = 120


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    with githubserver.serving(tmp_path_factory.mktemp('hub'), FakeHub, TOKEN) as hub, \
            workserver.serving(env={'COOP_GITHUB_WRITE_PAUSE': '0s'}) as server:
        hub.source.commit('coop.yaml', PLAN)
        git(hub.source.folder, 'push', '-q', str(hub.bare), 'main')
        server.post(f'{API}/login', {'base_url': hub.base, 'token': TOKEN}, status=200)
        server.post('/api/v1/repos', {'name': 'widget', 'source': hub.url('acme/widget.git'), 'mirror': True},
                    status=202)
        server.ready('widget')
        yield server, hub


def run(server, box, line, code=0, **more):
    done = server.run(box, line, **more)
    assert code is None or done['end']['exit_code'] == code, done
    return done['stdout']


def check_unseen(server, box):
    """In no file, environment or command line of the box, written out or as git would send it."""
    for secret in (TOKEN, githubserver.coded(TOKEN)):
        # The pattern is no match for itself.
        pattern = f'{secret[:-1]}[{secret[-1]}]'
        found = run(server, box, f"grep -rsalE --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev '{pattern}' / ; "
                                 f"grep -salE '{pattern}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline", code=None, user='root')
        assert found == '', found
    found = run(server, box, 'grep -rsal "the word to find" / --include=marker', code=None, user='root')
    assert 'marker' in found  # it would be found


def test_from_a_box(world):
    server, hub = world
    with server.box() as box:
        server.clone(box, 'widget', branch='task-1')
        run(server, box, 'echo "the word to find" > marker')
        run(server, box, 'cd widget && echo good > words && git add . && ' + COMMIT + ' -m "feat: say it" && git push -q')
        tip = run(server, box, 'cd widget && git rev-parse HEAD').strip()
        wait_until(lambda: git(hub.bare, 'rev-parse', '--verify', '-q', 'task-1', check=False).stdout.strip() == tip,
                   'the branch there')
        pull = server.post(f'{V3}/pulls', {'title': 'Say it', 'head': 'task-1', 'base': 'main', 'draft': True})
        there = wait_until(lambda: next(iter(hub.pulls.values()), None), 'the pull request there')
        assert (there['title'], there['draft'], there['head']['sha']) == ('Say it', True, tip)
        at = f'{V3}/pulls/{pull["number"]}'
        assert server.ask('PATCH', at, body={'draft': False}).status == 200
        wait_until(lambda: there['draft'] is False, 'that it is ready there')
        # What Coop saw itself, on the commit that is there.
        wait_until(lambda: [s for s in hub.statuses if s['state'] == 'success'], 'the status', LONG_S)
        assert {(s['sha'], s['context']) for s in hub.statuses} == {(tip, 'coop/words')}
        assert hub.statuses[-1]['state'] == 'success'
        wait_until(lambda: server.get(at)['mergeable_state'] == 'clean', 'that it may be merged', LONG_S)
        answer = server.ask('PUT', f'{at}/merge', body={'merge_method': 'squash', 'commit_title': 'feat: say it'})
        landed = wait_until(lambda: (p := server.get(at))['merged'] and p['merge_commit_sha'], 'the merge', LONG_S)
        assert answer.status in (200, 202), answer
        # The commit that was checked is what the base there has, and its end is told, for a squash nobody sees.
        wait_until(lambda: git(hub.bare, 'rev-parse', 'main') == landed, 'the merge there')
        wait_until(lambda: there['state'] == 'closed', 'its end there')
        check_unseen(server, box)
    assert [w['state'] for w in server.get(f'{API}/work')['work']] == ['done'] * len(
        server.get(f'{API}/work')['work'])


def test_base_that_moved(world):
    """Nobody's work there is written over: the row says so, and the queue goes on."""
    server, hub = world
    with server.box() as box:
        server.clone(box, 'widget', branch='task-2')
        run(server, box, 'cd widget && echo good > words && echo x > more && git add . && ' + COMMIT +
            ' -m "feat: say more" && git push -q')
        pull = server.post(f'{V3}/pulls', {'title': 'Say more', 'head': 'task-2', 'base': 'main'})
        at = f'{V3}/pulls/{pull["number"]}'
        wait_until(lambda: server.get(at)['mergeable_state'] == 'clean', 'that it may be merged', LONG_S)
        tree = git(hub.bare, 'rev-parse', 'main^{tree}')
        theirs = git(hub.bare, 'commit-tree', tree, '-p', 'main', '-m', 'theirs')
        git(hub.bare, 'update-ref', 'refs/heads/main', theirs)
        server.ask('PUT', f'{at}/merge', body={})
        failed = wait_until(lambda: next((w for w in server.get(f'{API}/work')['work'] if w['kind'] == 'merge' and
                                          w['state'] == 'failed'), None), 'the refusal', LONG_S)
        assert 'rejected' in failed['problem'] and git(hub.bare, 'rev-parse', 'main') == theirs
