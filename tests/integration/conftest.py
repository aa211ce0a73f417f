# SPDX-License-Identifier: Apache-2.0
import pathlib
import shutil
import tempfile

import pytest

from harness import Server


@pytest.fixture
def folder():
    """Short and without links, because the path of the control socket has a maximum."""
    path = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def make_server(folder):
    """make_server(...) starts one; all of them are stopped and their logs looked at."""
    made = []

    def make(start=True, **options):
        place = folder / str(len(made))
        place.mkdir()
        server = Server(place, **options)
        made.append(server)
        return server.start() if start else server

    yield make
    for server in made:
        server.finish()


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    """One for all tests of a file, where they do not get in each other's way."""
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    one = Server(place).start()
    yield one
    one.finish()
    shutil.rmtree(place, ignore_errors=True)
