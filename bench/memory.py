# SPDX-License-Identifier: Apache-2.0
"""Memory of an idle server.

After a moment of work, so that what is allocated once is there.
"""
import lib

MIB = 1024 * 1024


def run(bench):
    with lib.coop(bench) as coop:
        fresh = lib.rss_bytes(coop.pid)
        lib.wrk(coop.url + '/health', seconds=1)
        for i in range(20):
            coop.call('POST', '/api/v1/keys', {'name': f'key {i}'})
        used = lib.rss_bytes(coop.pid)
    bench.at_most('idle RSS, MiB', used / MIB, 25)
    return {'fresh_bytes': fresh, 'after_work_bytes': used}
