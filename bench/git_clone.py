# SPDX-License-Identifier: Apache-2.0
"""A clone into a box: a gibibyte of history, beside the same work tree with a mebibyte of it.

Beside both: `git clone --shared` of the gibibyte on the host, which copies no objects either, has no box
to reach and keeps nobody from anything.
"""
import pathlib
import tempfile
import time

import lib
from support import boxes, repos

ROUNDS = 20
LIMIT_MS = 200
RATIO = 1.2
SIZES = {'small': 1, 'large': 1024}  # mebibytes


def in_a_box(wire, name):
    box = boxes.create(wire)
    began = time.perf_counter()
    repos.clone(wire, box, name)
    took = (time.perf_counter() - began) * 1e3
    boxes.delete(wire, box)
    return took


def shared(place):
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        return boxes.spawn_ms(['git', '-c', 'safe.directory=*', 'clone', '--quiet', '--shared', place,
                               pathlib.Path(folder, 'tree')])


def run(bench):
    places = {name: repos.with_history(size) for name, size in SIZES.items()}
    samples = {name: [] for name in (*SIZES, 'shared')}
    lib.go_first()
    with boxes.serving(bench, boxes__pool=0) as server:
        wire = server.wire()
        for name, place in places.items():
            repos.import_repo(wire, name, place)
            in_a_box(wire, name)  # the first of all makes the generation
        for _ in range(ROUNDS):
            for name in SIZES:
                samples[name].append(in_a_box(wire, name))
            samples['shared'].append(shared(places['large']))
        wire.close()
    values = {f'{name}_ms': lib.summary(taken) for name, taken in samples.items()}
    p50 = {name: values[f'{name}_ms']['p50'] for name in samples}
    values['of_shared'] = p50['large'] / p50['shared']
    bench.at_most('clone with 1 GiB of objects, p50, ms', p50['large'], LIMIT_MS)
    bench.at_most('the same beside 1 MiB of them, p50, ratio', p50['large'] / p50['small'], RATIO)
    return values
