/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/smart-private.h"
#include "wire/hook.h"

enum {
    TO_CHILD_MAX = 4 * LOOP_READ_SIZE,
    TO_CHILD_FULL = 2 * LOOP_READ_SIZE, /* from here on the body waits */
};

/* ---- pipes ---- */

void
exchange_watch(Exchange *x, LoopWatch *w, uint32_t events)
{
    g_autoptr(GError) error = NULL;

    if (w->fd < 0 || w->armed != 0)
        return;
    if (!loop_add(x->smart->loop, w, events, &error)) {
        log_warn("forge", "a pipe cannot be watched", log_gerror(error));
        exchange_cut(x);
    }
}

void
exchange_unwatch(Exchange *x, LoopWatch *w)
{
    if (w->armed != 0)
        loop_remove(x->smart->loop, w);
}

void
exchange_close_pipe(Exchange *x, LoopWatch *w)
{
    exchange_unwatch(x, w);
    if (w->fd >= 0)
        close(g_steal_fd(&w->fd));
}

void
exchange_progress(Exchange *x)
{
    if (!x->cut)
        loop_timer_set(x->smart->loop, &x->stall, SMART_STALL_MS);
}

/* ---- the end ---- */

/* Until the child was reaped its number is nobody else's, nor while a process of its group is there:
 * none but those have the other ends of our pipes. */
static void
signal_group(Exchange *x, int number)
{
    if (x->child != NULL || (x->group != 0 && (x->err.fd >= 0 || x->report.fd >= 0)))
        (void)kill(-x->group, number);
}

void
exchange_cut(Exchange *x)
{
    if (x->cut)
        return;
    x->cut = true;
    exchange_close_pipe(x, &x->out);
    loop_timer_cancel(x->smart->loop, &x->stall);
    loop_timer_set(x->smart->loop, &x->end, SMART_END_MS);
    /* git takes away what it has half received. */
    signal_group(x, SIGTERM);
    if (x->answered)
        http_request_wake(x->request);
}

void
exchange_close(Exchange *x)
{
    signal_group(x, SIGKILL);
    g_clear_pointer(&x->child, child_free);
    exchange_close_pipe(x, &x->in);
    exchange_close_pipe(x, &x->out);
    exchange_close_pipe(x, &x->err);
    exchange_close_pipe(x, &x->report);
    loop_timer_cancel(x->smart->loop, &x->stall);
    loop_timer_cancel(x->smart->loop, &x->end);
    if (x->over != 0)
        g_source_remove(x->over);
    x->over = 0;
}

static gboolean
on_over(gpointer data)
{
    ((Exchange *)data)->over = 0;
    smart_drop(data);
    return G_SOURCE_REMOVE;
}

void
exchange_settle(Exchange *x)
{
    if (x->over != 0 || x->child != NULL || !x->body_over || !x->answer_over || x->telling || x->holding ||
        x->report.fd >= 0 || x->err.fd >= 0)
        return;
    loop_timer_cancel(x->smart->loop, &x->stall);
    loop_timer_cancel(x->smart->loop, &x->end);
    /* Not from inside one of its own callbacks. */
    x->over = g_idle_add_full(G_PRIORITY_DEFAULT, on_over, x, NULL);
}

void
smart_exchange_refuse(Exchange *x, int status, const char *message)
{
    if (x->answered || x->request == NULL)
        return;
    g_autofree char *text = g_strdup_printf("coop: %s\n", message);

    x->answered = x->answer_over = true;
    http_request_on_gone(x->request, NULL, NULL);
    http_response_header(x->request, "Cache-Control", "no-store");
    http_respond_text(x->request, status, "text/plain; charset=utf-8", text);
}

static void
on_stall(LoopTimer *timer)
{
    Exchange *x = EXCHANGE_OF(timer, stall);

    log_info("forge", "git stood still", log_str("actor", x->actor), log_int("after_ms", SMART_STALL_MS));
    smart_exchange_refuse(x, 504, "git did not answer in time");
    exchange_cut(x);
    exchange_settle(x);
}

static void
on_end(LoopTimer *timer)
{
    Exchange *x = EXCHANGE_OF(timer, end);

    if (x->cut || x->child == NULL) {
        signal_group(x, SIGKILL);
        return;
    }
    smart_exchange_refuse(x, 504, "this took too long");
    exchange_cut(x);
    exchange_settle(x);
}

static void
on_gone(HttpRequest *request, void *data)
{
    Exchange *x = data;

    x->answer_over = true;
    exchange_cut(x);
    exchange_settle(x);
}

/* ---- to the child ---- */

/* False: the child reads no more; what still comes is dropped. */
static bool
write_some(Exchange *x)
{
    size_t n;
    const guint8 *bytes = buf_peek(&x->to_child, &n);

    while (n > 0) {
        ssize_t done = write(x->in.fd, bytes, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == EAGAIN;
        exchange_progress(x);
        buf_skip(&x->to_child, (size_t)done);
        bytes = buf_peek(&x->to_child, &n);
    }
    return true;
}

static void
drop_input(Exchange *x)
{
    buf_clear(&x->to_child);
    buf_init(&x->to_child, TO_CHILD_MAX);
}

void
exchange_flush(Exchange *x)
{
    if (x->holding)
        return;
    if (x->cut) {
        drop_input(x);
    } else if (x->in.fd >= 0 && !write_some(x)) {
        exchange_close_pipe(x, &x->in);
        drop_input(x);
    }
    if (buf_len(&x->to_child) > 0)
        exchange_watch(x, &x->in, EPOLLOUT);
    else
        exchange_unwatch(x, &x->in);
    /* Half a push is none: its pipe stays open until the child is gone. */
    if (buf_len(&x->to_child) == 0 && x->body_whole && !x->cut)
        exchange_close_pipe(x, &x->in);
    if (x->paused && buf_len(&x->to_child) < TO_CHILD_FULL) {
        x->paused = false;
        http_request_resume_body(x->request);
    }
}

static void
on_writable(LoopWatch *w, uint32_t events)
{
    exchange_flush(EXCHANGE_OF(w, in));
}

static bool
take_body(void *ctx, const guint8 *bytes, size_t n)
{
    Exchange *x = ctx;

    if (x->in.fd < 0 || x->cut)
        return true;
    if (!buf_put(&x->to_child, bytes, n)) {
        exchange_cut(x);
        return true;
    }
    x->paused = false;
    exchange_flush(x);
    x->paused = buf_len(&x->to_child) >= TO_CHILD_FULL;
    return !x->paused;
}

static void
end_body(void *ctx, const GError *error)
{
    Exchange *x = ctx;

    x->body_over = true;
    x->body_whole = error == NULL;
    if (error == NULL) {
        FAILPOINT("push-received");
        exchange_flush(x);
    } else {
        if (err_kind(error) == ERR_LIMIT)
            smart_exchange_refuse(x, 413, "this is larger than may be sent at once");
        exchange_cut(x);
    }
    exchange_settle(x);
}

/* ---- from the child ---- */

/* Whatever is longer than the buffer is read and dropped. */
static bool
drain(LoopWatch *w, Buf *into)
{
    guint8 bytes[4096];
    ssize_t n = read(w->fd, bytes, sizeof bytes);

    if (n > 0 && !buf_put(into, bytes, MIN((size_t)n, buf_room(into))))
        return false;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void
on_said(LoopWatch *w, uint32_t events)
{
    Exchange *x = EXCHANGE_OF(w, err);

    if (drain(w, &x->said))
        return;
    exchange_close_pipe(x, w);
    exchange_settle(x);
}

static void
on_report(LoopWatch *w, uint32_t events)
{
    Exchange *x = EXCHANGE_OF(w, report);

    if (drain(w, &x->moved))
        return;
    exchange_close_pipe(x, w);
    smart_tell(x);
    exchange_told(x);
}

void
exchange_told(Exchange *x)
{
    if (x->answered && !x->answer_over && !x->telling)
        http_request_wake(x->request);
    exchange_settle(x);
}

static void
on_child_exit(Child *child, ChildExit how, void *data)
{
    Exchange *x = data;

    g_clear_pointer(&x->child, child_free);
    x->code = how.signalled ? -1 : how.value;
    /* Whoever it started has until then to take away what it has half received. */
    loop_timer_set(x->smart->loop, &x->end, SMART_END_MS);
    if (how.signalled && !x->cut)
        exchange_log_said(x, "git was killed");
    exchange_reaped(x);
    exchange_settle(x);
}

/* ---- the start ---- */

static void
read_body(Exchange *x)
{
    static const HttpSink sink = {.data = take_body, .end = end_body};
    guint64 max = x->ask.service == SMART_PUSH ? SMART_PUSH_MAX : SMART_FETCH_MAX;

    x->body_over = false;
    http_request_read_body(x->request, &sink, x, max);
}

bool
exchange_come_up(Exchange *x, GError **error)
{
    buf_init(&x->to_child, TO_CHILD_MAX);
    buf_init(&x->said, GIT_ERROR_MAX);
    buf_init(&x->moved, HOOK_REPORT_MAX);
    x->in.ready = on_writable;
    exchange_answer_init(x);
    x->err.ready = on_said;
    x->report.ready = on_report;
    x->stall.expired = on_stall;
    x->end.expired = on_end;
    x->body_over = true;
    if (!exchange_spawn(x, on_child_exit, error))
        return false;
    exchange_watch(x, &x->out, EPOLLIN);
    exchange_watch(x, &x->err, EPOLLIN);
    exchange_watch(x, &x->report, EPOLLIN);
    exchange_let_begin(x);
    return true;
}

void
exchange_attend(Exchange *x)
{
    http_request_on_gone(x->request, on_gone, x);
    if (!x->cut) {
        loop_timer_set(x->smart->loop, &x->stall, SMART_STALL_MS);
        loop_timer_set(x->smart->loop, &x->end, SMART_TIME_MS);
    }
    if (http_request_has_body(x->request))
        read_body(x);
    else
        exchange_close_pipe(x, &x->in);
}

bool
smart_exchange_start(Exchange *x)
{
    g_autoptr(GError) error = NULL;

    if (exchange_come_up(x, &error)) {
        exchange_attend(x);
        return true;
    }
    log_warn("forge", "git cannot be started", log_gerror(error));
    smart_exchange_refuse(x, 503, "git cannot be started");
    smart_drop(x);
    return false;
}
