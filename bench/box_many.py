# SPDX-License-Identifier: Apache-2.0
"""Many boxes: a hundred asked for at once, and a thousand that idle with a file watch each.

Creates at once are compared with cold ones, one after the other, on all cores.  Of the idle
boxes the memory of all their processes counts (PSS), and what they cost a further create.
"""
import pathlib
import selectors
import time

import lib
from support import boxes

AT_ONCE = 100
IDLE = 1000
STEP = 20
SAMPLES = 30
GAP_S = 0.1
KIB = 1024


def cold(server):
    wire = server.wire()
    samples = []
    for _ in range(SAMPLES):
        time.sleep(GAP_S)
        samples.append(boxes.first_output(wire))
    wire.close()
    return samples


def answers(wires):
    """One answer of each, in the order in which they come, with the time of each."""
    with selectors.DefaultSelector() as selector:
        for wire in wires:
            selector.register(wire.socket, selectors.EVENT_READ, wire)
        while selector.get_map():
            for key, _ in selector.select():
                selector.unregister(key.fileobj)
                yield key.data, key.data.answer(), time.perf_counter()


def at_once(server, n):
    """Milliseconds until each of `n` boxes was ready, and the boxes."""
    wires = [server.wire() for _ in range(n)]
    began = time.perf_counter()
    for wire in wires:
        wire.send('POST', boxes.SANDBOXES, {})
    made = [(box['sandbox_id'], (at - began) * 1e3) for _, box, at in answers(wires)]
    for wire in wires:
        wire.close()
    return [ms for _, ms in made], [box for box, _ in made]


def end(server, names):
    wire = server.wire()
    for name in names:
        boxes.delete(wire, name)
    wire.close()


def crowd(bench):
    cores = lib.machine()['cores']
    values = {}
    for name, disks in (('prepared', AT_ONCE), ('usual', 4)):
        with boxes.serving(bench, boxes__pool=0, boxes__prepared_disks=disks) as server:
            one = lib.summary(cold(server))
            server.wait_prepared(disks)
            times, names = at_once(server, AT_ONCE)
            end(server, names)
        values[name] = {'cold_ms': one, 'ready_ms': lib.summary(times), 'all_ms': max(times)}
        limit = 1.5 * AT_ONCE * one['p50'] / cores
        if name == 'prepared':
            bench.at_most(f'{AT_ONCE} creates at once, ms', max(times), limit)
    return values


def pss(pid):
    for line in pathlib.Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines():
        if line.startswith('Pss:'):
            return int(line.split()[1]) * KIB
    return 0


def watch(server, name):
    wire = server.wire()
    wire.send('GET', f'{boxes.SANDBOXES}/{name}/files/watch?path=/home/user', accept='text/event-stream')
    wire.read_head()
    while b'event: ready' not in wire.buffer:
        wire.more()
    wire.buffer = b''
    return wire


def idle(bench):
    with boxes.serving(bench, boxes__pool=0, http__streams_per_key=4 * IDLE) as server:
        before = lib.summary(cold(server))
        held = {'server_rss': lib.rss_bytes(server.server), 'keeper_rss': lib.rss_bytes(server.keeper)}
        names, watches = [], []
        while len(names) < IDLE:
            names += at_once(server, STEP)[1]
            watches += [watch(server, name) for name in names[-STEP:]]
        wire = server.wire()
        usable = sum(boxes.run(wire, name, ['/bin/true'])['end']['exit_code'] == 0 for name in names)
        inside = boxes.descendants(server.keeper)
        memory = sum(pss(pid) for pid in inside)
        now = {'server_rss': lib.rss_bytes(server.server), 'keeper_rss': lib.rss_bytes(server.keeper)}
        server.wait_prepared(4)
        with_all = lib.summary(cold(server))
        wire.call('PUT', f'{boxes.SANDBOXES}/{names[0]}/files?path=/home/user/seen', {})
        while b'event: change' not in watches[0].buffer:
            watches[0].more()
        for other in watches:
            other.close()
        wire.close()
        end(server, names)
    bench.at_least('usable boxes', usable, IDLE)
    bench.at_most('memory of an idle box, PSS, KiB', memory / IDLE / KIB, 256)
    bench.at_most(f'cold create with {IDLE} boxes / with none, p50', with_all['p50'] / before['p50'], 1.5)
    return {'boxes': IDLE, 'processes': len(inside), 'pss_bytes_each': memory / IDLE, 'cold_with_none_ms': before,
            'cold_with_all_ms': with_all,
            'growth_each': {name: (now[name] - held[name]) / IDLE for name in held}}


def run(bench):
    return {'at_once': crowd(bench), 'idle': idle(bench)}
