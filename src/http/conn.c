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
 * no callback ever frees the connection under its caller. */
#include "http/conn.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "http/conn-input.h"
#include "http/limits.h"

static void conn_free(HttpConn *c);

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

    if (!c->peer_closed && conn_wants_input(c) && buf_len(&c->in) == 0)
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
        conn_feed_kept(c);
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
        conn_read_socket(c);
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
