# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import tempfile

import pytest

import boxes
from boxes import Keeper


@pytest.fixture
def folder():
    """A short path, which a socket's name has room for, that an ordinary user can reach."""
    path = pathlib.Path(tempfile.mkdtemp(prefix='coop-keeper-'))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_keeper(folder):
    if os.geteuid() != 0:
        pytest.skip('boxes of root are tested as root')
    boxes.need_namespaces()
    made = []

    def make(**options):
        made.append(Keeper(folder, **options))
        return made[-1].start()

    yield make
    for keeper in made:
        keeper.close()


@pytest.fixture
def keeper(make_keeper):
    return make_keeper()
