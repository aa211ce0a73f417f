# SPDX-License-Identifier: Apache-2.0
"""script/bootstrap and its lists; nothing is installed here."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GROUPS = {'build', 'run', 'test', 'vm', 'bench', 'distro', 'kernel'}
LISTS = sorted((ROOT / 'script' / 'packages').glob('*.txt'))


def bootstrap(tmp_path, *args, system='ID=plan9\nVERSION_ID=4\n', path=''):
    (tmp_path / 'os-release').write_text(system)
    env = os.environ | {'COOP_OS_RELEASE': str(tmp_path / 'os-release')}
    if path:
        env['PATH'] = path
    return subprocess.run(['/bin/bash', ROOT / 'script' / 'bootstrap', *args], env=env, capture_output=True,
                          text=True, check=False)


@pytest.mark.parametrize('path', LISTS, ids=lambda p: p.name)
def test_list_is_well_formed(path):
    rows = [line.split() for line in path.read_text().splitlines() if line and not line.startswith('#')]
    assert {row[0] for row in rows} <= GROUPS
    assert {'build', 'run', 'test', 'vm'} <= {row[0] for row in rows}
    assert len({tuple(row) for row in rows}) == len(rows)
    if path.name != 'any.txt':
        assert all(len(row) == 2 + (row[0] == 'kernel') and re.fullmatch(r'[a-z0-9][a-z0-9.+-]+', row[1]) for row in rows)


@pytest.fixture(name='poor_path')
def path_with_few_programs(tmp_path):
    """The tools that the command itself uses, and none of those it looks for."""
    folder = tmp_path / 'bin'
    folder.mkdir()
    for name in ('awk', 'cat', 'dirname', 'id', 'sed'):
        (folder / name).symlink_to(f'/usr/bin/{name}')
    return str(folder)


def test_other_system_is_told_what_is_missing(tmp_path, poor_path):
    done = bootstrap(tmp_path, 'build', path=poor_path)
    assert done.returncode == 1
    assert 'plan9-4' in done.stderr
    for part in ('program  meson', 'library  glib-2.0', 'header   wslay/wslay.h'):
        assert part in done.stderr
    assert 'clang' not in done.stderr


def test_groups_are_kept_apart(tmp_path, poor_path):
    assert 'qemu-system-x86_64' in bootstrap(tmp_path, 'vm', path=poor_path).stderr
    assert 'meson' not in bootstrap(tmp_path, 'vm', path=poor_path).stderr


def test_unknown_group(tmp_path):
    done = bootstrap(tmp_path, 'everything')
    assert done.returncode == 1
    assert "unknown group 'everything'" in done.stderr
