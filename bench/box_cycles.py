# SPDX-License-Identifier: Apache-2.0
"""Ten thousand boxes made, used and deleted: nothing may grow.

The first tenth is left out: what is allocated once is there afterwards.  Loop devices may be as
many as boxes were alive or waiting at once; when nobody has asked for a box for a while, only those
are left that a waiting one has.
"""
import concurrent.futures

import lib
from support import boxes

CYCLES = 10000
WORKERS = 4
SAMPLES = 10
MIB = 1 << 20
PREPARED = 4
HELPERS = 4    # that make or end a disk meanwhile
TRIM_S = 150   # the keeper waits a minute


def some(server, n):
    wire = server.wire()
    for _ in range(n):
        box = boxes.create(wire)
        if boxes.run(wire, box, ['/bin/true'])['end']['exit_code'] != 0:
            raise RuntimeError('a command failed')
        boxes.delete(wire, box)
    wire.close()


def run(bench):
    samples = []
    with boxes.serving(bench, boxes__pool=0, boxes__prepared_disks=PREPARED) as server, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for _ in range(SAMPLES):
            list(pool.map(lambda n: some(server, n), [CYCLES // SAMPLES // WORKERS] * WORKERS))
            server.settle()
            samples.append(server.resources())
        boxes.wait_until('unused loop devices', lambda: len(server.devices()) <= len(server.loops()), TRIM_S, 1)
        idle = server.resources()
    first, last = samples[0], samples[-1]
    for name in ('keeper_fds', 'server_fds', 'keeper_mounts', 'processes', 'cgroups', 'loops_attached'):
        bench.at_most(f'{name}, growth', last[name] - first[name], 0)
    high = max(sample['loop_devices'] for sample in samples)
    bench.at_least('loop devices of the keeper, highest', high, PREPARED)
    bench.at_most('loop devices of the keeper, highest', high, WORKERS + PREPARED + HELPERS)
    bench.at_most('loop devices of the keeper, idle', idle['loop_devices'], idle['loops_attached'])
    for name in ('keeper_rss', 'server_rss'):
        bench.at_most(f'{name}, growth, MiB', (last[name] - first[name]) / MIB, 4)
    return {'cycles': CYCLES, 'samples': samples, 'after_tenth': first, 'at_end': last, 'idle': idle}
