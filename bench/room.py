# SPDX-License-Identifier: Apache-2.0
"""One message to 50 members of a room.

From the moment it is sent, before it is stored, to the moment each member has the whole frame.
"""
import base64
import json
import os
import select
import socket
import struct
import time

import lib

MEMBERS = 50
MESSAGES = 200
WARM_UP = 10


class Member:
    def __init__(self, coop, room):
        self.sock = socket.create_connection(('127.0.0.1', coop.port), timeout=30)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall(f'GET /rooms/{room} HTTP/1.1\r\nHost: 127.0.0.1:{coop.port}\r\nX-API-Key: {coop.key}\r\nConnection: Upgrade\r\n'
                          f'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\n\r\n'.encode())
        self.got = b''
        while b'\r\n\r\n' not in self.got:
            self.got += self.sock.recv(65536)
        head, self.got = self.got.split(b'\r\n\r\n', 1)
        if b' 101 ' not in head.split(b'\r\n')[0]:
            raise RuntimeError(head)

    def frames(self):
        """The whole frames that are there."""
        while len(self.got) >= 2:
            n, start = self.got[1] & 127, 2
            if n == 126:
                start = 4
                if len(self.got) < start:
                    return
                n = struct.unpack('!H', self.got[2:4])[0]
            if len(self.got) < start + n:
                return
            frame, self.got = self.got[start:start + n], self.got[start + n:]
            yield frame

    def read(self):
        self.got += self.sock.recv(65536)
        return list(self.frames())

    def say(self, text):
        data = json.dumps({'type': 'message', 'text': text}).encode()
        self.sock.sendall(struct.pack('!BB', 0x81, 0x80 | len(data)) + bytes(4) + data)


def one_round(members, text):
    waiting = {member.sock.fileno(): member for member in members}
    mark, times = f'"{text}"'.encode(), []
    began = time.perf_counter()
    members[0].say(text)
    while waiting:
        for fd in select.select(list(waiting), [], [], 30)[0]:
            if any(mark in frame for frame in waiting[fd].read()):
                times.append((time.perf_counter() - began) * 1000)
                del waiting[fd]
    return times


def run(bench):
    samples = []
    lib.go_first()
    with lib.coop(bench) as coop:
        task = coop.call('POST', '/api/v1/tasks', {'request': 'a wheel', 'policy': {'planner': 'person'}})
        members = [Member(coop, f'room-{task["id"]}') for _ in range(MEMBERS)]
        for i in range(WARM_UP + MESSAGES):
            times = one_round(members, f'message {i} of the bench')
            samples += times if i >= WARM_UP else []
        for member in members:
            member.sock.close()
    result = lib.summary(samples)
    bench.at_most('99th percentile, ms', result['p99'], 20)
    return {'ms': result, 'members': MEMBERS, 'messages': MESSAGES}
