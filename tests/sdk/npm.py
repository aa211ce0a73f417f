# SPDX-License-Identifier: Apache-2.0
"""Packages from npm, as a lock file names them; kept for the next run."""
import os
import shutil
import subprocess

import pytest

WAIT_S = 240


def install(source, cache):
    """A folder with what `source`/package-lock.json names below node_modules."""
    lock = (source / 'package-lock.json').read_text()
    done = cache / 'installed'
    if done.is_file() and done.read_text() == lock:
        return cache
    if shutil.which('npm') is None:
        pytest.skip('npm is not installed')
    cache.mkdir(parents=True, exist_ok=True)
    for name in ('package.json', 'package-lock.json'):
        shutil.copy(source / name, cache / name)
    result = subprocess.run(['npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts'], cwd=cache, text=True,
                            capture_output=True, timeout=WAIT_S, check=False)
    if result.returncode != 0:
        print(result.stderr)
        pytest.skip('no package registry can be reached here')
    done.write_text(lock)
    return cache


def run(cache, script, *args, **more):
    """`script` with node, beside node_modules: that is where node looks for what a module imports.  `more` is for its environment."""
    copy = cache / script.name
    shutil.copy(script, copy)
    env = {key: value for key, value in os.environ.items() if not key.lower().endswith('_proxy')}
    return subprocess.run(['node', str(copy), *args], text=True, capture_output=True, timeout=WAIT_S, check=False,
                          env={**env, **more})
