# SPDX-License-Identifier: Apache-2.0
"""A GiB into a box and out of it over HTTP, beside `cp` into the box's own file system.

The server's memory is looked at all the while.
"""
import threading
import time

import lib
from support import boxes

SIZE = 1 << 30
PIECE = 1 << 20
ROUNDS = 3
MIB = 1 << 20
PATH = '/home/user/big'


class Peak(threading.Thread):
    """The most memory that a process has while this runs."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.over = pid, lib.rss_bytes(pid), threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            self.most = max(self.most, lib.rss_bytes(self.pid))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


def put(wire, box):
    piece = bytes(PIECE)
    began = time.perf_counter()
    wire.begin('PUT', f'{boxes.SANDBOXES}/{box}/files?path={PATH}', SIZE)
    for _ in range(SIZE // PIECE):
        wire.socket.sendall(piece)
    wire.answer()
    return time.perf_counter() - began


def get(wire, box):
    began = time.perf_counter()
    wire.send('GET', f'{boxes.SANDBOXES}/{box}/files?path={PATH}', accept='*/*')
    status, length = wire.read_head()
    if status != 200 or length != SIZE:
        raise RuntimeError(f'{status}, {length} bytes')
    left = length - len(wire.buffer)
    room = bytearray(PIECE)
    while left > 0:
        left -= wire.socket.recv_into(room, min(left, PIECE))
    wire.buffer = b''
    return time.perf_counter() - began


def copy(wire, box):
    """Within the box, from a file in the host's memory to a new one."""
    end = boxes.run(wire, box, ['/bin/sh', '-c', f'rm -f copy; exec cp {PATH} copy'], timeout=300)['end']
    if end['exit_code'] != 0:
        raise RuntimeError(end)
    return end['duration_ms'] / 1e3


def run(bench):
    into, out, beside = [], [], []
    with boxes.serving(bench, boxes__pool=0) as server:
        wire = server.wire()
        box = boxes.create(wire)
        idle = lib.rss_bytes(server.server)
        with Peak(server.server) as peak:
            for _ in range(ROUNDS):
                into.append(put(wire, box))
                out.append(get(wire, box))
                beside.append(copy(wire, box))
        boxes.delete(wire, box)
        wire.close()
    rate = {name: SIZE / MIB / min(samples) for name, samples in (('in', into), ('out', out), ('cp', beside))}
    bench.at_least('1 GiB in / cp', rate['in'] / rate['cp'], 0.4)
    bench.at_least('1 GiB out / cp', rate['out'] / rate['cp'], 0.4)
    bench.at_most('growth of the server, MiB', (peak.most - idle) / MIB, 16)
    return {'in_s': lib.summary(into), 'out_s': lib.summary(out), 'cp_s': lib.summary(beside), 'mib_per_s': rate,
            'server_idle_bytes': idle, 'server_peak_bytes': peak.most}
