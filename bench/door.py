# SPDX-License-Identifier: Apache-2.0
"""The door: a tunnel beside a direct connection, an idle box, a decision.

The direct connection and the tunnel take turns over the same loopback, for a few seconds before
everything else that would run: a third process among many that wait for a processor would be most
of what is measured.
"""
import os
import resource
import subprocess

import lib

MIB = 256
ROUNDS = 7
BOXES = 1000
DECISIONS = 200_000


def run(bench):
    program = str(bench.program('door-bench'))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * BOXES)), hard))
    lines = ask(program, 'tunnel', MIB, ROUNDS, preexec_fn=go_first)
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


def go_first():
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass  # then it is measured with what else there is


def ask(program, *arguments, **more):
    done = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=300,
                          **more)
    return done.stdout.splitlines()
