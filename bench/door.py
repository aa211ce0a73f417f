# SPDX-License-Identifier: Apache-2.0
"""The door: a tunnel beside a direct connection, an idle box, a decision.

The direct connection and the tunnel take turns over the same loopback, so that what else the
machine does falls on both.
"""
import resource
import subprocess

import lib

MIB = 512
ROUNDS = 9
BOXES = 1000
DECISIONS = 200_000


def run(bench):
    program = str(bench.program('door-bench'))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * BOXES)), hard))
    lines = ask(program, 'tunnel', MIB, ROUNDS)
    pairs = [tuple(map(float, line.split())) for line in lines[:-1]]
    ratios = [direct / tunnel for direct, tunnel in pairs]
    per_box = float(ask(program, 'boxes', BOXES)[0]) / BOXES
    decision = float(ask(program, 'decide', DECISIONS)[0])
    bench.at_least('throughput of a tunnel, of a direct connection', lib.percentile(ratios, 50), 0.7)
    bench.at_most('an idle box, KiB', per_box / 1024, 8)
    bench.at_most('a decision, us', decision, 20)
    return {'mib': MIB, 'direct_s': lib.summary([direct for direct, _ in pairs]),
            'tunnel_s': lib.summary([tunnel for _, tunnel in pairs]), 'ratio': lib.summary(ratios),
            'door_cpu_s_per_gib': float(lines[-1]) / (MIB * ROUNDS / 1024), 'box_bytes': per_box,
            'decision_us': decision}


def ask(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=300)
    return done.stdout.splitlines()
