/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"

/* One request and its answer.
 *
 * The connection holds a reference until the exchange is over; a handler that answers later
 * takes one of its own, because the client may vanish at any moment.  From then on the
 * request is *gone*: every call here is still allowed, answers go nowhere, and the `gone`
 * callback has been called.  A request whose last reference is dropped without an answer is
 * answered with a 500, so that a forgotten path shows at once.
 *
 * Order of calls: read the head; optionally add headers; at most one reader of the body; one
 * respond call. */
typedef struct HttpRequest HttpRequest;

HttpRequest *http_request_ref(HttpRequest *request);
void http_request_unref(HttpRequest *request);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpRequest, http_request_unref)

/* ---- the head; strings live as long as the request ---- */

const char *http_request_id(const HttpRequest *request);     /* for logs; unique in this process */
const char *http_request_method(const HttpRequest *request); /* "GET", …; llhttp knows them all */
const char *http_request_target(const HttpRequest *request); /* as sent */
const char *http_request_path(const HttpRequest *request);   /* still percent-encoded; "" for CONNECT */
const char *http_request_query(const HttpRequest *request);  /* still encoded; NULL: none */
int http_request_minor(const HttpRequest *request);          /* HTTP/1.minor */

/* The first header of that name, in any case; NULL: none.  For lists and cookies sent in
 * several lines use http_request_each_header(). */
const char *http_request_header(const HttpRequest *request, const char *name);
guint http_request_header_count(const HttpRequest *request, const char *name);
guint http_request_headers(const HttpRequest *request); /* how many */
void
http_request_header_at(const HttpRequest *request, guint i, const char **ret_name, const char **ret_value);

bool http_request_has_body(const HttpRequest *request);
gint64 http_request_content_length(const HttpRequest *request); /* -1: chunked */
bool http_request_wants_upgrade(const HttpRequest *request, const char *protocol);

/* ---- where it came from ---- */

typedef struct HttpPeer {
    bool is_unix;
    bool is_loopback;
    pid_t pid; /* unix only: SO_PEERCRED */
    uid_t uid;
    char address[48];   /* numeric; "" for unix */
    guint16 local_port; /* 0 for unix */
} HttpPeer;

const HttpPeer *http_request_peer(const HttpRequest *request);
void *http_request_listener_data(const HttpRequest *request);

/* ---- life ---- */

bool http_request_is_gone(const HttpRequest *request);
bool http_request_is_answered(const HttpRequest *request);
/* Called once, when the client is gone before the answer was complete. */
void http_request_on_gone(HttpRequest *request, void (*gone)(HttpRequest *request, void *data), void *data);
/* Called once when the exchange is over, whichever way; the status that was sent (0: none)
 * and the bytes of the answer are known then.  For access logs and metrics. */
typedef struct HttpOutcome {
    int status;
    guint64 bytes_out;
    gint64 duration_us;
    bool complete;
} HttpOutcome;
void
http_request_on_over(HttpRequest *request,
                     void (*over)(HttpRequest *request, const HttpOutcome *outcome, void *data), void *data);

/* A handler's own state, freed with the request. */
void http_request_set_data(HttpRequest *request, void *data, GDestroyNotify destroy);
void *http_request_data(const HttpRequest *request);

/* ---- the body: pushed to a sink that can say "enough for now" ---- */

typedef struct HttpSink {
    /* All `n` bytes are taken.  False: stop until http_request_resume_body(). */
    bool (*data)(void *ctx, const guint8 *bytes, size_t n);
    /* Exactly once.  NULL: the whole body came.  Otherwise ERR_LIMIT (longer than `max`; the
     * handler should answer 413), ERR_TIMEOUT, ERR_INVALID (the HTTP layer has answered 400
     * itself) or ERR_CANCELLED (gone). */
    void (*end)(void *ctx, const GError *error);
    /* NULL: none.  Takes up to `n` bytes of a large body from the socket itself, without waiting: how
     * many; 0: the socket is at its end; -1 with errno: EAGAIN when there are none; ENOBUFS as
     * `data` says false; anything else is the end of the connection. */
    gssize (*splice)(void *ctx, int fd, size_t n);
} HttpSink;

/* Starts reading (and sends 100 Continue if the client waits for it).  A body that no
 * handler reads is refused: the connection is closed after the answer. */
void http_request_read_body(HttpRequest *request, const HttpSink *sink, void *ctx, guint64 max);
void http_request_resume_body(HttpRequest *request);

/* The whole body in memory, for small ones.  `error` as above; `body` is valid during the
 * call. */
typedef void (*HttpBodyFunc)(HttpRequest *request, const guint8 *body, size_t n, const GError *error,
                             void *data);
void http_request_read_all(HttpRequest *request, size_t max, HttpBodyFunc func, void *data);

/* ---- the answer ---- */

/* Before the answer; a value with control characters is our mistake and asserts. */
void http_response_header(HttpRequest *request, const char *name, const char *value);

/* The connection ends with this answer; what the client sent after its request is dropped. */
void http_response_close(HttpRequest *request);

/* Content-Length, Date and Connection are set here.  `type` may be NULL without a body. */
void http_respond(HttpRequest *request, int status, const char *type, const void *body, size_t n);
void http_respond_text(HttpRequest *request, int status, const char *type, const char *body);
void http_respond_bytes(HttpRequest *request, int status, const char *type, GBytes *body);

typedef enum HttpPull {
    HTTP_PULL_DATA, /* something was added to `out` */
    HTTP_PULL_WAIT, /* nothing yet; http_request_wake() when there is */
    HTTP_PULL_END,
    HTTP_PULL_FAIL, /* the rest cannot come: the connection is cut, so that it does not look whole */
    HTTP_PULL_FULL, /* of a splice: the socket has no room */
} HttpPull;

/* Asked for bytes only when the socket has room, so a slow reader holds up nobody and costs
 * a bounded buffer.  `out` has at least HTTP_PULL_ROOM bytes of room; a source adds what it
 * likes up to that. */
typedef struct HttpSource {
    HttpPull (*pull)(void *ctx, Buf *out);
    void (*closed)(void *ctx); /* exactly once, after the last pull; may be NULL */
    /* NULL: none.  Of an answer with a length, while much of it is left: puts up to `n` bytes on the
     * socket itself, without waiting, in place of a pull. */
    HttpPull (*splice)(void *ctx, int fd, size_t n, size_t *ret_moved);
} HttpSource;

/* `length` < 0: chunked (or until close, for HTTP/1.0). */
void http_respond_stream(HttpRequest *request, int status, const char *type, gint64 length,
                         const HttpSource *source, void *ctx);
void http_request_wake(HttpRequest *request);

/* ---- taking the connection over (Upgrade, CONNECT) ---- */

/* The head is sent; from then on bytes go both ways unframed, still with backpressure:
 * what the client sends goes to `sink` (end(NULL) = it closed its side), `source` is pulled,
 * PULL_END closes our side.  For 101 the caller has added Upgrade and its headers;
 * Connection: Upgrade is set here. */
void http_respond_duplex(HttpRequest *request, int status, const HttpSource *source, const HttpSink *sink,
                         void *ctx);

/* The same, but the socket itself is handed out once the head is sent, with bytes that came
 * after the request. `fd` is the callee's; -1 when the client went away before. */
typedef void (*HttpHijackFunc)(int fd, GBytes *unread, void *data);
void http_respond_hijack(HttpRequest *request, int status, HttpHijackFunc func, void *data);

/* Cuts the connection at once, whatever its state; every callback that is due comes before
 * this returns, unless it was called from one of them.  For a peer that does not close its
 * side of a duplex. */
void http_request_cut(HttpRequest *request);
