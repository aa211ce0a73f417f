# SPDX-License-Identifier: Apache-2.0
"""A server that says what it is told to, for clients that must stand it."""
import json
import socket
import threading


def answer(body, status='200 OK', kind='application/json', **headers):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f'HTTP/1.1 {status}', f'Content-Type: {kind}', f'Content-Length: {len(body)}', 'Connection: close']
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + body


class Fake:
    """`replies` maps the beginning of a path to the bytes of the whole answer, or to a list of them that
    are given one after the other, the last one for ever; `hold` keeps the connection open behind it
    until the client has gone."""

    def __init__(self, replies, hold=False):
        self.replies, self.hold = replies, hold
        self.requests = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def url(self, host='127.0.0.1'):
        return f'http://{host}:{self.port}'

    def _serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                self._answer(client)

    def _answer(self, client):
        client.settimeout(30)
        head = b''
        while b'\r\n\r\n' not in head:
            piece = client.recv(65536)
            if not piece:
                return
            head += piece
        text = head.decode('latin-1')
        self.requests.append(text)
        path = text.split(' ')[1]
        found = max((p for p in self.replies if path.startswith(p)), key=len, default=None)
        reply = self.replies[found] if found else answer({'code': 404, 'message': 'nothing'}, '404 Not Found')
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        client.sendall(reply)
        while self.hold and client.recv(65536):
            pass

    def close(self):
        # Closing alone does not wake a thread that accepts.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
