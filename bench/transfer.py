# SPDX-License-Identifier: Apache-2.0
"""Memory while 2 GiB come in and go out to a slow reader.

The upload is as fast as it can be; the download is read in bursts with pauses, so that the
server always has more to send than the reader takes.
"""
import os
import socket
import tempfile
import time

import lib

SIZE = 2 * 1024 ** 3
PIECE = 1024 * 1024
MIB = 1024 * 1024


def run(bench):
    port = lib.free_port()
    with tempfile.TemporaryDirectory(dir=os.environ.get('COOP_BENCH_DIR')) as folder, \
            lib.running([bench.program('transfer-server'), port, folder]) as server:
        before = lib.rss_bytes(server.pid)
        up_rss, up_s = upload(port, server.pid)
        down_rss, down_s = download(port, server.pid)
    bench.at_most('growth during the upload, MiB', (up_rss - before) / MIB, 8)
    bench.at_most('growth during the download, MiB', (down_rss - before) / MIB, 8)
    return {'bytes': SIZE, 'rss_before': before, 'rss_upload_max': up_rss, 'rss_download_max': down_rss,
            'upload_s': up_s, 'download_s': down_s}


def upload(port, pid):
    piece, most, began = b'u' * PIECE, 0, time.monotonic()
    with socket.create_connection(('127.0.0.1', port)) as peer:
        peer.sendall(f'PUT /file HTTP/1.1\r\nHost: a\r\nContent-Length: {SIZE}\r\n\r\n'.encode())
        for _ in range(SIZE // PIECE):
            peer.sendall(piece)
            most = max(most, lib.rss_bytes(pid))
        answer = peer.recv(4096)
    if b' 201 ' not in answer:
        raise RuntimeError(answer)
    return most, time.monotonic() - began


def download(port, pid):
    most, got, began = 0, 0, time.monotonic()
    with socket.create_connection(('127.0.0.1', port)) as peer:
        peer.sendall(b'GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
        while piece := peer.recv(PIECE, socket.MSG_WAITALL):
            got += len(piece)
            most = max(most, lib.rss_bytes(pid))
            if got % (128 * PIECE) < PIECE:
                time.sleep(0.1)
    if got < SIZE:
        raise RuntimeError(f'{got} bytes came')
    return most, time.monotonic() - began
