/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "http/request.h"

/* A WebSocket (RFC 6455, server side) over a request that asks for one; frames by wslay.
 * Messages have a maximum, fragments are counted against it, a peer that answers no ping is
 * cut, and the close handshake has a deadline.
 *
 * The handler is called from the loop, never from inside a function of this file, and every
 * function may be called from inside the handler. */
typedef struct WsConn WsConn;

typedef enum WsKind { WS_TEXT, WS_BINARY } WsKind;

typedef struct WsHandler {
    /* A whole message.  Return false to stop reading until ws_resume(). */
    bool (*message)(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx);
    /* The queue was full (ws_send returned false) and has room. */
    void (*drained)(WsConn *ws, void *ctx);
    /* Exactly once, when the connection is gone; `ws` is freed after it returns.  `code` is the
     * peer's, ours when the peer broke the rules, 1005 when the peer gave none, 1006 when it
     * vanished or did not answer our close. */
    void (*closed)(WsConn *ws, guint16 code, void *ctx);
} WsHandler;

typedef struct WsSpec {
    size_t message_max;
    size_t queue_max;        /* bytes waiting to be sent */
    guint ping_ms;           /* between our pings; a peer silent for two of them is cut; 0: none */
    guint close_ms;          /* how long the peer may take once our close frame is sent */
    const char *subprotocol; /* NULL: none is chosen */
} WsSpec;
#define WS_SPEC_INIT                                                                                         \
    {                                                                                                        \
        .message_max = 1024 * 1024, .queue_max = 1024 * 1024, .ping_ms = 30000, .close_ms = 5000             \
    }

/* True when the head is a well-formed WebSocket handshake. */
bool ws_is_handshake(const HttpRequest *request);

/* Answers 101 and takes the connection.  When the head is no valid handshake answers 400 (or
 * 426 with Sec-WebSocket-Version) and returns NULL; NULL too when the client is gone.  `loop`
 * as the request's server has it; `handler` is borrowed and outlives the connection.  Of
 * `spec` nothing is kept but numbers. */
WsConn *ws_accept(HttpRequest *request, Loop *loop, const WsSpec *spec, const WsHandler *handler, void *ctx);

/* False: nothing was queued, because the queue is full (`drained` follows), the message is
 * longer than queue_max, or the close handshake has begun. */
bool ws_send(WsConn *ws, WsKind kind, const void *bytes, size_t n) G_GNUC_WARN_UNUSED_RESULT;
void ws_resume(WsConn *ws);
/* Starts the close handshake behind what is queued; no message is delivered any more, and
 * `closed` follows.  A reason that is too long (123 bytes) is cut; NULL: none. */
void ws_close(WsConn *ws, guint16 code, const char *reason);
size_t ws_queued(const WsConn *ws);
