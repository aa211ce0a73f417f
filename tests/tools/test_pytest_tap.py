# SPDX-License-Identifier: Apache-2.0
"""tools/pytest-tap: every way a test can end becomes the right TAP line."""
import pathlib
import subprocess
import sys

TOOL = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'pytest-tap'

SAMPLE = '''
import pytest
def test_good(): print("hidden")
def test_bad(): assert 1 == 2, "boom"
def test_skip(): pytest.skip("no such thing")
@pytest.mark.skip(reason="marked")
def test_marked(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert False
@pytest.fixture
def broken(): raise OSError("setup")
def test_setup(broken): pass
@pytest.fixture
def leaky():
    yield
    raise OSError("teardown")
def test_teardown(leaky): pass
'''


def run(path):
    return subprocess.run([sys.executable, TOOL, f'--rootdir={path}', path], capture_output=True, text=True, check=False)


def test_outcomes(tmp_path):
    (tmp_path / 'test_sample.py').write_text(SAMPLE)
    done = run(tmp_path)
    got = [line.replace('test_sample.py::', '') for line in done.stdout.splitlines()]
    assert got == [
        '1..7',
        'ok 1 test_good',
        'not ok 2 test_bad',
        'ok 3 test_skip # SKIP no such thing',
        'ok 4 test_marked # SKIP marked',
        'not ok 5 test_known # TODO known',
        'not ok 6 test_setup',
        'not ok 7 test_teardown',
    ]
    assert done.returncode != 0
    assert 'boom' in done.stderr


def test_file_that_cannot_be_loaded(tmp_path):
    (tmp_path / 'test_sample.py').write_text('import no_such_module_at_all\n')
    done = run(tmp_path)
    assert done.stdout.startswith('Bail out! ')
    assert done.returncode != 0


def test_nothing_collected(tmp_path):
    done = run(tmp_path)
    assert 'Bail out! no tests collected' in done.stdout
    assert done.returncode != 0
