# SPDX-License-Identifier: Apache-2.0
"""A program that webhooks are sent to.  It checks each signature and answers as it was told to."""
import hashlib
import hmac
import http.server
import json
import queue
import socket
import sqlite3
import threading

from harness import WAIT_S


def due_now(server):
    """The pauses between tries are over; the server must not run."""
    with sqlite3.connect(server.home / 'coop.db') as db:
        db.execute('UPDATE deliveries SET next_us = 0')
    db.close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def do_POST(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers['Content-Length']))
        answer = owner.answers.pop(0) if owner.answers else 200
        owner.got.put(Delivery(owner, self.path, self.headers, body))
        if answer == 'cut':
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if answer == 'slow':
            owner.over.wait(WAIT_S)
            self.close_connection = True
            return
        self.send_response(answer)
        self.send_header('Content-Length', '0')
        if answer == 302:
            self.send_header('Location', owner.url('/elsewhere'))
        self.end_headers()


class Delivery:
    def __init__(self, owner, path, headers, body):
        self.path, self.headers, self.body = path, headers, body
        # Repositories tell as GitHub does, squads in their own name.
        self.event, self.guid = (headers.get(f'X-GitHub-{name}') or headers.get(f'X-Coop-{name}')
                                 for name in ('Event', 'Delivery'))
        self.json = json.loads(body)
        self.is_signed = owner.secret is not None and hmac.compare_digest(
            headers.get('X-Hub-Signature-256') or '',
            'sha256=' + hmac.new(owner.secret.encode(), body, hashlib.sha256).hexdigest())


class HookServer:
    def __init__(self, secret='it is a secret'):
        self.secret, self.answers, self.got, self.over = secret, [], queue.Queue(), threading.Event()
        self.http = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.http.owner = self
        self.thread = threading.Thread(target=self.http.serve_forever)

    def url(self, path='/'):
        return f'http://127.0.0.1:{self.http.server_port}{path}'

    def next(self):
        return self.got.get(timeout=WAIT_S)

    def take(self, n):
        """The next so many, by the name of the event; those of one name in their order."""
        found = {}
        for _ in range(n):
            delivery = self.next()
            found.setdefault(delivery.event, []).append(delivery)
        return found

    def all_of(self, *events):
        """Until one of each has come; they are sent side by side, and may come in another order."""
        heard = []
        while not set(events) <= {delivery.event for delivery in heard}:
            heard.append(self.next())
        return heard

    def of(self, event):
        """The next of that name; others, such as those of checks, come when they come."""
        while (delivery := self.next()).event != event:
            pass
        return delivery

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.over.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
