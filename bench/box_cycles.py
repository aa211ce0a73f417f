# SPDX-License-Identifier: Apache-2.0
"""Ten thousand boxes made, used and deleted: nothing may grow.

The first tenth is left out: what is allocated once is there afterwards.
"""
import concurrent.futures

import lib
from support import boxes

CYCLES = 10000
WORKERS = 4
SAMPLES = 10
MIB = 1 << 20


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
    with boxes.serving(bench) as server, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for _ in range(SAMPLES):
            list(pool.map(lambda n: some(server, n), [CYCLES // SAMPLES // WORKERS] * WORKERS))
            server.settle()
            samples.append(server.resources())
    first, last = samples[0], samples[-1]
    for name in ('keeper_fds', 'server_fds', 'keeper_mounts', 'processes', 'cgroups', 'loops_attached'):
        bench.at_most(f'{name}, growth', last[name] - first[name], 0)
    high = max(sample['loop_devices'] for sample in samples)
    bench.at_most('loop devices, growth over the high-water mark', last['loop_devices'] - high, 0)
    for name in ('keeper_rss', 'server_rss'):
        bench.at_most(f'{name}, growth, MiB', (last[name] - first[name]) / MIB, 4)
    return {'cycles': CYCLES, 'samples': samples, 'after_tenth': first, 'at_end': last}
