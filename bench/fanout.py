# SPDX-License-Identifier: Apache-2.0
"""One event to 1,000 event streams.

From the moment the event is made, before it is committed, to the moment each stream has read
it.
"""
import subprocess

import lib

STREAMS = 1000
EVENTS = 20


def run(bench):
    samples = []
    with lib.coop(bench, streams_per_key=2 * STREAMS) as coop, \
            lib.running([bench.program('sse-clients'), coop.port, coop.key, STREAMS],
                        stdin=subprocess.PIPE) as clients:
        for i in range(EVENTS):
            clients.stdin.write('event: key.created\n')
            clients.stdin.flush()
            coop.call('POST', '/api/v1/keys', {'name': f'key {i}'})
            samples += [int(word) / 1000 for word in clients.stdout.readline().split()]
        clients.stdin.close()
    result = lib.summary(samples)
    bench.at_most('99th percentile, ms', result['p99'], 100)
    return {'ms': result, 'streams': STREAMS, 'events': EVENTS}
