# SPDX-License-Identifier: Apache-2.0
"""What a box looks like from outside, and what it cannot do from inside."""
import errno
import os
import pathlib
import re

import pytest

import boxes

NAMESPACES = ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup', 'time')
# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID
INIT_CAPABILITIES = 0xfb
PLACES = {'/', '/proc', '/proc/sys', '/sys', '/dev', '/dev/pts', '/dev/shm'}

REFUSED = {
    'unshare-user': 'EPERM', 'unshare-mount': 'EPERM', 'clone-user': 'EPERM', 'clone-net': 'EPERM',
    'clone3': 'ENOSYS', 'setns': 'EPERM', 'mount': 'EPERM', 'umount': 'EPERM', 'pivot_root': 'EPERM',
    'chroot': 'EPERM', 'fsopen': 'ENOSYS', 'open_tree': 'ENOSYS', 'max-user-namespaces': 'EACCES EROFS',
    'core_pattern': 'EACCES EROFS', 'sysrq': 'EACCES EROFS ENOENT', 'kcore': 'ENODATA ENOENT', 'kallsyms': 'ENODATA',
    'cmdline': 'ENODATA', 'kmsg': 'ENODATA', 'bpf': 'EPERM', 'perf': 'EPERM', 'io_uring': 'ENOSYS',
    'userfaultfd': 'EPERM', 'fanotify': 'EPERM', 'keyctl': 'EPERM', 'add_key': 'EPERM', 'vmsplice': 'EPERM',
    'module': 'EPERM', 'reboot': 'EPERM', 'swapon': 'EPERM', 'syslog': 'EPERM', 'sethostname': 'EPERM',
    'personality': 'EPERM', 'iopl': 'EPERM', 'modify_ldt': 'EPERM', 'x32': 'ENOSYS', 'tiocsti': 'EPERM',
    'unknown': 'ENOSYS', 'ptrace': 'EPERM', 'process_vm_readv': 'EPERM', 'pidfd_getfd': 'EPERM', 'kcmp': 'EPERM',
    'handle': 'EPERM', 'init-mem': 'EACCES', 'init-environ': 'EACCES', 'init-fd': 'EACCES', 'init-root': 'EACCES',
    'parent-dirs': 'EACCES', 'mknod': 'EPERM', 'mknod-null': 'EPERM', 'sys-write': 'EACCES EROFS',
    'dev-write': 'EACCES EROFS', 'netfilter': 'EAFNOSUPPORT', 'packet': 'EAFNOSUPPORT', 'vsock': 'EAFNOSUPPORT',
    'alg': 'EAFNOSUPPORT', 'xdp': 'EAFNOSUPPORT', 'raw': 'EPERM', 'inet-pair': 'EAFNOSUPPORT', 'tcp-ulp': 'EPERM',
    'xtables': 'EPERM', 'port-80': 'EACCES', 'door-port': 'EADDRINUSE', 'out-private': 'ENETUNREACH',
    'out-metadata': 'ENETUNREACH', 'loopback': 'ECONNREFUSED',
}
WORKS = ('dev-null', 'urandom', 'ptmx', 'unix', 'inet6', 'netlink', 'port-9000')


def probe(box, user):
    code, output = box.run('/bin/probe', user=user)
    assert code == 0, output
    return {name: int(value) for name, value in re.findall(r'^(\S+) (-?\d+)$', output, re.M)}


@pytest.mark.parametrize('user', ['u', 'r'])
def test_inside(keeper, user):
    found = probe(keeper.create(), user)
    # A signal that pid 1 has not asked for is dropped at the border of its namespace.
    refused = dict(REFUSED, **({'init-kill': 'EPERM'} if user == 'u' else {}))
    wrong = {name: errno.errorcode.get(found[name], found[name]) for name, wanted in refused.items()
             if errno.errorcode.get(found[name]) not in wanted.split()}
    assert wrong == {}
    assert [name for name in WORKS if found[name] != 0] == []
    assert found['int80'] == 128 + 31
    # 0, 1, 2 and the folder itself
    assert found['fds'] == 4
    assert (found['groups'], found['core'], found['nnp']) == (0, 0, 1)
    assert found['files'] <= 4096


def test_low_ports_where_asked(keeper):
    assert probe(keeper.create(low=1), 'u')['port-80'] == 0
    assert probe(keeper.create(low=0), 'r')['port-80'] == errno.EACCES


def status(pid):
    text = pathlib.Path(f'/proc/{pid}/status').read_text()
    return dict(re.findall(r'^(\w+):\t(.*)$', text, re.M))


def test_outside(keeper):
    box = keeper.create()
    pid, base = box.pid, box.answer.id_base
    found = status(pid)
    assert base >= boxes.ID_BASE
    assert pathlib.Path(f'/proc/{pid}/uid_map').read_text().split() == ['0', str(base), '65536']
    assert pathlib.Path(f'/proc/{pid}/gid_map').read_text().split() == ['0', str(base), '65536']
    assert found['Uid'].split() == [str(base)] * 4 and found['Gid'].split() == [str(base)] * 4
    assert found['Groups'].split() == []
    assert (found['Seccomp'], found['NoNewPrivs'], found['Threads']) == ('2', '1', '1')
    assert int(found['Seccomp_filters']) == 1
    for which in ('CapPrm', 'CapEff', 'CapBnd'):
        assert int(found[which], 16) == INIT_CAPABILITIES, which
    assert int(found['CapInh'], 16) == int(found['CapAmb'], 16) == 0
    for name in NAMESPACES:
        assert os.readlink(f'/proc/{pid}/ns/{name}') != os.readlink(f'/proc/self/ns/{name}'), name
    links = {fd: os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')}
    assert links.pop('3').startswith('socket:')
    assert links == {'0': '/dev/null', '1': '/dev/null', '2': '/dev/null'}
    assert 'memfd:coop-init' in os.readlink(f'/proc/{pid}/exe')
    assert pathlib.Path(f'/proc/{pid}/environ').read_bytes() == b''


RLIMITS = {'Max core file size': (0, 0), 'Max open files': (4096, 4096), 'Max pending signals': (1024, 1024),
           'Max locked memory': (8 << 20, 8 << 20), 'Max msgqueue size': (0, 0), 'Max nice priority': (0, 0),
           'Max realtime priority': (0, 0), 'Max stack size': (8 << 20, 64 << 20)}


def posture(pid, task):
    """What the kernel says of one thread, in the words of EXPECTED."""
    root = pathlib.Path(f'/proc/{pid}/task/{task}')
    found = dict(re.findall(r'^(\w+):\t(.*)$', (root / 'status').read_text(), re.M))
    limits = {name: (int(soft), int(hard)) for name, soft, hard in
              re.findall(r'^(Max [a-z ]+?) {2,}(\d+) +(\d+) ', (root / 'limits').read_text(), re.M)}
    return {
        'uids': sorted({int(n) for n in found['Uid'].split()}), 'gids': sorted({int(n) for n in found['Gid'].split()}),
        'groups': found['Groups'].split(), 'no new privileges': found['NoNewPrivs'], 'seccomp': found['Seccomp'],
        'filters': found['Seccomp_filters'], 'bounding': int(found['CapBnd'], 16), 'ambient': int(found['CapAmb'], 16),
        'inheritable': int(found['CapInh'], 16), 'effective': int(found['CapEff'], 16),
        'permitted': int(found['CapPrm'], 16),
        'namespaces': {name: os.readlink(root / 'ns' / name) for name in NAMESPACES},
        'limits': {name: limits[name] for name in RLIMITS if name in limits},
        'root': os.readlink(root / 'root'), 'tracer': found['TracerPid'],
        'fds': sorted(int(fd) for fd in os.listdir(root / 'fd')),
        # Of one that cannot be dumped: the box's root.  That init cannot be is seen from inside.
        'owner': (root / 'environ').stat().st_uid,
    }


def threads_of(box):
    space = os.readlink(f'/proc/{box.pid}/ns/pid')
    for entry in os.listdir('/proc'):
        try:
            if entry.isdigit() and os.readlink(f'/proc/{entry}/ns/pid') == space:
                yield from ((int(entry), int(task)) for task in os.listdir(f'/proc/{entry}/task'))
        except OSError:
            continue


@pytest.mark.parametrize('user', ['u', 'r'])
def test_posture_of_every_thread(keeper, user):
    box, other = keeper.create(), keeper.create()
    box.send('/bin/probe', 'threads', user=user)
    boxes.wait_until(lambda: len(list(threads_of(box))) != 5, 'threads')
    base = box.answer.id_base
    common = {
        'groups': [], 'no new privileges': '1', 'seccomp': '2', 'filters': '1', 'bounding': INIT_CAPABILITIES,
        'ambient': 0, 'inheritable': 0, 'limits': RLIMITS, 'root': '/', 'tracer': '0',
        'namespaces': {name: os.readlink(f'/proc/{box.pid}/ns/{name}') for name in NAMESPACES},
    }
    init = {'uids': [base], 'gids': [base], 'effective': INIT_CAPABILITIES, 'permitted': INIT_CAPABILITIES,
            'owner': base}
    root = {**init, 'fds': [0, 1, 2]}
    plain = {'uids': [base + 1000], 'gids': [base + 1000], 'effective': 0, 'permitted': 0, 'fds': [0, 1, 2],
             'owner': base + 1000}
    for pid, task in threads_of(box):
        found = posture(pid, task)
        wanted = {**common, **(init if pid == box.pid else root if user == 'r' else plain)}
        if pid == box.pid:
            # What the test's init opens to serve the request is its own.
            assert {0, 1, 2, 3} <= set(found.pop('fds'))
        assert found == wanted, (pid, task)
    for name in NAMESPACES:
        assert len({os.readlink(f'/proc/{pid}/ns/{name}') for pid in (box.pid, other.pid, os.getpid())}) == 3, name


def test_mounts(keeper):
    box = keeper.create()
    lines = pathlib.Path(f'/proc/{box.pid}/mountinfo').read_text().splitlines()
    mounts = {line.split()[4]: line for line in lines}
    assert {place for place in mounts if not place.startswith('/proc/')} == PLACES - {'/proc/sys'}
    for place, line in mounts.items():
        options = line.split()[5].split(',')
        assert 'nosuid' in options, line
        assert 'nodev' in options or place in ('/dev', '/dev/pts'), line
        assert 'ro' in options or place in ('/', '/proc', '/dev/pts', '/dev/shm'), line
        assert str(keeper.state) not in line and str(keeper.store) not in line
        assert 'shared:' not in line and 'master:' not in line
    hidden = ('kcore', 'kallsyms', 'sysrq-trigger', 'keys', 'fs', 'cmdline')
    assert {f'/proc/{name}' for name in hidden if os.path.exists(f'/proc/{name}')} <= set(mounts)


def test_user_namespace_belongs_to_the_range(keeper):
    """Inotify instances are counted for its creator: boxes must not share the allowance."""
    import fcntl
    box = keeper.create()
    get_owner = 0xb704
    fd = os.open(f'/proc/{box.pid}/ns/user', os.O_RDONLY)
    buffer = bytearray(4)
    fcntl.ioctl(fd, get_owner, buffer)
    os.close(fd)
    assert int.from_bytes(buffer, 'little') == box.answer.id_base


def test_ipc_has_bounds(keeper):
    box = keeper.create(memory=64 * boxes.MIB)
    found = {name: box.run('/bin/probe', 'cat', f'/proc/sys/kernel/{name}')[1].split()
             for name in ('shmall', 'msgmni', 'sem')}
    assert found == {'shmall': ['16384'], 'msgmni': ['1024'], 'sem': ['250', '32000', '100', '1024']}
    assert pathlib.Path('/proc/sys/kernel/msgmni').read_text() != '1024\n'


def test_boxes_do_not_see_each_other(keeper):
    first, second = keeper.create(), keeper.create()
    assert first.answer.id_base != second.answer.id_base
    for name in NAMESPACES:
        assert os.readlink(f'/proc/{first.pid}/ns/{name}') != os.readlink(f'/proc/{second.pid}/ns/{name}')
