# SPDX-License-Identifier: Apache-2.0
"""A box that takes all it can get: contained, said why, nothing left, others untouched."""
import contextlib
import io
import os
import pathlib
import re
import shutil
import signal
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from boxserver import API, need_boxes
from faultserver import FaultServer
from harness import check_error, read_answer, wait_until

MIB = 1 << 20
ENOSPC, EAGAIN = 28, 11


@pytest.fixture(scope='module')
def one_server():
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    try:
        server = FaultServer(place, env={'COOP_BOXES_PER_KEY': '20', 'ASAN_OPTIONS': 'quarantine_size_mb=1'}).start()
        yield server
        server.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def server(one_server):
    """With a second box, whose command and calls nobody may disturb."""
    neighbour = one_server.create()['id']
    going = one_server.start_command(neighbour, 'echo begun; read x; echo "end $x"; exit 9', stdin=True, timeout=0)['id']
    one_server.neighbour = neighbour
    yield one_server
    at = f'{API}/{neighbour}/commands/{going}'
    one_server.post(at + '/stdin?close=1', b'well\n', status=200)
    end = one_server.ended(neighbour, going)['end']
    assert (end['reason'], end['exit_code']) == ('exit', 9)
    assert one_server.output(neighbour, going).body == b'begun\nend well\n'
    one_server.delete_all()
    one_server.nothing_left()


def still_works(server, box):
    assert server.run(box, 'echo well')['stdout'] == 'well\n'


def others_work(server):
    still_works(server, server.neighbour)
    assert server.is_well()


def put(server, box, path, body):
    """Reads the answer also where the server has stopped listening before all was said."""
    with server.connect() as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(server.request('PUT', f'{API}/{box}/files?path={path}', body=body))
        return read_answer(sock)


# ---- processes, memory, time ----

def test_fork_bomb(server):
    with server.box(limits={'processes': 40}) as box:
        made, why = map(int, server.run(box, argv=['/bin/probe', 'fork'])['stdout'].split())
        assert made < 40 and why == EAGAIN
        wait_until(lambda: server.processes_of(box) == 1, 'the end of its processes')
        bomb = server.start_command(box, 'b() { b | b & }; (b) & while :; do :; done', timeout=2)
        others_work(server)
        end = server.ended(box, bomb['id'])['end']
        assert end['reason'] == 'timeout' and end['exit_code'] == 124
        # All of them, also those who left the group of their parents.
        wait_until(lambda: server.processes_of(box) == 1, 'the end of its processes')
        still_works(server, box)


def test_fork_bomb_is_deleted(server):
    box = server.create(limits={'processes': 100})['id']
    # One that never dies out by itself: how many of a doubling one are alive is a matter of luck.
    server.start_command(box, 'while :; do sleep 1000 & done', timeout=0)
    wait_until(lambda: server.processes_of(box) > 50, 'many processes')
    assert server.ask('DELETE', f'{API}/{box}').status == 204
    assert server.state(box) == ('terminated', 'killed')
    others_work(server)


def test_memory_bomb(server):
    with server.box(limits={'memory_mb': 48}) as box:
        end = server.run(box, argv=['/bin/probe', 'memory'])['end']
        assert (end['reason'], end['exit_code']) == ('oom', 137)
        assert server.get(f'{API}/{box}/stats')['oom_kills'] > 0
        still_works(server, box)
        others_work(server)


def test_endless_loop(server):
    """Whatever it forks, ignores or leaves: the timeout ends all of it."""
    line = ('trap "" TERM HUP INT; while :; do :; done & (trap "" TERM; while :; do :; done) & '
            '( (sleep 1000 & exec 1>&- 2>&-) & ); while :; do :; done')
    with server.box() as box:
        end = server.run(box, line, timeout=1)['end']
        assert (end['reason'], end['exit_code']) == ('timeout', 124)
        # What was killed is gone when the kernel has seen to it.
        wait_until(lambda: server.processes_of(box) == 1, 'the end of them all')
        others_work(server)


# ---- disk ----

def full_disk(server, box):
    answer = put(server, box, '/tmp/more', b'x' * 3 * MIB)
    check_error(server, answer, 507)
    assert server.ask('GET', f'{API}/{box}/files/stat?path=/tmp/more').status == 404
    still_works(server, box)
    others_work(server)


def test_disk_bomb(server):
    with server.box(limits={'disk_mb': 16}) as box:
        written, why = map(int, server.run(box, argv=['/bin/probe', 'disk'])['stdout'].split())
        assert why == ENOSPC and 8 * MIB < written < 16 * MIB
        full_disk(server, box)
        # The file that was there is whole, and room that is made can be used.
        assert put(server, box, '/tmp/fill0', b'y' * 20 * MIB).status == 507
        assert server.get(f'{API}/{box}/files/stat?path=/tmp/fill0')['size'] > 0
        assert server.run(box, 'rm /tmp/fill*')['end']['exit_code'] == 0
        assert put(server, box, '/tmp/more', b'x' * 3 * MIB).status == 201


def test_inode_bomb(server):
    with server.box(limits={'inodes': 512}) as box:
        made, why = map(int, server.run(box, argv=['/bin/probe', 'inodes'])['stdout'].split())
        assert why == ENOSPC and 300 < made < 600
        check_error(server, put(server, box, '/tmp/more', b'x'), 507)
        answer = server.ask('POST', f'{API}/{box}/files/mkdir', body={'path': '/tmp/folder'})
        check_error(server, answer, 507)
        still_works(server, box)
        others_work(server)


def test_huge_file(server):
    """One that says to be huge costs no memory, one that is too large is not begun or does not stay."""
    with server.box(limits={'disk_mb': 16}) as box:
        end = server.run(box, 'exec dd if=/dev/zero of=/tmp/hole bs=1 count=1 seek=1000000000000')['end']
        assert (end['reason'], end['signal']) == ('signal', signal.SIGXFSZ)
        assert server.run(box, 'dd if=/dev/zero of=/tmp/hole bs=1 count=1 seek=16000000')['end']['exit_code'] == 0
        before = server.resident_kib()
        body = server.ask('GET', f'{API}/{box}/files?path=/tmp/hole').body
        assert len(body) == 16000001 and not any(body)
        with server.connect() as sock, contextlib.suppress(ConnectionError):
            sock.sendall(server.request('PUT', f'{API}/{box}/files?path=/tmp/big', headers={'Content-Length': str(10**12)}))
            while True:
                sock.sendall(bytes(MIB))
        assert server.resident_kib() - before < 32 * 1024
        others_work(server)
        still_works(server, box)
        # Nothing of the half-written one stays.
        assert wait_until(lambda: server.run(box, 'ls -A /tmp')['stdout'] == 'hole\n', 'the end of the upload')


# ---- output ----

def test_endless_output(server):
    with server.box() as box:
        made = server.start_command(box, 'yes', timeout=0)
        at = f'{API}/{box}/commands/{made["id"]}'
        wait_until(lambda: server.output(box, made['id'], headers={'Range': 'bytes=60000000-'}).status == 206,
                   '60 MB of output')
        others_work(server)
        log = sum(f.stat().st_size for f in (server.home / 'logs').rglob('*') if f.is_file())
        assert log < 40 * MIB
        assert server.ask('DELETE', at).status == 204
        end = server.ended(box, made['id'])['end']
        assert (end['reason'], end['signal']) == ('signal', signal.SIGKILL)
        body = server.output(box, made['id']).body
        left_out = sum(map(int, re.findall(rb'\n\[(\d+) bytes left out\]\n', body)))
        kept = re.sub(rb'\n\[\d+ bytes left out\]\n', b'', body)
        assert set(kept) == set(b'y\n') and left_out > 0
        assert len(kept) + left_out == end['stdout_bytes'] > 60000000
        with server.feed(box, made['id']) as feed:
            gaps = [i['data']['bytes'] for i in feed.until(lambda i: i['event'] == 'end') if i['event'] == 'gap']
        assert sum(gaps) == left_out
        still_works(server, box)


# ---- the whole root ----

def test_everything_removed(server):
    box = server.create()['id']
    made = server.start_command(box, 'rm -rf --no-preserve-root / 2>/dev/null; echo gone', root=True, timeout=20)
    assert server.ended(box, made['id'])
    others_work(server)
    end = server.run(box, argv=['/bin/ls'])['end']
    assert end['reason'] == 'not-started' and end['message']
    assert server.ask('DELETE', f'{API}/{box}').status == 204
    with server.box() as fresh:
        still_works(server, fresh)


# ---- names, environment, archives ----

@pytest.mark.parametrize('body, status', [
    ({'env': {f'N{i}': 'x' for i in range(257)}}, 400), ({'env': {'A': 'x\0y'}}, 400), ({'env': {'': 'x'}}, 400),
    ({'env': {'A=B': 'x'}}, 400), ({'env': {'A': 'x' * 10**6}}, 400), ({'name': 'x' * 64}, 400), ({'name': '../../etc'}, 400),
    ({'name': 'a\n'}, 400), ({'name': ''}, 400), ({'lease': 'x' * 10**5}, 400), ({'template': '../../../etc'}, (400, 404)),
    ({'template': 'x' * 10**4}, (400, 404)), ({'metadata': {'a': 'x' * 10**5}}, 400), ({'limits': {'processes': 0}}, 400),
    ({'limits': {'memory_mb': 10**12}}, 400), ({'limits': {'disk_mb': -1}}, 400), ({'limits': {'inodes': 1 << 40}}, 400),
], ids=lambda value: str(value)[:30])
def test_absurd_creates(server, body, status):
    answer = server.ask('POST', API, body=body)
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    check_error(server, answer, answer.status)
    assert server.live() == {server.neighbour}


def test_absurd_environment(server):
    """What is allowed comes as it is; what is too much does not start and says so."""
    odd = {'LD_PRELOAD': '/no/such.so', 'BASH_ENV': '/dev/zero', 'IFS': 'x', 'U_': 'ä\n\t"$(id)', 'PATH': '/bin'}
    with server.box(env=odd) as box:
        assert 'ä\n\t"$(id)' in server.run(box, argv=['/bin/printenv', 'U_'])['stdout']
        server.run(box, 'true')
        huge = {'env': {f'N{i}': 'x' * 30000 for i in range(100)}, 'argv': ['/bin/true']}
        answer = server.ask('POST', f'{API}/{box}/commands', body={**huge, 'wait': True})
        assert answer.status in (400, 413) or answer.json['end']['reason'] in ('exit', 'not-started'), answer
        others_work(server)


def tar_of(*members):
    """(name, type, link or bytes)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, kind, data in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
            else:
                info.linkname = data
                tar.addfile(info)
    return out.getvalue()


def test_tar_bombs(server):
    with server.box(limits={'disk_mb': 16, 'inodes': 512}) as box:
        at = f'{API}/{box}/archive?path=/home/user'
        wide = tar_of(*((f'd/{i}', tarfile.DIRTYPE, '') for i in range(2000)))
        check_error(server, server.ask('PUT', at, body=wide), 507)
        assert server.run(box, 'rm -rf /home/user/d')['end']['exit_code'] == 0
        deep = tar_of(*(('/'.join(['a'] * n), tarfile.DIRTYPE, '') for n in (100, 400)))
        assert server.ask('PUT', at, body=deep).status in (200, 201, 204, 400, 507)
        lie = bytearray(tar_of(('big', tarfile.REGTYPE, b'x')))
        lie[124:136] = b'77777777777\0'
        lie[148:156] = b' ' * 8
        lie[148:156] = b'%06o\0 ' % sum(lie[:512])
        assert server.ask('PUT', at, body=bytes(lie)).status in (400, 507)
        still_works(server, box)
        others_work(server)


def test_links_out_of_the_box(server):
    marker = server.folder / 'outside'
    with server.box() as box:
        escape = tar_of(('out', tarfile.SYMTYPE, str(server.folder)), ('out/outside', tarfile.REGTYPE, b'x'),
                        ('../../../../../..' + str(marker), tarfile.REGTYPE, b'x'), (str(marker), tarfile.REGTYPE, b'x'))
        server.ask('PUT', f'{API}/{box}/archive?path=/home/user', body=escape)
        assert not marker.exists()


def test_links_swapped_while_files_are_written(server):
    """Inside is inside: every path ends at a file of the box, or in an error."""
    with server.box() as box:
        swap = server.start_command(
            box, 'mkdir -p /tmp/a /tmp/b; while :; do rm -rf /tmp/x; mkdir /tmp/x; rm -rf /tmp/x; '
            'sed --version >/dev/null; done', timeout=0)
        for i in range(40):
            answer = put(server, box, '/tmp/x/file', b'%d' % i)
            assert answer.status in (201, 404, 409), answer
        assert server.ask('DELETE', f'{API}/{box}/commands/{swap["id"]}').status == 204
        assert not os.path.exists('/tmp/x/file')


# ---- many ----

def test_a_thousand_creates_at_once(server):
    key = server.make_key('read,box', name='greedy')['key']

    def create(_):
        answer = server.ask('POST', API, body={}, key=key)
        return answer.status, answer.json.get('id')
    with ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(create, range(1000)))
    made = [box for status, box in answers if status == 201]
    assert len(made) == 20 and all(status == 429 for status, box in answers if box is None)
    others_work(server)
    assert server.live() == {*made, server.neighbour}
    with ThreadPoolExecutor(10) as pool:
        assert all(pool.map(lambda box: server.run(box, 'echo well', key=key)['stdout'] == 'well\n', made))
        assert set(pool.map(lambda box: server.ask('DELETE', f'{API}/{box}', key=key).status, made)) == {204}
