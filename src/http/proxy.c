/* SPDX-License-Identifier: Apache-2.0 */
/* One request, one upstream connection.
 *
 *     WAITING -> ANSWERING -> OVER      the answer streams
 *        |-----> TUNNEL ----> OVER      101: bytes both ways
 *        +------------------> OVER      502, 504, or the client went
 *
 * To the upstream: the sink appends to `out` and says "enough" when that is full.  From the
 * upstream: one read at a time into `in`, which the source takes apart when the client has
 * room; the upstream is read again when `in` is empty.  So a slow side holds up the other
 * through TCP, and costs two bounded buffers.
 *
 * The request's sink, its source and its gone-callback point here; we are freed when none of
 * them can come any more.  Whatever answers or wakes the request may end it at once, so the
 * functions the loop calls hold the Proxy meanwhile. */
#include "http/proxy.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "http/limits.h"
#include "http/proxy-head.h"
#include "http/proxy-private.h"

enum { CHUNK_LINE_MAX = 16 + 2 };

/* ---- the end ---- */

void
proxy_hang_up(Proxy *p)
{
    if (p->watch.fd < 0)
        return;
    loop_remove(p->loop, &p->watch);
    close(p->watch.fd);
    p->watch.fd = -1;
    loop_timer_cancel(p->loop, &p->timer);
    loop_timer_cancel(p->loop, &p->hold);
}

static bool
is_over(const Proxy *p)
{
    return p->state != PROXY_WAITING && !p->sink_open && !p->source_open;
}

void
proxy_finish_if_over(Proxy *p)
{
    if (!is_over(p) || p->held)
        return;
    proxy_hang_up(p);
    http_request_on_gone(p->request, NULL, NULL);
    http_parser_free(p->parser);
    buf_clear(&p->in);
    buf_clear(&p->out);
    http_request_unref(p->request);
    g_free(p);
}

void
proxy_refuse(Proxy *p, int status, const char *message)
{
    g_autofree char *body = g_strdup_printf("{\"code\":%d,\"message\":\"%s\"}\n", status, message);

    g_assert(p->state == PROXY_WAITING);
    p->state = PROXY_OVER;
    proxy_hang_up(p);
    http_respond_text(p->request, status, "application/json", body);
}

static void
on_gone(HttpRequest *request, void *data)
{
    Proxy *p = data;

    p->state = PROXY_OVER;
    proxy_hang_up(p);
    proxy_finish_if_over(p);
}

/* ---- deadlines ---- */

void
proxy_restart_clock(Proxy *p)
{
    if (p->watch.fd < 0)
        return;
    /* Before the answer the upstream is timed only while it owes us something: the client has
     * the server's own deadline. */
    if (p->state == PROXY_WAITING && !p->all_sent && buf_len(&p->out) == 0)
        loop_timer_cancel(p->loop, &p->timer);
    else
        loop_timer_set(p->loop, &p->timer, p->state == PROXY_WAITING ? p->head_ms : p->stall_ms);
}

static void
on_timer(LoopTimer *timer)
{
    Proxy *p = (Proxy *)((char *)timer - G_STRUCT_OFFSET(Proxy, timer));

    p->held = true;
    if (p->state == PROXY_WAITING)
        proxy_refuse(p, 504, "the server behind this address does not answer");
    else if (buf_len(&p->in) > 0)
        proxy_restart_clock(p); /* it is the client that is slow, which the server watches */
    else
        http_request_cut(p->request);
    p->held = false;
    proxy_finish_if_over(p);
}

/* ---- the meter ---- */

static void
count(Proxy *p, size_t to_upstream, size_t from_upstream)
{
    if (p->meter != NULL && !is_over(p))
        p->meter->moved(p->meter_ctx, to_upstream, from_upstream);
}

static bool
may_move(Proxy *p)
{
    if (p->meter == NULL || is_over(p) || p->meter->may_move(p->meter_ctx))
        return true;
    loop_timer_set(p->loop, &p->hold, HTTP_PROXY_HOLD_MS);
    return false;
}

/* ---- to the upstream ---- */

void
proxy_arm(Proxy *p)
{
    uint32_t events = 0;

    if (p->watch.fd < 0)
        return;
    if (buf_len(&p->out) > 0)
        events |= EPOLLOUT;
    if (!p->eof && buf_len(&p->in) == 0 && may_move(p))
        events |= EPOLLIN;
    /* A hang-up is reported whatever is armed, each time anew unless edge-triggered. */
    loop_set(p->loop, &p->watch, events != 0 ? events : EPOLLET);
}

static void
flush(Proxy *p)
{
    size_t n;
    const guint8 *bytes;

    while ((bytes = buf_peek(&p->out, &n)), n > 0 && p->watch.fd >= 0) {
        ssize_t sent = send(p->watch.fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0) {
            p->out_dead = true;
            buf_clear(&p->out);
            break;
        }
        buf_skip(&p->out, (size_t)sent);
        count(p, (size_t)sent, 0);
        proxy_restart_clock(p);
    }
    if (n == 0 && p->state == PROXY_TUNNEL && p->all_sent && p->watch.fd >= 0)
        (void)shutdown(p->watch.fd, SHUT_WR); /* it may have closed already */
}

static bool
on_data(void *ctx, const guint8 *bytes, size_t n)
{
    Proxy *p = ctx;
    bool ok = true;

    if (p->out_dead || p->watch.fd < 0)
        return false; /* the answer, or the end, is on its way */
    if (p->chunked)
        ok = buf_printf(&p->out, "%zx\r\n", n);
    ok = ok && buf_put(&p->out, bytes, n) && (!p->chunked || buf_puts(&p->out, "\r\n"));
    g_assert(ok); /* asked for only below HTTP_OUT_HIGH, and one read at a time */
    flush(p);
    if (p->out_dead && p->state == PROXY_TUNNEL)
        http_request_cut(p->request);
    if (p->timer.queue == NULL)
        proxy_restart_clock(p);
    proxy_arm(p);
    return !p->out_dead && buf_len(&p->out) < HTTP_OUT_HIGH && may_move(p);
}

static void
on_hold_over(LoopTimer *timer)
{
    Proxy *p = (Proxy *)((char *)timer - G_STRUCT_OFFSET(Proxy, hold));

    p->held = true;
    if (may_move(p)) {
        proxy_restart_clock(p); /* it was the meter that was slow */
        if (!p->out_dead && buf_len(&p->out) < HTTP_OUT_HIGH)
            http_request_resume_body(p->request);
        proxy_arm(p);
    }
    p->held = false;
    proxy_finish_if_over(p);
}

static void
on_body_failed(Proxy *p, const GError *error)
{
    if (p->state != PROXY_WAITING)
        http_request_cut(p->request); /* the upstream waits for the rest, and it will not come */
    else if (err_kind(error) == ERR_TIMEOUT)
        proxy_refuse(p, 408, "the request did not come in time");
    else
        proxy_hang_up(p); /* answered by the server, or nobody is left to answer: on_gone() */
}

static void
on_body_end(void *ctx, const GError *error)
{
    Proxy *p = ctx;

    p->sink_open = false;
    if (error != NULL) {
        on_body_failed(p, error);
    } else if (p->watch.fd >= 0) {
        bool ok = !p->chunked || p->out_dead || buf_puts(&p->out, "0\r\n\r\n");

        g_assert(ok); /* as in on_data() */
        p->all_sent = true;
        proxy_restart_clock(p);
        flush(p);
        proxy_arm(p);
    }
    proxy_finish_if_over(p);
}

const HttpSink proxy_body_sink = {.data = on_data, .end = on_body_end};

/* ---- from the upstream ---- */

static void
receive(Proxy *p)
{
    uint8_t *buffer = loop_read_buffer(p->loop);
    ssize_t n;

    do {
        n = recv(p->watch.fd, buffer, HTTP_READ_SIZE, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0) {
        bool ok = buf_put(&p->in, buffer, (size_t)n);

        g_assert(ok); /* empty, or we would not read */
        count(p, 0, (size_t)n);
        if (p->state != PROXY_WAITING)
            proxy_restart_clock(p);
        return;
    }
    p->eof = true;
    p->broken = n < 0;
}

static void
on_ready(LoopWatch *watch, uint32_t events)
{
    Proxy *p = (Proxy *)watch;
    bool was_full = buf_len(&p->out) >= HTTP_OUT_HIGH;

    p->held = true;
    if ((events & EPOLLOUT) != 0)
        flush(p);
    if ((events & ~(uint32_t)EPOLLOUT) != 0 && !p->eof && buf_len(&p->in) == 0 && p->hold.queue == NULL)
        receive(p);
    if (p->state == PROXY_WAITING)
        proxy_read_head(p);
    else
        http_request_wake(p->request);
    if (was_full && !p->out_dead && buf_len(&p->out) < HTTP_OUT_HIGH && p->hold.queue == NULL)
        http_request_resume_body(p->request);
    if (p->state == PROXY_TUNNEL && p->out_dead)
        http_request_cut(p->request);
    proxy_arm(p);
    p->held = false;
    proxy_finish_if_over(p);
}

/* ---- the start ---- */

static Proxy *
proxy_new(HttpRequest *request, int fd, const HttpProxySpec *spec)
{
    Proxy *p = g_new0(Proxy, 1);

    p->watch = (LoopWatch){.ready = on_ready, .fd = fd};
    p->timer.expired = on_timer;
    p->hold.expired = on_hold_over;
    p->loop = spec->loop;
    p->request = http_request_ref(request);
    p->parser = http_parser_new(HTTP_PARSE_RESPONSE, proxy_on_answer_body, p);
    p->head_ms = spec->head_ms > 0 ? spec->head_ms : HTTP_PROXY_HEAD_MS;
    p->stall_ms = spec->stall_ms > 0 ? spec->stall_ms : HTTP_PROXY_STALL_MS;
    p->judge = spec->judge_answer;
    p->meter = spec->meter;
    p->meter_ctx = spec->meter_ctx;
    p->may_upgrade = proxy_wants_upgrade(request, spec);
    p->chunked = http_request_content_length(request) < 0;
    buf_init(&p->in, HTTP_READ_SIZE);
    buf_init(&p->out, HTTP_OUT_MAX);
    http_request_on_gone(request, on_gone, p);
    return p;
}

static void
start(Proxy *p, const HttpProxySpec *spec)
{
    int status = strcmp(http_request_method(p->request), "CONNECT") == 0
                     ? 501
                     : proxy_put_request(&p->out, p->request, spec);

    if (status != 0) {
        proxy_refuse(p, status, "the request cannot be passed on");
        return;
    }
    if (!loop_add(p->loop, &p->watch, EPOLLIN, NULL)) {
        proxy_refuse(p, 503, "no connection can be watched now, try later");
        return;
    }
    p->all_sent = !http_request_has_body(p->request);
    proxy_restart_clock(p);
    flush(p);
    proxy_arm(p);
    if (p->all_sent)
        return;
    p->sink_open = true;
    http_request_read_body(p->request, &proxy_body_sink, p, G_MAXUINT64);
}

void
http_proxy(HttpRequest *request, int fd, const HttpProxySpec *spec)
{
    if (http_request_is_gone(request) || http_request_is_answered(request)) {
        close(fd);
        return;
    }
    Proxy *p = proxy_new(request, fd, spec);

    p->held = true;
    start(p, spec);
    p->held = false;
    proxy_finish_if_over(p);
}
