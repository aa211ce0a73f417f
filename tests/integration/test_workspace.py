# SPDX-License-Identifier: Apache-2.0
"""Work trees in boxes: objects are mounted, the branch is the box's own, and all of it ends with the box."""
import pathlib

import pytest

import workserver
from boxserver import API
from workserver import git
from harness import check_error, wait_until


@pytest.fixture(scope='module')
def server():
    with workserver.serving() as made:
        source = workserver.make_source(pathlib.Path(made.home).parent / 'source')
        made.source = source
        made.import_repo('one', source)
        yield made


def inside(server, box, line, code=0):
    done = server.run(box, line)
    assert done['end']['exit_code'] == code, done
    return done['stdout'].strip()


def test_clone(server):
    head = git(server.source, 'rev-parse', 'HEAD')
    with server.box() as box:
        made = server.clone(box, 'one', task={'id': '42'})
        assert made['branch'] == 'task-42' and made['commit'] == head and made['path'] == '/home/user/one'
        assert made['objects'] == 'mounted' and made['branch_created'] and made['without'] is None
        assert inside(server, box, 'cd one && git status --porcelain --branch') == '## task-42...origin/task-42'
        assert inside(server, box, 'cd one && git rev-parse HEAD v1 origin/main').split() == [head] * 3
        assert inside(server, box, 'cat one/sub/f2.txt') == 'file 2'
        assert inside(server, box, 'cd one && git fsck --connectivity-only && git count-objects -v | grep ^count') == 'count: 0'
        assert git(server.bare('one'), 'rev-parse', 'task-42') == head
        check_error(server, server.ask('POST', f'{API}/{box}/git/clone', body=b'{"repository": "one"}'), 409)
