# SPDX-License-Identifier: Apache-2.0
"""A clone into a box: with a gibibyte of history, beside the same work tree with a mebibyte of it."""
import os
import pathlib
import subprocess
import tempfile
import time

import lib
from support import boxes

ROUNDS = 20
FILES = 200
FILE_BYTES = 2048
LIMIT_MS = 200
RATIO = 1.2
PUSH_LIMIT_MS = 100
MIB = 1 << 20
SIZES = {'small': 1, 'large': 1024}
PERSON = 'B <b@example.org> 1700000000 +0000'


def git(folder, *words, **options):
    return subprocess.run(['git', '-C', str(folder), *words], check=True, capture_output=True, **options)


def stream(mebibytes):
    """A commit for each mebibyte that nothing can compress, and then the tree that is checked out."""
    for n in range(mebibytes):
        message = b'feat: add %d' % n
        yield (b'commit refs/heads/main\ncommitter %s\ndata %d\n%s\n' % (PERSON.encode(), len(message), message)
               + b'M 100644 inline big\ndata %d\n' % MIB + os.urandom(MIB) + b'\n')
    yield b'commit refs/heads/main\ncommitter %s\ndata 11\nfeat: begin\nD big\n' % PERSON.encode()
    for n in range(FILES):
        text = (f'line of file {n}\n' * FILE_BYTES)[:FILE_BYTES].encode()
        yield b'M 100644 inline src/f%d.txt\ndata %d\n%s\n' % (n, len(text), text)


def make(folder, name, mebibytes):
    place = pathlib.Path(folder, name)
    place.mkdir()
    git(place, 'init', '--quiet', '--bare', '--initial-branch=main')
    child = subprocess.Popen(['git', '-C', place, 'fast-import', '--quiet', '--depth=0'], stdin=subprocess.PIPE)
    for piece in stream(mebibytes):
        child.stdin.write(piece)
    child.stdin.close()
    if child.wait() != 0:
        raise RuntimeError('git fast-import failed')
    subprocess.run(['chmod', '-R', 'a+rX', place], check=True)
    return place


def import_repo(wire, name, place):
    wire.call('POST', '/api/v1/repos', {'name': name, 'source': str(place)})
    boxes.wait_until('the import', lambda: wire.call('GET', f'/api/v1/repos/coop/{name}')['state'] == 'ready', 600)


def clone(wire, name):
    """In a box of its own; how long it took, in all and at the server, and how long the checkout alone."""
    box = boxes.create(wire)
    began = time.perf_counter()
    made = wire.call('POST', f'/api/v1/sandboxes/{box}/git/clone', {'repository': name})
    took = (time.perf_counter() - began) * 1e3
    if made['objects'] != 'mounted':
        raise RuntimeError(f'nothing was mounted: {made}')
    return box, made['path'], took


def push(wire, box, path):
    line = f'cd {path} && date +%N >> src/f1.txt && git commit -qam "feat: change a file"'
    boxes.run(wire, box, ['/bin/sh', '-c', line])
    began = time.perf_counter()
    done = boxes.run(wire, box, ['git', '-C', path, 'push', '--quiet', 'origin', 'HEAD'])
    took = (time.perf_counter() - began) * 1e3
    if done['end']['exit_code'] != 0:
        raise RuntimeError(done['stderr'])
    return took


def run(bench):
    samples = {name: [] for name in SIZES}
    pushes = []
    with tempfile.TemporaryDirectory(prefix='coop-bench-') as folder:
        os.chmod(folder, 0o755)
        places = {name: make(folder, name, size) for name, size in SIZES.items()}
        with boxes.serving(bench, boxes__pool=0) as server:
            wire = server.wire()
            for name, place in places.items():
                import_repo(wire, name, place)
            wire.call('POST', '/api/v1/identities', {'name': 'bench'})
            for n in range(ROUNDS + 1):
                for name in SIZES:
                    box, path, took = clone(wire, name)
                    if n > 0:
                        samples[name].append(took)
                    boxes.delete(wire, box)
            box = boxes.create(wire)
            path = wire.call('POST', f'/api/v1/sandboxes/{box}/git/clone',
                             {'repository': 'small', 'identity': 'bench'})['path']
            pushes = [push(wire, box, path) for _ in range(ROUNDS)]
            boxes.delete(wire, box)
            wire.close()
    values = {f'{name}_ms': lib.summary(taken) for name, taken in samples.items()}
    values['push_ms'] = lib.summary(pushes)
    bench.at_most('clone with 1 GiB of objects, p50, ms', values['large_ms']['p50'], LIMIT_MS)
    bench.at_most('the same beside 1 MiB of them, p50, ratio',
                  values['large_ms']['p50'] / values['small_ms']['p50'], RATIO)
    bench.at_most('push of a small commit from a box, p50, ms', values['push_ms']['p50'], PUSH_LIMIT_MS)
    return values
