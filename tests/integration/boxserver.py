# SPDX-License-Identifier: Apache-2.0
"""A server with a keeper of its own and a tiny template: a shell and a few programs of this
machine, copied with their libraries."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from harness import IS_ROOT, PR_SET_PDEATHSIG, WAIT_S, Server, Stream, wait_until

PROGRAMS = ('bash sh cat ls id env head tail sleep seq dd stat mkdir rm yes kill tr wc stty printenv pwd readlink '
            'sort sed true false date sha256sum').split()
API = '/api/v1/sandboxes'
LAYER = '7e' * 20
TINY = {'version': 1, 'name': 'tiny', 'hash': '71' * 20, 'key': 'tiny', 'layers': [LAYER], 'size': 1, 'built_us': 1,
        'env': ['PATH=/bin', 'HOME=/home/user'], 'user': 'user', 'workdir': '/home/user', 'sudo': True,
        'low_ports': False, 'versions': {}, 'limits': {}}


def need_boxes():
    if not IS_ROOT:
        pytest.skip('boxes of a server are tested as root')
    mounts = pathlib.Path('/proc/self/mountinfo').read_text().splitlines()
    if not any(line.split()[4] == '/' for line in mounts):
        pytest.skip('user namespaces cannot be made inside a chroot')


def libraries(program):
    lines = subprocess.run(['ldd', program], capture_output=True, text=True).stdout.splitlines()
    for line in lines:
        for word in line.split():
            if word.startswith('/'):
                yield word


def copy_program(root, name):
    """To /bin, with what it needs; a link to a script or a shim is no program."""
    found = next((f'{folder}/{name}' for folder in ('/usr/bin', '/bin') if os.path.exists(f'{folder}/{name}')), None)
    assert found, f'{name} is not on this machine'
    shutil.copy(os.path.realpath(found), root / 'bin' / name)
    for library in libraries(found):
        target = root / library.lstrip('/')
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)


def make_root(root, programs=PROGRAMS):
    for folder in ('bin', 'etc', 'tmp', 'home/user', 'proc', 'dev'):
        (root / folder).mkdir(parents=True)
    (root / 'tmp').chmod(0o1777)
    (root / 'etc/passwd').write_text('root:x:0:0::/:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n')
    (root / 'etc/group').write_text('root:x:0:\nuser:x:1000:\n')
    for name in programs:
        copy_program(root, name)
    os.chown(root / 'home/user', 1000, 1000)
    return root


class Keeper:
    """The keeper of one server, at the place where that looks for it."""

    def __init__(self, home):
        self.folder = pathlib.Path(f'{home}-keeper')
        self.templates = pathlib.Path(home) / 'templates'
        self.programs = PROGRAMS
        self.options = []
        self.process = None

    def prepare(self):
        """The template as the store has it, built."""
        self.folder.mkdir(mode=0o711, exist_ok=True)
        if not (self.templates / LAYER).exists():
            make_root(self.templates / LAYER, self.programs)
            (self.templates / 'tiny.json').write_text(json.dumps(TINY))

    def start(self):
        self.process = subprocess.Popen(
            [os.environ['COOP_KEEPER'], '--socket', self.folder / 'socket', '--state', self.folder / 'state',
             '--templates', self.templates, '--init', os.environ['COOP_INIT'], *self.options],
            stdout=subprocess.PIPE, preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        assert self.process.stdout.readline() == b'ready\n'
        return self

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(WAIT_S)
        self.process.stdout.close()


class BoxServer(Server):
    def __init__(self, folder, keeper=True, **options):
        super().__init__(folder, **options)
        self.env = {'COOP_BOXES_ENABLED': 'true', 'COOP_BOXES_MEMORY': '256MiB', 'COOP_BOXES_DISK': '64MiB', 'COOP_BOXES_INODES': '8192',
                    'COOP_BOXES_MEMORY_FLOOR': '0', 'COOP_BOXES_DISK_FLOOR': '0', 'COOP_BOXES_POOL': '0',
                    'COOP_DOOR_ENABLED': 'false', 'E2B_TEMPLATE_ID': 'tiny', **self.env}
        self.keeper = Keeper(self.home)
        self.with_keeper = keeper

    def start(self):
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.keeper.prepare()
        if not self.with_keeper:
            return super().start()
        self.keeper.start()
        try:
            super().start()
            wait_until(self.has_keeper, 'the keeper')
        except BaseException:
            self.keeper.stop()
            raise
        return self

    def has_keeper(self):
        return self.get('/health', key=None)['tiers'][0]['available']

    def finish(self):
        try:
            super().finish()
        finally:
            if self.keeper.process is not None:
                self.keeper.stop()

    # ---- what tests do again and again ----

    def create(self, status=201, **body):
        key = body.pop('key', '')
        return self.post(API, body, status=status, key=key)

    @contextlib.contextmanager
    def box(self, **body):
        key = body.get('key', '')
        made = self.create(**body)
        yield made['sandbox_id']
        self.ask('DELETE', f'{API}/{made["id"]}', key=key)

    def start_command(self, box, line=None, status=201, key='', **body):
        if line is not None:
            body['command'] = line
        return self.post(f'{API}/{box}/commands', body, status=status, key=key)

    def run(self, box, line=None, **body):
        return self.start_command(box, line, status=200, wait=True, **body)

    def show(self, box, command):
        return self.get(f'{API}/{box}/commands/{command}')

    def ended(self, box, command):
        """The command, once it has ended."""
        return wait_until(lambda: (c := self.show(box, command))['state'] == 'ended' and c, 'the end of a command')

    def output(self, box, command, stream='stdout', **more):
        return self.ask('GET', f'{API}/{box}/commands/{command}/output?stream={stream}', **more)

    def feed(self, box, command, last_id=None):
        return Stream(self, f'{API}/{box}/commands/{command}/output', last_id=last_id)

    def state(self, box):
        made = self.get(f'{API}/{box}')
        return made['state'], made['reason']

    def live(self):
        return {one['id'] for one in self.get(API)['sandboxes']}

    def delete_all(self):
        for box in self.live():
            assert self.ask('DELETE', f'{API}/{box}').status == 204

    def hostname(self, pid):
        done = subprocess.run(['nsenter', '--target', str(pid), '--uts', 'hostname'], capture_output=True, text=True)
        return done.stdout.strip()

    def boxes_of_keeper(self):
        """The first processes of boxes, on the host: children of the keeper."""
        return [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and self._is_init(pid)]

    def init_pid(self, box):
        """On the host: the one that has this box's name."""
        found = [pid for pid in self.boxes_of_keeper() if self.hostname(pid) == box.removeprefix('sb-')]
        assert found, f'{box} has no first process'
        return found[0]

    def _is_init(self, pid):
        try:
            with open(f'/proc/{pid}/status', encoding='utf-8') as file:
                status = dict(line.split(':', 1) for line in file.read().splitlines() if ':' in line)
            ids = status['NSpid'].split()
            return len(ids) == 2 and ids[1] == '1' and int(status['PPid']) == self.keeper.process.pid
        except (OSError, KeyError):
            return False

    def processes_of(self, box):
        return self.get(f'{API}/{box}/stats')['processes']

    def execute(self, box, status=200, key='', **body):
        return self.post(f'/sandbox/{box}/execute', body, status=status, key=key)
