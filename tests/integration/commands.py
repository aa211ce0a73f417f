# SPDX-License-Identifier: Apache-2.0
"""Commands of the program, and the users they are run as.

Started by root, tests that take `who` run three times: as root, as an ordinary user, and as root of a
user namespace; started by a user, twice.
"""
import json
import os
import pathlib
import re
import subprocess

import pytest

from harness import ALARM

NOBODY = 65534
TIMEOUT = 60

PREFIX = {
    'root': [],
    'user': ['setpriv', f'--reuid={NOBODY}', f'--regid={NOBODY}', '--clear-groups'] if os.geteuid() == 0 else [],
    'userns': ['unshare', '--user', '--map-root-user'],
}
USERS = ['root', 'user', 'userns'] if os.geteuid() == 0 else ['user', 'userns']


class Coop:
    """Runs the program in an environment that holds nothing of the caller's."""

    def __init__(self, program, folder):
        self.program = str(program)
        self.folder = folder

    def environment(self, env=None):
        kept = {k: v for k, v in os.environ.items() if k in ('PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS')}
        return {**kept, 'HOME': str(self.folder), 'LANG': 'C.UTF-8', **(env or {})}

    def argv(self, args, who=None):
        return [*PREFIX.get(who, []), self.program, *map(str, args)]

    def __call__(self, *args, who=None, env=None, **options):
        done = subprocess.run(self.argv(args, who), env=self.environment(env), cwd=self.folder, text=True,
                              timeout=TIMEOUT, check=False,
                              **{'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                                 'stderr': subprocess.PIPE, **options})
        assert not ALARM.search(done.stderr), done.stderr
        return done

    def popen(self, *args, who=None, env=None, **options):
        return subprocess.Popen(self.argv(args, who), env=self.environment(env), cwd=self.folder, text=True,
                                **{'stdin': subprocess.DEVNULL, **options})

    def json(self, *args, code=0, **options):
        done = self(*args, '-o', 'json', **options)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)


def known_commands(program):
    """Every command, as a tuple, with the words that may follow it: what the program tells a shell, all at once."""
    told = subprocess.run([program, 'completion', 'bash'], check=True, capture_output=True, text=True).stdout
    return {tuple(name.split()[1:]): set(words.split())
            for name, words in re.findall(r"^ *'(coop[^']*)'\) words='([^']*)'", told, re.M)}


def need_user_namespaces():
    if subprocess.run([*PREFIX['userns'], 'true'], check=False).returncode == 0:
        return
    mounts = pathlib.Path('/proc/self/mountinfo').read_text(encoding='utf-8').splitlines()
    if not any(line.split()[4] == '/' for line in mounts):
        pytest.skip('user namespaces cannot be made inside a chroot')
    pytest.skip('this machine has no user namespaces for this user')
