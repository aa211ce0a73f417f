/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "http/request.h"

/* Carries one request to a server behind a connected fd and its answer back: streaming and
 * backpressure both ways, Upgrade (WebSocket) included.
 *
 * Hop-by-hop headers, and those Connection names, are dropped in both directions; what is
 * forwarded is written anew from what was parsed, never copied, so the two sides cannot
 * disagree on where a message ends.  An upstream that answers nonsense, nothing, or too late
 * becomes 502 or 504; one that stops in the middle cuts the client off, so that a partial
 * answer does not look whole.
 *
 * What the client says of where it comes from (Forwarded, X-Forwarded-*, X-Real-IP) is dropped,
 * as is its own form of every header in `add_headers`.  Of all protocols to upgrade to only
 * WebSocket is passed on: another could carry requests that nobody judged.  Each fd serves one
 * request. */
/* Who counts what passes, both ways, and may hold it up.  Not asked any more once the request is
 * over. */
typedef struct HttpMeter {
    void (*moved)(void *ctx, size_t to_upstream, size_t from_upstream);
    bool (*may_move)(void *ctx); /* false: asked again HTTP_PROXY_HOLD_MS later */
} HttpMeter;

typedef struct HttpProxySpec {
    Loop *loop;                      /* as the request's server has it */
    const char *target;              /* NULL: the request's own */
    const char *host;                /* NULL: the request's own */
    const char *const *drop_headers; /* more request headers to drop (credentials); NULL: none */
    const char *const *add_headers;  /* name, value, name, value, …, NULL */
    /* Judges each header of the answer: NULL drops it, else this value goes on.  NULL: all go on
     * as they are. */
    char *(*judge_answer)(const char *name, const char *value);
    bool no_upgrade;        /* a wish to upgrade is dropped */
    const HttpMeter *meter; /* NULL: none */
    void *meter_ctx;
    guint head_ms;  /* for the upstream to take what we have for it, and to answer; 0: 60 s */
    guint stall_ms; /* without a byte either way afterwards; 0: 10 min */
} HttpProxySpec;

/* `fd` is a stream socket, connected or connecting, and non-blocking; taken.  The request's
 * body, answer and gone-callback are the proxy's from then on; `spec` is not kept.  A target,
 * host or header that would break a line is answered with 400. */
void http_proxy(HttpRequest *request, int fd, const HttpProxySpec *spec);
