/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "http/request.h"

/* An HTTP/1.1 server on listeners that are handed in.  Hostile clients are the normal case:
 * whatever bytes come, a connection is answered or closed, stays within its bounds, and the
 * next one is served.
 *
 * One request at a time per connection: reading stops while an answer is under way, so a
 * pipelining client cannot make work pile up. */
typedef struct HttpServer HttpServer;

/* Called when a request's head is complete.  The handler answers now or later; see
 * request.h. */
typedef void (*HttpHandler)(HttpRequest *request, void *data);

typedef struct HttpLimits {
    guint connections;    /* in all; the newest is shed with a 503 beyond */
    guint header_ms;      /* from the first byte (or the accept) to the end of the head */
    guint idle_ms;        /* keep-alive without a request */
    guint body_stall_ms;  /* without a byte of a body that is being read */
    guint write_stall_ms; /* without the peer taking a byte we have for it */
} HttpLimits;
#define HTTP_LIMITS_INIT                                                                                     \
    {                                                                                                        \
        .connections = 16384, .header_ms = 10000, .idle_ms = 60000, .body_stall_ms = 60000,                  \
        .write_stall_ms = 60000                                                                              \
    }

typedef struct HttpServerSpec {
    Loop *loop; /* borrowed; outlives the server */
    HttpLimits limits;
    HttpHandler handler;
    void *data;
    const char *server_name; /* the Server header; NULL: none */
} HttpServerSpec;

typedef struct HttpListenerSpec {
    const char *name;  /* for logs and stats; copied */
    void *data;        /* the handler finds it by http_request_listener_data() */
    guint connections; /* on this listener; 0: only the server's bound */
} HttpListenerSpec;

typedef struct HttpListener HttpListener;

typedef struct HttpStats {
    guint connections;     /* open now */
    guint requests_active; /* being answered now */
    guint streams;         /* of these, with a source that is waiting or sending */
    guint64 accepted;
    guint64 shed; /* refused because a bound or the fds were used up */
    guint64 requests;
    guint64 refused; /* heads answered with 4xx by the HTTP layer itself */
    guint64 timeouts;
    guint64 bytes_in;
    guint64 bytes_out;
} HttpStats;

HttpServer *http_server_new(const HttpServerSpec *spec);
/* Closes what is open; every request still referenced is gone from then on. */
void http_server_free(HttpServer *server);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpServer, http_server_free)

/* `fd` is a listening stream socket (TCP or unix); taken, even on failure. */
HttpListener *http_server_listen(HttpServer *server, int fd, const HttpListenerSpec *spec, GError **error);
/* Closes the listener and every connection that came by it. */
void http_server_unlisten(HttpServer *server, HttpListener *listener);

/* A listener without a socket, for connections that are adopted. */
HttpListener *http_server_listen_to_none(HttpServer *server, const HttpListenerSpec *spec, GError **error);
/* A connected socket as if it had been accepted; taken. */
bool http_server_adopt(HttpServer *server, int fd, HttpListener *listener, GError **error);

/* For a clean stop: no new connections, those without a whole request closed, no keep-alive
 * after the answers under way; `drained` is called when the last connection is gone (from the loop, never
 * from inside this call). */
void http_server_drain(HttpServer *server, void (*drained)(void *data), void *data);

void http_server_stats(const HttpServer *server, HttpStats *ret_stats);
