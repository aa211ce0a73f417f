# SPDX-License-Identifier: Apache-2.0
"""What may not be pushed, asked for or found out, whoever asks: refs, names, framing, paths, packs."""
import gzip
import hashlib
import os
import socket
import subprocess
import zlib

import pytest

from gitserver import (FETCH_TYPE, PUSH_TYPE, VERSIONS, ZERO, Work, basic, command, empty_pack, environment, folder_of,
                       make_repo, pack_of, pkt, push_body, url_of)
from harness import Server, read_all, wait_until


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp('guards')).start()
    yield s
    s.finish()


class Place:
    """A repository with main and topic, and a clone of it."""

    def __init__(self, server, tmp_path, name):
        self.server = server
        self.path, self.repo = make_repo(server, name)
        self.folder = folder_of(server, self.repo)
        self.work = Work(tmp_path / 'work', url_of(server, self.path)).init()
        self.main = self.work.commit()
        self.work.push('main', 'main:topic')
        self.next = self.work.commit('more', message='feat: add more')

    def bare(self, *args):
        return subprocess.run(['git', '--git-dir', str(self.folder), *args], check=True, capture_output=True, text=True,
                              env=environment(self.folder)).stdout

    def refs(self):
        lines = self.bare('for-each-ref', '--format=%(refname) %(objectname)').splitlines()
        return dict(line.split() for line in lines)

    def raw(self, body, headers=None, service='git-receive-pack', key=''):
        fields = {'Content-Type': PUSH_TYPE if service == 'git-receive-pack' else FETCH_TYPE, **(headers or {})}
        return self.server.ask('POST', f'{self.path}/{service}', body=body, headers=fields, key=key)

    def pack(self):
        return pack_of(self.work, self.next, f'^{self.main}')

    def advert(self, service, **headers):
        return self.server.ask('GET', f'{self.path}/info/refs?service={service}', headers=headers)


@pytest.fixture
def place(server, tmp_path, request):
    return Place(server, tmp_path, 'r' + hashlib.sha1(request.node.name.encode()).hexdigest()[:12])


def unchanged(place):
    return place.refs() == {'refs/heads/main': place.main, 'refs/heads/topic': place.main}


# ---- G1, G2: where to ----

OTHER_REFS = ['refs/notes/commits', 'refs/replace/' + '1' * 40, 'refs/for/main', 'refs/pull/1/head', 'refs/coop/x',
              'refs/remotes/origin/x', 'refs/stash', 'HEAD', 'refs/heads', 'main', 'FETCH_HEAD', 'refs/bisect/bad',
              'refs/worktree/x', 'config', 'refs/headsx/y', 'refs/tagsx/y']


@pytest.mark.parametrize('ref', OTHER_REFS)
def test_only_branches_and_tags(place, ref):
    answer = place.raw(push_body([(ZERO, place.next, ref)], place.pack()))
    assert answer.status == 200 and b'ok ' + ref.encode() not in answer.body, answer
    assert unchanged(place)


@pytest.mark.parametrize('bad', ['refs/notes/x', 'refs/heads/-x', 'refs/for/main'])
@pytest.mark.parametrize('order', [1, -1])
def test_one_bad_ref_refuses_all(place, bad, order):
    commands = [(place.main, place.next, 'refs/heads/topic'), (ZERO, place.next, bad)][::order]
    answer = place.raw(push_body(commands, place.pack(), 'report-status side-band-64k'))
    assert b'pre-receive hook declined' in answer.body, answer
    assert unchanged(place)


@pytest.mark.parametrize('version', VERSIONS)
def test_one_bad_ref_refuses_all_for_a_client(place, version):
    place.work.version = version
    run = place.work.push('HEAD:refs/heads/topic', 'HEAD:refs/notes/x', status=1)
    assert 'refs/notes/x' in run.said
    assert unchanged(place)


def test_protected_branch(place, server):
    key = server.make_key('read,box', name='pusher')['key']
    place.work.git('remote', 'set-url', 'origin', url_of(server, place.path, key))
    run = place.work.push('main', status=1)
    assert 'pull request' in run.said
    assert unchanged(place)
    place.work.push('main:topic')
    assert place.refs()['refs/heads/topic'] == place.next


def test_first_push_makes_the_protected_branch(server, tmp_path):
    path, _ = make_repo(server, 'begun')
    key = server.make_key('read,box', name='beginner')['key']
    work = Work(tmp_path / 'w', url_of(server, path, key)).init()
    work.commit()
    work.push('main')
    server.ask('PATCH', '/api/v1/repos/coop/begun/settings', body={'protected_branches': ['main', 'release']})
    assert 'protected' in work.push('main:release', status=1).said


# ---- G3: back, away ----

def test_force_names_both(place):
    other = place.work.git('commit-tree', '-m', 'feat: other', 'HEAD^{tree}').stdout.strip()
    run = place.work.push('-f', f'{other}:main', status=1)
    assert place.main in run.said and other in run.said and 'Fetch it' in run.said
    assert unchanged(place)
    place.work.push('-f', f'{other}:topic')
    assert place.refs()['refs/heads/topic'] == other


def chain(work, n, parents, message='feat: step'):
    """The newest of n commits, one behind the other, which are like no others."""
    for _ in range(n):
        options = [word for parent in parents for word in ('-p', parent)]
        parents = [work.git('commit-tree', *options, '-m', message, '-m', os.urandom(8).hex(), 'HEAD^{tree}').stdout.strip()]
    return parents[0]


def test_forward(place):
    """What a protected branch is moved to contains where it was, however that is found out."""
    work = place.work
    side = chain(work, 2, [place.main])
    first = chain(work, 2, [place.main])
    work.push(f'{first}:topic')
    work.push(f'{first}:main')  # nothing of it is new any more
    merge = chain(work, 2, [side, first])
    work.push(f'{merge}:main')  # by the second parent
    assert place.refs()['refs/heads/main'] == merge
    for other in (chain(work, 2, [side]), chain(work, 1, [side, first]), first):
        run = work.push('-f', f'{other}:main', status=1)
        assert 'Fetch it' in run.said and place.refs()['refs/heads/main'] == merge


def test_forward_by_many(place):
    """More commits than the hook reads."""
    lines = [f'commit refs/heads/many\ncommitter A <a@example.org> {1700000000 + n} +0000\ndata 7\nfeat: x\n'
             + (f'from {place.main}\n' if n == 0 else '') for n in range(600)]
    subprocess.run(['git', 'fast-import', '--quiet'], cwd=place.work.folder, input=''.join(lines).encode(), check=True,
                   env=environment(place.work.folder.parent))
    place.work.push('many:main')
    assert place.refs()['refs/heads/main'] == place.work.head('many')


def test_merges_have_any_message(place):
    merge = chain(place.work, 1, [place.next, place.main], 'Did things.')
    assert 'taken all the same' not in place.work.push(f'{merge}:topic').said
    assert 'taken all the same' in place.work.push(f"{chain(place.work, 1, [merge], 'Did things.')}:topic").said


def test_delete(place):
    run = place.work.push(':main', status=1)
    assert 'main' in run.said and unchanged(place)
    place.work.push(':topic')
    assert place.refs() == {'refs/heads/main': place.main}


def test_stale_push_names_both(place, tmp_path):
    """The other one was faster; both say where they are."""
    place.work.push('main')
    answer = place.raw(push_body([(place.main, place.main, 'refs/heads/main')]))
    late = place.work.git('commit-tree', '-p', place.main, '-m', 'feat: late', 'HEAD^{tree}').stdout.strip()
    answer = place.raw(push_body([(place.main, late, 'refs/heads/main')], pack_of(place.work, late, f'^{place.main}'),
                                 'report-status side-band-64k'))
    assert b'ok refs/heads/main' not in answer.body
    assert place.next.encode() in answer.body and place.main.encode() in answer.body, answer.body
    assert place.refs()['refs/heads/main'] == place.next


# ---- G4, G12: names ----

NAMES = ['refs/heads/task/../main', 'refs/heads//x', 'refs/heads/x//y', 'refs/heads/x.lock', 'refs/heads/x.',
         'refs/heads/x.lock/y', 'refs/heads/a\tb', 'refs/heads/a\x7fb', 'refs/heads/a b', 'refs/heads/a~b', 'refs/heads/a^b',
         'refs/heads/a:b', 'refs/heads/a?b', 'refs/heads/a*b', 'refs/heads/a[b', 'refs/heads/a\\b', 'refs/heads/@{x}',
         'refs/heads/', 'refs/heads/.x', 'refs/heads/x/.y', 'refs/heads/--mirror', 'refs/heads/x/-y', 'refs/heads/MAIN',
         'refs/heads/gr\u00fcn', 'refs/heads/\u202emain', 'refs/tags/-v1', 'refs/heads/' + 'x' * 260, '../main', '/etc/passwd',
         'refs/heads/../../config', 'refs/heads/main\n', 'refs/heads/Topic']


@pytest.mark.parametrize('name', NAMES)
def test_names(place, name):
    answer = place.raw(push_body([(ZERO, place.next, name)], place.pack(), 'report-status side-band-64k'))
    assert b'ok ' + name.encode() not in answer.body, answer
    assert unchanged(place)


def test_good_names(place):
    names = ['feature/42-add-login', 'task-7--coder-1', 'a.b', 'x_y']
    place.work.push(*[f'HEAD:refs/heads/{n}' for n in names], 'HEAD:refs/tags/v1.0+rc1')
    assert {n.removeprefix('refs/heads/') for n in place.refs()} >= set(names)


# ---- G5: refs that lead elsewhere ----

@pytest.mark.parametrize('target', ['refs/heads/main', 'refs/heads/not-there'])
def test_symbolic_refs(place, target):
    place.bare('symbolic-ref', 'refs/heads/alias', target)
    before = place.refs()
    old = before.get('refs/heads/alias', ZERO)
    answer = place.raw(push_body([(old, place.next, 'refs/heads/alias')], place.pack(), 'report-status side-band-64k'))
    assert b'not a ref of its own' in answer.body, answer
    assert place.refs() == before


def test_ref_that_is_a_link(place):
    (place.folder / 'refs/heads/alias').symlink_to('refs/heads/main')
    before = place.refs()
    answer = place.raw(push_body([(ZERO, place.next, 'refs/heads/alias')], place.pack(), 'report-status side-band-64k'))
    assert b'not a ref of its own' in answer.body, answer
    assert place.refs() == before


def test_folder_where_refs_were(place):
    (place.folder / 'refs/heads/was').mkdir()
    place.work.push('HEAD:was')
    assert place.refs()['refs/heads/was'] == place.next


# ---- G6, G7: framing ----

def test_push_of_nothing(place):
    """As a client asks whether it may, before it sends much."""
    answer = place.raw(b'0000')
    assert (answer.status, answer.body) == (200, b'') and unchanged(place)
    assert place.raw(b'zzzz').status == 502


def test_what_is_offered(place):
    text = place.advert('git-receive-pack').body
    assert b'push-cert' not in text and b'push-options' not in text and b'report-status' in text


def test_push_certificate(place):
    cert = [pkt('push-cert\0report-status\n'), pkt('certificate version 0.1\n'), pkt('pusher a <a@b> 0 +0000\n'),
            pkt('nonce x\n'), pkt('\n'), pkt(f'{place.main} {place.next} refs/heads/topic\n'),
            pkt('-----BEGIN PGP SIGNATURE-----\n'), pkt('push-cert-end\n')]
    answer = place.raw(b''.join(cert) + b'0000' + place.pack())
    assert b'ok refs' not in answer.body
    assert unchanged(place)


def test_signed_push_is_not_possible(place):
    run = place.work.push('HEAD:topic', options=['--signed=yes'], status=None)
    assert run.returncode != 0 and unchanged(place)


def test_push_options(place):
    run = place.work.push('HEAD:topic', options=['-o', 'x=y'], status=None)
    assert run.returncode != 0 and unchanged(place)
    place.raw(push_body([(place.main, place.next, 'refs/heads/topic')], pkt('x=y') + b'0000' + place.pack(),
                        'report-status push-options'))
    assert unchanged(place)


@pytest.mark.parametrize('encoding', ['gzip', 'x-gzip', 'deflate', 'br', 'GZIP'])
def test_compressed_push(place, encoding):
    body = gzip.compress(push_body([(place.main, place.next, 'refs/heads/topic')], place.pack()))
    answer = place.raw(body, {'Content-Encoding': encoding})
    assert answer.status == 415 and unchanged(place)


def test_compressed_fetch(place):
    body = pkt(f'want {place.main} side-band-64k\n') + b'0000' + pkt('done\n')
    plain = place.raw(body, service='git-upload-pack')
    answer = place.raw(gzip.compress(body), {'Content-Encoding': 'gzip'}, 'git-upload-pack')
    assert plain.status == answer.status == 200 and b'PACK' in plain.body and b'PACK' in answer.body


def test_compressed_fetch_bomb(place, server):
    """Ten thousand times as large when unpacked; it ends as an error, and soon."""
    body = gzip.compress(pkt(f'have {ZERO}\n') * 2_000_000)
    answer = place.raw(body, {'Content-Encoding': 'gzip'}, 'git-upload-pack')
    assert answer.status in (200, 413, 502) and b'PACK' not in answer.body
    assert server.is_well()


def test_shallow_lines(place):
    body = pkt(f'shallow {place.main}') + push_body([(place.main, place.next, 'refs/heads/topic')], place.pack())
    place.raw(body)
    assert not (place.folder / 'shallow').exists()
    body = pkt('shallow ' + '1' * 40) + push_body([(place.main, place.next, 'refs/heads/topic')], place.pack())
    place.raw(body)
    assert not (place.folder / 'shallow').exists()


@pytest.mark.parametrize('packet', [b'0001', b'0002', b'0003', b'ffff', b'zzzz', b'000', b'0005', b'0004', b''])
def test_odd_packets(place, packet):
    """However commands are framed, the hook sees each that git sees."""
    good = command(place.main, place.next, 'refs/heads/topic', 'report-status')
    bad = command(ZERO, place.next, 'refs/notes/x')
    pack_ = place.pack()
    for body in (packet + good + bad + b'0000' + pack_, good + packet + bad + b'0000' + pack_, good + bad + packet + pack_,
                 packet + bad + b'0000' + pack_, bad + packet + pack_):
        place.raw(body)
        assert 'refs/notes/x' not in place.refs()


def test_chunks_of_one_byte(place, server):
    body = push_body([(place.main, place.next, 'refs/heads/topic')], place.pack())
    head = server.request('POST', f'{place.path}/git-receive-pack', headers={
        'Content-Type': PUSH_TYPE, 'Transfer-Encoding': 'chunked', 'Connection': 'close'})
    with server.connect() as s:
        s.sendall(head)
        for byte in body:
            s.sendall(b'1\r\n' + bytes([byte]) + b'\r\n')
        s.sendall(b'0\r\n\r\n')
        assert b'ok refs/heads/topic' in read_all(s)
    assert place.refs()['refs/heads/topic'] == place.next


@pytest.mark.parametrize('type_', ['text/plain', FETCH_TYPE, PUSH_TYPE + '; charset=x', None])
def test_type_of_a_push(place, type_):
    answer = place.raw(push_body([(place.main, place.next, 'refs/heads/topic')], place.pack()), {'Content-Type': type_})
    assert answer.status == 415 and unchanged(place)


@pytest.mark.parametrize('protocol', ['version=2', 'version=1', 'version=0', 'version=9', 'x' * 4000, 'version=2:x=$(id)', ''])
def test_protocol_header(place, protocol):
    answer = place.advert('git-upload-pack', **{'Git-Protocol': protocol})
    assert answer.status == 200
    assert (b'version 2' in answer.body) == (protocol == 'version=2')


# ---- G8: paths ----

PATHS = ['{}/HEAD', '{}/config', '{}/objects/info/packs', '{}/objects/info/alternates', '{}/info/refs',
         '{}/info/refs?service=git-upload-archive', '{}/info/refs?service=git-receive-pack&service=git-upload-pack',
         '{}/info/refs?service=git-upload-pack&x', '{}/info/refs?Service=git-upload-pack',
         '{}/info/refs?service=git%2Dupload-pack', '{}/info/refs?service=', '{}/../other.git/info/refs?service=git-upload-pack',
         '{}/%2e%2e/other.git/info/refs?service=git-upload-pack', '{}/info/../info/refs?service=git-upload-pack',
         '{}//info/refs?service=git-upload-pack', '{}/info%2Frefs?service=git-upload-pack', '/git/coop/info/refs',
         '/git/../git/x/info/refs?service=git-upload-pack', '{}/hooks/pre-receive', '{}/packed-refs', '{}/refs/heads/main',
         '{}%00/info/refs?service=git-upload-pack', '/git/coop/%2e%2e%2fx/info/refs?service=git-upload-pack',
         '{}/git-upload-archive', '{}/git-receive-pack/x', '{}.git/info/refs?service=git-upload-pack']


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize('method', ['GET', 'POST'])
def test_paths(place, server, path, method):
    answer = server.ask(method, path.format(place.path), headers={'Content-Type': PUSH_TYPE} if method == 'POST' else {})
    assert answer.status in (400, 403, 404, 405), answer
    assert place.main.encode() not in answer.body


# ---- who ----

def test_asks_for_a_password(place, server):
    for headers in ({}, basic('e2b_' + '0' * 40), {'Authorization': 'Basic ????'}, {'Authorization': 'Basic'},
                    {'Authorization': 'Basic ' + 'A' * 4000}, {'Authorization': 'Negotiate x'}):
        answer = server.ask('GET', f'{place.path}/info/refs?service=git-upload-pack', headers=headers, key=None)
        assert answer.status == 401 and answer.headers['WWW-Authenticate'].startswith('Basic '), answer
    answer = server.ask('GET', '/api/v1/repos', headers=basic(server.key), key=None)
    assert answer.status == 401 and answer.headers['WWW-Authenticate'].startswith('Bearer ')
    for headers in (basic(server.key), {'Authorization': f'Bearer {server.key}'}):
        assert server.ask('GET', f'{place.path}/info/refs?service=git-upload-pack', headers=headers, key=None).status == 200


def test_reading_key_does_not_push(place, server):
    key = server.make_key('read', name='reader')['key']
    assert place.raw(push_body([(place.main, place.next, 'refs/heads/topic')], place.pack()), key=key).status == 403
    assert server.ask('GET', f'{place.path}/info/refs?service=git-receive-pack', key=key).status == 403
    assert server.ask('GET', f'{place.path}/info/refs?service=git-upload-pack', key=key).status == 200
    assert unchanged(place)


# ---- G9: what is in other repositories ----

@pytest.mark.parametrize('version', VERSIONS)
def test_objects_of_others(place, server, tmp_path, version):
    path, _ = make_repo(server, 'secret-' + place.repo['name'])
    other = Work(tmp_path / 'other', url_of(server, path)).init()
    secret = other.commit('secret', 'hidden\n')
    other.push('main')
    place.work.version = version
    run = place.work.git('fetch', 'origin', secret, status=None)
    assert run.returncode != 0 and ('not our ref' in run.said or 'unadvertised object' in run.said)
    answer = place.raw(push_body([(ZERO, secret, 'refs/heads/mine')], empty_pack(), 'report-status side-band-64k'))
    assert b'ok refs/heads/mine' not in answer.body and unchanged(place)


# ---- G10: packs ----

def object_entry(kind, data, size=None):
    size = len(data) if size is None else size
    byte, size = (kind << 4) | (size & 15), size >> 4
    out = bytearray()
    while size:
        out.append(byte | 128)
        byte, size = size & 127, size >> 7
    out.append(byte)
    return bytes(out) + zlib.compress(data)


def pack(entries, count=None):
    head = b'PACK' + (2).to_bytes(4, 'big') + (len(entries) if count is None else count).to_bytes(4, 'big')
    body = head + b''.join(entries)
    return body + hashlib.sha1(body).digest()


def oid(kind, data):
    return hashlib.sha1(f'{kind} {len(data)}\0'.encode() + data).hexdigest()


def commit_with(tree):
    text = f'tree {tree}\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nfeat: x\n'.encode()
    return oid('commit', text), text


def tree_of(*items):
    return b''.join(f'{mode} {name}\0'.encode() + bytes.fromhex(o) for mode, name, o in items)


HOSTILE_TREES = {
    '.git': [('40000', '.git', '4b825dc642cb6eb9a060e54bf8d69288fbee4904')],
    'dot-dot': [('100644', '..', 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391')],
    'slash': [('100644', 'a/b', 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391')],
    'twice': [('100644', 'a', 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391')] * 2,
    '.GIT': [('100644', '.GIT', 'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391')],
}


@pytest.mark.parametrize('name', HOSTILE_TREES)
def test_hostile_trees(place, name):
    tree = tree_of(*HOSTILE_TREES[name])
    top, text = commit_with(oid('tree', tree))
    body = pack([object_entry(1, text), object_entry(2, tree), object_entry(3, b''), object_entry(2, b'')])
    answer = place.raw(push_body([(ZERO, top, 'refs/heads/bad')], body))
    assert b'ok refs' not in answer.body, answer
    assert unchanged(place)


BROKEN = {
    'no objects behind the count': lambda: pack([], 10_000_000),
    'sum': lambda: pack([object_entry(3, b'x')])[:-1] + b'?',
    'cut': lambda: pack([object_entry(3, b'x' * 1000)])[:-30],
    'not a pack': lambda: b'KCAP' + bytes(40),
    'size': lambda: pack([object_entry(3, b'x' * 10, 1 << 40)]),
    'nothing': lambda: b'',
    'tail': lambda: pack([object_entry(3, b'x')]) + b'more',
}


@pytest.mark.parametrize('name', BROKEN)
def test_broken_packs(place, server, name):
    answer = place.raw(push_body([(place.main, place.next, 'refs/heads/topic')], BROKEN[name]()))
    assert b'ok refs' not in answer.body, answer
    assert unchanged(place)
    assert leftovers(place) == []
    assert server.is_well()


def leftovers(place):
    return [p for p in (place.folder / 'objects').glob('tmp_objdir-*')] + list(place.folder.rglob('*.lock'))


def test_zip_bomb(place, server):
    """A thousand times as large when unpacked: the server's own memory does not see it."""
    big = bytes(256 << 20)
    tree = tree_of(('100644', 'zeros', oid('blob', big)))
    top, text = commit_with(oid('tree', tree))
    body = pack([object_entry(3, big), object_entry(2, tree), object_entry(1, text)])
    before = server.resident_kib()
    place.raw(push_body([(ZERO, top, 'refs/heads/zeros')], body))
    assert server.resident_kib() - before < 32 << 10
    assert leftovers(place) == []


# ---- clients that go away ----

def git_children(place):
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            command_line = open(f'/proc/{pid}/cmdline', 'rb').read()
            cwd = os.readlink(f'/proc/{pid}/cwd')
        except OSError:
            continue
        if b'git' in command_line and cwd.startswith(str(place.folder)):
            found.append(pid)
    return found


def test_client_gone_in_a_push(place, server):
    data = os.urandom(4 << 20)
    body = push_body([(place.main, place.next, 'refs/heads/topic')], pack([object_entry(3, data)] * 1, 2))
    head = server.request('POST', f'{place.path}/git-receive-pack',
                          headers={'Content-Type': PUSH_TYPE, 'Content-Length': str(1 << 30)})
    with server.connect() as s:
        s.sendall(head + body[:3 << 20])
        wait_until(lambda: git_children(place), 'git is running')
    wait_until(lambda: not git_children(place), 'git has ended')
    wait_until(lambda: leftovers(place) == [], 'what it received is gone')
    assert unchanged(place)


def test_client_that_does_not_read(place, server, tmp_path):
    """Nothing piles up here, and git is ended when the client goes."""
    work = place.work
    (work.folder / 'big').write_bytes(os.urandom(64 << 20))
    work.commit('big-too', message='feat: add a large file')
    work.push('HEAD:big')
    tip = work.head()
    before = server.resident_kib()
    body = pkt(f'want {tip} side-band-64k\n') + b'0000' + pkt('done\n')
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(server.address)
    s.sendall(server.request('POST', f'{place.path}/git-upload-pack', body=body, headers={'Content-Type': FETCH_TYPE}))
    assert s.recv(1000)
    wait_until(lambda: git_children(place), 'git is running')
    for _ in range(20):
        assert server.is_well()
    assert server.resident_kib() - before < 16 << 10
    s.close()
    wait_until(lambda: not git_children(place), 'git has ended')
