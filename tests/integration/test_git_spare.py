# SPDX-License-Identifier: Apache-2.0
"""The child of a push is up before the push: whose it is, what it may, how long it stays."""
import concurrent.futures
import os
import pathlib
import re
import signal

import pytest

from gitserver import PUSH_TYPE, Work, folder_of, make_repo, pack_of, push_body, url_of
from harness import Server, wait_until

SPARE_S = 3


@pytest.fixture(scope='module')
def server(tmp_path_factory):
    s = Server(tmp_path_factory.mktemp('spare')).start()
    yield s
    s.finish()


class Place:
    def __init__(self, server, folder, name):
        self.server = server
        self.path, self.repo = make_repo(server, name)
        self.work = Work(folder / 'work', url_of(server, self.path)).init()
        self.main = self.work.commit()
        self.work.push('main', 'main:topic')
        self.next = self.work.commit('more', message='feat: add more')
        wait_until(lambda: not self.children(), 'no child is left of a push')

    def children(self):
        """Pids of receive-pack in this repository."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                words = pathlib.Path('/proc', pid, 'cmdline').read_bytes().split(b'\0')
                if b'--stateless-rpc' in words and os.readlink(f'/proc/{pid}/cwd') == str(folder_of(self.server, self.repo)):
                    found.append(int(pid))
            except OSError:
                continue
        return found

    def ask(self, **more):
        """Where to push to; the pid of the child that is up for it."""
        answer = self.server.ask('GET', f'{self.path}/info/refs?service=git-receive-pack', **more)
        assert answer.status == 200
        wait_until(self.children, 'a child that waits for a push')
        (pid,) = self.children()
        return pid

    def push(self, new=None, ref='refs/heads/topic', **more):
        body = push_body([(self.main, new or self.next, ref)], pack_of(self.work, new or self.next, f'^{self.main}'),
                         'report-status side-band-64k')
        return self.server.ask('POST', f'{self.path}/git-receive-pack', body=body, headers={'Content-Type': PUSH_TYPE},
                               **more)

    def tip(self, name):
        return self.work.remote_refs()[f'refs/heads/{name}']


@pytest.fixture
def place(server, tmp_path, request):
    return Place(server, tmp_path, ''.join(c for c in request.node.name if c.isalnum()))


def test_is_used(place):
    pid = place.ask()
    os.kill(pid, signal.SIGSTOP)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pushed = pool.submit(place.push)
        with pytest.raises(concurrent.futures.TimeoutError):
            pushed.result(1)
        os.kill(pid, signal.SIGCONT)
        assert b'ok refs/heads/topic' in pushed.result(60).body
    assert place.tip('topic') == place.next and pid not in place.children()


def test_one_is_enough(place):
    pid = place.ask()
    assert place.ask() == pid


def test_goes_when_nobody_comes(place):
    place.ask()
    wait_until(lambda: not place.children(), 'it has gone', 10 * SPARE_S)
    assert b'ok refs/heads/topic' in place.push().body


def test_that_died(place):
    os.kill(place.ask(), signal.SIGKILL)
    wait_until(lambda: not place.children(), 'it is gone')
    assert b'ok refs/heads/topic' in place.push().body


def test_rules_of_the_push_count(place, server):
    """Not those of the moment when it was asked where to."""
    other = place.work.git('commit-tree', '-m', 'feat: other', 'HEAD^{tree}').stdout.strip()
    place.ask()
    path = f"/api/v1/repos/coop/{place.repo['name']}/settings"
    assert server.ask('PATCH', path, body={'protected_branches': ['topic']}).status == 200
    answer = place.push(other)
    # What the hook says comes in packets that may end anywhere.
    said = re.sub(rb'[0-9a-f]{4}\x02', b'', answer.body)
    assert b'ok refs/heads/topic' not in said and b'does not contain' in said
    assert place.tip('topic') == place.main


def test_rights_of_the_pusher_count(place, server):
    """Somebody else may have asked."""
    key = server.make_key('read,box', name=place.repo['name'])['key']
    place.ask()
    answer = place.push(ref='refs/heads/main', key=key)
    assert b'ok refs/heads/main' not in answer.body and b'protected' in answer.body
    assert place.tip('main') == place.main


def test_server_that_ends(tmp_path):
    server = Server(tmp_path).start()
    place = Place(server, tmp_path, 'ends')
    place.ask()
    server.finish()
    wait_until(lambda: not place.children(), 'it has gone with the server')
