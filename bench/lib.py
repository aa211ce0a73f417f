# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks share: where things are, what the kernel says of a process, statistics.

A benchmark is a module bench/NAME.py with a docstring of what it shows and a function
run(bench) -> dict of plain values, which bench/run writes to bench/results/NAME.json.
"""
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import urllib.request


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
    return {'kernel': platform.release(), 'cpu': cpu_model(), 'cores': len(os.sched_getaffinity(0)), 'load': os.getloadavg()[0],
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


def go_first(steps=-10):
    """What is measured, and its peers, before what else the machine does; without the right to, as it comes."""
    try:
        os.nice(steps)
    except PermissionError:
        pass


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


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(argv, ready='ready', **options):
    """A program that says on standard output when it is ready; ended afterwards."""
    child = subprocess.Popen([str(word) for word in argv], stdout=subprocess.PIPE, text=True, **options)
    try:
        for line in child.stdout:
            if ready in line:
                break
        else:
            raise RuntimeError(f'{argv[0]} ended with {child.wait()} before it was ready')
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(20)
        child.stdout.close()


class Coop:
    """A release server on a folder of its own."""

    def __init__(self, child, port, home):
        self.pid, self.port, self.home = child.pid, port, pathlib.Path(home)
        self.url = f'http://127.0.0.1:{port}'
        self.key = (self.home / 'key').read_text().strip()

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, headers={'X-API-Key': self.key},
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer) if answer.status != 204 else None


@contextlib.contextmanager
def coop(bench, home=None, **settings):
    """`home`: a folder that stays; none: one of its own."""
    port = free_port()
    with contextlib.ExitStack() as stack:
        home = home or stack.enter_context(tempfile.TemporaryDirectory())
        lines = [f'  {name}: {value}' for name, value in settings.items()]
        pathlib.Path(home, 'config.yaml').write_text('\n'.join(['http:', *lines, '']) if lines else '')
        argv = [bench.program('coop'), 'serve', '--home', home, '--listen', f'127.0.0.1:{port}', '--log', 'warn']
        if os.geteuid() == 0:
            argv += ['--user', 'root']
        yield Coop(stack.enter_context(running(argv)), port, home)


def wrk(url, connections=64, seconds=4):
    """Requests that wrk had answered."""
    text = subprocess.run(['wrk', '-t1', f'-c{connections}', f'-d{seconds}', url], check=True, text=True,
                          capture_output=True).stdout
    if 'Non-2xx' in text:
        raise RuntimeError(text)
    return int(re.search(r'(\d+) requests in', text).group(1))


def cpu_per_request(pid, url, **options):
    """CPU of a server for one request, in microseconds."""
    before = cpu_seconds(pid)
    requests = wrk(url, **options)
    return (cpu_seconds(pid) - before) * 1e6 / requests
