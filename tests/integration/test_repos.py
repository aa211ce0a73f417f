# SPDX-License-Identifier: Apache-2.0
"""Repositories: made, imported, mirrored and removed, whatever happens in between."""
import json
import os
import pathlib
import subprocess
import threading

import pytest

from eventlog import open_log
from gitrepo import GitServer, Source, git
from harness import IS_ROOT, PROGRAM, wait_until

REPOS = '/api/v1/repos'


def bare(server, repo):
    return server.home / 'repos' / repo['id']


def oid(server, repo, ref='refs/heads/main'):
    done = git(bare(server, repo), 'rev-parse', '--verify', '-q', ref, check=False)
    return done.stdout.strip()


def ended(server, name, owner='coop'):
    """The repository, once nothing is under way in it."""
    def look():
        repo = server.get(f'{REPOS}/{owner}/{name}')
        return repo if repo['state'] != 'importing' and repo['progress'] is None else None
    return wait_until(look, f'{name} is imported')


def add(server, source, name, **more):
    server.post(REPOS, {'name': name, 'source': str(source), **more}, status=202)
    return ended(server, name)


def fetch(server, name):
    server.post(f'{REPOS}/coop/{name}/fetch', b'', status=202)
    return ended(server, name)


def kinds(server, repo):
    return [e['kind'] for e in server.events() if e['data'].get('repository_id') == repo['id']
            and e['kind'] != 'git.progressed']


def check_sound(server, repo):
    git(bare(server, repo), 'fsck', '--strict')
    left = [p for p in bare(server, repo).rglob('*') if p.suffix == '.lock' or p.name.startswith('tmp_')]
    assert left == []


def folders(server):
    return sorted(p.name for p in (server.home / 'repos').iterdir())


# ---- making ----

def test_create(server):
    repo = server.post(REPOS, {'name': 'made', 'description': 'ä thing'})
    assert repo['state'] == 'ready' and repo['owner'] == 'coop' and repo['default_branch'] == 'main'
    assert git(bare(server, repo), 'symbolic-ref', 'HEAD') == 'refs/heads/main'
    assert git(bare(server, repo), 'config', 'gc.pruneExpire') == 'never'
    assert not (bare(server, repo) / 'hooks').exists()
    assert oid(server, repo) == ''
    assert server.get(f'{REPOS}/COOP/Made')['id'] == repo['id']
    assert kinds(server, repo) == ['repo.created']
    assert repo['id'] in [r['id'] for r in server.get(REPOS)['repositories']]
    # Nobody but the server's user has anything to look for in there.
    assert bare(server, repo).stat().st_mode & 0o77 == 0


def test_create_with_commit(server):
    repo = server.post(REPOS, {'owner': 'team', 'name': 'begun', 'default_branch': 'trunk', 'first_commit': True})
    tip = oid(server, repo, 'refs/heads/trunk')
    assert git(bare(server, repo), 'rev-list', '--count', tip) == '1'
    page = server.get(f'{REPOS}/team/begun/branches')
    assert page == {'branches': [{'name': 'trunk', 'commit': tip}], 'next': None}


@pytest.mark.parametrize('body, status', [
    ({}, 400), ({'name': ''}, 400), ({'name': '.x'}, 400), ({'name': '-x'}, 400), ({'name': 'a/b'}, 400),
    ({'name': 'x.git'}, 400), ({'name': 'x.LOCK'}, 400), ({'name': 'a..b'}, 400), ({'name': 'ä'}, 400),
    ({'name': 'x' * 101}, 400), ({'name': 'x', 'owner': '..'}, 400), ({'name': 'x', 'default_branch': '-f'}, 400),
    ({'name': 'x', 'default_branch': 'a..b'}, 400), ({'name': 'x', 'description': 'x' * 1025}, 400),
    ({'name': 'x', 'mirror': True}, 400), ({'name': 'x', 'source': 'relative/path'}, 400),
    ({'name': 'x', 'source': '/nowhere/at/all'}, 404), ({'name': 'x', 'source': '/tmp/../etc'}, 400),
    ({'name': 'x', 'source': 'ssh://host/x'}, 400), ({'name': 'x', 'source': 'ext::sh -c true'}, 400),
    ({'name': 'x', 'source': 'file:///etc'}, 400), ({'name': 'x', 'source': 'https://h/x?y'}, 400),
    ({'name': 'x', 'source': 'http://192.0.2.1/x'}, 400), ({'name': 'x', 'source': 'https://-o/x'}, 400),
    ({'name': 'x', 'source': '/etc', 'mirror': True}, 400), ({'name': 'x', 'source': 'https://h/\nx'}, 400),
    ({'name': 'x', 'unknown': 1}, 400),
])
def test_refused(server, body, status):
    before = folders(server)
    answer = server.ask('POST', REPOS, body=body)
    assert answer.status == status, answer
    assert folders(server) == before
    assert server.ask('GET', f'{REPOS}/coop/x').status == 404


def test_names_alike(server):
    server.post(REPOS, {'name': 'Alike'})
    for name in ('alike', 'ALIKE', 'Alike'):
        answer = server.ask('POST', REPOS, body={'name': name, 'owner': 'Coop'})
        assert answer.status == 409, answer


def test_names_alike_at_once(server):
    """Of many who ask at the same moment one gets it."""
    found = []

    def ask(name):
        found.append(server.ask('POST', REPOS, body={'name': name}).status)
    threads = [threading.Thread(target=ask, args=(name,)) for name in ('Race', 'race', 'RACE', 'rAce') * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [201] + [409] * 15


def test_scopes(server, tmp_path):
    read, box = server.make_key('read')['key'], server.make_key('box')['key']
    source = Source(tmp_path / 'src')
    assert server.ask('POST', REPOS, body={'name': 'scoped'}, key=read).status == 403
    assert server.ask('POST', REPOS, body={'name': 'scoped', 'source': str(source.folder)}, key=box).status == 403
    assert server.ask('POST', REPOS, body={'name': 'scoped'}, key=box).status == 201
    assert server.ask('GET', f'{REPOS}/coop/scoped', key=read).status == 200
    assert server.ask('DELETE', f'{REPOS}/coop/scoped', key=box).status == 403
    assert server.ask('POST', f'{REPOS}/coop/scoped/fetch', key=read).status == 403


def test_pages(make_server):
    server = make_server()
    names = [f'r{n}' for n in range(7)]
    for name in names:
        server.post(REPOS, {'name': name})
    found, after = [], 0
    while after is not None:
        page = server.get(f'{REPOS}?limit=3&after={after}')
        found += [r['name'] for r in page['repositories']]
        after = page['next']
    assert found == names


# ---- importing a folder ----

def test_import_folder(server, tmp_path):
    source = Source(tmp_path / 'src', branch='trunk')
    git(source.folder, 'branch', 'side', 'HEAD~1')
    git(source.folder, 'tag', '-m', 'one', 'v1', 'HEAD~1')
    git(source.folder, 'update-ref', 'refs/stash', 'HEAD')
    git(source.folder, 'update-ref', 'refs/heads/ünfit', 'HEAD')
    repo = add(server, source.folder, 'folder')
    assert repo['state'] == 'ready' and repo['default_branch'] == 'trunk'
    for ref in ('refs/heads/trunk', 'refs/heads/side', 'refs/tags/v1'):
        assert oid(server, repo, ref) == source.head(ref)
    assert oid(server, repo, 'refs/stash') == '' and oid(server, repo, 'refs/heads/ünfit') == ''
    assert git(bare(server, repo), 'rev-list', '--count', 'trunk') == '3'
    event = [e for e in server.events(kind='git.cloned') if e['data']['repository_id'] == repo['id']][0]
    assert event['data']['left_out'] == 1
    check_sound(server, repo)


def test_import_bare(server, tmp_path):
    source = Source(tmp_path / 'src')
    git(tmp_path, 'clone', '-q', '--bare', source.folder, 'bare.git')
    repo = add(server, tmp_path / 'bare.git', 'barely')
    assert oid(server, repo) == source.head()


def test_import_empty(server, tmp_path):
    Source(tmp_path / 'src', commits=0)
    repo = add(server, tmp_path / 'src', 'empty')
    assert repo['state'] == 'ready' and repo['default_branch'] == 'main'


def test_nothing_of_the_source_runs(server, tmp_path):
    """Neither its hooks nor its settings, and none of them come along."""
    source = Source(tmp_path / 'src')
    trap, mark = tmp_path / 'trap', tmp_path / 'mark'
    trap.write_text(f'#!/bin/sh\ntouch {mark}\n')
    trap.chmod(0o755)
    for hook in ('pre-receive', 'post-checkout', 'reference-transaction', 'post-index-change'):
        (source.folder / '.git' / 'hooks').mkdir(exist_ok=True)
        (source.folder / '.git' / 'hooks' / hook).symlink_to(trap)
    for name in ('core.fsmonitor', 'core.sshCommand', 'core.pager', 'core.alternateRefsCommand',
                 'uploadpack.packObjectsHook', 'diff.external', 'core.gitProxy', 'filter.x.clean'):
        git(source.folder, 'config', name, str(trap))
    mark.unlink(missing_ok=True)
    repo = add(server, source.folder, 'trapped')
    assert oid(server, repo) == source.head() if repo['state'] == 'ready' else 'setting' in repo['problem']
    assert not mark.exists()
    assert 'trap' not in (bare(server, repo) / 'config').read_text()


def odd_link(folder, source):
    (folder / '.git').symlink_to(source.folder / '.git')


def odd_file(folder, source):
    (folder / '.git').write_text(f'gitdir: {source.folder}/.git\n')


def odd_objects(folder, source):
    git(folder, 'init', '-q', '--bare', '.')
    (folder / 'objects').rename(folder / 'was')
    (folder / 'objects').symlink_to(source.folder / '.git' / 'objects')


def odd_alternates(folder, source):
    git(folder, 'clone', '-q', '--shared', '--bare', source.folder, '.')


def odd_shallow(folder, source):
    git(folder, 'clone', '-q', '--depth=1', '--bare', f'file://{source.folder}', '.')


def odd_nothing(folder, source):
    pass


@pytest.mark.parametrize('make', [odd_link, odd_file, odd_objects, odd_alternates, odd_shallow, odd_nothing])
def test_odd_folders(server, tmp_path, make):
    source = Source(tmp_path / 'secret')
    (tmp_path / 'odd').mkdir()
    make(tmp_path / 'odd', source)
    before = folders(server)
    answer = server.ask('POST', REPOS, body={'name': 'odd', 'source': str(tmp_path / 'odd')})
    assert answer.status == 400, answer
    assert folders(server) == before


def test_link_inside_is_not_followed(server, tmp_path):
    """A ref that is a link to one elsewhere shows nothing of it."""
    secret, source = Source(tmp_path / 'secret'), Source(tmp_path / 'src')
    (source.folder / '.git/refs/heads/out').symlink_to(secret.folder / '.git/refs/heads/main')
    server.post(REPOS, {'name': 'linked', 'source': str(source.folder)}, status=202)
    repo = ended(server, 'linked')
    assert oid(server, repo, 'refs/heads/out') == ''


@pytest.mark.skipif(not IS_ROOT, reason='needs root: another user')
def test_folder_that_cannot_be_read(make_server, folder, program):
    source = Source(folder / 'src')
    source.folder.chmod(0o700)
    server = make_server(start=False, prefix=['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'])
    os.chown(server.folder, 65534, 65534)
    server.folder.parent.chmod(0o711)
    server.command = lambda: [*server.prefix, str(program), 'serve', '-o', 'json', '--listen', server.host]
    server.start()
    answer = server.ask('POST', REPOS, body={'name': 'closed', 'source': str(source.folder)})
    assert answer.status in (400, 403), answer
    assert "server's user" in answer.json['message']


# ---- importing and mirroring a URL ----

def test_import_url(server, tmp_path):
    source = Source(tmp_path / 'src', branch='trunk')
    with GitServer(tmp_path) as remote:
        repo = add(server, remote.url('src'), 'fetched')
    assert repo['state'] == 'ready' and repo['default_branch'] == 'trunk'
    assert oid(server, repo, 'refs/heads/trunk') == source.head()
    assert repo['source'] == remote.url('src') and 'upstream' not in repo
    answer = server.ask('POST', f'{REPOS}/coop/fetched/fetch')
    assert answer.status == 409, answer


def test_credentials_are_kept_nowhere(make_server, tmp_path):
    server = make_server()
    source = Source(tmp_path / 'src')
    with GitServer(tmp_path, password='me:s3cr3t-canary') as remote:
        refused = add(server, remote.url('src'), 'without')
        assert refused['state'] == 'failed'
        repo = add(server, remote.url('src', 'me:s3cr3t-canary@'), 'with', mirror=True)
        assert oid(server, repo) == source.head()
        assert repo['source'] == repo['upstream'] == remote.url('src')
    assert 'canary' not in json.dumps(server.events()) + json.dumps(server.get(REPOS))
    assert server.stop() == 0
    coded = remote.authorization().split()[1].encode()
    for path in server.folder.rglob('*'):
        if path.is_file():
            text = path.read_bytes()
            assert b'canary' not in text and coded not in text, path


def test_mirror_is_fetched_incrementally(server, tmp_path):
    source = Source(tmp_path / 'src')
    source.commit_bytes('big', 2 << 20)
    with GitServer(tmp_path) as remote:
        repo = add(server, remote.url('src'), 'mirror', mirror=True)
        first, remote.sent = remote.sent, 0
        assert first > 1 << 20
        tip = source.commit('small', 'x')
        repo = fetch(server, 'mirror')
        assert oid(server, repo) == tip
        assert remote.sent < 64 << 10
        assert repo['fetched_at'] is not None
    check_sound(server, repo)


def test_mirror_keeps_what_is_ours(server, tmp_path):
    """Branches that were pushed here are neither pruned nor set back."""
    source = Source(tmp_path / 'src')
    for name in ('gone', 'moves', 'ours-too', 'taken'):
        git(source.folder, 'branch', name)
    with GitServer(tmp_path) as remote:
        repo = add(server, remote.url('src'), 'kept', mirror=True)
        place = bare(server, repo)
        old = oid(server, repo)
        ours = git(place, 'commit-tree', '-p', old, '-m', 'ours', f'{old}^{{tree}}')
        git(place, 'update-ref', 'refs/heads/task-1', ours)
        git(place, 'update-ref', 'refs/heads/ours-too', ours)
        git(place, 'update-ref', '-d', 'refs/heads/taken')
        new = source.commit('more', 'x')
        git(source.folder, 'branch', '-f', 'ours-too', 'HEAD')
        git(source.folder, 'branch', '-f', 'moves', 'HEAD~2')
        git(source.folder, 'branch', '-D', 'gone')
        git(source.folder, 'branch', 'gone/deeper')
        fetch(server, 'kept')
        assert oid(server, repo) == new
        assert oid(server, repo, 'refs/heads/task-1') == ours
        assert oid(server, repo, 'refs/heads/ours-too') == ours
        assert oid(server, repo, 'refs/heads/moves') == source.head('moves')
        assert oid(server, repo, 'refs/heads/gone') == '' and oid(server, repo, 'refs/heads/taken') == ''
        assert oid(server, repo, 'refs/heads/gone/deeper') == new
        event = server.events(kind='git.fetched')[-1]['data']
        assert event['kept_back'] == 1 and event['removed'] == 1
        # What goes on from ours brings it back into step.
        git(source.folder, 'fetch', '-q', str(place), 'ours-too')
        git(source.folder, 'branch', '-f', 'ours-too',
            git(source.folder, 'commit-tree', '-p', ours, '-m', 'theirs', 'HEAD^{tree}'))
        fetch(server, 'kept')
        assert oid(server, repo, 'refs/heads/ours-too') == source.head('ours-too')


def test_mirror_goes_on_when_its_upstream_was_away(server, tmp_path):
    source = Source(tmp_path / 'src')
    with GitServer(tmp_path) as remote:
        repo = add(server, remote.url('src'), 'away', mirror=True)
    repo = fetch(server, 'away')
    assert repo['state'] == 'ready' and repo['problem']
    assert oid(server, repo) == source.head()
    # Upkeep may come between, and the log a moment after the row.
    wait_until(lambda: 'git.failed' in kinds(server, repo), 'its event')


def test_mirror_timer(make_server, tmp_path):
    server = make_server(env={'COOP_FORGE_MIRROR_INTERVAL': '1s'})
    source = Source(tmp_path / 'src')
    with GitServer(tmp_path) as remote:
        repo = add(server, remote.url('src'), 'timed', mirror=True)
        tip = source.commit('later', 'x')
        wait_until(lambda: oid(server, repo) == tip, 'the mirror follows by itself')


def test_redirects_are_not_followed(server, tmp_path):
    """They could lead into the machine's own network."""
    Source(tmp_path / 'src')
    with GitServer(tmp_path) as target, GitServer(tmp_path) as remote:
        remote.redirect = target.url('')[:-1]
        repo = add(server, remote.url('src'), 'led')
        assert repo['state'] == 'failed'
        assert target.seen == []


def test_dumb_servers_are_refused(server, tmp_path):
    """Files that any web server has: git would take them one by one, and check none."""
    source = Source(tmp_path / 'root' / 'source')
    git(source.folder, 'update-server-info')
    with GitServer(source.folder / '.git') as place:
        place.is_dumb = True
        repo = add(server, place.url(''), 'dumb', mirror=True)
        assert repo['state'] == 'failed' and '"dumb" protocol' in repo['problem'], repo
        assert ('GET', '/HEAD', None) in place.seen or ('GET', '/info/refs?service=git-upload-pack', None) in place.seen
        assert not [path for _, path, _ in place.seen if path.startswith('/objects/')]


@pytest.mark.parametrize('is_mirror', [False, True])
def test_shallow_servers_are_refused(server, tmp_path, is_mirror):
    """A history that is cut off there would be cut off here for good."""
    source = Source(tmp_path / 'source')
    git(tmp_path, 'clone', '-q', '--bare', '--depth=1', f'file://{source.folder}', str(tmp_path / 'root' / 'cut.git'))
    with GitServer(tmp_path / 'root') as place:
        repo = add(server, place.url('cut.git'), f'cut-{is_mirror}'.lower(), mirror=is_mirror)
    assert repo['state'] == 'failed' and 'shallow' in repo['problem'], repo
    assert not (bare(server, repo) / 'shallow').exists() and git(bare(server, repo), 'for-each-ref') == ''


@pytest.mark.parametrize('how', ['url', 'folder', 'mirror'])
def test_huge_packs(make_server, tmp_path, how):
    """What is too much is known while it comes, and nothing of it stays."""
    server = make_server(env={'COOP_FORGE_FETCH_MAX': '1MiB'})
    source = Source(tmp_path / 'root' / 'source', commits=120)
    with GitServer(tmp_path / 'root') as place:
        where = source.folder if how == 'folder' else place.url('source/.git')
        if how == 'mirror':
            repo = add(server, where, 'big', mirror=True)
            assert repo['state'] == 'ready'
            for number in range(120):
                source.commit_bytes(f'big-{number}', 20 << 10)
            repo = fetch(server, 'big')
            assert repo['state'] == 'ready'
        else:
            source.commit_bytes('big', 4 << 20)
            repo = add(server, where, 'big')
            assert repo['state'] == 'failed'
    failed, = [e for e in server.events(kind='git.failed')]
    assert '1.0\xa0MiB' in failed['data']['error'] and 'forge.fetch_max' in failed['data']['error'], failed
    assert sum(p.stat().st_size for p in bare(server, repo).rglob('*') if p.is_file()) < 1 << 20
    if how == 'mirror':
        check_sound(server, repo)


def test_failed_import_can_be_tried_again(server, tmp_path):
    with GitServer(tmp_path) as remote:
        repo = add(server, remote.url('later'), 'again')
        assert repo['state'] == 'failed' and repo['problem']
        assert str(server.home) not in repo['problem']
        source = Source(tmp_path / 'later')
        repo = fetch(server, 'again')
    assert repo['state'] == 'ready' and 'problem' not in repo
    assert oid(server, repo) == source.head()
    assert kinds(server, repo) == ['git.failed', 'git.cloned']


def test_progress(server, tmp_path):
    source = Source(tmp_path / 'src')
    for number in range(20):
        source.commit_bytes(f'big-{number}', 1 << 20)
    repo = add(server, source.folder, 'long')
    told = [e['data'] for e in server.events(kind='git.progressed') if e['data']['repository_id'] == repo['id']]
    assert all(t['operation'] == 'import' for t in told)
    percents = [t['percent'] for t in told]
    assert percents == sorted(percents) and all(0 < p < 100 for p in percents)


# ---- removing ----

def test_remove(server):
    repo = server.post(REPOS, {'name': 'short', 'first_commit': True})
    assert server.ask('DELETE', f'{REPOS}/coop/short').status == 204
    assert server.ask('GET', f'{REPOS}/coop/short').status == 404
    wait_until(lambda: not bare(server, repo).exists(), 'the folder goes')
    assert kinds(server, repo)[-1] == 'repo.removed'
    again = server.post(REPOS, {'name': 'short'})
    assert again['id'] != repo['id'] and again['number'] > repo['number']


def test_remove_while_importing(server, tmp_path):
    Source(tmp_path / 'src')
    with GitServer(tmp_path) as remote:
        remote.gate = threading.Event()
        repo = server.post(REPOS, {'name': 'doomed', 'source': remote.url('src')}, status=202)
        wait_until(lambda: any('upload-pack' in path for _, path, _ in remote.seen), 'it fetches')
        assert server.ask('GET', f'{REPOS}/coop/doomed/branches').status == 409
        assert server.ask('DELETE', f'{REPOS}/coop/doomed').status == 204
        wait_until(lambda: not bare(server, repo).exists(), 'the folder goes')


# ---- kill -9 ----

needs_failpoints = pytest.mark.skipif(not os.environ.get('COOP_HAS_FAILPOINTS'), reason='built without failpoints')


def killed_at(make_server, name):
    server = make_server(start=False, env={'COOP_FAIL_AT': f'{name}:1'})
    server.start()
    return server


def ask_and_die(server, method, path, body=b''):
    with pytest.raises(Exception):
        server.ask(method, path, body=body)
        server.ask('GET', '/api/v1/queue')
    server.wait_killed()
    server.env = {}


@needs_failpoints
@pytest.mark.parametrize('point', ['repo-row-written', 'repo-made'])
def test_killed_while_making(make_server, point):
    server = killed_at(make_server, point)
    ask_and_die(server, 'POST', REPOS, {'name': 'half'})
    server.start()
    repo = ended(server, 'half')
    assert repo['state'] == 'ready'
    check_sound(server, repo)
    assert kinds(server, repo) == ['repo.created']
    assert server.ask('POST', REPOS, body={'name': 'HALF'}).status == 409


@needs_failpoints
@pytest.mark.parametrize('kind', ['folder', 'url', 'mirror'])
@pytest.mark.parametrize('point', ['repo-row-written', 'repo-import-begun', 'repo-import-brought'])
def test_killed_while_importing(make_server, tmp_path, point, kind):
    source = Source(tmp_path / 'src')
    server = killed_at(make_server, point)
    with GitServer(tmp_path) as remote:
        where = str(source.folder) if kind == 'folder' else remote.url('src')
        with pytest.raises(Exception):
            server.post(REPOS, {'name': 'half', 'source': where, 'mirror': kind == 'mirror'}, status=202)
            wait_until(lambda: server.get('/api/v1/queue') is None, 'it dies')
        server.wait_killed()
        server.env = {}
        server.start()
        repo = ended(server, 'half')
    assert repo['state'] == 'ready', repo
    assert oid(server, repo) == source.head()
    assert kinds(server, repo).count('git.cloned') == 1
    check_sound(server, repo)


@needs_failpoints
@pytest.mark.parametrize('point', ['repo-removing', 'repo-renamed', 'repo-row-deleted'])
def test_killed_while_removing(make_server, point):
    server = make_server(start=False)
    server.start()
    repo = server.post(REPOS, {'name': 'leaving', 'first_commit': True})
    server.stop()
    server.env = {'COOP_FAIL_AT': f'{point}:1'}
    server.start()
    ask_and_die(server, 'DELETE', f'{REPOS}/coop/leaving')
    server.start()
    wait_until(lambda: server.ask('GET', f'{REPOS}/coop/leaving').status == 404, 'the row goes')
    wait_until(lambda: not bare(server, repo).exists(), 'the folder goes')
    assert kinds(server, repo).count('repo.removed') == 1


def test_import_goes_on_after_kill(make_server, tmp_path):
    """In the middle of the transfer."""
    source = Source(tmp_path / 'src')
    server = make_server()
    with GitServer(tmp_path) as remote:
        remote.gate = threading.Event()
        server.post(REPOS, {'name': 'cut', 'source': remote.url('src')}, status=202)
        wait_until(lambda: any('upload-pack' in path for _, path, _ in remote.seen), 'it fetches')
        server.kill()
        remote.gate.set()
        server.start()
        repo = ended(server, 'cut')
    assert repo['state'] == 'ready'
    assert oid(server, repo) == source.head()


def test_stale_locks_at_start(make_server, tmp_path):
    server = make_server()
    repo = server.post(REPOS, {'name': 'locked', 'first_commit': True})
    server.kill()
    locks = ['HEAD.lock', 'packed-refs.lock', 'config.lock', 'refs/heads/main.lock']
    for lock in locks:
        (bare(server, repo) / lock).write_text('')
    server.start()
    assert [lock for lock in locks if (bare(server, repo) / lock).exists()] == []


def test_folders_without_a_row(make_server):
    """Of a removed repository it goes, else it is kept: a backup may have been restored."""
    server = make_server()
    repo = server.post(REPOS, {'name': 'stays'})
    server.kill()
    orphan = server.home / 'repos' / '01234567-89ab-4def-8123-456789abcdef'
    removed = server.home / 'repos' / 'aaaaaaaa-89ab-4def-8123-456789abcdef.removed'
    for folder in (orphan, removed):
        folder.mkdir()
        (folder / 'HEAD').write_text('x')
    server.start()
    assert not removed.exists() and orphan.exists() and bare(server, repo).exists()


def test_row_without_a_folder(make_server):
    server = make_server()
    repo = server.post(REPOS, {'name': 'lost', 'first_commit': True})
    server.stop()
    bare(server, repo).rename(server.folder / 'away')
    server.start()
    lost = server.get(f'{REPOS}/coop/lost')
    assert lost['state'] == 'failed' and repo['id'] in lost['problem']
    assert server.ask('GET', f'{REPOS}/coop/lost/branches').status == 409
    server.stop()
    (server.folder / 'away').rename(bare(server, repo))
    server.start()
    assert server.get(f'{REPOS}/coop/lost')['state'] == 'ready'


def test_restore(make_server):
    """The backup has the rows; the folders stay where they are."""
    server = make_server()
    old = server.post(REPOS, {'name': 'old', 'first_commit': True})
    backup = server.ask('GET', '/api/v1/backup').body
    new = server.post(REPOS, {'name': 'new', 'first_commit': True})
    answer = server.ask('POST', '/api/v1/restore', body=backup, headers={'Content-Type': 'application/octet-stream'})
    assert answer.status == 200, answer
    assert [r['name'] for r in server.get(REPOS)['repositories']] == ['old']
    assert server.get(f'{REPOS}/coop/old/branches')['branches'][0]['commit'] == oid(server, old)
    assert bare(server, new).exists()


# ---- without git, and the queue ----

def test_queue_shows_what_is_done(server, tmp_path):
    Source(tmp_path / 'src')
    with GitServer(tmp_path) as remote:
        remote.gate = threading.Event()
        server.post(REPOS, {'name': 'shown', 'source': remote.url('src')}, status=202)
        wait_until(lambda: any('upload-pack' in path for _, path, _ in remote.seen), 'it fetches')
        queue = server.get('/api/v1/queue')
        assert [(w['repository'], w['what'], w['state'], w['tries']) for w in queue['work']] == [
            ('coop/shown', 'import', 'running', 1)]
        assert server.get(f'{REPOS}/coop/shown')['state'] == 'importing'
        remote.gate.set()
        ended(server, 'shown')
    wait_until(lambda: server.get('/api/v1/queue')['work'] == [], 'the queue is empty')
    metrics = server.ask('GET', '/metrics').body.decode()
    assert 'coop_git_work_waiting 0' in metrics and 'coop_repositories ' in metrics


def test_ready_is_written_before_it_is_said(server, tmp_path):
    """Or a server that is killed right after it would import once more what others work with already."""
    Source(tmp_path / 'late')
    with GitServer(tmp_path) as remote, open_log(server.home) as db:
        remote.gate = threading.Event()
        repo = server.post(REPOS, {'name': 'late', 'source': remote.url('late')}, status=202)
        db.execute('BEGIN IMMEDIATE')
        remote.gate.set()
        def brought():
            shown = server.get(f'{REPOS}/coop/late')
            return shown if oid(server, repo) and shown['progress'] is None else None
        shown = wait_until(brought, 'the end of the import')
        assert shown['state'] == 'importing'
        db.rollback()
        assert ended(server, 'late')['state'] == 'ready'


def test_imports_do_not_hold_up_others(server, tmp_path):
    """As many as there are may wait for slow servers; making and reading goes on."""
    Source(tmp_path / 'src')
    with GitServer(tmp_path) as remote:
        remote.gate = threading.Event()
        for number in range(8):
            server.post(REPOS, {'name': f'slow-{number}', 'source': remote.url('src')}, status=202)
        wait_until(lambda: server.get('/api/v1/queue')['running'] == 2, 'two are under way')
        repo = server.post(REPOS, {'name': 'quick', 'first_commit': True})
        assert server.get(f'{REPOS}/coop/quick/branches')['branches'][0]['commit'] == oid(server, repo)
        assert server.get('/api/v1/queue')['depth'] >= 6
        remote.gate.set()
        for number in range(8):
            assert ended(server, f'slow-{number}')['state'] == 'ready'


def test_many_at_once_are_bounded(make_server):
    """A thousand pieces wait and are done; what comes beyond the bound is refused, not kept."""
    server = make_server()
    statuses = []

    def ask():
        with server.connect() as sock:
            for _ in range(40):
                statuses.append(server.ask('GET', f'{REPOS}/coop/busy/branches', sock=sock).status)
    server.post(REPOS, {'name': 'busy', 'first_commit': True})
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}
    assert server.get('/api/v1/queue')['depth'] <= 1024


def test_without_git(make_server, program, tmp_path):
    """The rest of the server works, and says what is missing."""
    alone = tmp_path / 'alone'
    alone.mkdir()
    (alone / 'coop').write_bytes(pathlib.Path(program).read_bytes())
    (alone / 'coop').chmod(0o755)
    server = make_server(start=False)
    server.command = lambda: [str(alone / 'coop'), 'serve', '-o', 'json', '--listen', server.host,
                              *(['--user', 'root'] if IS_ROOT else [])]
    server.start()
    health = server.ask('GET', '/health', key=None).json
    assert 'coop-git' in json.dumps(health)
    assert server.ask('GET', REPOS).status == 503 and server.ask('GET', '/api/v1/queue').status == 503


# ---- the command line ----

def coop(server, *args, code=0):
    done = subprocess.run([PROGRAM, *args, '--home', str(server.home), '-o', 'json'], env=server.environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else json.loads(done.stderr.splitlines()[-1])


def test_cli(server, tmp_path):
    source = Source(tmp_path / 'cli-src')
    assert coop(server, 'repo', 'create', 'by-hand', '--commit')['state'] == 'ready'
    repo = coop(server, 'repo', 'add', str(source.folder), '--name', 'team/cli')
    assert repo['state'] == 'ready' and repo['owner'] == 'team'
    assert oid(server, repo) == source.head()
    assert coop(server, 'repo', 'add', str(source.folder))['name'] == 'cli-src'
    with GitServer(tmp_path) as remote:
        assert coop(server, 'repo', 'add', remote.url('cli-src'), '--name', 'far', '--mirror')['state'] == 'ready'
        tip = source.commit('new', 'x')
        assert oid(server, coop(server, 'repo', 'fetch', 'far')) == tip
    failed = coop(server, 'repo', 'fetch', 'far', code=1)
    assert 'error' in failed
    assert {'cli', 'by-hand', 'far'} <= {r['name'] for r in coop(server, 'repo', 'ls')}
    assert coop(server, 'repo', 'show', 'team/cli')['id'] == repo['id']
    assert coop(server, 'repo', 'rm', 'team/cli') == {'removed': 'team/cli'}
    assert 'error' in coop(server, 'repo', 'show', 'team/cli', code=4)
    assert coop(server, 'queue')['limit'] == 1024
