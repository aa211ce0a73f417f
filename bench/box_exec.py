# SPDX-License-Identifier: Apache-2.0
"""A command in a live box over HTTP, beside posix_spawn of the same program on the host."""
import time

import lib
from support import boxes

ROUNDS = 20
RUNS = 50
GAP_S = 0.005
PROGRAM = ['/bin/true']


def timed(call):
    samples = []
    for _ in range(RUNS):
        time.sleep(GAP_S)
        began = time.perf_counter()
        call()
        samples.append((time.perf_counter() - began) * 1e3)
    return samples


def run(bench):
    inside, outside = [], []
    with boxes.serving(bench, boxes__pool=0) as server:
        wire = server.wire()
        box = boxes.create(wire)
        timed(lambda: boxes.run(wire, box, PROGRAM))
        for _ in range(ROUNDS):
            inside += timed(lambda: boxes.run(wire, box, PROGRAM))
            outside += timed(lambda: boxes.spawn_ms(PROGRAM))
        wire.close()
    values = {'box_ms': lib.summary(inside), 'posix_spawn_ms': lib.summary(outside)}
    limit = 1.5 * values['posix_spawn_ms']['p50'] + 1
    bench.at_most('command in a live box, p50, ms', values['box_ms']['p50'], limit)
    return values
