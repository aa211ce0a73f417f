# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: where things are, what the kernel says of a process, statistics.

A benchmark is a module bench/NAME.py with a docstring of what it shows and a function
run(bench) -> dict of plain values, which bench/run writes to bench/results/NAME.json.
"""
import datetime
import os
import pathlib
import platform
import statistics


def percentile(samples, percent):
    """The smallest sample that at least this share of all samples does not exceed."""
    ordered = sorted(samples)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(int(rank), 1) - 1]


def summary(samples):
    if not samples:
        raise ValueError('no samples')
    return {'n': len(samples), 'mean': statistics.fmean(samples), 'min': min(samples),
            'p50': percentile(samples, 50), 'p95': percentile(samples, 95), 'p99': percentile(samples, 99),
            'max': max(samples)}


def cpu_model():
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.machine()


def machine():
    """Numbers mean nothing without the machine they come from; the host's name stays at home."""
    return {'kernel': platform.release(), 'cpu': cpu_model(), 'cores': len(os.sched_getaffinity(0)),
            'date': datetime.datetime.now(datetime.timezone.utc).isoformat(timespec='seconds')}


def rss_bytes(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) * 1024
    raise ValueError(f'process {pid} has no memory of its own')


def cpu_seconds(pid):
    """User and system time of a process."""
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Bench:
    """Handed to run(): the build folder, and the limits that the benchmark holds itself to."""

    def __init__(self, build):
        self.build = pathlib.Path(build)
        self.checks = []

    def program(self, name):
        """A program of the build, wherever in it it lies."""
        found = [path for path in self.build.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
        if len(found) != 1:
            raise FileNotFoundError(f'{len(found)} programs called {name} in {self.build}')
        return found[0]

    def at_most(self, what, value, limit):
        self.checks.append({'what': what, 'value': value, 'limit': limit, 'ok': value <= limit})

    def at_least(self, what, value, limit):
        self.checks.append({'what': what, 'value': value, 'limit': limit, 'ok': value >= limit})
