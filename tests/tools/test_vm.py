# SPDX-License-Identifier: Apache-2.0
"""tests/vm/run-vm and tools/mkinitramfs without a machine: a stand-in for QEMU plays the records."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QEMU = '''#!/bin/sh
for word; do case $word in file:*) echo "a kernel message" >"${word#file:}" ;; esac; done
cat "$COOP_RECORDS"
[ -z "$COOP_HANG" ] || exec tail -f /dev/null
'''
GOOD = 'begin a\no 1..1\no ok 1 /x\ne noise\nend a exit 0\n'


@pytest.fixture(name='vm')
def machine(tmp_path):
    (tmp_path / 'bin').mkdir()
    qemu = tmp_path / 'bin' / 'qemu-system-x86_64'
    qemu.write_text(QEMU)
    qemu.chmod(0o755)
    kernel = tmp_path / 'linux'
    kernel.mkdir()
    (kernel / 'vmlinuz').touch()
    (kernel / 'series').write_text('6.1\n')
    return tmp_path


def run(vm, records, *tests, hang='', options=()):
    (vm / 'records').write_text(records)
    env = os.environ | {'PATH': f"{vm / 'bin'}:{os.environ['PATH']}", 'COOP_RECORDS': str(vm / 'records'),
                        'COOP_HANG': hang}
    done = subprocess.run([sys.executable, ROOT / 'tests' / 'vm' / 'run-vm', '--kernel', vm / 'linux', '--init',
                           '/bin/true', *options, *(tests or ('--', 'tap', 'a', '/bin/true'))],
                          env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def bad_points(out):
    return [line.split(' ', 3)[3].split(' (')[0] for line in out.splitlines() if line.startswith('not ok')]


def test_good_run(vm):
    status, out = run(vm, GOOD + 'done\n')
    assert status == 0
    assert out.splitlines()[0] == 'ok 1 a: /x'
    assert out.splitlines()[-1] == '1..2'


@pytest.mark.parametrize('records,bad', [
    (GOOD, ['the machine ran to its end']),
    ('', ['a: did not end', 'the machine ran to its end']),
    ('begin a\no 1..2\no ok 1 /x\n', ['a: did not end', 'the machine ran to its end']),
    ('begin a\no 1..2\no ok 1 /x\nend a exit 0\ndone\n', ['a: 2 points planned, 1 printed']),
    ('begin a\no ok 1 /x\nend a exit 0\ndone\n', ['a: no TAP plan was printed']),
    ('begin a\no 1..1\no ok 1 /x\nend a signal 6\ndone\n', ['a: signal 6']),
    ('begin a\no 1..1\no not ok 1 /x\nend a exit 1\ndone\n', ['a: /x']),
    ('begin a\nrubbish\n', ['a: did not end', 'the machine ran to its end']),
])
def test_failures(vm, records, bad):
    status, out = run(vm, records)
    assert status == 1
    assert bad_points(out) == bad
    assert '# a kernel message' in out


def test_exit_status_counts(vm):
    records = 'begin a\nend a exit 0\nbegin b\ne why\nend b exit 3\ndone\n'
    status, out = run(vm, records, '--', 'exit', 'a', '/bin/true', '--', 'exit', 'b', '/bin/false')
    assert status == 1
    assert bad_points(out) == ['b: exit 3']
    assert '# why' in out


@pytest.mark.parametrize('printed,bad', [
    (['O {"a": [{"name": "x", "st', 'o ate": "ok"}],', 'o "b": "1"}'], []),
    (['o {"a": [{"name": "x", "state": "bad"}], "b": "1"}'], ['j: a.x.state is ok, not: bad']),
    (['o {"b": 7}'], ['j: a.x.state is ok, not: None', 'j: b is 1, not: 7']),
    (['o {"b": '], ['j: exit 1, no JSON: Expecting value: line 1 column 7']),
])
def test_json(vm, printed, bad):
    records = '\n'.join(['begin j', *printed, 'end j exit 1', 'done', ''])
    status, out = run(vm, records, '--expect', 'j:a.x.state=ok', '--expect', 'j:b=1', '--', 'json', 'j', '/bin/true')
    assert bad_points(out) == bad
    assert status == bool(bad)


def test_timeout(vm):
    status, out = run(vm, 'begin a\n', hang='yes', options=('--timeout', '1'))
    assert status == 1
    assert bad_points(out) == ['a: did not end', 'the machine ran to its end']
    assert 'the limit is 1 s' in out


def test_skips_without_a_kernel(vm):
    (vm / 'linux' / 'vmlinuz').unlink()
    status, out = run(vm, '')
    assert status == 0
    assert out.startswith('1..0 # SKIP no kernel')


def entries(data):
    """name -> (mode, bytes) of a cpio archive."""
    found, at = {}, 0
    while True:
        assert data[at:at + 6] == b'070701'
        fields = [int(data[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
        name = data[at + 110:at + 110 + fields[11] - 1].decode()
        at = (at + 110 + fields[11] + 3) & ~3
        if name == 'TRAILER!!!':
            return found
        found[name] = (fields[1], data[at:at + fields[6]])
        at = (at + fields[6] + 3) & ~3


def test_initramfs(tmp_path):
    (tmp_path / 'tree' / 'sub').mkdir(parents=True)
    (tmp_path / 'tree' / 'sub' / 'f').write_text('inside')
    (tmp_path / 'tree' / 'l').symlink_to('sub/f')
    modules = tmp_path / 'modules'
    modules.mkdir()
    (modules / 'top-one.ko').write_bytes(b'x\0depends=low_one\0y')
    (modules / 'low_one.ko').write_bytes(b'x\0depends=\0y')
    lines = ['program\t/bin/ls\t/bin/ls', f"tree\t/data\t{tmp_path / 'tree'}", 'text\t/etc/x\tone\ttwo',
             f'module\ttop_one\t{modules}', 'dir\t/empty']
    subprocess.run([ROOT / 'tools' / 'mkinitramfs', tmp_path / 'out'], input='\n'.join(lines), text=True,
                   check=True)
    got = entries((tmp_path / 'out').read_bytes())
    assert got['bin/ls'][1] == pathlib.Path('/bin/ls').read_bytes()
    assert any('libc.so.6' in name for name in got)
    assert got['data/sub/f'][1] == b'inside'
    assert got['data/l'] == (0o120777, b'sub/f')
    assert got['etc/x'][1] == b'one\ntwo\n'
    assert got['modules/order'][1] == b'/modules/low_one.ko\n/modules/top_one.ko\n'
    assert got['empty'][0] == 0o40755
    assert list(got).index('data') < list(got).index('data/sub')


def test_initramfs_refuses_what_it_does_not_know(tmp_path):
    for line in ('device\t/dev/x', 'module\tnone\t' + str(tmp_path)):
        done = subprocess.run([ROOT / 'tools' / 'mkinitramfs', tmp_path / 'out'], input=line, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 1
