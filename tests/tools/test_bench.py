# SPDX-License-Identifier: Apache-2.0
"""bench/run and bench/lib.py with benchmarks written here."""
import json
import os
import pathlib
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIB = runpy.run_path(str(ROOT / 'bench' / 'lib.py'))


def run(tmp_path, text, *names):
    (tmp_path / 'sample.py').write_text(text)
    return subprocess.run([sys.executable, ROOT / 'bench' / 'run', '--modules', tmp_path, '--results',
                           tmp_path / 'out', '--build', tmp_path, *names],
                          capture_output=True, text=True, check=False)


def test_result_file(tmp_path):
    done = run(tmp_path, '"""Shows x."""\nimport lib\n'
               'def run(bench):\n    bench.at_most("x", 1, 2)\n    return lib.summary([1, 2, 3])\n')
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / 'out' / 'sample.json').read_text())
    assert result['values']['n'] == 3
    assert result['machine'].keys() == {'kernel', 'cpu', 'cores', 'load', 'date'}
    assert result['checks'] == [{'what': 'x', 'value': 1, 'limit': 2, 'ok': True}]


@pytest.mark.parametrize('body', ['bench.at_most("x", 3, 2)', 'bench.at_least("x", 1, 2)', 'raise OSError("x")',
                                  'bench.program("no-such-program")'])
def test_misses_and_breaks_fail(tmp_path, body):
    assert run(tmp_path, f'"""Shows x."""\ndef run(bench):\n    {body}\n    return {{}}\n').returncode == 1


def test_unknown_name(tmp_path):
    done = run(tmp_path, '"""Shows x."""\n', 'other')
    assert done.returncode == 1
    assert 'there are: sample' in done.stderr


@pytest.mark.parametrize('samples,percent,want', [
    (range(1, 101), 50, 50), (range(1, 101), 99, 99), (range(1, 1001), 95, 950), ([7], 99, 7), ([2, 1], 50, 1),
])
def test_percentile(samples, percent, want):
    assert LIB['percentile'](samples, percent) == want


def test_own_process():
    assert LIB['rss_bytes'](os.getpid()) > 1 << 20
    assert LIB['cpu_seconds'](os.getpid()) > 0
