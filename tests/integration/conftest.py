# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import tempfile

import pytest

from boxserver import BoxServer, need_boxes
from commands import USERS, Coop, need_user_namespaces
from harness import PROGRAM, Server


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


@pytest.fixture(scope='session')
def program():
    """A copy that every user can reach: the build folder may be closed to them."""
    with tempfile.TemporaryDirectory(prefix='coop-program-') as folder:
        os.chmod(folder, 0o755)
        for name in ('coop', 'coop-keeper', 'coop-init', 'coop-probe', 'coop-builder', 'coop-sudo', 'coop-door', 'coop-git',
                     'coop-agent'):
            copy = pathlib.Path(folder, name)
            shutil.copy(pathlib.Path(PROGRAM).parent / name, copy)
            os.chmod(copy, 0o755)
        shutil.copytree(pathlib.Path(PROGRAM).parent / 'git-hooks', pathlib.Path(folder, 'git-hooks'))
        yield pathlib.Path(folder, 'coop')


@pytest.fixture
def coop(program):
    """The program with a fresh home folder that belongs to whoever runs it."""
    with tempfile.TemporaryDirectory(prefix='coop-test-', ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o777)
        yield Coop(program, pathlib.Path(folder))


@pytest.fixture(params=USERS)
def who(request):
    if request.param == 'userns':
        need_user_namespaces()
    return request.param


@pytest.fixture
def user_namespaces():
    need_user_namespaces()


@pytest.fixture
def make_boxes(folder):
    """make_boxes(...) starts a server with a keeper and a tiny template."""
    need_boxes()
    made = []

    def make(**options):
        place = folder / str(len(made))
        place.mkdir()
        made.append(BoxServer(place, **options))
        return made[-1].start()

    yield make
    for server in made:
        server.finish()


@pytest.fixture(scope='module')
def boxes():
    """One for all tests of a file."""
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    try:
        one = BoxServer(place).start()
        yield one
        one.finish()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope='module')
def shared_box(boxes):
    """One for all tests of a file that leave nothing behind in it."""
    with boxes.box(timeout=3600) as box:
        yield box
