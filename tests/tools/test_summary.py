# SPDX-License-Identifier: Apache-2.0
"""tools/test-summary against logs written here."""
import json
import os
import pathlib
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'test-summary'


def entry(name, result='OK', stdout='', returncode=0, stderr=''):
    return {'name': f'coop:unit / {name}', 'result': result, 'stdout': stdout, 'stderr': stderr,
            'returncode': returncode}


def run(tmp_path, entries, *args, ci=False, allowed=''):
    logs = tmp_path / 'build-x' / 'meson-logs'
    logs.mkdir(parents=True, exist_ok=True)
    (logs / 'testlog.json').write_text(''.join(json.dumps(e) + '\n' for e in entries))
    (tmp_path / 'allowed').write_text(allowed)
    env = {k: v for k, v in os.environ.items() if k != 'CI'}
    if ci:
        env['CI'] = 'true'
    done = subprocess.run([TOOL, '--allowed', tmp_path / 'allowed', *args, tmp_path / 'build-x'],
                          env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stdout.splitlines()[-1]


TAP_GOOD = '1..2\nok 1 /a\nok 2 /b\n'
TAP_MIXED = '# random seed\n1..3\nok 1 /a\nnot ok 2 /b - boom\nok 3 /c # SKIP no kvm here\n'
TAP_NESTED = ('1..2\n# Subtest: buf\n    ok 1 /buf/max\n    ok 2 /buf/skip\n    1..2\nok 1 buf\n'
              'ok 2 /plain\n')

CASES = [
    # entries, exit status, last line
    ('good', [entry('a', stdout=TAP_GOOD), entry('b')], 0, '3 passed, 0 failed, 0 skipped'),
    ('mixed', [entry('a', 'FAIL', TAP_MIXED, 1)], 1, '1 passed, 1 failed, 1 skipped'),
    ('nested points are leaves', [entry('a', stdout=TAP_NESTED)], 0, '3 passed, 0 failed, 0 skipped'),
    ('crash after good points', [entry('a', 'ERROR', TAP_GOOD, -6)], 1, '2 passed, 1 failed, 0 skipped'),
    ('plan not kept', [entry('a', 'ERROR', '1..3\nok 1 /a\n')], 1, '1 passed, 1 failed, 0 skipped'),
    ('plan not kept, meson content', [entry('a', 'OK', '1..3\nok 1 /a\n')], 1,
     '1 passed, 1 failed, 0 skipped'),
    ('bail out', [entry('a', 'ERROR', '1..3\nok 1 /a\nBail out! no\n')], 1,
     '1 passed, 1 failed, 0 skipped'),
    ('bail out after a bad point', [entry('a', 'ERROR', '1..3\nok 1 /a\nnot ok /b\nBail out!\n', -6)], 1,
     '1 passed, 1 failed, 0 skipped'),
    ('all skipped', [entry('a', 'SKIP', '1..0 # SKIP no kernel\n')], 1, '0 passed, 0 failed, 1 skipped'),
    ('exit 77', [entry('a', 'SKIP', 'no such tool\n', 77), entry('b')], 0, '1 passed, 0 failed, 1 skipped'),
    ('timeout', [entry('a', 'TIMEOUT', '', -15)], 1, '0 passed, 1 failed, 0 skipped'),
    ('timeout without plan', [entry('a', 'TIMEOUT', 'ok 1 /a\n', -15)], 1, '0 passed, 1 failed, 0 skipped'),
    ('known failure', [entry('a', 'OK', '1..2\nok 1 /a\nnot ok 2 /b # TODO slow\n')], 0,
     '1 passed, 0 failed, 1 skipped'),
    ('nothing ran', [], 1, '0 passed, 1 failed, 0 skipped'),
]


@pytest.mark.parametrize('entries,status,last', [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_counts(tmp_path, entries, status, last):
    code, _, got = run(tmp_path, entries)
    assert (code, got) == (status, last)


def test_missing_log_is_a_failure(tmp_path):
    run(tmp_path, [])
    (tmp_path / 'build-x' / 'meson-logs' / 'testlog.json').unlink()
    done = subprocess.run([TOOL, tmp_path / 'build-x'], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == '0 passed, 1 failed, 0 skipped'


def test_a_broken_build_is_a_failure(tmp_path):
    code, out, last = run(tmp_path, [entry('a')], '--broken', 'build-y: the build failed')
    assert (code, last) == (1, '1 passed, 1 failed, 0 skipped')
    assert 'FAILED: build-y: the build failed' in out


def test_failing_output_is_shown(tmp_path):
    _, out, _ = run(tmp_path, [entry('a', 'FAIL', 'why it broke', 1, stderr='a stack')])
    assert 'why it broke' in out and 'a stack' in out


SKIPPING = [entry('a', stdout=TAP_GOOD), entry('b', stdout='1..1\nok 1 /kvm # SKIP no /dev/kvm\n')]


@pytest.mark.parametrize('allowed,status,last', [
    ('', 1, '2 passed, 1 failed, 0 skipped'),
    ('unit/b: /kvm :: no /dev/*\n', 0, '2 passed, 0 failed, 1 skipped'),
    ('unit/b: /kvm :: another reason\n', 1, '2 passed, 1 failed, 0 skipped'),
    ('unit/c* :: no /dev/kvm\n', 1, '2 passed, 1 failed, 0 skipped'),
])
def test_ci_refuses_unlisted_skips(tmp_path, allowed, status, last):
    code, _, got = run(tmp_path, SKIPPING, ci=True, allowed=allowed)
    assert (code, got) == (status, last)


def test_skips_are_listed_and_allowed_outside_ci(tmp_path):
    code, out, last = run(tmp_path, SKIPPING)
    assert (code, last) == (0, '2 passed, 0 failed, 1 skipped')
    assert 'skipped: build-x unit/b: /kvm: no /dev/kvm' in out


def test_unused_rule_is_named_in_full_runs(tmp_path):
    rule = 'unit/gone :: whatever'
    assert rule in run(tmp_path, SKIPPING, '--full', allowed=rule + '\n')[1]
    assert rule not in run(tmp_path, SKIPPING, allowed=rule + '\n')[1]
