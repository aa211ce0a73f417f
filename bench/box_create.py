# SPDX-License-Identifier: Apache-2.0
"""From the request for a box to the first output of a first command in it, over HTTP.

Cold: id ranges, cgroups and mounted disks are prepared, but no process and no namespace waits.
Beside it a bare C program with the same system calls and the same things prepared, and the
usual programs of this kind, each on the same root and with the same gap between runs.  They
take turns, so that what else the machine does meets all of them.

The box and its first command are asked for in one request; `two` is the same in two.
"""
import contextlib
import pathlib
import subprocess
import tempfile
import time

import lib
from support import boxes, runtimes

ROUNDS = 20
RUNS = 10
GAP_S = 0.1
ID_BASE = 1500 * 65536  # no range of the keeper's, which counts from below


def bare(bench, root):
    argv = [bench.program('box-bare'), root, ID_BASE, RUNS, int(GAP_S * 1000), *boxes.ECHO]
    text = subprocess.run([str(word) for word in argv], check=True, text=True, stdout=subprocess.PIPE).stdout
    return [float(line) / 1e3 for line in text.split()]


def bwrap(root):
    return ['bwrap', '--unshare-all', '--bind', root, '/', '--proc', '/proc', '--dev', '/dev', 'true']


def spawned(argv, **options):
    samples = []
    for _ in range(RUNS):
        time.sleep(GAP_S)
        samples.append(boxes.spawn_ms(argv, **options))
    return samples


def over_http(server, call=boxes.first_output):
    samples = []
    wire = server.wire()
    for _ in range(RUNS):
        time.sleep(GAP_S)
        samples.append(call(wire))
    wire.close()
    return samples


def beside(folder, root):
    """The runtimes that work here; why not, for those that do not."""
    values = {}
    for name, make in runtimes.ALL.items():
        try:
            values[name] = lib.summary([ms for _ in range(2) for ms in spawned(make(folder, root))])
        except (OSError, RuntimeError) as error:
            values[name] = {'skipped': str(error)}
    return values


def both(name, samples):
    """Of those who ask twice: for the box, and then for the command."""
    return {f'{name}_create_ms': lib.summary([create for create, _ in samples]),
            f'{name}_ms': lib.summary([all_of_it for _, all_of_it in samples])}


def run(bench):
    cold, pool, two, pool_two, c, wrapped = [], [], [], [], [], []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(boxes.serving(bench, boxes__pool=0))
        pooled = stack.enter_context(boxes.serving(bench, boxes__pool=4))
        root = stack.enter_context(boxes.template_root())
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        over_http(server), over_http(pooled)
        for _ in range(ROUNDS):
            cold += over_http(server)
            c += bare(bench, root)
            wrapped += spawned(bwrap(root))
            pool += over_http(pooled)
            two += over_http(server, boxes.first_output_two)
            pool_two += over_http(pooled, boxes.first_output_two)
        others = beside(folder, root)
    values = {'cold_ms': lib.summary(cold), 'pool_ms': lib.summary(pool),
              **both('cold_two', two), **both('pool_two', pool_two),
              'bare_ms': lib.summary(c), 'bwrap_ms': lib.summary(wrapped), **others}
    p50 = {name: value['p50'] for name, value in values.items() if 'p50' in value}
    bench.at_most('cold / bare, p50', p50['cold_ms'] / p50['bare_ms'], 1.5)
    bench.at_most('cold / bwrap, p50', p50['cold_ms'] / p50['bwrap_ms'], 1)
    bench.at_most('pool / cold, p50', p50['pool_ms'] / p50['cold_ms'], 0.5)
    return values
