# SPDX-License-Identifier: Apache-2.0
"""CPU of a small request, beside libmicrohttpd and beside 10,000 idle streams.

The three are measured in turn, several times, in one run: the machine's mood then touches all
of them alike, and the medians are compared.
"""
import pathlib
import statistics
import tempfile
import urllib.request

import lib

ROUNDS = 5
STREAMS = 10000
STREAM_BYTES_MAX = 2048


def run(bench):
    with lib.coop(bench, streams_per_key=20000, max_connections=20000, rate_per_key=100000,
                  rate_burst=100000) as coop, \
            tempfile.NamedTemporaryFile() as body:
        with urllib.request.urlopen(coop.url + '/health') as answer:
            pathlib.Path(body.name).write_bytes(answer.read())
        port = lib.free_port()
        with lib.running([bench.program('mhd-peer'), port, body.name]) as peer:
            return measure(bench, coop, peer, f'http://127.0.0.1:{port}/health')


def measure(bench, coop, peer, peer_url):
    health = coop.url + '/health'
    alone, beside = [], []
    lib.wrk(health, seconds=1)
    for _ in range(ROUNDS):
        alone.append(lib.cpu_per_request(coop.pid, health))
        beside.append(lib.cpu_per_request(peer.pid, peer_url))
    idle, rss_before, rss_after, streams = with_streams(bench, coop, health)
    ratio = statistics.median(alone) / statistics.median(beside)
    ratio_idle = statistics.median(idle) / statistics.median(alone)
    per_stream = (rss_after - rss_before) / streams
    bench.at_most('CPU of a request, ratio to libmicrohttpd', ratio, 1.3)
    bench.at_most(f'the same with {streams} idle streams, ratio to without', ratio_idle, 1.3)
    bench.at_most('memory of an idle stream, bytes', per_stream, STREAM_BYTES_MAX)
    return {'coop_us': lib.summary(alone), 'libmicrohttpd_us': lib.summary(beside), 'coop_with_streams_us':
            lib.summary(idle), 'streams': streams, 'bytes_per_stream': per_stream}


def with_streams(bench, coop, health):
    before = lib.rss_bytes(coop.pid)
    streams = STREAMS
    with lib.running([bench.program('sse-clients'), coop.port, coop.key, streams], stdin=-1):
        after = lib.rss_bytes(coop.pid)
        idle = [lib.cpu_per_request(coop.pid, health) for _ in range(ROUNDS)]
    return idle, before, after, streams
