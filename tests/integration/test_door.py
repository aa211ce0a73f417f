# SPDX-License-Identifier: Apache-2.0
"""The door: what boxes may reach, who decides, and what happens when one of its processes is killed."""
import pathlib
import shutil
import signal
import tempfile

import pytest

from boxserver import need_boxes
from doorserver import INSIDE, PORT, door_server
from harness import wait_until


@pytest.fixture(scope='module')
def door():
    need_boxes()
    place = pathlib.Path(tempfile.mkdtemp(prefix='coop-'))
    try:
        with door_server(place) as server:
            yield server
    finally:
        shutil.rmtree(place, ignore_errors=True)


def allow_page(server, **more):
    return server.rule('allow', INSIDE, ports=[PORT], inside=True, **more)


def forget_rules(server):
    for rule in server.get('/api/v1/door/rules')['rules']:
        server.ask('DELETE', f'/api/v1/door/rules/{rule["id"]}')


@pytest.fixture
def rules(door):
    yield
    forget_rules(door)
    door.mode('enforce')


def test_denied_allowed_denied(door, rules):
    """Live: the same box, without a restart of anything."""
    with door.box() as box:
        refused = door.through(box)
        assert ' 403 ' in refused.splitlines()[0] and 'coop door allow' in refused, refused
        allow_page(door)
        assert 'page of the test' in door.through(box)
        door.rule('deny', INSIDE)
        assert ' 403 ' in door.through(box).splitlines()[0]
