/* SPDX-License-Identifier: Apache-2.0 */
#include "http/conn-input.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/err.h"
#include "http/limits.h"

bool
conn_wants_input(const HttpConn *c)
{
    switch (c->state) {
    case CONN_IDLE:
    case CONN_HEAD:
    case CONN_LINGER:
        return true;
    case CONN_EXCHANGE:
    case CONN_DUPLEX:
        return c->request->body == BODY_READING;
    }
    g_assert_not_reached();
}

static bool
on_parsed_body(void *ctx, const guint8 *bytes, size_t n)
{
    HttpConn *c = ctx;
    HttpRequest *r = c->request;

    r->body_got += n;
    if (r->body_got > r->body_max) {
        g_autoptr(GError) error = NULL;

        err_set(&error, ERR_LIMIT, "the body is longer than %" G_GUINT64_FORMAT " bytes", r->body_max);
        request_end_body(r, BODY_FAILED, error);
        return false;
    }
    if (!r->sink->data(r->sink_ctx, bytes, n) && r->body == BODY_READING)
        r->body = BODY_PAUSED;
    return r->body == BODY_READING;
}

static void
begin_exchange(HttpConn *c)
{
    c->state = CONN_EXCHANGE;
    c->fresh = false;
    c->renew = true;
    HttpRequest *r = request_new(c);

    c->request = r;
    c->server->stats.requests++;
    c->server->stats.requests_active++;
    http_request_ref(r);
    const char *expect = http_request_header(r, "Expect");
    if (expect != NULL && g_ascii_strcasecmp(expect, "100-continue") != 0)
        http_respond_text(r, 417, "application/json",
                          "{\"code\":417,\"message\":\"only Expect: 100-continue is understood\"}\n");
    else
        c->server->handler(r, c->server->data);
    http_request_unref(r);
}

static size_t
feed_head(HttpConn *c, const guint8 *bytes, size_t n)
{
    size_t used;

    if (c->parser == NULL)
        c->parser = http_parser_new(HTTP_PARSE_REQUEST, on_parsed_body, c);
    c->state = CONN_HEAD;
    switch (http_parser_feed(c->parser, bytes, n, &used)) {
    case HTTP_PARSE_HEAD:
        begin_exchange(c);
        break;
    case HTTP_PARSE_BAD:
        c->server->stats.refused++;
        respond_refuse(c, http_parser_status(c->parser), http_parser_reason(c->parser));
        break;
    case HTTP_PARSE_MORE:
    case HTTP_PARSE_PAUSED:
    case HTTP_PARSE_DONE:
        break;
    }
    return used;
}

static void
refuse_body(HttpConn *c)
{
    HttpRequest *r = c->request;
    const char *reason = http_parser_reason(c->parser);
    bool unanswered = r->answer == ANSWER_NONE;
    g_autoptr(GError) error = NULL;

    c->server->stats.refused++;
    err_set(&error, ERR_INVALID, "the body is not valid: %s", reason);
    http_request_ref(r);
    if (unanswered) {
        r->status = 400;
        r->answer = ANSWER_WRITTEN; /* a handler that answers now comes too late */
    }
    request_end_body(r, BODY_FAILED, error);
    request_end(r, false);
    http_request_unref(r);
    if (unanswered)
        respond_refuse(c, 400, reason);
    else
        c->dead = true;
}

static size_t
feed_body(HttpConn *c, const guint8 *bytes, size_t n)
{
    size_t used;

    switch (http_parser_feed(c->parser, bytes, n, &used)) {
    case HTTP_PARSE_DONE:
        request_end_body(c->request, BODY_ENDED, NULL);
        break;
    case HTTP_PARSE_BAD:
        /* A sink that gave up from inside its callback leaves a parser that was stopped. */
        if (c->request->body != BODY_FAILED)
            refuse_body(c);
        break;
    case HTTP_PARSE_MORE:
    case HTTP_PARSE_PAUSED:
    case HTTP_PARSE_HEAD:
        break;
    }
    return used;
}

static size_t
feed_duplex(HttpConn *c, const guint8 *bytes, size_t n)
{
    HttpRequest *r = c->request;

    if (!r->sink->data(r->sink_ctx, bytes, n) && r->body == BODY_READING)
        r->body = BODY_PAUSED;
    return n;
}

static size_t
feed_linger(HttpConn *c, size_t n)
{
    c->lingered += n;
    if (c->lingered > HTTP_LINGER_MAX)
        c->dead = true;
    return n;
}

static size_t
feed_once(HttpConn *c, const guint8 *bytes, size_t n)
{
    switch (c->state) {
    case CONN_IDLE:
    case CONN_HEAD:
        return feed_head(c, bytes, n);
    case CONN_EXCHANGE:
        return feed_body(c, bytes, n);
    case CONN_DUPLEX:
        return feed_duplex(c, bytes, n);
    case CONN_LINGER:
        return feed_linger(c, n);
    }
    g_assert_not_reached();
}

/* Hands on as much as is wanted right now; returns how much that was. */
static size_t
feed(HttpConn *c, const guint8 *bytes, size_t n)
{
    size_t used = 0;

    while (used < n && !c->dead && conn_wants_input(c))
        used += feed_once(c, bytes + used, n - used);
    return used;
}

static void
on_peer_closed(HttpConn *c)
{
    c->peer_closed = true;
    if (c->state == CONN_DUPLEX)
        request_end_body(c->request, BODY_ENDED, NULL);
    else if (c->state != CONN_LINGER || buf_len(&c->out) == 0)
        c->dead = true; /* a head or a body that will never be complete, or nothing to say */
}

/* How much of a body its sink may take from the socket.  The last byte is the parser's: with it
 * the body ends. */
static guint64
splice_left(const HttpConn *c)
{
    const HttpRequest *r = c->request;

    if (c->state != CONN_EXCHANGE || r->body != BODY_READING || r->sink->splice == NULL)
        return 0;
    guint64 left = http_parser_body_left(c->parser);
    return left > HTTP_SPLICE_MIN ? left - 1 : 0;
}

static void
splice_body(HttpConn *c, guint64 most)
{
    HttpRequest *r = c->request;
    gssize n = r->sink->splice(r->sink_ctx, c->watch.fd, (size_t)most);

    if (n > 0) {
        c->progress = true;
        c->server->stats.bytes_in += (guint64)n;
        r->body_got += (guint64)n;
        http_parser_skip_body(c->parser, (guint64)n);
    } else if (n == 0) {
        on_peer_closed(c);
    } else if (errno == ENOBUFS) {
        if (r->body == BODY_READING)
            r->body = BODY_PAUSED;
    } else if (errno != EAGAIN) {
        c->dead = true;
    }
}

void
conn_read_socket(HttpConn *c)
{
    uint8_t *buffer = loop_read_buffer(c->server->loop);
    guint64 most = splice_left(c);
    ssize_t n;

    if (most > 0) {
        splice_body(c, most);
        return;
    }
    do {
        n = recv(c->watch.fd, buffer, HTTP_READ_SIZE, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        if (errno != EAGAIN)
            c->dead = true;
        return;
    }
    if (n == 0) {
        on_peer_closed(c);
        return;
    }
    c->progress = true;
    c->server->stats.bytes_in += (guint64)n;
    size_t used = feed(c, buffer, (size_t)n);
    if (!c->dead && used < (size_t)n) {
        bool ok = buf_put(&c->in, buffer + used, (size_t)n - used);

        g_assert(ok); /* empty before the read, and as large as one */
    }
}

void
conn_feed_kept(HttpConn *c)
{
    size_t n;
    const guint8 *bytes = buf_peek(&c->in, &n);

    if (c->dead || !conn_wants_input(c))
        return;
    if (n > 0)
        buf_skip(&c->in, feed(c, bytes, n));
    else if (c->state == CONN_EXCHANGE && http_parser_is_paused(c->parser))
        feed_once(c, bytes, 0); /* the sink paused at the last byte of the body */
}
