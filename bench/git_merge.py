# SPDX-License-Identifier: Apache-2.0
"""A pull request through the merge queue, without the time of its checks.

Beside it the three calls of git that make the same merge on the host, neither confined nor written down.
"""
import datetime
import pathlib
import shutil
import tempfile
import time

import lib
from support import boxes, repos

ROUNDS = 20
LIMIT_MS = 150
WAIT_MS = 60_000
REPO = '/api/v1/repos/coop/merged'


def changes():
    """Branches that each change a file of their own."""
    yield from repos.history(1)
    for n in range(ROUNDS):
        yield repos.commit(b'change-%d' % n, b'feat: change %d' % n) + b'from refs/heads/main\n'
        yield repos.put(b'src/f%d.txt' % n, b'changed\n')


def open_pull(wire, n):
    pull = {'title': f'feat: change {n}', 'head': f'change-{n}', 'base': 'main'}
    return wire.call('POST', '/api/v3/repos/coop/merged/pulls', pull)['number']


def checked_ms(wire, suite):
    """How long its checks took: of a repository that has none, looking for them."""
    row = wire.call('GET', f'{REPO}/checks/{suite}')
    began, ended = (datetime.datetime.fromisoformat(row[name]) for name in ('created_at', 'ended_at'))
    return (ended - began).total_seconds() * 1e3


def land(wire, number):
    """Milliseconds until it has landed, and those of them that are its checks'."""
    began = time.perf_counter()
    entry = wire.call('POST', f'{REPO}/merges', {'number': number})['id']
    merge = wire.call('GET', f'{REPO}/merges/{entry}?wait_ms={WAIT_MS}')
    took = (time.perf_counter() - began) * 1e3
    if merge['state'] != 'landed':
        raise RuntimeError(merge)
    return took, checked_ms(wire, merge['suite_id'])


def bare(place, n):
    """Milliseconds of git alone."""
    def ask(*words):
        return repos.git(place, *words, text=True).stdout.strip()

    base, head = ask('rev-parse', 'main'), ask('rev-parse', f'change-{n}')
    began = time.perf_counter()
    tree = ask('merge-tree', '--write-tree', base, head)
    made = ask('-c', 'user.name=B', '-c', 'user.email=b@example.org', 'commit-tree', '-p', base, '-p', head, '-m',
               'feat: merge a change', tree)
    ask('update-ref', 'refs/heads/main', made, base)
    return (time.perf_counter() - began) * 1e3


def run(bench):
    ours, checks, peer = [], [], []
    lib.go_first()
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder, boxes.serving(bench, boxes__pool=0) as server:
        pathlib.Path(folder).chmod(0o755)
        place = repos.make(pathlib.Path(folder, 'source'), changes())
        other = shutil.copytree(place, pathlib.Path(folder, 'peer'))
        wire = server.wire()
        repos.import_repo(wire, 'merged', place)
        wire.call('PATCH', f'{REPO}/settings', {'checks': 'none'})
        for n in range(ROUNDS):
            number = open_pull(wire, n)
            # What a new pull request, and a branch that has moved, have done behind them is not this.
            server.settle()
            boxes.wait_until('a server at rest', lambda: not boxes.children(server.server), step=0.5)
            took, checked = land(wire, number)
            ours.append(took - checked)
            checks.append(checked)
            peer.append(bare(other, n))
        wire.close()
    values = {'merge_ms': lib.summary(ours), 'checks_ms': lib.summary(checks), 'git_ms': lib.summary(peer)}
    values['ratio'] = values['merge_ms']['p50'] / values['git_ms']['p50']
    bench.at_most('merge beside its checks, p50, ms', values['merge_ms']['p50'], LIMIT_MS)
    return values
