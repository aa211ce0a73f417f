# SPDX-License-Identifier: Apache-2.0
"""The server's side of a real coop-init, as much of it as tests need."""
import os
import struct

HEAD = struct.Struct('<HBBIQII')
START = struct.Struct('<IIHHIIII')
END = struct.Struct('<IiQQQQQ')
HELLO, START_RUN, ACK, FORGET = 1, 16, 21, 22
OUTPUT, ENDED, FAILED = 65, 68, 70
EXIT, SIGNAL, TIMEOUT = 1, 2, 3
TTY, STDIN, BLOCK, BUILTIN, ROOT = (1 << n for n in range(5))


class Init:
    def __init__(self, box):
        self.channel, self.next = box.channel, 1
        self.channel.send(HEAD.pack(HELLO, 0, 0, 0, 7, 1, 0))
        assert HEAD.unpack(self.channel.recv(65536)[:HEAD.size])[0] == HELLO

    def start(self, *argv, user='', cwd='/', env=(), flags=0, timeout_ms=0):
        run, self.next = self.next, self.next + 1
        body = START.pack(flags, timeout_ms, 0, 0, 1 << 18, 1 << 20, len(argv), len(env))
        body += b''.join(text.encode() + b'\0' for text in (user, cwd, *argv, *env))
        self.channel.send(HEAD.pack(START_RUN, 0, 0, run, 0, 0, len(body)) + body)
        return run

    def end_of(self, run):
        """(reason, code, output, errors)"""
        out = {1: b'', 2: b''}
        while True:
            packet = self.channel.recv(70000)
            kind, stream, stage, about, offset, value, _ = HEAD.unpack(packet[:HEAD.size])
            body = packet[HEAD.size:]
            if about != run:
                continue
            if kind == OUTPUT:
                out[stream] += body
                self.channel.send(HEAD.pack(ACK, stream, 0, run, offset + len(body), 0, 0))
            elif kind == ENDED:
                reason, code = END.unpack(body)[:2]
                self.channel.send(HEAD.pack(FORGET, 0, 0, run, 0, 0, 0))
                return reason, code, out[1].decode(), out[2].decode()
            elif kind == FAILED:
                raise AssertionError(f'stage {stage}: {os.strerror(value)}')

    def run(self, *argv, **options):
        return self.end_of(self.start(*argv, **options))
