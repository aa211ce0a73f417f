# SPDX-License-Identifier: Apache-2.0
"""Tasks, their rooms and agents, for tests that need no work to be done."""
import sqlite3
import time
import uuid

from boxclient import WebSocket


def make_task(server, **more):
    """One that nobody plans: it stays where it is."""
    return server.post('/api/v1/tasks', {'request': 'build a wheel', 'policy': {'planner': 'person'}}, **more)


def put_task(server, state='done'):
    """One that nobody works on, because it has ended or the workflow does not know it: its agents are the test's own."""
    one, now = str(uuid.uuid4()), int(time.time() * 1e6)
    with sqlite3.connect(server.home / 'coop.db', timeout=10) as db:
        squad = db.execute("SELECT id FROM squads WHERE name = 'default'").fetchone()[0]
        number = db.execute('INSERT INTO tasks (id, number, squad_id, owner, actor, source, title, request, state, created_us, '
                            "updated_us) SELECT ?, COALESCE(MAX(number), 0) + 1000, ?, '', 'local', 'api', 'a wheel', 'a wheel', ?, "
                            '?, ? FROM tasks RETURNING number', (one, squad, state, now, now)).fetchone()[0]
    db.close()
    return {'id': one, 'number': number, 'squad': {'id': squad}}


def add_agent(server, task, agent, box, state='working', owner=''):
    """As if the crew had put one into that box."""
    one = str(uuid.uuid4())
    with sqlite3.connect(server.home / 'coop.db', timeout=10) as db:
        db.execute('INSERT INTO task_executions (id, agent, task_id, squad_id, owner, kind, role, archetype, adapter, lease, box_id, '
                   "state, try, created_us) VALUES (?, ?, ?, ?, ?, 'work', 'coder', 'coder', 'coop', 'l', ?, ?, 1, ?)",
                   (one, agent, task['id'], task['squad']['id'], owner, box, state, int(time.time() * 1e6)))
    db.close()
    return one


class RoomSocket(WebSocket):
    def __init__(self, server, path, receive_buffer=None, **more):
        connect = server.connect

        class At:
            request = server.request

            @staticmethod
            def connect():
                return connect(receive_buffer)

        super().__init__(At, path, **more)
        self.welcome = self.text()
        assert self.welcome['type'] == 'welcome' and self.welcome['heartbeat_ms'] == 10000


class Room:
    def __init__(self, server, task, key=''):
        self.server, self.task, self.key = server, task, key
        self.id = f'room-{task["id"]}'

    def ask(self, method, below='', **more):
        return self.server.ask(method, f'/rooms/{self.id}{below}', **{'key': self.key, **more})

    def get(self, below=''):
        answer = self.ask('GET', below)
        assert answer.status == 200, answer
        return answer.json

    def post(self, **body):
        answer = self.ask('POST', '/messages', body=body)
        assert answer.status == 201, answer
        return answer.json

    def patch(self, **body):
        answer = self.ask('PATCH', body=body)
        assert answer.status == 200, answer
        return answer.json

    def join(self, query='', **more):
        return RoomSocket(self.server, f'/rooms/{self.id}{query}', key=self.key, **more)
