# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of boxes share: a server with its keeper, and a client that costs little."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import lib

USER = 'coop'
READY_S = 900  # the first start builds the template
DEVICE_FIRST, DEVICE_RANGES, DEVICE_PLACES = 4096, 200, 4096 + 256 + 64  # as in the keeper's device.h


def template_cache():
    """Layers are named by what they were made from, so one folder serves every run."""
    return pathlib.Path(os.environ.get('COOP_TEST_CACHE', '/var/tmp/coop-bench')) / 'templates'


class Wire:
    """One kept connection; answers are read as they come.  urllib would cost more than a box."""

    def __init__(self, port, key):
        self.socket = socket.create_connection(('127.0.0.1', port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f'Host: 127.0.0.1:{port}\r\nX-API-Key: {key}\r\n'
        self.buffer = b''

    def close(self):
        self.socket.close()

    def send(self, method, path, body=None, accept='application/json'):
        data = b'' if body is None else json.dumps(body).encode()
        kind = 'Content-Type: application/json\r\n' if body is not None else ''
        self.socket.sendall(f'{method} {path} HTTP/1.1\r\n{self.head}Accept: {accept}\r\n{kind}'
                            f'Content-Length: {len(data)}\r\n\r\n'.encode() + data)

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError('the server closed the connection')
        self.buffer += piece

    def read_head(self):
        """The status and the length of the body; other headers are nobody's here."""
        while b'\r\n\r\n' not in self.buffer:
            self.more()
        head, _, self.buffer = self.buffer.partition(b'\r\n\r\n')
        length = head.lower().partition(b'\r\ncontent-length: ')[2].partition(b'\r\n')[0]
        return int(head[9:12]), int(length or 0)

    def call(self, method, path, body=None):
        self.send(method, path, body)
        return self.answer()

    def answer(self):
        status, length = self.read_head()
        while len(self.buffer) < length:
            self.more()
        answer, self.buffer = self.buffer[:length], self.buffer[length:]
        if status >= 300:
            raise RuntimeError(f'{status} {answer[:300]!r}')
        return json.loads(answer) if answer else None

    def begin(self, method, path, length):
        """The head of a request whose body the caller sends."""
        self.socket.sendall(f'{method} {path} HTTP/1.1\r\n{self.head}Content-Length: {length}\r\n\r\n'.encode())

    def stream_begins(self):
        status, _ = self.read_head()
        if status != 200:
            raise RuntimeError(f'{status} {self.buffer[:300]!r}')

    def stream_until(self, mark):
        """Reads the events of an answer to their end; when the mark was seen, and all of them."""
        text, seen = self.buffer, None
        while seen is None:
            if mark in text:
                seen = time.perf_counter()
            else:
                self.buffer = b''
                self.more()
                text += self.buffer
        # The end of the answer: an empty chunk.
        while not text.endswith(b'0\r\n\r\n'):
            self.buffer = b''
            self.more()
            text += self.buffer
        self.buffer = b''
        return seen, text


class Boxes:
    """A running release server of its own, with its keeper."""

    def __init__(self, child, port, home):
        self.child, self.port, self.home = child, port, pathlib.Path(home)
        self.key = (self.home / 'key').read_text().strip()
        self.server, self.keeper = self.pid_of('serve'), self.pid_of('coop-keeper')

    def wire(self):
        return Wire(self.port, self.key)

    def pid_of(self, program):
        for pid in children(self.child.pid):
            words = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
            names = (pathlib.Path(os.fsdecode(words[0])).name, os.fsdecode(words[1]) if len(words) > 1 else '')
            if program in names:
                return pid
        raise ProcessLookupError(program)

    def fds(self):
        return len(os.listdir(f'/proc/{self.keeper}/fd')), len(os.listdir(f'/proc/{self.server}/fd'))

    def loops(self, names=None):
        return boxes_loops(self.home, names)

    def wait_prepared(self, n):
        """Until disks wait for a box: attached images that are the keeper's own."""
        wait_until('prepared disks', lambda: len(self.loops()) >= n)

    def settle(self):
        """Until what is made in the background stays the same for a while."""
        last, since = None, time.monotonic()
        while time.monotonic() - since < 0.5:
            now = self.held()
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)

    def held(self, loops=None):
        """What boxes have on the host and in the two processes, as numbers; of loop devices those of
        `loops` alone, where they are known: a look at each that a host has may take longer than a box."""
        keeper_fds, server_fds = self.fds()
        return {'keeper_fds': keeper_fds, 'server_fds': server_fds, 'processes': len(descendants(self.keeper)),
                'mounts': count_lines(f'/proc/{self.keeper}/mountinfo'), 'files': len(state_files(self.home)),
                'groups': len(box_groups(self.keeper, self.home)), 'loops': len(self.loops(loops))}

    def holds_no_more(self, before, loops=None):
        now = self.held(loops)
        return all(now[name] <= before[name] for name in now)

    def resources(self):
        """What boxes hold on the host, and what the two processes hold for them."""
        keeper_fds, server_fds = self.fds()
        return {'keeper_fds': keeper_fds, 'server_fds': server_fds,
                'keeper_rss': lib.rss_bytes(self.keeper), 'server_rss': lib.rss_bytes(self.server),
                'keeper_mounts': count_lines(f'/proc/{self.keeper}/mountinfo'),
                'processes': len(descendants(self.keeper)), 'cgroups': len(box_groups(self.keeper, self.home)),
                'cgroups_of_host': count_groups(),
                'loop_devices': len(self.devices()), 'loops_attached': len(self.loops())}

    def devices(self):
        """Loop devices that the keeper made: their numbers are in the range of its instance."""
        base = DEVICE_FIRST + int(instance(self.home), 16) % DEVICE_RANGES * DEVICE_PLACES
        return [name for name in loop_devices() if base <= int(name[len('loop'):]) < base + DEVICE_PLACES]


def loop_devices():
    return [name for name in os.listdir('/sys/block') if name.startswith('loop')]


def boxes_loops(home, names=None):
    found = set()
    for name in loop_devices() if names is None else names:
        with contextlib.suppress(OSError), open(f'/sys/block/{name}/loop/backing_file') as file:
            if file.read().startswith(str(home)):
                found.add(name)
    return found


def state_files(home):
    """Files that are there for boxes alone."""
    state = pathlib.Path(f'{home}-keeper', 'state')
    return [entry for folder in ('pool', 'kept', 'folders') for entry in os.listdir(state / folder)]


def instance(home):
    return pathlib.Path(f'{home}-keeper', 'state', 'instance').read_text().strip()


def box_groups(keeper, home):
    """Folders of boxes, those that are prepared among them, in all hierarchies."""
    name = f'coop-{instance(home)}'
    found = []
    for line in pathlib.Path(f'/proc/{keeper}/cgroup').read_text().splitlines():
        _, controllers, place = line.split(':', 2)
        for base in (pathlib.Path('/sys/fs/cgroup', controllers), pathlib.Path('/sys/fs/cgroup/unified')):
            ours = base / place.strip('/') / name
            with contextlib.suppress(OSError):
                found += [entry.path for entry in os.scandir(ours) if entry.name.startswith('box-')]
    return set(found)


def children(pid):
    text = ''
    for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
        with contextlib.suppress(OSError):
            text += (task / 'children').read_text()
    return [int(word) for word in text.split()]


def descendants(pid):
    found = []
    for child in children(pid):
        found.append(child)
        with contextlib.suppress(OSError):
            found += descendants(child)
    return found


def count_lines(path):
    return pathlib.Path(path).read_text().count('\n')


def count_groups():
    """Those of all hierarchies, whoever made them, those that the kernel has not freed yet among them."""
    return sum(int(line.split()[2]) for line in pathlib.Path('/proc/cgroups').read_text().splitlines()[1:])


def wait_until(what, condition, seconds=120, step=0.02):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(step)


@contextlib.contextmanager
def template_root():
    """The template's root where a peer without the right to open the folder of templates gets at it.

    Nothing here removes a tree: below the mount is the template itself.
    """
    layer = json.loads((template_cache() / 'base.json').read_text())['layers'][0]
    root = tempfile.mkdtemp(prefix='coop-bench-root-')
    subprocess.run(['mount', '--bind', template_cache() / layer, root], check=True)
    try:
        subprocess.run(['mount', '-o', 'remount,bind,ro', root], check=True)
        yield root
    finally:
        subprocess.run(['umount', '-l', root], check=True)
        os.rmdir(root)


@contextlib.contextmanager
def serving(bench, **settings):
    """`settings` are those of the configuration, with '__' for the dot."""
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        os.chmod(folder, 0o755)
        home = pathlib.Path(folder, 'home')
        port = lib.free_port()
        cache = template_cache()
        who = []
        cache.parent.mkdir(parents=True, exist_ok=True)
        cache.mkdir(mode=0o700, exist_ok=True)
        if os.geteuid() == 0:
            user = pwd.getpwnam(USER)
            os.chown(cache, user.pw_uid, user.pw_gid)
            who = ['--user', USER]
        options = {'templates__dir': cache, 'http__rate_per_key': 1000000, 'http__rate_burst': 10000000,
                   'boxes__per_key': 4096, 'boxes__max': 4096, **settings}
        argv = [bench.program('coop'), 'start', '--home', home, '--listen', f'127.0.0.1:{port}', *who,
                *(f'--set={name.replace("__", ".")}={value}' for name, value in options.items())]
        log = pathlib.Path(folder, 'log')
        with log.open('wb') as errors:
            child = subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL, stderr=errors)
        try:
            wait_for_boxes(child, port, home)
            yield Boxes(child, port, home)
        except Exception:
            shutil.copyfileobj(log.open(errors='replace'), sys.stderr)
            raise
        finally:
            child.terminate()
            child.wait(60)


def wait_for_boxes(child, port, home):
    """Ready to make boxes: the template is there and the self-test has passed."""
    def ready():
        if child.poll() is not None:
            raise RuntimeError(f'the server ended with {child.returncode}')
        with contextlib.suppress(OSError, RuntimeError):
            with contextlib.closing(Wire(port, (home / 'key').read_text().strip())) as wire:
                return wire.call('GET', '/health')['status'] == 'ok'
        return False

    wait_until('no box could be made', ready, READY_S, 0.05)


# ---- what is measured ----

SANDBOXES = '/api/v1/sandboxes'
MARK = 'first-output'
ECHO = ['/bin/echo', MARK]


def create(wire, **wishes):
    return wire.call('POST', SANDBOXES, wishes)['sandbox_id']


def run(wire, box, argv, **more):
    return wire.call('POST', f'{SANDBOXES}/{box}/commands', {'argv': argv, 'wait': True, **more})


def delete(wire, box):
    wire.call('DELETE', f'{SANDBOXES}/{box}')


SEEN = f'"text":"{MARK}'.encode()


def first_output(wire, argv=ECHO):
    """Milliseconds from the request for a box with a first command to the first output of that."""
    began = time.perf_counter()
    wire.send('POST', SANDBOXES, {'command': {'argv': argv}}, accept='text/event-stream')
    wire.stream_begins()
    seen, text = wire.stream_until(SEEN)
    delete(wire, text.partition(b'"sandbox_id":"')[2].partition(b'"')[0].decode())
    return (seen - began) * 1e3


def first_output_two(wire, argv=ECHO):
    """The same with a request for each: milliseconds of the create, and of both."""
    began = time.perf_counter()
    box = create(wire)
    made = time.perf_counter()
    wire.send('POST', f'{SANDBOXES}/{box}/commands', {'argv': argv}, accept='text/event-stream')
    wire.stream_begins()
    seen, _ = wire.stream_until(SEEN)
    delete(wire, box)
    return (made - began) * 1e3, (seen - began) * 1e3


def spawn_ms(argv, **options):
    """A program from its start to its end, by posix_spawn as nothing starts one in less."""
    quiet = [(os.POSIX_SPAWN_OPEN, fd, '/dev/null', os.O_RDWR, 0) for fd in (0, 1, 2)]
    began = time.perf_counter()
    pid = os.posix_spawnp(argv[0], [str(word) for word in argv], os.environ, file_actions=quiet, **options)
    status = os.waitpid(pid, 0)[1]
    took = (time.perf_counter() - began) * 1e3
    if status != 0:
        raise RuntimeError(f'{argv[0]} ended with status {status}')
    return took
