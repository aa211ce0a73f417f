# SPDX-License-Identifier: Apache-2.0
"""Durable events a second: appended by several writers, committed together, on a real disk."""
import json
import pathlib
import subprocess
import tempfile

SECONDS = 3
# writers, events in one job.  The first row is what the limit is about; the others show what
# group commit does for writers that append one by one, and what one alone gets.
CASES = [(8, 100), (512, 1), (64, 1), (1, 1)]


def run(bench):
    program = bench.program('store-bench')
    rows = []
    # Beside the build and not in /tmp, which may be memory: a sync has to reach a disk.
    with tempfile.TemporaryDirectory(dir=bench.build) as folder:
        for writers, batch in CASES:
            file = pathlib.Path(folder, f'{writers}-{batch}.db')
            done = subprocess.run([program, file, str(SECONDS), str(writers), str(batch)], check=True,
                                  capture_output=True, text=True, timeout=SECONDS + 60)
            rows.append(json.loads(done.stdout))
    bench.at_least('durable events a second, in batches', rows[0]['events_per_s'], 20000)
    return {'rows': rows}
