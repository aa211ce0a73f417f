/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/loop.h"

/* Every bound of the HTTP layer, by name.  Those a listener may choose for itself are in
 * HttpLimits (server.h); these are the same for all. */
enum {
    HTTP_TARGET_MAX = 8 * 1024, /* bytes of a request target */
    HTTP_HEAD_MAX = 32 * 1024,  /* bytes of a request or response head */
    HTTP_HEADER_COUNT_MAX = 100,
    HTTP_TRAILER_MAX = 4 * 1024,       /* bytes of all trailers; they are read and dropped */
    HTTP_CHUNK_FRAMING_MAX = 4 * 1024, /* bytes of chunk framing without a byte of body */

    HTTP_READ_SIZE = LOOP_READ_SIZE,
    HTTP_OUT_MAX = 256 * 1024,   /* most bytes waiting to be sent on one connection */
    HTTP_OUT_HIGH = 64 * 1024,   /* a source is asked for more only below this */
    HTTP_PULL_ROOM = 64 * 1024,  /* room a source can count on in each pull */
    HTTP_SPLICE_MIN = 64 * 1024, /* what is left of a body, below which it is copied */

    HTTP_LINGER_MAX = 1024 * 1024, /* bytes of an unwanted body read before the close */
    HTTP_LINGER_MS = 2000,

    HTTP_LISTENERS_MAX = 4096, /* a door has one per box */
    HTTP_ACCEPT_BATCH = 64,
    HTTP_EVENT_BATCH = 64,

    /* Bytes of an upstream's headers; the rest of HTTP_HEAD_MAX is for those a handler added. */
    HTTP_PROXY_HEAD_MAX = 28 * 1024,
    HTTP_PROXY_HEAD_MS = 60000,
    HTTP_PROXY_STALL_MS = 600000,
    HTTP_PROXY_HOLD_MS = 50,

    HTTP_CLIENT_CONNECTIONS_MAX = 512, /* open at once; further calls wait, within their deadline */
    HTTP_CLIENT_PER_HOST_MAX = 256,
    HTTP_CLIENT_KEEP_MAX = 128,     /* with more open than this, an unused one is closed */
    HTTP_CLIENT_IN_MAX = 64 * 1024, /* bytes of an answer held for one call; curl hands on 16 KiB at once */
    HTTP_CLIENT_URL_MAX = HTTP_TARGET_MAX,
    HTTP_CLIENT_CONNECT_MS = 10000,
};
