/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "http-fixture.h"
#include "http/ws.h"

/* A server of WebSockets, and clients that write every frame by hand. */

#define WS_REQUEST(path) "GET " path " HTTP/1.1\r\nHost: a\r\n"
#define WS_UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
#define WS_KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define WS_VERSION "Sec-WebSocket-Version: 13\r\n"
#define WS_HANDSHAKE(path) WS_REQUEST(path) WS_UPGRADE WS_KEY WS_VERSION "\r\n"

enum { PUSH_SIZE = 16 * 1024, QUEUE_MAX = 256 * 1024 };

/* The handler takes every request; the path says what happens with its messages:
 *   /echo    each comes back
 *   /late    the same, but the handshake waits until the test answers it
 *   /pause   counted, and no other is wanted until ws_resume()
 *   /push    messages without end are sent, as the queue takes them
 *   /close   ws_close(4001, "bye") at the first */
typedef struct WsTest {
    Fixture f;
    WsSpec spec;
    WsConn *ws; /* the last one accepted */
    guint opened, closed, messages, drained, refused;
    guint16 code;
    GBytes *kept; /* /echo: did not fit */
    WsKind kept_kind;
    size_t queued_max;
    HttpRequest *late; /* to be answered by the test */
    guint end_at;      /* the callback after which all connections are ended from inside it */
    bool calling;      /* a function of ws.h, from outside the handler */
} WsTest;

void ws_test_init(WsTest *t);
void ws_test_clear(WsTest *t); /* and every connection was closed exactly once */
/* The handler's part for /late. */
void ws_test_accept(WsTest *t, HttpRequest *request);

char *ws_read_head(int fd);
int ws_test_connect(WsTest *t, const char *handshake); /* accepted */
/* The next thing the server does with the socket fails. */
void client_reset(int fd);

void ws_send_frame(int fd, guint8 first, const void *payload, size_t n);
GByteArray *ws_read_frame(int fd, guint8 *ret_first);
void ws_expect_frame(int fd, guint8 first, const void *payload, size_t n);
void ws_expect_close(int fd, guint16 code);

/* A fragmented text with a ping and a pong inside, a binary message, a close frame; and what
 * /echo makes of it. */
void ws_put_conversation(GByteArray *to);
void ws_expect_conversation(int fd);
