/* SPDX-License-Identifier: Apache-2.0 */
/* From the child to the client.  Nothing is answered before the child has said something, so that one that
 * cannot start, or a body that is too large, still gets a status of its own. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/smart-private.h"

enum {
    ANSWER_MAX = SMART_HEAD_MAX + LOOP_READ_SIZE,
    SAID_LOGGED = 400,
};

static HttpPull
pull(void *ctx, Buf *out)
{
    Exchange *x = ctx;
    size_t n;
    const guint8 *first = buf_peek(&x->answer, &n);

    if (x->cut)
        return HTTP_PULL_FAIL;
    if (n > 0) {
        n = MIN(n, buf_room(out));
        if (!buf_put(out, first, n))
            return HTTP_PULL_FAIL;
        buf_skip(&x->answer, n);
        return HTTP_PULL_DATA;
    }
    guint8 *room = buf_reserve(out, LOOP_READ_SIZE);
    ssize_t got = x->out.fd < 0 || room == NULL ? 0 : read(x->out.fd, room, LOOP_READ_SIZE);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        exchange_watch(x, &x->out, EPOLLIN);
        return HTTP_PULL_WAIT;
    }
    if (got > 0) {
        exchange_progress(x);
        buf_grow(out, (size_t)got);
        return HTTP_PULL_DATA;
    }
    exchange_close_pipe(x, &x->out);
    if (got < 0)
        return HTTP_PULL_FAIL;
    /* Who has pushed finds the rows written when its answer ends. */
    return x->report.fd >= 0 || x->telling ? HTTP_PULL_WAIT : HTTP_PULL_END;
}

static void
on_closed(void *ctx)
{
    Exchange *x = ctx;

    x->answer_over = true;
    exchange_settle(x);
}

static void
begin(Exchange *x, const SmartHead *head)
{
    static const HttpSource source = {.pull = pull, .closed = on_closed};

    for (guint i = 0; i + 1 < head->headers->len; i += 2)
        http_response_header(x->request, head->headers->pdata[i], head->headers->pdata[i + 1]);
    x->answered = true;
    http_respond_stream(x->request, head->status, head->type, -1, &source, x);
}

void
exchange_log_said(const Exchange *x, const char *message)
{
    size_t n;
    const guint8 *bytes = buf_peek(&x->said, &n);
    g_autofree char *text = g_utf8_make_valid((const char *)bytes, (gssize)MIN(n, (size_t)SAID_LOGGED));

    log_warn("forge", message, log_str("actor", x->actor), log_str("said", g_strstrip(text)));
}

static void
give_up(Exchange *x)
{
    exchange_log_said(x, "git gave no answer");
    smart_exchange_refuse(x, 502, "git gave no answer");
    exchange_cut(x);
}

/* ---- a child that says its head (CGI) ---- */

static void
take_head(Exchange *x, bool ended)
{
    g_auto(SmartHead) head = {0};
    g_autoptr(GError) error = NULL;
    size_t n;
    const guint8 *bytes = buf_peek(&x->answer, &n);
    size_t head_n = smart_head_length(bytes, n);

    if (head_n == 0 && ended) {
        give_up(x);
    } else if (head_n == 0) {
        exchange_watch(x, &x->out, EPOLLIN);
    } else if (!smart_head_parse(bytes, head_n, &head, &error)) {
        log_warn("forge", "git answered nonsense", log_gerror(error));
        smart_exchange_refuse(x, 502, "git gave no answer");
        exchange_cut(x);
    } else {
        buf_skip(&x->answer, head_n);
        begin(x, &head);
    }
}

/* ---- a child that says none ---- */

/* A push without commands is how a client asks whether it may push; the answer is nothing at all. */
static void
answer_silence(Exchange *x)
{
    g_auto(SmartHead) head = {0};

    if (x->ask.service == SMART_PUSH && x->code == 0 && smart_begins(x->ask.service, &head) != NULL)
        begin(x, &head);
    else
        give_up(x);
}

void
exchange_reaped(Exchange *x)
{
    if (x->silent && !x->answered && !x->cut)
        answer_silence(x);
}

static void
take_first(Exchange *x, const char *begins, const SmartHead *head, bool ended)
{
    size_t n;
    const guint8 *bytes = buf_peek(&x->answer, &n);

    if (!ended) {
        g_autofree char *said = g_memdup2(bytes, n);

        buf_skip(&x->answer, n);
        if (buf_puts(&x->answer, begins) && buf_put(&x->answer, said, n))
            begin(x, head);
        return;
    }
    x->silent = true;
    exchange_close_pipe(x, &x->out);
    if (x->child == NULL)
        answer_silence(x);
}

/* ---- the first bytes ---- */

static void
read_first(Exchange *x)
{
    g_auto(SmartHead) head = {0};
    const char *begins = smart_begins(x->ask.service, &head);
    guint8 *room = buf_reserve(&x->answer, SMART_HEAD_MAX);
    ssize_t got = room != NULL ? read(x->out.fd, room, SMART_HEAD_MAX) : 0;

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        exchange_watch(x, &x->out, EPOLLIN);
        return;
    }
    if (got > 0) {
        exchange_progress(x);
        buf_grow(&x->answer, (size_t)got);
    }
    if (begins != NULL)
        take_first(x, begins, &head, got <= 0);
    else
        take_head(x, got <= 0);
}

static void
on_readable(LoopWatch *w, uint32_t events)
{
    Exchange *x = EXCHANGE_OF(w, out);

    exchange_unwatch(x, w);
    if (x->answered) {
        http_request_wake(x->request);
        return;
    }
    read_first(x);
    exchange_settle(x);
}

void
exchange_answer_init(Exchange *x)
{
    buf_init(&x->answer, ANSWER_MAX);
    x->out.ready = on_readable;
}
