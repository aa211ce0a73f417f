# SPDX-License-Identifier: Apache-2.0
"""A server and a keeper that are killed, each on its own, and what must be true afterwards."""
import ctypes
import http.client
import os
import shutil
import signal
import subprocess

import leaks
from boxserver import API, LAYER, BoxServer, Keeper
from harness import PR_SET_PDEATHSIG, WAIT_S, wait_until

ID_RANGES, ID_RANGE = 256, 65536
# Tests that run at the same time must not take each other's processes for their own.
ID_AREAS = 64
ID_FIRST = 0x30000000
GONE = (OSError, http.client.HTTPException)


class FaultKeeper(Keeper):
    def __init__(self, home):
        super().__init__(home)
        self.state = self.folder / 'state'
        self.env = {}
        self.ids = ID_RANGES * ID_RANGE
        self.id_base = ID_FIRST + os.getpid() % ID_AREAS * self.ids

    def prepare(self):
        super().prepare()
        probe = self.templates / LAYER / 'bin/probe'
        if not probe.exists():
            shutil.copy(os.environ['COOP_BOX_PROBE'], probe)

    def start(self):
        self.process = subprocess.Popen(
            [os.environ['COOP_KEEPER'], '--socket', self.folder / 'socket', '--state', self.state, '--templates',
             self.templates, '--init', os.environ['COOP_INIT'], '--id-base', str(self.id_base), '--id-ranges',
             str(ID_RANGES)],
            stdout=subprocess.PIPE, env={**os.environ, **self.env},
            preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
        assert self.process.stdout.readline() == b'ready\n'
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def died(self):
        """By a failpoint."""
        assert self.process.wait(WAIT_S) == -signal.SIGKILL
        self.process.stdout.close()


class FaultServer(BoxServer):
    def __init__(self, folder, **options):
        super().__init__(folder, **options)
        self.env.setdefault('COOP_BOXES_PREPARED_DISKS', '0')
        self.keeper = FaultKeeper(self.home)
        self.empty = None  # what there is without a box

    def start(self):
        self.home.mkdir(mode=0o700, exist_ok=True)
        self.keeper.prepare()
        if not self.keeper.is_running():
            self.keeper.start()
        super(BoxServer, self).start()
        wait_until(self.has_keeper, 'the keeper')
        if self.empty is None:
            with self.box() as box:
                self.run(box, 'true')
            self.empty = leaks.count(self)
        return self

    def restart(self, fail_at=None):
        """Stopped in order where it still runs; `fail_at` is for this life only."""
        if self.process is not None:
            assert self.stop() in (0, -signal.SIGKILL if 'COOP_FAIL_AT' in self.env else 0)
        self.env.pop('COOP_FAIL_AT', None)
        if fail_at:
            self.env['COOP_FAIL_AT'] = fail_at
        return self.start()

    def restart_keeper(self, fail_at=None):
        if self.keeper.is_running():
            self.keeper.stop()
        self.keeper.env = {'COOP_FAIL_AT': fail_at} if fail_at else {}
        self.keeper.start()
        wait_until(self.has_keeper, 'the keeper')

    def finish(self):
        try:
            if self.process is not None:
                super(BoxServer, self).finish()
        finally:
            if self.keeper.is_running():
                self.keeper.stop()

    # ---- what tests look at ----

    def try_(self, method, path, **more):
        """None: the server died of it."""
        try:
            return self.ask(method, path, **more)
        except GONE:
            return None

    def nothing_left(self):
        leaks.nothing_left(self, self.empty)
