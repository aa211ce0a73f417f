# SPDX-License-Identifier: Apache-2.0
"""What the merge queue does around the checks: merge, row, move of the branch, rows.

Beside it the same three calls of git on the host, neither confined nor written down.
"""
import pathlib
import shutil
import subprocess
import tempfile
import time

import lib
from support import repos

ROUNDS = 40
LIMIT_MS = 150


def changes():
    """Branches that each change a file of their own."""
    yield from repos.history(1)
    for n in range(ROUNDS):
        yield repos.commit(b'change-%d' % n, b'feat: change %d' % n) + b'from refs/heads/main\n'
        yield repos.put(b'src/f%d.txt' % n, b'changed\n')


def bare(place):
    """Milliseconds of each merge by git alone."""
    def ask(*words):
        return repos.git(place, *words, text=True).stdout.strip()

    taken = []
    for n in range(ROUNDS):
        base, head = ask('rev-parse', 'main'), ask('rev-parse', f'change-{n}')
        began = time.perf_counter()
        tree = ask('merge-tree', '--write-tree', base, head)
        made = ask('-c', 'user.name=B', '-c', 'user.email=b@example.org', 'commit-tree', '-p', base, '-p', head, '-m',
                   'feat: merge a change', tree)
        ask('update-ref', 'refs/heads/main', made, base)
        taken.append((time.perf_counter() - began) * 1e3)
    return taken


def run(bench):
    lib.go_first()
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        place, peer = (pathlib.Path(folder, name) for name in ('ours', 'peer'))
        repos.make(place, changes())
        shutil.copytree(place, peer)
        lines = subprocess.run([bench.program('merge-bench'), bench.program('coop-git'), place,
                                pathlib.Path(folder, 'db'), str(ROUNDS)], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.splitlines()
        values = {'merge_ms': lib.summary([float(line.split()[0]) for line in lines]),
                  'children': max(int(line.split()[1]) for line in lines), 'git_ms': lib.summary(bare(peer))}
    values['ratio'] = values['merge_ms']['p50'] / values['git_ms']['p50']
    bench.at_most('merge beside its checks, p50, ms', values['merge_ms']['p50'], LIMIT_MS)
    return values
