# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox over HTTP: exact bytes, absurd names, hostile folders, cut connections."""
import contextlib
import io
import os
import pathlib
import socket
import struct
import tarfile
import threading

import pytest

from boxclient import Sandbox, serving
from harness import Stream, check_error, read_answer, wait_until

MIB = 1 << 20
BIG = 64 * MIB
# Of the server while a file goes through: buffers, not the file.
GROWTH_KIB = 12 * 1024


@pytest.fixture(scope='module')
def box_server():
    with serving() as server:
        yield server


@pytest.fixture(scope='module')
def box(box_server):
    with Sandbox(box_server, limits={'disk_mb': 512, 'inodes': 65536}) as one:
        yield one


@pytest.fixture
def place(box, request):
    """A folder of this test's own."""
    path = '/tmp/' + request.node.name.translate({ord(c): '_' for c in '[]/ \n'})[:60]
    box.sh(f"mkdir '{path}'")
    yield path
    box.sh(f"rm -rf '{path}'")


def other_key(box):
    return box.server.make_key('read,box', 'other')['key']


# ---- bytes ----

@pytest.mark.parametrize('size', [0, 1, 4095, 65536, 300001])
def test_bytes_come_back(box, place, size):
    data = os.urandom(size)
    path = f'{place}/f'
    assert box.write(path, data).json == {'path': path, 'size': size}
    answer = box.read(path)
    assert (answer.status, answer.body) == (200, data)
    assert box.stat(path) | {'mtime': ''} == {
        'name': 'f', 'path': path, 'type': 'file', 'size': size, 'mode': '0644', 'uid': 1000, 'gid': 1000, 'mtime': ''}
    head = box.ask('HEAD', '/files', path=path)
    assert (head.status, head.headers['Content-Length'], head.body) == (200, str(size), b'')


def test_a_download_is_never_a_page(box, place):
    box.write(f'{place}/x"\r\n<é>.html', b'<script>alert(1)</script>')
    answer = box.read(f'{place}/x"\r\n<é>.html')
    assert answer.headers['Content-Type'] == 'application/octet-stream'
    assert answer.headers['Content-Disposition'] == "attachment; filename*=UTF-8''x%22%0D%0A%3C%C3%A9%3E.html"
    assert answer.headers['X-Content-Type-Options'] == 'nosniff'
    assert 'sandbox' in answer.headers['Content-Security-Policy']
    assert answer.headers['Cache-Control'] == 'no-store'


RANGES = [('bytes=0-0', 206, 0, 1), ('bytes=3-5', 206, 3, 6), ('bytes=95-', 206, 95, 100), ('bytes=-7', 206, 93, 100),
          ('bytes=90-1000', 206, 90, 100), ('bytes=-1000', 206, 0, 100), ('bytes=100-', 416, 0, 0),
          ('bytes=-0', 416, 0, 0), ('bytes=0-1,3-4', 200, 0, 100), ('lines=1-2', 200, 0, 100),
          ('bytes=5-3', 200, 0, 100)]


@pytest.mark.parametrize('header,status,first,end', RANGES)
def test_ranges(box, place, header, status, first, end):
    data = bytes(range(100))
    box.write(f'{place}/f', data)
    box.sh(f'ln -s f {place}/link')
    for name in ('f', 'link'):
        answer = box.read(f'{place}/{name}', Range=header)
        assert answer.status == status, answer
        if status == 416:
            assert answer.headers['Content-Range'] == 'bytes */100'
            check_error(box.server, answer, 416)
        else:
            assert answer.body == data[first:end]
            assert answer.headers['Content-Range'] == (f'bytes {first}-{end - 1}/100' if status == 206 else None)


def test_a_range_of_a_version_is_not_guessed(box, place):
    box.write(f'{place}/f', b'0123456789')
    assert box.read(f'{place}/f', Range='bytes=0-1', **{'If-Range': '"x"'}).status == 200


def test_mode_and_replacing(box, place):
    path = f'{place}/f'
    box.write(path, b'one', mode='0755')
    assert box.stat(path)['mode'] == '0755'
    box.write(path, b'two')
    assert box.stat(path)['mode'] == '0755'
    box.ok('POST', '/files/chmod', 204, body={'path': path, 'mode': '0600'})
    assert box.stat(path)['mode'] == '0600'
    for mode in ('9', '', '0o644', '10000', '-1', ' 644'):
        check_error(box.server, box.ask('PUT', '/files', body=b'x', path=path, mode=mode), 400)
    assert box.read(path).body == b'two'


def test_folders_on_the_way(box, place):
    path = f'{place}/a/b/f'
    check_error(box.server, box.ask('PUT', '/files', body=b'x', path=path), 404)
    check_error(box.server, box.ask('PUT', '/files', body=b'x', path=path, parents=0), 404)
    data = os.urandom(300000)
    for body in (data, b'', b'again'):
        box.ok('PUT', '/files', 201, body=body, path=path, parents=1, mode='0600')
        assert box.read(path).body == body and box.stat(path)['mode'] == '0600'
    assert (box.stat(f'{place}/a/b')['mode'], box.stat(f'{place}/a/b')['uid']) == ('0755', 1000)
    box.sh(f'ln -s a {place}/link')
    box.ok('PUT', '/files', 201, body=b'x', path=f'{place}/link/b/g', parents=1)
    assert sorted(box.names(f'{place}/a/b')) == ['f', 'g']
    for bad, status in [(f'{path}/below', 409), (f'{path}/below/it', 400), ('/etc/new/f', 403), ('/etc/passwd', 403)]:
        check_error(box.server, box.ask('PUT', '/files', body=data, path=bad, parents=1), status)
    for parents in ('true', '2', ''):
        check_error(box.server, box.ask('PUT', '/files', body=b'x', path=path, parents=parents), 400)


def test_a_chunked_body(box, place):
    with box.server.connect() as s:
        s.sendall(box.server.request('PUT', f'{box.root}/files?path={place}/f',
                                     headers={'Transfer-Encoding': 'chunked'}))
        s.sendall(b'5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n')
        assert read_answer(s).status == 201
    assert box.read(f'{place}/f').body == b'hello world'


def test_a_compressed_body_is_refused(box, place):
    answer = box.ask('PUT', '/files', body=b'x', path=f'{place}/f', headers={'Content-Encoding': 'gzip'})
    check_error(box.server, answer, 415)


# ---- cut connections ----

@pytest.mark.parametrize('chunked', [False, True])
@pytest.mark.parametrize('reset', [False, True])
def test_a_cut_upload_leaves_the_old_file(box, place, chunked, reset):
    path = f'{place}/f'
    box.write(path, b'old')
    s = box.server.connect()
    framing = {'Transfer-Encoding': 'chunked'} if chunked else {'Content-Length': str(4 * MIB)}
    s.sendall(box.server.request('PUT', f'{box.root}/files?path={path}', headers=framing))
    s.sendall((b'100000\r\n' if chunked else b'') + bytes(MIB))
    if reset:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()
    # The writer in the box is gone, and so is what it had.
    wait_until(lambda: box.names(place) == ['f'] and box.read(path).body == b'old', 'the old file alone')
    wait_until(lambda: all(c['state'] == 'ended' for c in box.ok('GET', '/commands').json['commands']), 'no writer')


def test_a_cut_download_ends_the_reader(box, place):
    box.sh(f'head -c {BIG} /dev/zero > {place}/big')
    before = box.sh('ls /proc | grep -c "^[0-9]*$"')
    for _ in range(5):
        with box.server.connect() as s:
            s.sendall(box.server.request('GET', f'{box.root}/files?path={place}/big'))
            assert s.recv(1000)
    wait_until(lambda: box.sh('ls /proc | grep -c "^[0-9]*$"') == before, 'no reader is left')


def test_flat_memory(box, place):
    """A file many times larger than every buffer, both ways, with a slow start of the reader."""
    box.sh(f'head -c {MIB} /dev/urandom > {place}/warm')
    box.read(f'{place}/warm')
    before = box.server.resident_kib()
    block = os.urandom(MIB)
    with box.server.connect() as s:
        s.sendall(box.server.request('PUT', f'{box.root}/files?path={place}/big',
                                     headers={'Content-Length': str(BIG)}))
        for _ in range(BIG // MIB):
            s.sendall(block)
        assert read_answer(s).json['size'] == BIG
    assert box.server.resident_kib() - before < GROWTH_KIB
    answer = box.read(f'{place}/big')
    assert answer.body == block * (BIG // MIB)
    assert box.server.resident_kib() - before < GROWTH_KIB


def test_a_client_that_does_not_read(box, place):
    box.sh(f'head -c {BIG} /dev/zero > {place}/big')
    before = box.server.resident_kib()
    socks = []
    for _ in range(8):
        s = box.server.connect()
        s.sendall(box.server.request('GET', f'{box.root}/files?path={place}/big'))
        assert s.recv(100)
        socks.append(s)
    assert box.sh('echo still here') == 'still here\n'
    assert box.server.resident_kib() - before < GROWTH_KIB
    for s in socks:
        s.close()


# ---- names ----

NAMES = ['with space', 'new\nline', 'tab\tand\x01control', '"quotes\'`$(x)', '-rf', 'é', '🦆', 'x' * 255, '%41', 'a+b',
         'a&b=c', '...', ' ', '\u202eevil']


@pytest.mark.parametrize('name', NAMES, ids=range(len(NAMES)))
def test_absurd_names(box, place, name):
    path = f'{place}/{name}'
    box.write(path, b'data')
    assert box.read(path).body == b'data'
    assert box.names(place) == [name]
    assert box.stat(path)['name'] == name
    box.ok('POST', '/files/move', 204, body={'from': path, 'to': f'{place}/plain'})
    box.ok('POST', '/files/move', 204, body={'from': f'{place}/plain', 'to': path})
    box.ok('DELETE', '/files', 204, path=path)
    assert box.names(place) == []


def test_names_that_are_not_text(box, place):
    path = place.encode() + b'/a\xff\xfe\nb'
    box.write(path, b'data')
    assert box.read(path).body == b'data'
    [entry] = box.ok('GET', '/files/list', path=place).json['entries']
    assert entry['name'] == 'a\ufffd\ufffd\nb' and entry['encoded'] == place + '/a%FF%FE%0Ab'
    again = box.server.ask('GET', f"{box.root}/files?path={entry['encoded']}")
    assert again.body == b'data'
    box.ok('DELETE', '/files', 204, path=path)


@pytest.mark.parametrize('query,status', [
    ('', 400), ('path=', 400), ('path=a%00b', 400), ('path=%zz', 400), ('path=a&path=b', 400), ('path=a&odd=1', 400),
    ('path=' + 'x' * 256, 400), ('path=/tmp/' + 'x/' * 2100, 400), ('path=/nowhere/at/all', 404)])
def test_bad_paths(box, query, status):
    for place in ('files', 'files/stat', 'files/list', 'archive'):
        check_error(box.server, box.server.ask('GET', f'{box.root}/{place}?{query}'), status)


def test_many_names_in_pages(box, place):
    box.sh(f'cd {place} && i=0; while [ $i -lt 300 ]; do : > f$i; i=$((i+1)); done')
    found, cursor = [], {}
    while True:
        page = box.ok('GET', '/files/list', path=place, max=70, **cursor).json
        assert len(page['entries']) <= 70
        found += [entry['name'] for entry in page['entries']]
        if page['next_cursor'] is None:
            break
        cursor = {'cursor': page['next_cursor']}
    assert sorted(found) == sorted(f'f{i}' for i in range(300))
    for bad in ({'max': 0}, {'max': 5000}, {'cursor': 'x'}, {'cursor': -1}):
        check_error(box.server, box.ask('GET', '/files/list', path=place, **bad), 400)


# ---- what is no file ----

def test_odd_files_are_not_read_or_written(box, place):
    box.sh(f'cd {place} && mkfifo fifo && ln -s loop loop && ln -s /dev/zero zero && ln -s nowhere dangling '
           '&& mkdir folder')
    for path, status in [(f'{place}/fifo', 400), (f'{place}/zero', 400), ('/dev/zero', 400), (f'{place}/folder', 400),
                         (f'{place}/loop', 400), (f'{place}/dangling', 404), ('/proc/self/environ', 403),
                         ('/proc/1/mem', 403), ('/proc/self/root/etc/passwd', 403)]:
        answer = box.read(path)
        assert answer.status == status or 'proc' in path and answer.status in (400, 403, 404), (path, answer)
        if 'dangling' not in path:
            answer = box.ask('PUT', '/files', body=b'x', path=path)
            assert answer.status in (400, 403, 404), (path, answer)
    kinds = {e['name']: e['type'] for e in box.ok('GET', '/files/list', path=place).json['entries']}
    assert kinds == {'fifo': 'other', 'loop': 'link', 'zero': 'link', 'dangling': 'link', 'folder': 'directory'}
    assert box.stat(f'{place}/dangling')['target'] == 'nowhere'


def test_nothing_leads_out(box, place):
    """Links, dots and roots end inside: the host has a file that the box has not."""
    secret = pathlib.Path('/tmp') / f'coop-outside-{os.getpid()}'
    secret.write_text('host')
    try:
        box.sh(f'ln -s {secret} {place}/link; ln -s / {place}/root')
        for path in (secret, f'{place}/link', f'{place}/root/{secret}', f'/../../..{secret}',
                     f'/proc/1/root{secret}'):
            assert box.read(path).status in (403, 404), path
        assert box.ask('PUT', '/files', body=b'x', path=f'/../../..{secret}').status in (201, 403)
        assert secret.read_text() == 'host'
    finally:
        secret.unlink()


def test_links_swapped_while_files_move(box, place):
    """A name that is a file, then a link to a file of root, then a folder: reads give one of the
    files or an error, and what is written is what the user may write."""
    passwd = box.read('/etc/passwd').body
    box.sh(f'echo file > {place}/file')
    run = box.start(f'cd {place}; while :; do ln -sf /etc/passwd x; mv -T x f; cp file y; mv -T y f; rm -f f; '
                    'mkdir f; rmdir f; done', timeout=120)
    try:
        for _ in range(150):
            answer = box.read(f'{place}/f')
            assert answer.status in (200, 400, 404), answer
            if answer.status == 200:
                assert answer.body in (b'file\n', b'new', b'', passwd)
            assert box.ask('PUT', '/files', body=b'new', path=f'{place}/f').status in (201, 400, 403, 404, 409)
    finally:
        box.ask('DELETE', f'/commands/{run}')
    assert box.read('/etc/passwd').body == passwd


def test_permissions_are_the_users(box):
    for path in ('/etc/passwd', '/bin/x', '/x'):
        assert box.ask('PUT', '/files', body=b'x', path=path).status == 403, path
    assert box.read('/etc/shadow').status in (403, 404)


# ---- folders ----

def test_folders(box, place):
    deep = f'{place}/a/b/c'
    assert box.ok('POST', '/files/mkdir', 201, body={'path': deep, 'mode': '0700'}).json == {'path': deep}
    box.ok('POST', '/files/mkdir', 201, body={'path': deep})
    assert (box.stat(deep)['type'], box.stat(deep)['mode']) == ('directory', '0700')
    box.write(f'{deep}/f', b'x')
    assert box.ask('POST', '/files/mkdir', body={'path': f'{deep}/f'}).status == 409
    assert box.ask('DELETE', '/files', path=f'{place}/a').status == 409
    box.ok('DELETE', '/files', 204, path=f'{place}/a', tree=1)
    assert box.ask('GET', '/files/stat', path=f'{place}/a').status == 404
    assert box.ask('DELETE', '/files', path=f'{place}/a').status == 404


def test_moving(box, place):
    box.write(f'{place}/a', b'a')
    box.write(f'{place}/b', b'b')
    move = {'from': f'{place}/a', 'to': f'{place}/b'}
    check_error(box.server, box.ask('POST', '/files/move', body=move), 409)
    assert box.read(f'{place}/b').body == b'b'
    box.ok('POST', '/files/move', 204, body={**move, 'replace': True})
    assert (box.names(place), box.read(f'{place}/b').body) == (['b'], b'a')


@pytest.mark.parametrize('place_,body', [
    ('mkdir', {}), ('mkdir', {'path': ''}), ('mkdir', {'path': 1}), ('mkdir', {'path': '/tmp/x', 'uid': 0}),
    ('mkdir', {'path': '/tmp/x', 'mode': '8'}), ('mkdir', {'path': 'a\0b'}), ('chmod', {'path': '/tmp'}),
    ('move', {'from': '/tmp/x'}), ('move', {'from': '/tmp/x', 'to': '/tmp/y', 'replace': 'yes'})])
def test_bad_bodies(box, place_, body):
    check_error(box.server, box.ask('POST', f'/files/{place_}', body=body), 400)


# ---- who ----

def test_others_do_not_find_it(box):
    key = other_key(box)
    for method, place, body in [('GET', '/files', b''), ('PUT', '/files', b'x'), ('DELETE', '/files', b''),
                                ('GET', '/files/stat', b''), ('GET', '/files/list', b''), ('GET', '/files/watch', b''),
                                ('GET', '/archive', b''), ('PUT', '/archive', b'x')]:
        check_error(box.server, box.ask(method, place, body=body, path='/tmp/x', key=key), 404)
    check_error(box.server, box.ask('POST', '/files/mkdir', body={'path': '/tmp/y'}, key=key), 404)


def test_ids_in_every_form(box):
    for name in (box.id, f'sb-{box.id}', box.info['id']):
        assert box.server.ask('GET', f'/api/v1/sandboxes/{name}/files/stat?path=/tmp').status == 200


# ---- a full disk ----

def push_all(box, place, body):
    """An answer that comes before the end of the body is read all the same."""
    with box.server.connect() as s:
        with contextlib.suppress(ConnectionError):
            s.sendall(box.server.request('PUT', f'{box.root}/{place}', body=body))
        return read_answer(s)


def test_a_full_disk(box_server):
    with Sandbox(box_server, limits={'disk_mb': 32}) as box:
        block = os.urandom(MIB)
        answers = [push_all(box, f'files?path=/home/user/f{i}', block * 4) for i in range(12)]
        assert answers[0].status == 201
        check_error(box_server, answers[-1], 507)
        # What did not fit is not there, and room can be made.
        names = box.names('/home/user')
        assert len([n for n in names if n.startswith('f')]) == sum(a.status == 201 for a in answers)
        box.ok('DELETE', '/files', 204, path='/home/user/f0')
        box.write('/home/user/again', block)


# ---- trees ----

def make_tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data) if kind == tarfile.REGTYPE else 0
            info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname = data.decode()
            tar.addfile(info, io.BytesIO(data) if kind == tarfile.REGTYPE else None)
    return out.getvalue()


def test_trees_there_and_back(box, place):
    data = os.urandom(300000)
    sent = make_tar(('d', tarfile.DIRTYPE, b''), ('d/f', tarfile.REGTYPE, data), ('d/l', tarfile.SYMTYPE, b'f'),
                    ('d/é', tarfile.REGTYPE, b''))
    box.ok('PUT', '/archive', 201, body=sent, path=place)
    assert box.read(f'{place}/d/f').body == data and box.stat(f'{place}/d/l')['target'] == 'f'
    answer = box.ok('GET', '/archive', path=f'{place}/d')
    assert answer.headers['Content-Type'] == 'application/x-tar'
    assert answer.headers['Content-Disposition'].startswith('attachment')
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        names = {m.name.rstrip('/').rpartition('/')[2]: m for m in tar.getmembers()}
        assert {'f', 'l', 'é'} <= set(names)
        assert tar.extractfile(names['f']).read() == data


BOMBS = {
    'dots': make_tar(('../../../../../../tmp/out', tarfile.REGTYPE, b'x')),
    'absolute': make_tar(('/tmp/out', tarfile.REGTYPE, b'x')),
    'through a link': make_tar(('l', tarfile.SYMTYPE, b'/tmp'), ('l/out', tarfile.REGTYPE, b'x')),
    'hard link': make_tar(('h', tarfile.LNKTYPE, b'../../../etc/passwd')),
    'device': make_tar(('dev', tarfile.CHRTYPE, b'')),
    'nonsense': b'\xff' * 5000,
    'cut': make_tar(('f', tarfile.REGTYPE, bytes(100000)))[:50000],
}


@pytest.mark.parametrize('name', BOMBS)
def test_tar_bombs(box, place, name):
    box.sh('rm -f /tmp/out')
    answer = box.ask('PUT', '/archive', body=BOMBS[name], path=place)
    assert answer.status in (201, 400, 403, 404, 409), answer
    assert box.ask('GET', '/files/stat', path='/tmp/out').status == 404
    for entry in box.ok('GET', '/files/list', path=place).json['entries']:
        assert entry['type'] != 'other' and entry['uid'] == 1000, entry


def test_a_tar_that_fills_the_disk(box_server):
    with Sandbox(box_server, limits={'disk_mb': 32}) as box:
        answer = push_all(box, 'archive?path=/home/user', make_tar(('big', tarfile.REGTYPE, bytes(48 * MIB))))
        check_error(box_server, answer, 507)
        box.write('/tmp/small', b'still works')


# ---- watching ----

def watch(box, path, **query):
    text = ''.join(f'&{name}={value}' for name, value in query.items())
    stream = Stream(box.server, f'{box.root}/files/watch?path={path}{text}')
    assert stream.next()['event'] == 'ready'
    return stream


def changes(stream, wanted):
    """Events until one of that kind and path has come."""
    got = []
    while wanted not in got:
        item = stream.next()
        assert item is not None, got
        if item['event'] == 'change':
            got.append((item['data']['kind'], item['data']['path'], item['data']['directory']))
    return got


def test_watching(box, place):
    with watch(box, place) as stream:
        box.write(f'{place}/f', b'x')
        changes(stream, ('moved_to', f'{place}/f', False))
        box.sh(f'echo more >> {place}/f')
        changes(stream, ('modified', f'{place}/f', False))
        box.sh(f'mkdir -p {place}/a/b; echo x > {place}/a/b/deep')
        changes(stream, ('created', f'{place}/a/b/deep', False))
        box.sh(f'mv {place}/a/b/deep {place}/up')
        got = changes(stream, ('moved_to', f'{place}/up', False))
        assert ('moved_from', f'{place}/a/b/deep', False) in got
        box.ok('DELETE', '/files', 204, path=f'{place}/a', tree=1)
        changes(stream, ('removed', f'{place}/a', True))
        box.ok('DELETE', '/files', 204, path=place, tree=1)
        while (item := stream.next())['event'] != 'end':
            pass
        assert item['data']['code'] == 404
        assert stream.next() is None


def test_watching_one_folder(box, place):
    box.sh(f'mkdir {place}/sub')
    with watch(box, place, recursive=0) as stream:
        box.sh(f'echo x > {place}/sub/hidden; echo x > {place}/seen')
        got = changes(stream, ('created', f'{place}/seen', False))
        assert not any('hidden' in path for _, path, _ in got)


def test_a_watch_of_nothing(box, place):
    for path in (f'{place}/none', '/proc/self'):
        answer = box.ask('GET', '/files/watch', path=path, headers={'Accept': 'text/event-stream'})
        assert answer.status in (403, 404), answer


def test_a_storm_for_a_slow_watcher(box, place):
    """What is lost is said to be lost; the server stays small and the box goes on."""
    before = box.server.resident_kib()
    with watch(box, place) as stream:
        box.sh(f'cd {place} && for i in $(seq 1 6000); do : > file-with-a-long-name-$i; done; rm -f *', timeout=120)
        box.sh(f': > {place}/last')
        seen = set()
        while True:
            item = stream.next()
            seen.add(item['event'])
            if item['event'] == 'change' and item['data']['path'].endswith('/last') or item['event'] == 'overflow':
                break
    assert seen <= {'change', 'overflow', 'beat'}
    assert box.server.resident_kib() - before < GROWTH_KIB


# ---- the end of a box ----

def test_a_box_that_ends_in_the_middle(box_server):
    with Sandbox(box_server, limits={'disk_mb': 256}) as box:
        box.sh(f'head -c {BIG} /dev/zero > /tmp/big')
        path = f'{box.root}/files?path=/tmp/big'
        down, up = box_server.connect(), box_server.connect()
        down.sendall(box_server.request('GET', path))
        up.sendall(box_server.request('PUT', f'{path}2', headers={'Content-Length': str(BIG)}))
        up.sendall(bytes(MIB))
        assert down.recv(1000)
        stream = watch(box, '/tmp')
        box.ok('DELETE', '', 204)
        with contextlib.suppress(ConnectionError):
            got = 0
            while piece := down.recv(65536):
                got += len(piece)
            assert got < BIG
        pusher = threading.Thread(target=push, args=(up,))
        pusher.start()
        with contextlib.suppress(ConnectionError):
            assert read_answer(up).status in (404, 409, 503)
        up.close()
        pusher.join()
        while (item := stream.next()) is not None:
            assert item['event'] in ('change', 'end', 'beat')
        check_error(box_server, box.ask('GET', '/files', path='/tmp/big'), 404)


def push(sock):
    with contextlib.suppress(OSError):
        sock.sendall(bytes(BIG))
