# SPDX-License-Identifier: Apache-2.0
"""`coop start` by an ordinary user: keeper, server and boxes without any privilege."""
import json
import os
import pathlib
import re
import signal

import pytest

from boxserver import API
from harness import wait_until
from userserver import RANGE, NamespaceServer, UserServer, need_namespace, need_user, wait_ended

DEGRADED = {'ids', 'memory', 'cpu', 'devices', 'disk', 'pids'}


@pytest.fixture
def make_user_server(folder, program):
    user, first = need_user()
    folder.chmod(0o755)
    made = []

    def make(**options):
        place = folder / str(len(made))
        place.mkdir()
        made.append(UserServer(place, program, user, first, **options))
        return made[-1].start()

    yield make
    for server in made:
        server.finish()


@pytest.fixture(params=['memory', 'folder'])
def server(request, make_user_server):
    return make_user_server(env={'COOP_KEEPER_MEMORY_DISK': '0' if request.param == 'folder' else '1GiB'})


def test_commands_run(server):
    with server.box() as box:
        done = server.run(box, 'id -u; id -g; pwd; echo hello >note; cat note; cat /proc/self/uid_map')
        assert done['end']['exit_code'] == 0, done
        words = done['stdout'].split()
        assert words[:4] == ['1000', '1000', '/home/user', 'hello']
        # The ids that are lent, never the user's own.
        assert int(words[-1]) == RANGE
        assert server.run(box, 'exit 7')['end']['exit_code'] == 7
        assert server.run(box, 'stat -c %u /bin/bash', root=True)['stdout'] == '0\n'


def test_root_of_a_user_namespace(folder, program):
    need_namespace()
    folder.chmod(0o755)
    (folder / '0').mkdir()
    server = NamespaceServer(folder / '0', program)
    try:
        server.start()
        with server.box() as box:
            shown = server.get(f'{API}/{box}')
            assert {'ids', 'disk', 'devices'} <= set(shown['degraded'])
            done = server.run(box, 'id -u; cat /proc/self/uid_map')
            assert done['stdout'].split() == ['1000', '0', str(RANGE), str(RANGE)], done
    finally:
        server.finish()


def test_weaknesses_are_named(server):
    made = server.create()
    assert DEGRADED <= set(made['degraded'])
    health = server.get('/health', key=None)
    reasons = {part['part']: part['reason'] for part in health['degraded']}
    assert DEGRADED <= set(re.findall(r'\w+', reasons['boxes'].partition(':')[2]))
    rows = {row['name']: row for row in json.loads(server.coop('doctor', '-o', 'json', code=0))['probes']}
    assert rows['boxes']['state'] == 'degraded'
    assert DEGRADED <= set(re.findall(r'\w+', rows['boxes']['detail']))
    assert rows['boxes']['fix']
    server.ask('DELETE', f'{API}/{made["id"]}')


def test_boxes_survive_the_server(server):
    with server.box() as box:
        server.run(box, 'echo before >note')
        pid = server.get('/api/v1/events?kind=server.started&limit=500')['events'][-1]['data']['pid']
        os.kill(pid, signal.SIGKILL)

        def is_back():
            try:
                return server.has_keeper() and server.ask('GET', f'{API}/{box}').status == 200
            except OSError:
                return False
        wait_until(is_back, 'the next server')
        assert server.run(box, 'cat note')['stdout'] == 'before\n'


def test_nothing_is_left(server):
    server.create()
    state = server.home / 'keeper/state'
    held = server.processes()
    assert len(held) >= 3  # keeper, server, the box
    assert server.stop() == 0
    wait_ended(held)
    assert list((state / 'pool').iterdir()) == list((state / 'folders').iterdir()) == []
    assert str(server.home) not in pathlib.Path('/proc/self/mountinfo').read_text()
