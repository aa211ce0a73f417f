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

#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "http/limits.h"
#include "http/parse.h"
#include "http/proxy-head.h"

enum { CHUNK_LINE_MAX = 16 + 2 };

typedef enum ProxyState { PROXY_WAITING, PROXY_ANSWERING, PROXY_TUNNEL, PROXY_OVER } ProxyState;

typedef struct Proxy {
    LoopWatch watch; /* first; fd < 0: the upstream is closed */
    LoopTimer timer;
    LoopTimer hold;       /* armed: the meter lets nothing pass for a moment */
    Loop *loop;           /* borrowed: it outlives the server */
    HttpRequest *request; /* a reference */
    HttpParser *parser;
    Buf in;
    Buf out;
    Buf *body_to; /* during a pull */
    ProxyState state;
    guint head_ms, stall_ms;
    ProxyJudge judge;
    const HttpMeter *meter; /* NULL: nobody counts */
    void *meter_ctx;
    bool may_upgrade;
    bool chunked;   /* the request's body is sent so */
    bool all_sent;  /* the request is complete in `out` */
    bool out_dead;  /* the upstream takes nothing more; it may have answered all the same */
    bool eof;       /* the upstream has said its last byte */
    bool broken;    /* … and not of its own will */
    bool held;      /* a function up the stack still needs us */
    bool sink_open; /* the request will call our sink */
    bool source_open;
} Proxy;

static const HttpSource answer_source, tunnel_source;
static const HttpSink tunnel_sink;

/* ---- the end ---- */

static void
close_upstream(Proxy *p)
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

static void
finish_if_over(Proxy *p)
{
    if (!is_over(p) || p->held)
        return;
    close_upstream(p);
    http_request_on_gone(p->request, NULL, NULL);
    http_parser_free(p->parser);
    buf_clear(&p->in);
    buf_clear(&p->out);
    http_request_unref(p->request);
    g_free(p);
}

static void
refuse(Proxy *p, int status, const char *message)
{
    g_autofree char *body = g_strdup_printf("{\"code\":%d,\"message\":\"%s\"}\n", status, message);

    g_assert(p->state == PROXY_WAITING);
    p->state = PROXY_OVER;
    close_upstream(p);
    http_respond_text(p->request, status, "application/json", body);
}

static void
on_gone(HttpRequest *request, void *data)
{
    Proxy *p = data;

    p->state = PROXY_OVER;
    close_upstream(p);
    finish_if_over(p);
}

/* ---- deadlines ---- */

/* A byte has moved, or somebody else's turn has begun. */
static void
restart_clock(Proxy *p)
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
        refuse(p, 504, "the server behind this address does not answer");
    else if (buf_len(&p->in) > 0)
        restart_clock(p); /* it is the client that is slow, which the server watches */
    else
        http_request_cut(p->request);
    p->held = false;
    finish_if_over(p);
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

static void
arm(Proxy *p)
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
        restart_clock(p);
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
        restart_clock(p);
    arm(p);
    return !p->out_dead && buf_len(&p->out) < HTTP_OUT_HIGH && may_move(p);
}

static void
on_hold_over(LoopTimer *timer)
{
    Proxy *p = (Proxy *)((char *)timer - G_STRUCT_OFFSET(Proxy, hold));

    p->held = true;
    if (may_move(p)) {
        restart_clock(p); /* it was the meter that was slow */
        if (!p->out_dead && buf_len(&p->out) < HTTP_OUT_HIGH)
            http_request_resume_body(p->request);
        arm(p);
    }
    p->held = false;
    finish_if_over(p);
}

static void
on_body_failed(Proxy *p, const GError *error)
{
    if (p->state != PROXY_WAITING)
        http_request_cut(p->request); /* the upstream waits for the rest, and it will not come */
    else if (err_kind(error) == ERR_TIMEOUT)
        refuse(p, 408, "the request did not come in time");
    else
        close_upstream(p); /* answered by the server, or nobody is left to answer: on_gone() */
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
        restart_clock(p);
        flush(p);
        arm(p);
    }
    finish_if_over(p);
}

/* ---- the answer's head ---- */

static bool
on_answer_body(void *ctx, const guint8 *bytes, size_t n)
{
    Proxy *p = ctx;
    bool ok = buf_put(p->body_to, bytes, n);

    g_assert(ok); /* no more is fed than there is room */
    return true;
}

static void
refuse_nonsense(Proxy *p)
{
    refuse(p, 502, "the server behind this address gave no valid answer");
}

static void
begin_tunnel(Proxy *p, const HttpHead *head)
{
    const char *upgrade = http_head_find(head, "Upgrade");

    if (!p->may_upgrade || upgrade == NULL || g_ascii_strcasecmp(upgrade, "websocket") != 0 ||
        !proxy_copy_headers(p->request, head, p->judge)) {
        refuse_nonsense(p);
        return;
    }
    p->state = PROXY_TUNNEL;
    p->all_sent = false;
    p->sink_open = p->source_open = true;
    http_response_header(p->request, "Upgrade", "websocket");
    http_respond_duplex(p->request, 101, &tunnel_source, &tunnel_sink, p);
}

static void
begin_answer(Proxy *p, const HttpHead *head)
{
    bool bodyless = head->status == 204 || head->status == 304;

    if (head->status < 200 || head->status > 599 || !proxy_copy_headers(p->request, head, p->judge)) {
        refuse_nonsense(p);
        return;
    }
    p->state = PROXY_ANSWERING;
    if (bodyless) {
        close_upstream(p);
        http_respond(p->request, head->status, NULL, "", 0);
        return;
    }
    p->source_open = true;
    http_respond_stream(p->request, head->status, NULL, MAX(head->content_length, -1), &answer_source, p);
}

/* Takes what `in` has of the head, and of those that stand before it (1xx). */
static void
read_head(Proxy *p)
{
    while (p->state == PROXY_WAITING) {
        g_auto(HttpHead) head = {0};
        size_t n, used;
        const guint8 *bytes = buf_peek(&p->in, &n);
        HttpParseResult result = n > 0 ? http_parser_feed(p->parser, bytes, n, &used) : HTTP_PARSE_MORE;

        if (result == HTTP_PARSE_MORE) {
            buf_clear(&p->in);
            if (p->eof)
                refuse_nonsense(p);
            return;
        }
        if (result != HTTP_PARSE_HEAD) {
            refuse_nonsense(p);
            return;
        }
        buf_skip(&p->in, used);
        http_parser_take_head(p->parser, &head);
        if (head.status == 101)
            begin_tunnel(p, &head);
        else if (head.status < 100 || head.status > 199)
            begin_answer(p, &head);
        else if (head.content_length != -2)
            refuse_nonsense(p); /* an interim answer has no body to announce */
        else
            http_parser_reset(p->parser); /* and the deadline stays: these could come for ever */
    }
    restart_clock(p);
}

/* ---- the answer's body, and the tunnel ---- */

static HttpPull
at_the_end(const Proxy *p, bool complete)
{
    if (!p->eof)
        return HTTP_PULL_WAIT;
    return complete && !p->broken ? HTTP_PULL_END : HTTP_PULL_FAIL;
}

static HttpPull
pull_answer(void *ctx, Buf *out)
{
    Proxy *p = ctx;
    size_t n, used;
    const guint8 *bytes = buf_peek(&p->in, &n);

    if (n == 0)
        return at_the_end(p, p->eof && http_parser_finish(p->parser));
    p->body_to = out;
    HttpParseResult result = http_parser_feed(p->parser, bytes, MIN(n, buf_room(out)), &used);
    buf_skip(&p->in, used);
    arm(p);
    if (result == HTTP_PARSE_DONE)
        return HTTP_PULL_END;
    return result == HTTP_PARSE_BAD ? HTTP_PULL_FAIL : HTTP_PULL_DATA;
}

static HttpPull
pull_tunnel(void *ctx, Buf *out)
{
    Proxy *p = ctx;
    size_t n;
    const guint8 *bytes = buf_peek(&p->in, &n);

    n = MIN(n, buf_room(out));
    if (n == 0)
        return at_the_end(p, true);
    bool ok = buf_put(out, bytes, n);
    g_assert(ok); /* looked at its room */
    buf_skip(&p->in, n);
    arm(p);
    return HTTP_PULL_DATA;
}

static void
on_source_closed(void *ctx)
{
    Proxy *p = ctx;

    p->source_open = false;
    if (p->state == PROXY_ANSWERING)
        close_upstream(p);
    finish_if_over(p);
}

static const HttpSource answer_source = {.pull = pull_answer, .closed = on_source_closed};
static const HttpSource tunnel_source = {.pull = pull_tunnel, .closed = on_source_closed};
static const HttpSink body_sink = {.data = on_data, .end = on_body_end};
static const HttpSink tunnel_sink = {.data = on_data, .end = on_body_end};

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
            restart_clock(p);
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
        read_head(p);
    else
        http_request_wake(p->request);
    if (was_full && !p->out_dead && buf_len(&p->out) < HTTP_OUT_HIGH && p->hold.queue == NULL)
        http_request_resume_body(p->request);
    if (p->state == PROXY_TUNNEL && p->out_dead)
        http_request_cut(p->request);
    arm(p);
    p->held = false;
    finish_if_over(p);
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
    p->parser = http_parser_new(HTTP_PARSE_RESPONSE, on_answer_body, p);
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
        refuse(p, status, "the request cannot be passed on");
        return;
    }
    if (!loop_add(p->loop, &p->watch, EPOLLIN, NULL)) {
        refuse(p, 503, "no connection can be watched now, try later");
        return;
    }
    p->all_sent = !http_request_has_body(p->request);
    restart_clock(p);
    flush(p);
    arm(p);
    if (p->all_sent)
        return;
    p->sink_open = true;
    http_request_read_body(p->request, &body_sink, p, G_MAXUINT64);
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
    finish_if_over(p);
}
