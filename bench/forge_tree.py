# SPDX-License-Identifier: Apache-2.0
"""Merges of a pull request as they are made beside its checks, and a large diff served in pages."""
import json
import os
import pathlib
import subprocess
import tempfile

import lib

MERGES = 20
FILES = 2000
COMMITS = 5
CHANGED = 10000
MERGE_MS = 150


def story(root):
    """main with FILES files; side has COMMITS changes, main one more; wide changes CHANGED files."""
    lines = []
    time = 1700000000

    def commit(branch, parent=None):
        nonlocal time
        time += 1
        lines.append(f'commit refs/heads/{branch}\ncommitter B <b@example.com> {time} +0000\ndata 7\nfix: x\n\n')
        if parent:
            lines.append(f'from refs/heads/{parent}\n')

    def file(path, text):
        lines.append(f'M 100644 inline {path}\ndata {len(text)}\n{text}\n')

    body = ''.join(f'line {i}\n' for i in range(100))
    commit('main')
    for i in range(FILES):
        file(f'src/{i % 40}/{i}.c', f'{i}\n{body}')
    commit('wide', 'main')
    for i in range(CHANGED):
        file(f'wide/{i % 100}/{i}.c', f'{i}\n{body}')
    for i in range(COMMITS):
        commit('side', 'main' if i == 0 else None)
        file(f'src/{i}/{i}.c', f'{i}\n{body}side\n')
    commit('main')
    file('src/39/39.c', f'39\n{body}main\n')
    subprocess.run(['git', 'init', '-q', '--bare', '--template=', '-b', 'main', root], check=True)
    subprocess.run(['git', '-C', root, 'fast-import', '--quiet'], input=''.join(lines).encode(), check=True)
    return {name: git(root, 'rev-parse', name) for name in ('main', 'side', 'wide')}


def git(root, *args):
    return subprocess.run(['git', '-C', root, *args], check=True, capture_output=True, text=True).stdout.strip()


def ask(bench, root, *args):
    done = subprocess.run([bench.program('tree-bench'), pathlib.Path(bench.build, 'coop-git'), root, *args],
                          check=True, capture_output=True, text=True, timeout=600)
    return json.loads(done.stdout)


def run(bench):
    rows = {}
    with tempfile.TemporaryDirectory(dir=bench.build) as folder:
        root = os.path.join(os.path.realpath(folder), 'repo.git')
        tips = story(root)
        tree = git(root, 'merge-tree', '--write-tree', tips['main'], tips['side'])
        cases = [('merge', tree), ('squash', tree), ('rebase', ''), ('merge', '')]
        for method, known in cases:
            got = ask(bench, root, 'merge', method, tips['main'], tips['side'], known, str(MERGES))
            name = method + (', tree known' if known else '')
            rows[name] = lib.summary(got['ms']) | {'children': got['children']}
        got = ask(bench, root, 'diff', git(root, 'rev-parse', 'main~1'), tips['wide'])
        rows['page of 100'] = lib.summary(got['ms']) | {'files': got['files'], 'grown_kib': got['grown_kib']}
    for name in ('merge, tree known', 'squash, tree known', 'rebase'):
        bench.at_most(f'{name}, ms', rows[name]['p50'], MERGE_MS)
    bench.at_most('memory for a diff of 10,000 files, MiB', rows['page of 100']['grown_kib'] / 1024, 16)
    return {'rows': rows}
