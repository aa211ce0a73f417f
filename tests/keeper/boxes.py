# SPDX-License-Identifier: Apache-2.0
"""A coop-keeper, its server's side of the socket, and what may be left of it on the host."""
import contextlib
import os
import pathlib
import random
import re
import select
import shutil
import signal
import socket
import string
import struct
import subprocess
from types import SimpleNamespace

import pytest

HELLO, CREATE, KILL, FREEZE, THAW, STAT, LIST, PREPARE, ATTACH, DETACH, HOLD = range(1, 12)
OK, BOX, FAILED, GONE, STATS, LISTED, TROUBLE = range(64, 71)
VERSION = 4
REQUEST = struct.Struct('<II24s64s1024sIIHHIQQIIII')
ANSWER = struct.Struct('<II24sIIiiIIIIQQQQQIIq')
RECORD = struct.Struct('<III20sq24x')
FIELDS = ('verb serial box version stage error exit_code oom_kills degraded id_base frozen netns_cookie '
          'memory_bytes memory_peak_bytes cpu_us disk_bytes pids inodes born_us').split()
KEEP_DISK, SUDO = 1, 2
MIB, GIB = 1 << 20, 1 << 30
LIMITS = {'memory': 64 * MIB, 'disk': 64 * MIB, 'inodes': 4096, 'pids': 64, 'cpu': 1000}
DOOR_PORT = 8080
DEADLINE = 30
LAYER = '00aa'
ID_BASE = 0x70000000 + 65536 * 100


def need_namespaces():
    mounts = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
    if not any(line.split()[4] == '/' for line in mounts):
        pytest.skip('user namespaces cannot be made inside a chroot')


def new_id():
    return ''.join(random.choices(string.ascii_lowercase + string.digits, k=20))


def request(verb, serial=0, box='', layers=(LAYER,), flags=0, door=DOOR_PORT, low=0, count=0, hostname='box',
            **limits):
    limits = {**LIMITS, **limits}
    names = b''.join(layer.encode().ljust(64, b'\0') for layer in layers)
    return REQUEST.pack(verb, serial, box.encode(), hostname.encode(), names, len(layers), flags, door, low, count,
                        limits['memory'], limits['disk'], limits['inodes'], limits['pids'], limits['cpu'], 0)


def template(store, probe, name=LAYER):
    root = store / name
    for folder in ('bin', 'etc', 'tmp'):
        (root / folder).mkdir(parents=True)
    (root / 'tmp').chmod(0o1777)
    shutil.copy(probe, root / 'bin/probe')
    (root / 'etc/resolv.conf').symlink_to('../../../../../../etc/passwd')
    return root


def give_away(root, base, users=()):
    """The files of a layer to the ids from base on; those of `users` to the thousandth."""
    for path, _, files in os.walk(root):
        for entry in [path, *(os.path.join(path, file) for file in files)]:
            owner = base + (1000 if os.path.basename(entry) in users else 0)
            os.chown(entry, owner, owner, follow_symlinks=False)


class Box:
    def __init__(self, answer, fds):
        self.answer, self.id = answer, answer.box
        self.channel = socket.socket(fileno=fds[0])
        self.channel.setblocking(True)
        self.channel.settimeout(DEADLINE)
        self.pidfd = fds[1]
        self.door = socket.socket(fileno=fds[2]) if len(fds) > 2 else None

    @property
    def pid(self):
        text = pathlib.Path(f'/proc/self/fdinfo/{self.pidfd}').read_text()
        return int(re.search(r'^Pid:\s*(-?\d+)', text, re.M).group(1))

    def hello(self):
        assert self.channel.recv(16) == b'HELLO'
        return self

    def send(self, *words, user='u'):
        self.channel.send(user.encode() + b''.join(word.encode() + b'\0' for word in words))

    def answer_of(self):
        code, _, output = self.channel.recv(65536).partition(b'\n')
        return int(code), output.decode(errors='replace')

    def run(self, *words, user='u'):
        self.send(*words, user=user)
        return self.answer_of()

    def close(self):
        self.channel.close()
        os.close(self.pidfd)
        if self.door:
            self.door.close()


class Keeper:
    def __init__(self, folder, prefix=(), uid=0, init=None, options=(), state=None):
        self.state, self.store, self.socket_path = state or folder / 'state', folder / 'store', folder / 's'
        self.init, self.options = init or os.environ['COOP_BOX_INIT'], list(options)
        self.prefix, self.uid, self.process, self.sock, self.serial = list(prefix), uid, None, None, 0
        if not self.store.exists():
            template(self.store, os.environ['COOP_BOX_PROBE'])
        if uid == 0 and not prefix and not self.state.exists():
            self.state.mkdir(mode=0o700)
            (self.state / 'instance').write_text(free_name())

    def command(self):
        return [*self.prefix, os.environ['COOP_KEEPER'], '--socket', self.socket_path, '--state', self.state,
                '--templates', self.store, '--init', self.init, '--id-base', str(ID_BASE), *self.options]

    def start(self, fail_at=None):
        env = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=1:abort_on_error=1'}
        if fail_at:
            env['COOP_FAIL_AT'] = fail_at
        self.prepared = 0
        self.process = subprocess.Popen(self.command(), stdout=subprocess.PIPE, env=env)
        assert self.process.stdout.readline() == b'ready\n'
        return self.connect()

    def connect(self):
        if self.sock:
            self.sock.close()
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(DEADLINE)
        os.seteuid(self.uid)
        try:
            self.sock.connect(str(self.socket_path))
        finally:
            os.seteuid(0)
        return self

    def ask(self, verb, *args, **options):
        self.serial += 1
        self.sock.send(request(verb, self.serial, *args, **options))
        return self.serial

    def answer(self):
        packet, fds, _, _ = socket.recv_fds(self.sock, ANSWER.size, 8)
        if not packet:
            raise ConnectionResetError
        answer = SimpleNamespace(**dict(zip(FIELDS, ANSWER.unpack(packet))))
        answer.box = answer.box.rstrip(b'\0').decode()
        return answer, fds

    def call(self, verb, *args, **options):
        serial = self.ask(verb, *args, **options)
        while True:
            answer, fds = self.answer()
            if answer.serial == serial:
                return answer, fds

    def create(self, **options):
        answer, fds = self.call(CREATE, options.pop('box', None) or new_id(), **options)
        assert answer.verb == BOX, (answer.stage, os.strerror(answer.error))
        return Box(answer, fds).hello()

    def kill_box(self, box):
        answer, _ = self.call(KILL, box.id)
        assert answer.verb == GONE
        box.close()
        return answer

    def prepare(self, count, **limits):
        self.prepared = count
        assert self.call(PREPARE, count=count, **limits)[0].verb == OK

    @property
    def instance(self):
        return (self.state / 'instance').read_text()

    def fds(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def settled_fds(self):
        """Without boxes and helpers, and with all that is prepared, each of which has several."""
        def at_work():
            folder = f'/proc/{self.process.pid}/fd'
            links = []
            for fd in os.listdir(folder):
                with contextlib.suppress(FileNotFoundError):
                    links.append(os.readlink(f'{folder}/{fd}'))
            ready = sum(link.startswith('user:') for link in links), len(loops_of(self))
            helpers = sum('pidfd' in link for link in links)
            return (ready, helpers) if ready != (self.prepared, self.prepared) or helpers else None

        wait_until(at_work, 'ready boxes and disks, helpers')
        # What the keeper was in the middle of is done when it answers.
        assert self.call(HELLO, count=VERSION)[0].verb == OK
        return self.fds()

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(DEADLINE)

    def died(self):
        """By a failpoint."""
        assert self.process.wait(DEADLINE) == -signal.SIGKILL

    def close(self):
        """Whatever a test did, nothing may stay on the host: the next start cleans."""
        if self.process and self.process.poll() is None:
            self.end(signal.SIGKILL)
        if (self.state / 'instance').exists() and leftovers(self):
            self.start().end()
        if self.sock:
            self.sock.close()


def groups_of(keeper):
    # Only below the controllers' own folders, two levels: where a keeper can have been started.
    found = []
    for folder, folders, _ in os.walk('/sys/fs/cgroup'):
        found += [os.path.join(folder, f) for f in folders if f == 'coop-' + keeper.instance]
    return found


def processes_of(keeper, base=ID_BASE, ranges=4096):
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit():
            try:
                uid = entry.stat().st_uid
            except OSError:
                continue
            if base <= uid < base + ranges * 65536:
                found.append(entry.name)
    return found


def helpers_of(keeper):
    """Of a keeper that has ended: whatever it forked is to be gone too."""
    found = []
    for entry in pathlib.Path('/proc').iterdir():
        try:
            found += [entry.name] if entry.name.isdigit() and str(keeper.state).encode() in \
                (entry / 'cmdline').read_bytes() else []
        except OSError:
            continue
    return found


def records_of(keeper):
    """Ids of the boxes that are meant to be."""
    file = keeper.state / 'records'
    records = RECORD.iter_unpack(file.read_bytes()) if file.exists() else ()
    return [box.decode() for version, _, _, box, _ in records if version]


def loops_of(keeper):
    images = (image_of(name[4:]) for name in os.listdir('/sys/block') if name.startswith('loop'))
    return [image for image in images if image.startswith(f'{keeper.state}/')]


DEVICE_FIRST, DEVICE_RANGES, DEVICE_PLACES = 4096, 200, 4096 + 256 + 64


def free_name():
    """An instance in whose range no device is: what was killed on this host long ago is not the test's."""
    taken = {(int(name[4:]) - DEVICE_FIRST) // DEVICE_PLACES for name in os.listdir('/sys/block')
             if name.startswith('loop')}
    names = (os.urandom(8).hex() for _ in range(100 * DEVICE_RANGES))
    return next(name for name in names if int(name, 16) % DEVICE_RANGES not in taken)


def image_of(device):
    """What a loop device shows; empty when it shows nothing, or has gone."""
    try:
        return pathlib.Path(f'/sys/block/loop{device}/loop/backing_file').read_text().strip()
    except OSError:
        return ''


def devices_of(keeper):
    """Loop devices with a number of the keeper's own, but for those that another test uses."""
    base = DEVICE_FIRST + int(keeper.instance, 16) % DEVICE_RANGES * DEVICE_PLACES
    found = [int(name[4:]) for name in os.listdir('/sys/block')
             if name.startswith('loop') and base <= int(name[4:]) < base + DEVICE_PLACES]
    return [n for n in found if not (image := image_of(n)) or image.startswith(f'{keeper.state.parent}/')]


def devices_written_down(keeper):
    return sum((keeper.state / 'devices').read_bytes()[len(keeper.instance):])


def leftovers(keeper, of_keeper=True):
    """What there is of boxes on the host; of_keeper: and of a keeper that has ended."""
    found = records_of(keeper)
    # What is ready for boxes to come has a disk and groups too.
    images = loops_of(keeper)
    found += images if of_keeper or len(images) > keeper.prepared else []
    found += devices_of(keeper) if of_keeper else []
    found += [line for line in pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
              if str(keeper.state) in line]
    for group in groups_of(keeper):
        inner = [f.path for f in os.scandir(group) if f.is_dir()]
        found += [group] if of_keeper else inner if len(inner) > keeper.prepared else []
    found += processes_of(keeper)
    return found + [str(path) for path in (keeper.state / 'pool').iterdir()] if of_keeper else found


def wait_until(check, message):
    """For what the kernel finishes on its own time, with no event to wait for."""
    for _ in range(DEADLINE * 50):
        value = check()
        if not value:
            return
        select.select([], [], [], 0.02)
    raise AssertionError(f'{message}: {value}')


def nothing_left(keeper, of_keeper=False):
    wait_until(lambda: leftovers(keeper, of_keeper), 'left behind')
