/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "http/server.h"

/* A real server in this process, and clients that are plain sockets.  Everything runs on the
 * default context; waiting means iterating it until the awaited thing happened, with a
 * deadline that only a broken test reaches. */
typedef struct Fixture {
    Loop *loop;
    HttpServer *server;
    HttpListener *listener;
    guint16 port;
    guint handled; /* requests the handler saw */
    guint over;    /* exchanges that ended */
    guint gone;    /* of these, without a complete answer */
    HttpHandler handler;
    void *handler_data;
} Fixture;

enum { FIXTURE_WAIT_S = 60, MIB = 1024 * 1024 };

/* The handler answers:
 *   GET  /hello          "hello\n"
 *   *    /echo           the body back, whole (at most 1 MiB)
 *   POST /count          reads as it comes, answers the number of bytes
 *   POST /slow-count     the same, but pauses the sink after each piece until the next turn
 *   GET  /stream/N       N bytes of 'x', chunked
 *   GET  /length/N       N bytes of 'x' with Content-Length
 *   GET  /wait           a stream that sends "hi\n" and waits for ever
 *   GET  /fail           a stream that breaks after 10 bytes
 *   GET  /never          no answer until the client is gone
 *   GET  /forgotten      the handler forgets to answer
 *   *    /duplex         Upgrade or CONNECT: echoes bytes
 *   *    /hijack         Upgrade: the socket is taken and "taken\n" is written to it
 *   anything else        404 */
void fixture_init(Fixture *f, const HttpLimits *limits);
/* The same with a handler of the test's own; http_request_on_over() stays the fixture's. */
void fixture_init_handler(Fixture *f, const HttpLimits *limits, HttpHandler handler, void *data);
void fixture_clear(Fixture *f);

int fixture_connect(Fixture *f);
/* Iterates until *flag (or the deadline, which fails the test). */
void fixture_until(const guint *counter, guint at_least);
void fixture_turn(void);  /* whatever is ready */
size_t fixture_rss(void); /* bytes of memory this process has, now */

/* Sends all of it, while the loop runs. */
void client_send(int fd, const void *bytes, size_t n);
void client_sends(int fd, const char *text);
/* Everything until the server closes (or `until` appears, if not NULL). */
GString *client_read(int fd, const char *until);
/* Exactly `n` bytes; fewer only when the server closes before. */
GByteArray *client_read_n(int fd, size_t n);
/* True when the server closed within the deadline. */
bool client_sees_close(int fd);
/* One request on a connection of its own. */
char *client_ask(Fixture *f, const char *request);
int answer_status(const char *answer);
const char *answer_body(const char *answer);
