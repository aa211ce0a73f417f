# SPDX-License-Identifier: Apache-2.0
"""From the request to end a box until nothing of it is left.

Nothing: no process, mount, cgroup, attached image or file, and no fd in the keeper or the server.
Nothing is prepared either: what is made for other boxes meanwhile could not be told apart.
What the box was seen to have is looked at again and again; once that is gone, everything is.
"""
import time

import lib
from support import boxes

LITTLE = 100
MUCH = 10
GAP_S = 0.1
GIB = 1 << 30


def gone_ms(server, wire, argv):
    time.sleep(GAP_S)
    before = server.held()
    box = boxes.create(wire)
    end = boxes.run(wire, box, argv)['end']
    if end['exit_code'] != 0:
        raise RuntimeError(f'{argv[0]}: {end}')
    loops, looks = server.loops(), []
    began = time.perf_counter()
    boxes.delete(wire, box)
    answered = time.perf_counter()

    def nothing_left():
        if not server.holds_no_more(before, loops):
            return False
        looks.append(time.perf_counter())
        return server.holds_no_more(before)

    boxes.wait_until(f'the end of {box}', nothing_left, step=0.0005)
    return (answered - began) * 1e3, (looks[-1] - began) * 1e3


def run(bench):
    values = {}
    with boxes.serving(bench, boxes__pool=0, boxes__prepared_disks=0) as server:
        wire = server.wire()
        for name, n, argv, limit in (
                ('little', LITTLE, ['/bin/sh', '-c', 'echo x > note'], 50),
                ('dirty_gib', MUCH, ['/bin/dd', 'if=/dev/zero', 'of=big', 'bs=1M', 'count=1024', 'status=none'], 200)):
            samples = [gone_ms(server, wire, argv) for _ in range(n)]
            values[name] = {'answered_ms': lib.summary([ms for ms, _ in samples]),
                            'gone_ms': lib.summary([ms for _, ms in samples])}
            bench.at_most(f'{name}: nothing left, p99, ms', values[name]['gone_ms']['p99'], limit)
        wire.close()
    return values
