/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/request.h"

/* A WebSocket (RFC 6455, server side) over a request that asks for one; frames by wslay.
 * Messages have a maximum, fragments are counted against it, a peer that answers no ping is
 * cut, and the close handshake has a deadline. */
typedef struct WsConn WsConn;

typedef enum WsKind { WS_TEXT, WS_BINARY } WsKind;

typedef struct WsHandler {
    /* A whole message.  Return false to stop reading until ws_resume(). */
    bool (*message)(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx);
    /* The queue was full (ws_send returned false) and has room. */
    void (*drained)(WsConn *ws, void *ctx);
    /* Exactly once; `ws` is freed after it returns.  `code` is 1006 when the peer vanished. */
    void (*closed)(WsConn *ws, guint16 code, void *ctx);
} WsHandler;

typedef struct WsSpec {
    size_t message_max;
    size_t queue_max;        /* bytes waiting to be sent */
    guint ping_ms;           /* between our pings; a peer silent for two of them is cut */
    guint close_ms;          /* how long we wait for the peer's close frame */
    const char *subprotocol; /* NULL: none is chosen */
} WsSpec;
#define WS_SPEC_INIT                                                                                         \
    {                                                                                                        \
        .message_max = 1024 * 1024, .queue_max = 1024 * 1024, .ping_ms = 30000, .close_ms = 5000             \
    }

/* True when the head is a well-formed WebSocket handshake. */
bool ws_is_handshake(const HttpRequest *request);

/* Answers 101 and takes the connection.  When the head is no valid handshake answers 400 (or
 * 426 with Sec-WebSocket-Version) and returns NULL.  `loop` as the request's server has it. */
WsConn *ws_accept(HttpRequest *request, struct HttpLoop *loop, const WsSpec *spec, const WsHandler *handler,
                  void *ctx);

/* False: the queue is full; nothing was queued. */
bool ws_send(WsConn *ws, WsKind kind, const void *bytes, size_t n) G_GNUC_WARN_UNUSED_RESULT;
void ws_resume(WsConn *ws);
/* Starts the close handshake; `closed` follows. */
void ws_close(WsConn *ws, guint16 code, const char *reason);
size_t ws_queued(const WsConn *ws);
