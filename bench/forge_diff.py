# SPDX-License-Identifier: Apache-2.0
"""A commit with 10,000 changed files, read in pages: time of a page, memory of the server meanwhile.

Beside it: `git diff-tree` of the whole on the host, which is what the pages together replace.
"""
import pathlib
import subprocess
import time

import lib
from support import boxes, repos

FILES = 10_000
LINES = 100
PAGE = 100
MIB = 1 << 20
GROWTH_MIB = 16  # of one that has all of it in memory: many times as much
PAGE_MS = 200
LATE = 1.5  # the last pages beside the first


def text(n, change):
    return b''.join(b'%s line %d of file %d\n' % (change, line, n) for line in range(LINES))


def changes():
    yield repos.commit(b'main', b'feat: begin')
    for n in range(FILES):
        yield repos.put(b'd%02d/f%d.txt' % (n % 100, n), text(n, b'old'))
    yield repos.commit(b'main', b'feat: change all')
    for n in range(FILES):
        yield repos.put(b'd%02d/f%d.txt' % (n % 100, n), text(n, b'new'))


def whole(place):
    """How long the whole takes, and how long it is."""
    began = time.perf_counter()
    done = subprocess.run(['git', '-c', 'safe.directory=*', '-C', place, 'diff-tree', '-p', '-r', 'main~1', 'main'],
                          check=True, stdout=subprocess.PIPE)
    return (time.perf_counter() - began) * 1e3, len(done.stdout)


def forget_peak(pid):
    pathlib.Path(f'/proc/{pid}/clear_refs').write_text('5')


def peak_bytes(pid):
    for line in pathlib.Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmHWM:'):
            return int(line.split()[1]) * 1024
    raise ValueError(f'process {pid} has no memory of its own')


def read_pages(wire, oid):
    taken, seen = [], set()
    for page in range(1, FILES // PAGE + 2):
        began = time.perf_counter()
        commit = wire.call('GET', f'/api/v3/repos/coop/wide/commits/{oid}?per_page={PAGE}&page={page}')
        taken.append((time.perf_counter() - began) * 1e3)
        if not commit['files']:
            break
        if any('patch' not in file for file in commit['files']):
            raise RuntimeError(f'page {page} has files without a patch')
        seen.update(file['filename'] for file in commit['files'])
    if len(seen) != FILES:
        raise RuntimeError(f'{len(seen)} files on the pages')
    return taken[:-1]


def run(bench):
    place = repos.cached('wide-10000', changes())
    oid = subprocess.run(['git', '-c', 'safe.directory=*', '-C', place, 'rev-parse', 'main'], check=True, text=True,
                         stdout=subprocess.PIPE).stdout.strip()
    lib.go_first()
    with boxes.serving(bench, boxes__pool=0) as server:
        wire = server.wire()
        repos.import_repo(wire, 'wide', place)
        wire.call('GET', f'/api/v3/repos/coop/wide/commits/{oid}?per_page={PAGE}')
        forget_peak(server.server)
        before = peak_bytes(server.server)
        taken = read_pages(wire, oid)
        growth = peak_bytes(server.server) - before
        wire.close()
    whole_ms, whole_bytes = whole(place)
    tenth = len(taken) // 10
    values = {'files': FILES, 'page_ms': lib.summary(taken), 'whole_ms': whole_ms, 'whole_mib': whole_bytes / MIB,
              'growth_mib': growth / MIB,
              'late': lib.percentile(taken[-tenth:], 50) / lib.percentile(taken[:tenth], 50)}
    bench.at_most('memory of the server for all pages, MiB', values['growth_mib'], GROWTH_MIB)
    bench.at_most('a page of 100 files, p50, ms', values['page_ms']['p50'], PAGE_MS)
    bench.at_most('the last pages beside the first, ratio', values['late'], LATE)
    return values
