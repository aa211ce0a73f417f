# SPDX-License-Identifier: Apache-2.0
"""A small commit pushed from a box, beside the same push to `git http-backend` without Coop.

The peer's pushes are the host's own: no box, no door, no rows, nothing confined.
"""
import os
import pathlib
import subprocess
import tempfile
import time

import lib
from support import boxes, repos

ROUNDS = 40
LIMIT_MS = 100
RATIO = 2
CHANGE = 'date +%N >> src/f1.txt && git commit --quiet --all --message "feat: change a file"'


def timed(call):
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def in_box(wire, box, argv):
    done = boxes.run(wire, box, argv)
    if done['end']['exit_code'] != 0:
        raise RuntimeError(done['stderr'])


def from_box(wire, box, tree):
    in_box(wire, box, ['/bin/sh', '-c', f'cd {tree} && {CHANGE}'])
    return timed(lambda: in_box(wire, box, ['git', '-C', tree, 'push', '--quiet', 'origin', 'HEAD']))


def from_host(tree):
    subprocess.run(CHANGE, shell=True, cwd=tree, check=True)
    return boxes.spawn_ms(['git', '-C', tree, 'push', '--quiet', 'origin', 'HEAD'])


def peer_tree(folder, port):
    """A work tree of the host whose origin is the peer's repository."""
    repos.make(pathlib.Path(folder, 'peer.git'), repos.history(1))
    repos.git(pathlib.Path(folder, 'peer.git'), 'config', 'http.receivepack', 'true')
    tree = pathlib.Path(folder, 'tree')
    repos.git(folder, 'clone', '--quiet', f'http://127.0.0.1:{port}/peer.git', tree)
    repos.git(tree, 'config', 'user.name', 'B')
    repos.git(tree, 'config', 'user.email', 'b@example.org')
    repos.git(tree, 'checkout', '--quiet', '-b', 'task')
    return tree


def cpu_of_children(pid):
    """What a process and those it has reaped have used, in seconds."""
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf('SC_CLK_TCK')


def run(bench):
    inside, outside = [], []
    lib.go_first()
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        port = lib.free_port()
        with lib.running([bench.program('git-peer'), folder, port]) as peer, \
                boxes.serving(bench, boxes__pool=0) as server:
            os.environ.update(NO_PROXY='127.0.0.1', no_proxy='127.0.0.1')
            tree = peer_tree(folder, port)
            wire = server.wire()
            repos.import_repo(wire, 'small', repos.with_history(1))
            wire.call('POST', '/api/v1/identities', {'name': 'bench'})
            box = boxes.create(wire)
            place = repos.clone(wire, box, 'small', identity='bench')
            from_box(wire, box, place)  # the first makes the branch
            from_host(tree)
            # What a server does once, after its start.
            boxes.wait_until('a server at rest', lambda: not boxes.children(server.server), step=1)
            before = cpu_of_children(server.server), cpu_of_children(peer.pid)
            for _ in range(ROUNDS):
                inside.append(from_box(wire, box, place))
                outside.append(from_host(tree))
            after = cpu_of_children(server.server), cpu_of_children(peer.pid)
            wire.close()
    values = {'box_ms': lib.summary(inside), 'peer_ms': lib.summary(outside),
              'server_cpu_ms': (after[0] - before[0]) * 1e3 / ROUNDS,
              'peer_cpu_ms': (after[1] - before[1]) * 1e3 / ROUNDS}
    values['ratio'] = values['box_ms']['p50'] / values['peer_ms']['p50']
    bench.at_most('push of a small commit from a box, p50, ms', values['box_ms']['p50'], LIMIT_MS)
    bench.at_most('the same beside a push without Coop, p50, ratio', values['ratio'], RATIO)
    return values
