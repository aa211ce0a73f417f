/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/request.h"

/* Carries one request to a server behind a connected fd and its answer back: streaming and
 * backpressure both ways, Upgrade (WebSocket) included.
 *
 * Hop-by-hop headers, and those Connection names, are dropped in both directions; what is
 * forwarded is written anew from what was parsed, never copied, so the two sides cannot
 * disagree on where a message ends.  An upstream that answers nonsense, nothing, or too late
 * becomes 502 or 504; one that stops in the middle cuts the client off, so that a partial
 * answer does not look whole. */
typedef struct HttpProxySpec {
    struct HttpLoop *loop;           /* as the request's server has it */
    const char *target;              /* NULL: the request's own */
    const char *host;                /* NULL: the request's own */
    const char *const *drop_headers; /* more request headers to drop (credentials); NULL: none */
    const char *const *add_headers;  /* name, value, name, value, …, NULL */
    guint head_ms;                   /* until the upstream's answer begins; 0: 60 s */
    guint stall_ms;                  /* without a byte either way afterwards; 0: 10 min */
} HttpProxySpec;

/* `fd` is connected (or connecting) and non-blocking; taken. */
void http_proxy(HttpRequest *request, int fd, const HttpProxySpec *spec);
