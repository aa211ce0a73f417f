/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between `coop serve` and `coop-door`: one SOCK_SEQPACKET connection on a unix socket that the
 * door listens on and only serve's user may reach (SO_PEERCRED is checked on both ends).  Each
 * packet is one JSON object, at most one fd with it.
 *
 * From serve:
 *   {"do": "hello", "version": 1}
 *   {"do": "policy", "name": HASH, "policy": {…}}           before a box that uses it
 *   {"do": "box", "id", "cookie": "DIGITS", "policy": HASH, "labels": {"agent","task","squad"},
 *    "limits": {…}, "day": N, "day_bytes": N}               + its listener
 *   {"do": "change", "id", "policy"?, "labels"?, "limits"?}
 *   {"do": "gone", "id"}
 *   {"do": "provider", "provider": {…}, "key": SEALED|null} + the file of a script
 *   {"do": "try", "serial", "provider", "key"}              the same, and nothing changes: only
 *                                                           whether it would be taken ("tested")
 *   {"do": "no-provider", "name"}
 *   {"do": "budget", "scope", "bounds": {…}, "spent": {…}?}   bounds {}: it is no more
 *   {"do": "synced"}    everything was told: boxes, providers, budgets and policies not named
 *                       since hello are dropped
 *   {"do": "ack", "upto": N}
 *   {"do": "test", "serial", "provider"}
 * From the door:
 *   {"say": "hello", "version": 1, "public_key": HEX, "providers": [NAME, …]}  those taken
 *                       from the door's environment
 *   {"say": "fact", "n", "time_us", "kind", "box", …}       again after a reconnect, from the
 *                       first that was not acknowledged
 *   {"say": "refused", "do", "id", "error"}                 a message that could not be carried out
 *   {"say": "tested", "serial", "ok", "error", "result"}
 *   {"say": "forward", "box"}                               + one end of a connection on which the
 *                       box asks something of the server
 *   {"say": "used", "day": N, "boxes": {ID: BYTES, …}}      of that day; once a second, those that
 *                       changed, and on a new connection all
 *   {"say": "stats", …}                                     once a second while it changes
 *
 * Keys travel and rest sealed (crypto_box_seal of "BASE_URL\nKEY") to the door's public key:
 * nobody but the door can open them, and it sends them to that base URL alone. */
enum {
    DOOR_VERSION = 1,
    DOOR_PACKET_MAX = 128 * 1024,
    DOOR_SCRIPT_MAX = 4 * 1024 * 1024,
    DOOR_PORT = 3128, /* of the listener inside a box */
};
