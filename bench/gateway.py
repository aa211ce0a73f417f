# SPDX-License-Identifier: Apache-2.0
"""Model streams through the gateway beside the same streams without it.

The provider is a script in a process of its own; "direct" asks it, "through" asks a second gate
that asks it.  Rounds of both alternate, so that a busy machine slows both.
"""
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time

import lib

WORDS = 200
DELAY_MS = 5
ROUNDS = 15
QUICK_ROUNDS = 200
STREAMS = 500
SCRIPT = f"""
conversations:
  - match: quick
    turns: [{{text: "word word", chunk: 5}}]
  - match: many
    turns: [{{text: "{'word ' * 400}", chunk: 5, delay_ms: 10}}]
  - turns: [{{text: "{'word ' * WORDS}", chunk: 5, delay_ms: {DELAY_MS}}}]
"""


@contextlib.contextmanager
def gate(bench, provider, script=None, cpu=None):
    argv = [str(bench.program('gate-server')), json.dumps(provider), *([str(script)] if script else [])]
    if cpu is not None:
        argv = ['taskset', '-c', str(cpu), *argv]
    with tempfile.TemporaryFile('w+') as out:
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            child.port = int(child.stdout.readline().split()[1])
            # The facts must go somewhere, or the pipe fills.
            drain = subprocess.Popen(['cat'], stdin=child.stdout, stdout=out)
            yield child
        finally:
            child.stdin.close()
            child.wait(30)
            drain.wait(30)
            child.stdout.close()


def ask(port, text):
    body = json.dumps({'model': 'm', 'stream': True, 'stream_options': {'include_usage': True},
                       'messages': [{'role': 'user', 'content': text}]}).encode()
    head = (f'POST /openai/v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'
            f'Content-Length: {len(body)}\r\n\r\n').encode()
    peer = socket.create_connection(('127.0.0.1', port))
    peer.sendall(head + body)
    return peer


def one_stream(port, text):
    """Seconds to the first event and to the end."""
    began, first, rest = time.perf_counter(), None, b''
    with ask(port, text) as peer:
        while piece := peer.recv(65536):
            if first is None and b'data:' in piece:
                first = time.perf_counter() - began
            rest = rest[-64:] + piece
    if b'[DONE]' not in rest:
        raise RuntimeError(rest)
    return first, time.perf_counter() - began


def many_streams(port, count):
    """All at once, with one poll: seconds until the last has ended."""
    import selectors
    began, ended = time.perf_counter(), 0
    with selectors.DefaultSelector() as poll:
        for i in range(count):
            peer = ask(port, f'many {i}')
            peer.setblocking(False)
            poll.register(peer, selectors.EVENT_READ, [b''])
        while ended < count:
            for key, _ in poll.select(60) or [(None, None)]:
                if key is None:
                    raise RuntimeError(f'{count - ended} streams hang')
                piece = key.fileobj.recv(65536)
                key.data[0] = key.data[0][-64:] + piece
                if not piece:
                    if b'[DONE]' not in key.data[0]:
                        raise RuntimeError(key.data[0])
                    poll.unregister(key.fileobj)
                    key.fileobj.close()
                    ended += 1
    return time.perf_counter() - began


def run(bench):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder, 'script.yaml')
        script.write_text(SCRIPT)
        with gate(bench, {'name': 'demo', 'kind': 'script'}, script) as provider, \
                gate(bench, {'name': 'up', 'kind': 'compatible',
                             'base_url': f'http://127.0.0.1:{provider.port}/openai/v1'},
                     cpu=min(os.sched_getaffinity(0))) as gateway:
            return measure(bench, provider, gateway)


def rounds(provider, gateway, text, count, which):
    """Milliseconds direct and through, in turns."""
    samples = [], []
    for i in range(count):
        for side, port in enumerate((provider.port, gateway.port)):
            samples[side].append(1000 * one_stream(port, f'{text} {i} {side}')[which])
    return [lib.summary(side) for side in samples]


def measure(bench, provider, gateway):
    one_stream(gateway.port, 'quick, to warm up')
    first = rounds(provider, gateway, 'quick', QUICK_ROUNDS, 0)
    total = rounds(provider, gateway, 'slow', ROUNDS, 1)
    bench.at_most('a stream through, over direct', total[1]['p50'] / total[0]['p50'], 1.05)
    bench.at_most('first byte through, ms more', first[1]['p50'] - first[0]['p50'], 1.0)
    alone = many_streams(provider.port, STREAMS)
    before, rss = lib.cpu_seconds(gateway.pid), lib.rss_bytes(gateway.pid)
    together = many_streams(gateway.port, STREAMS)
    cpu = lib.cpu_seconds(gateway.pid) - before
    bench.at_most(f'{STREAMS} streams at once through, over direct', together / alone, 1.05)
    bench.at_most('of one core', cpu / together, 1.0)
    return {'first_byte_ms': {'direct': first[0], 'through': first[1]},
            'total_ms': {'direct': total[0], 'through': total[1]},
            'streams': STREAMS, 'many_s': {'direct': alone, 'through': together}, 'gateway_cpu_s': cpu,
            'gateway_rss': {'before': rss, 'after': lib.rss_bytes(gateway.pid)}}
