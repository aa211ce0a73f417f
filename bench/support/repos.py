# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of the forge share: repositories to import, work trees in boxes."""
import os
import pathlib
import shutil
import subprocess

from support import boxes

FILES = 200
FILE_BYTES = 2048
MIB = 1 << 20
PERSON = b'B <b@example.org> 1700000000 +0000'


def git(folder, *words, **options):
    return subprocess.run(['git', '-C', str(folder), *words], check=True, capture_output=True, **options)


def commit(branch, message):
    return b'commit refs/heads/%s\ncommitter %s\ndata %d\n%s\n' % (branch, PERSON, len(message), message)


def put(path, text):
    return b'M 100644 inline %s\ndata %d\n%s\n' % (path, len(text), text)


def history(mebibytes):
    """A commit for each mebibyte that nothing can compress, and then the tree that is checked out."""
    for n in range(mebibytes):
        yield commit(b'main', b'feat: add %d' % n) + put(b'big', os.urandom(MIB))
    yield commit(b'main', b'feat: begin') + b'D big\n'
    for n in range(FILES):
        yield put(b'src/f%d.txt' % n, (b'line of file %d\n' % n * FILE_BYTES)[:FILE_BYTES])


def make(place, pieces):
    """A bare repository from a stream for fast-import, for everybody to read."""
    place.mkdir(parents=True)
    git(place, 'init', '--quiet', '--bare', '--initial-branch=main')
    child = subprocess.Popen(['git', '-C', place, 'fast-import', '--quiet', '--depth=0'], stdin=subprocess.PIPE)
    for piece in pieces:
        child.stdin.write(piece)
    child.stdin.close()
    if child.wait() != 0:
        raise RuntimeError('git fast-import failed')
    subprocess.run(['chmod', '-R', 'a+rX', place], check=True)
    return place


def cached(name, pieces):
    """Made once: a gibibyte that nothing can compress takes longer to write than all that is measured."""
    place = boxes.template_cache().parent / 'repos' / name
    if not place.exists():
        unfinished = place.with_suffix('.unfinished')
        shutil.rmtree(unfinished, ignore_errors=True)
        make(unfinished, pieces).rename(place)
        place.parent.chmod(0o755)
    return place


def with_history(mebibytes):
    return cached(f'history-{mebibytes}', history(mebibytes))


def import_repo(wire, name, place):
    wire.call('POST', '/api/v1/repos', {'name': name, 'source': str(place)})
    boxes.wait_until('the import', lambda: wire.call('GET', f'/api/v1/repos/coop/{name}')['state'] == 'ready', 600)


def clone(wire, box, name, **more):
    """Where it is in the box."""
    made = wire.call('POST', f'/api/v1/sandboxes/{box}/git/clone', {'repository': name, **more})
    if made['objects'] != 'mounted':
        raise RuntimeError(f'nothing was mounted: {made}')
    return made['path']
