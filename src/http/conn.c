/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one connection.
 *
 *     IDLE -> HEAD -> EXCHANGE -> IDLE …            keep-alive
 *                         |-----> LINGER -> closed  a body nobody read, or a refusal
 *                         |-----> closed
 *                         +-----> DUPLEX -> closed  Upgrade, CONNECT
 *
 * Everything happens in conn_run(): hand on input, write output, finish the exchange, again
 * while something moved.  Handlers, sinks and sources are called from inside it and may call
 * anything in request.h; `busy` turns those calls into marks that the running turn sees, so
 * no callback ever frees the connection under its caller.
 *
 * Bytes are read only while somebody wants them: `in` is empty whenever EPOLLIN is armed, so
 * it holds at most one read, and a sink that says "enough" stops the peer through TCP. */
#include "http/conn.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "http/limits.h"

static void conn_free(HttpConn *c);

/* ---- input ---- */

static bool
wants_input(const HttpConn *c)
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

    while (used < n && !c->dead && wants_input(c))
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

static void
read_socket(HttpConn *c)
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

static void
feed_kept(HttpConn *c)
{
    size_t n;
    const guint8 *bytes = buf_peek(&c->in, &n);

    if (c->dead || !wants_input(c))
        return;
    if (n > 0)
        buf_skip(&c->in, feed(c, bytes, n));
    else if (c->state == CONN_EXCHANGE && http_parser_is_paused(c->parser))
        feed_once(c, bytes, 0); /* the sink paused at the last byte of the body */
}

/* ---- output ---- */

static bool
may_pull(const HttpConn *c)
{
    const HttpRequest *r = c->request;

    if (r == NULL || (r->answer != ANSWER_STREAM && r->answer != ANSWER_DUPLEX) || r->waiting || c->later)
        return false;
    return buf_len(&c->out) < (respond_is_spliced(r) ? 1 : HTTP_OUT_HIGH);
}

static bool
send_some(HttpConn *c)
{
    size_t n;
    const guint8 *bytes = buf_peek(&c->out, &n);
    ssize_t sent;

    do {
        sent = send(c->watch.fd, bytes, n, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        if (errno != EAGAIN)
            c->dead = true;
        return false;
    }
    c->progress = true;
    c->server->stats.bytes_out += (guint64)sent;
    buf_skip(&c->out, (size_t)sent);
    return (size_t)sent == n;
}

static void
write_socket(HttpConn *c)
{
    while (!c->dead) {
        while (!c->dead && may_pull(c)) {
            if (!respond_pull(c))
                c->dead = true;
        }
        if (c->dead || buf_len(&c->out) == 0 || !send_some(c))
            return;
    }
}

/* ---- the end of an exchange ---- */

static void
hand_out_socket(HttpConn *c)
{
    HttpRequest *r = c->request;
    HttpHijackFunc func = g_steal_pointer(&r->hijack);
    size_t n;
    const guint8 *bytes = buf_peek(&c->in, &n);
    g_autoptr(GBytes) unread = g_bytes_new(bytes, n);

    loop_remove(c->server->loop, &c->watch);
    int fd = c->watch.fd;
    c->watch.fd = -1;
    c->dead = true;
    void *data = r->hijack_data;
    request_end(r, true);
    func(fd, unread, data);
}

static void
close_gently(HttpConn *c)
{
    /* Closing with bytes unread would reset the connection and could destroy the answer on
     * its way; so the peer gets a FIN and a moment to stop. */
    c->state = CONN_LINGER;
    c->lingered = 0;
    c->again = true;
    buf_clear(&c->in);
    g_clear_pointer(&c->parser, http_parser_free);
}

static void
finish_exchange(HttpConn *c)
{
    HttpRequest *r = c->request;
    bool body_over = r->body == BODY_NONE || r->body == BODY_ENDED;
    bool keep = r->head.keep_alive && body_over && !c->peer_closed && !c->server->draining;
    bool unread = !body_over || r->last;

    request_end(r, true);
    if (unread) {
        close_gently(c);
    } else if (!keep) {
        c->dead = true;
    } else {
        c->state = CONN_IDLE;
        if (c->parser != NULL)
            http_parser_reset(c->parser);
        c->again = buf_len(&c->in) > 0;
    }
}

static void
finish_duplex(HttpConn *c)
{
    if (!c->shut) {
        c->shut = true;
        (void)shutdown(c->watch.fd, SHUT_WR); /* the peer may be gone already */
    }
    if (c->request->body == BODY_ENDED) {
        request_end(c->request, true);
        c->dead = true;
    }
}

static void
settle(HttpConn *c)
{
    if (c->dead || buf_len(&c->out) > 0)
        return;
    if (c->state == CONN_LINGER) {
        if (!c->shut) {
            c->shut = true;
            (void)shutdown(c->watch.fd, SHUT_WR); /* as above */
        }
        if (c->peer_closed)
            c->dead = true;
    } else if (c->request != NULL && c->request->answer == ANSWER_HIJACK) {
        hand_out_socket(c);
    } else if (c->request != NULL && c->request->answer == ANSWER_WRITTEN) {
        if (c->state == CONN_DUPLEX)
            finish_duplex(c);
        else
            finish_exchange(c);
    }
}

/* ---- deadlines ---- */

static ConnTimer
timer_wanted(const HttpConn *c)
{
    if (c->state == CONN_LINGER)
        return CONN_TIMER_LINGER;
    if (buf_len(&c->out) > 0 || c->later)
        return CONN_TIMER_WRITE;
    if (c->state == CONN_HEAD || (c->state == CONN_IDLE && c->fresh))
        return CONN_TIMER_HEADER;
    if (c->state == CONN_IDLE)
        return CONN_TIMER_IDLE;
    if (c->state == CONN_EXCHANGE && c->request->body == BODY_READING)
        return CONN_TIMER_BODY;
    return CONN_TIMER_NONE;
}

static guint
timer_ms(const HttpConn *c, ConnTimer kind)
{
    const HttpLimits *l = &c->server->limits;

    switch (kind) {
    case CONN_TIMER_HEADER:
        return l->header_ms;
    case CONN_TIMER_IDLE:
        return l->idle_ms;
    case CONN_TIMER_BODY:
        return l->body_stall_ms;
    case CONN_TIMER_WRITE:
        return l->write_stall_ms;
    case CONN_TIMER_LINGER:
        return HTTP_LINGER_MS;
    case CONN_TIMER_NONE:
        break;
    }
    g_assert_not_reached();
}

static void
set_timer(HttpConn *c)
{
    ConnTimer kind = timer_wanted(c);
    /* A head has one deadline, however busily its bytes drip in; stalls start anew with
     * every byte, and everything with an exchange, which may have come and gone in a turn. */
    bool renew = c->renew || kind != c->timer_kind ||
                 (c->progress && (kind == CONN_TIMER_BODY || kind == CONN_TIMER_WRITE));

    c->progress = c->renew = false;
    if (!renew)
        return;
    c->timer_kind = kind;
    if (kind == CONN_TIMER_NONE)
        loop_timer_cancel(c->server->loop, &c->timer);
    else
        loop_timer_set(c->server->loop, &c->timer, timer_ms(c, kind));
}

static void
on_timer(LoopTimer *timer)
{
    HttpConn *c = (HttpConn *)((char *)timer - G_STRUCT_OFFSET(HttpConn, timer));
    ConnTimer kind = c->timer_kind;
    g_autoptr(GError) error = NULL;

    c->timer_kind = CONN_TIMER_NONE;
    c->server->stats.timeouts++;
    if (kind == CONN_TIMER_HEADER && c->state == CONN_HEAD) {
        respond_refuse(c, 408, "the request did not come in time");
    } else if (kind == CONN_TIMER_BODY) {
        err_set(&error, ERR_TIMEOUT, "the body stopped coming");
        c->busy = true;
        request_end_body(c->request, BODY_FAILED, error);
        c->busy = false;
    } else {
        c->dead = true;
    }
    conn_run(c);
}

/* ---- the turn ---- */

static void
arm(HttpConn *c)
{
    uint32_t events = c->fin_seen || c->peer_closed ? 0 : EPOLLRDHUP;

    if (!c->peer_closed && wants_input(c) && buf_len(&c->in) == 0)
        events |= EPOLLIN;
    if (buf_len(&c->out) > 0 || c->later)
        events |= EPOLLOUT;
    /* A hang-up is reported whatever is armed, each time anew unless edge-triggered. */
    loop_set(c->server->loop, &c->watch, events != 0 ? events : EPOLLET);
}

void
conn_run(HttpConn *c)
{
    if (c->busy) {
        c->again = true;
        return;
    }
    c->busy = true;
    do {
        c->again = false;
        feed_kept(c);
        write_socket(c);
        settle(c);
    } while (c->again && !c->dead);
    c->busy = false;
    if (c->dead) {
        conn_free(c);
        return;
    }
    set_timer(c);
    arm(c);
}

/* A FIN while nobody reads.  It may be half a goodbye from a client that still waits for its
 * answer; but a stream without end, or a handler that asked to know, is told it is gone. */
static void
on_fin(HttpConn *c)
{
    HttpRequest *r = c->request;

    c->fin_seen = true;
    if (r == NULL || c->state == CONN_DUPLEX)
        return;
    if ((r->answer == ANSWER_STREAM && r->length_left < 0) ||
        (r->answer == ANSWER_NONE && r->on_gone != NULL))
        c->dead = true;
}

/* Both sides have ended, but the sink has not taken all that came before. */
static bool
has_unread_end(const HttpConn *c, uint32_t events)
{
    return c->state == CONN_DUPLEX && c->request->body == BODY_PAUSED && (events & EPOLLERR) == 0;
}

static void
on_ready(LoopWatch *watch, uint32_t events)
{
    HttpConn *c = (HttpConn *)watch;

    c->busy = true;
    if ((events & EPOLLOUT) != 0)
        c->later = false;
    if ((events & EPOLLIN) != 0)
        read_socket(c);
    else if ((events & (EPOLLERR | EPOLLHUP)) != 0 && !has_unread_end(c, events))
        c->dead = true;
    else if ((events & EPOLLRDHUP) != 0)
        on_fin(c);
    c->busy = false;
    conn_run(c);
}

/* ---- life ---- */

HttpConn *
conn_new(HttpServer *server, HttpListener *listener, int fd, const HttpPeer *peer)
{
    HttpConn *c = g_new0(HttpConn, 1);

    c->watch = (LoopWatch){.ready = on_ready, .fd = fd};
    c->timer.expired = on_timer;
    c->server = server;
    c->listener = listener;
    c->peer = *peer;
    c->fresh = true;
    buf_init(&c->in, HTTP_READ_SIZE);
    buf_init(&c->out, HTTP_OUT_MAX);
    return c;
}

static void
conn_free(HttpConn *c)
{
    if (c->request != NULL) {
        c->busy = true;
        request_end(c->request, false);
    }
    loop_timer_cancel(c->server->loop, &c->timer);
    loop_remove(c->server->loop, &c->watch);
    if (c->watch.fd >= 0)
        close(c->watch.fd);
    http_parser_free(c->parser);
    buf_clear(&c->in);
    buf_clear(&c->out);
    server_conn_closed(c->server, c);
}

void
conn_kill(HttpConn *c)
{
    c->dead = true;
    if (!c->busy)
        conn_free(c);
}
