# SPDX-License-Identifier: Apache-2.0
"""kill -9 at any moment: what was acknowledged is there, what was not is whole or absent."""
import http.client
import json
import os
import random
import re
import threading

import pytest

import eventlog
from harness import Stream, wait_until

ROUNDS = 8
WRITERS = 4


class Load:
    """Makes keys as fast as it can and remembers those it was told of."""

    def __init__(self, server):
        self.server, self.made, self.leaving, self.revoked = server, [], set(), set()
        self.threads = [threading.Thread(target=self.run) for _ in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def run(self):
        try:
            with self.server.connect() as sock:
                while True:
                    made = self.server.post('/api/v1/keys', {'name': 'crash', 'scopes': 'read'}, sock=sock)
                    self.made.append(made['key'])
                    if len(self.made) % 3 == 0:
                        self.leaving.add(made['key'])
                        answer = self.server.ask('DELETE', f"/api/v1/keys/{made['id']}", sock=sock)
                        assert answer.status == 204
                        self.revoked.add(made['key'])
        except (OSError, http.client.HTTPException):
            pass  # the server is gone

    def join(self):
        for thread in self.threads:
            thread.join()


def follow(server, last_id, seen):
    """Until the server is gone."""
    try:
        with Stream(server, last_id=last_id) as stream:
            while item := stream.next():
                if item['event'] != 'beat':
                    seen.append((int(item['id']), item['event']))
    except (OSError, http.client.HTTPException, ValueError):
        pass


def test_kill_under_load(make_server):
    server = make_server()
    live, seen = set(), []
    chance = random.Random(7)
    for _ in range(ROUNDS):
        reader = threading.Thread(target=follow, args=(server, seen[-1][0] if seen else 0, seen))
        reader.start()
        load = Load(server)
        enough = chance.randrange(1, 120)
        wait_until(lambda load=load, enough=enough: len(load.made) >= enough, 'keys are made')
        server.kill()
        load.join()
        reader.join()
        live |= set(load.made) - load.leaving
        server.start()
        with server.connect() as sock:
            for secret in load.made:
                status = server.ask('GET', '/api/v1/session', key=secret, sock=sock).status
                if secret in load.revoked:
                    assert status == 401
                elif secret not in load.leaving:
                    assert status == 200
    listed = server.get('/api/v1/keys')['keys']
    assert sum(key['revoked_at'] is None for key in listed) >= len(live) + 1
    # Every key has its event and every event its key: both or neither were written.
    made = {event['data']['id'] for event in server.events(kind='key.created')}
    assert made == {key['id'] for key in listed}
    gone = {event['data']['id'] for event in server.events(kind='key.revoked')}
    assert gone == {key['id'] for key in listed if key['revoked_at'] is not None}
    # The reader went on each time from where it stood.
    assert [number for number, _ in seen] == list(range(1, len(seen) + 1))
    assert server.get('/api/v1/events/verify')
    assert server.stop() == 0
    assert eventlog.verify(server.home) >= len(seen)


POINTS = ['api.key.file:1', 'store.job.begin:1', 'store.commit.before:1', 'store.commit.after:1', 'store.commit.before:2',
          'store.commit.after:2', 'store.publish.before:1', 'store.publish.before:2', 'store.migrate.middle:1']


@pytest.mark.parametrize('point', POINTS)
def test_kill_during_the_first_start(make_server, point):
    """Whatever the moment, the next start ends with one admin key, and its owner can read it."""
    server = make_server(start=False, env={'COOP_FAIL_AT': point})
    if not os.environ.get('COOP_HAS_FAILPOINTS'):
        pytest.skip('this build has no failpoints')
    server.spawn()
    assert server.wait() == -9, server.log()
    del server.env['COOP_FAIL_AT']
    server.start()
    keys = server.get('/api/v1/keys')['keys']
    assert [(key['name'], key['scopes']) for key in keys] == [('first', 'admin')]
    assert re.fullmatch(r'e2b_[0-9a-f]{40}', server.key)
    assert server.stop() == 0
    assert eventlog.verify(server.home) >= 2


def test_a_stream_goes_on_after_a_crash(make_server):
    """No event twice, none missing, with nothing but the last id."""
    server = make_server()
    seen = []
    for round_ in range(4):
        with Stream(server, last_id=seen[-1] if seen else 0) as stream:
            server.make_key('read', f'round {round_}')
            last = server.last_seq()
            seen += [int(item['id']) for item in stream.until(lambda item, last=last: item['id'] == str(last))
                     if item['event'] != 'beat']
            server.kill()
        server.start()
    assert seen == list(range(1, len(seen) + 1))
    assert json.loads((server.home / 'lock').read_text()) == server.pid
