/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/offload.h"

enum {
    /* Distinct timer durations; every user of a loop together needs fewer. */
    TIMER_QUEUES_MAX = 64,
    /* Batches of events handled before other GLib sources get their turn. */
    BATCHES_MAX = 8,
    SLOW_DISPATCH_US = 50000,
    EVENT_BATCH = 64,
};

typedef struct LoopTimerQueue {
    guint ms;
    LoopTimer *first, *last; /* earliest first: equal durations keep their order */
} LoopTimerQueue;

struct Loop {
    int epoll_fd;
    GSource *source;
    GSource *timer_source;
    gint64 timer_due_us; /* what timer_source is set to; G_MAXINT64: nothing */
    LoopTimerQueue queues[TIMER_QUEUES_MAX];
    size_t n_queues;
    struct epoll_event batch[EVENT_BATCH];
    int batch_len, batch_at; /* being dispatched */
    struct Offload *offload; /* NULL until it is needed */
    uint8_t read_buffer[LOOP_READ_SIZE];
};

static void
dispatch_one(LoopWatch *watch, uint32_t events)
{
#ifdef COOP_FAILPOINTS
    gint64 start = clock_mono_us();
    watch->ready(watch, events);
    gint64 took = clock_mono_us() - start;
    if (took > SLOW_DISPATCH_US)
        log_warn("loop", "slow dispatch", log_int("us", took));
#else
    watch->ready(watch, events);
#endif
}

static gboolean
on_epoll(int fd, GIOCondition condition, gpointer data)
{
    Loop *loop = data;

    for (int round = 0; round < BATCHES_MAX; round++) {
        loop->batch_len = epoll_wait(loop->epoll_fd, loop->batch, EVENT_BATCH, 0);
        for (loop->batch_at = 0; loop->batch_at < loop->batch_len; loop->batch_at++) {
            struct epoll_event *e = &loop->batch[loop->batch_at];

            if (e->data.ptr != NULL)
                dispatch_one(e->data.ptr, e->events);
        }
        if (loop->batch_len < EVENT_BATCH)
            break;
    }
    loop->batch_len = 0;
    return G_SOURCE_CONTINUE;
}

static void
set_timer_source(Loop *loop)
{
    gint64 due = G_MAXINT64;

    for (size_t i = 0; i < loop->n_queues; i++) {
        if (loop->queues[i].first != NULL)
            due = MIN(due, loop->queues[i].first->due_us);
    }
    /* Waking too early costs one look at the queues; re-setting the source each time a
     * deadline moves on would cost more. */
    if (due >= loop->timer_due_us)
        return;
    loop->timer_due_us = due;
    g_source_set_ready_time(loop->timer_source, due);
}

static gboolean
on_timer(gpointer data)
{
    Loop *loop = data;
    gint64 now = clock_mono_us();

    g_source_set_ready_time(loop->timer_source, -1);
    loop->timer_due_us = G_MAXINT64;
    for (size_t i = 0; i < loop->n_queues; i++) {
        LoopTimer *t;

        while ((t = loop->queues[i].first) != NULL && t->due_us <= now) {
            loop_timer_cancel(loop, t);
            t->expired(t);
        }
    }
    set_timer_source(loop);
    return G_SOURCE_CONTINUE;
}

static gboolean
dispatch_timer_source(GSource *source, GSourceFunc callback, gpointer data)
{
    return callback(data);
}

Loop *
loop_new(GMainContext *context)
{
    static GSourceFuncs timer_funcs = {.dispatch = dispatch_timer_source};
    Loop *loop = g_new0(Loop, 1);

    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        g_error("epoll_create1: %s", g_strerror(errno));
    loop->source = g_unix_fd_source_new(loop->epoll_fd, G_IO_IN);
    g_source_set_callback(loop->source, G_SOURCE_FUNC(on_epoll), loop, NULL);
    g_source_attach(loop->source, context);

    loop->timer_source = g_source_new(&timer_funcs, sizeof(GSource));
    loop->timer_due_us = G_MAXINT64;
    g_source_set_callback(loop->timer_source, on_timer, loop, NULL);
    g_source_attach(loop->timer_source, context);
    return loop;
}

void
loop_free(Loop *loop)
{
    if (loop == NULL)
        return;
    offload_free(loop->offload);
    g_source_destroy(loop->source);
    g_source_unref(loop->source);
    g_source_destroy(loop->timer_source);
    g_source_unref(loop->timer_source);
    close(loop->epoll_fd);
    g_free(loop);
}

void
loop_offload(Loop *loop, void (*work)(void *data), void (*done)(void *data), void *data)
{
    if (loop->offload == NULL)
        loop->offload = offload_new(loop, LOOP_OFFLOAD_THREADS);
    offload_push(loop->offload, work, done, data);
}

uint8_t *
loop_read_buffer(Loop *loop)
{
    return loop->read_buffer;
}

bool
loop_add(Loop *loop, LoopWatch *watch, uint32_t epoll_events, GError **error)
{
    struct epoll_event e = {.events = epoll_events, .data.ptr = watch};

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, watch->fd, &e) < 0)
        return err_errno(error, "watch a connection");
    watch->armed = epoll_events;
    return true;
}

void
loop_set(Loop *loop, LoopWatch *watch, uint32_t epoll_events)
{
    if (watch->armed == epoll_events)
        return;
    struct epoll_event e = {.events = epoll_events, .data.ptr = watch};

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &e) < 0)
        g_error("epoll_ctl: %s", g_strerror(errno)); /* only a stale fd can fail: our mistake */
    watch->armed = epoll_events;
}

void
loop_remove(Loop *loop, LoopWatch *watch)
{
    if (watch->fd < 0)
        return;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL); /* absent is as good */
    watch->armed = 0;
    /* Events of the batch under way that point at memory about to be freed. */
    for (int i = loop->batch_at + 1; i < loop->batch_len; i++) {
        if (loop->batch[i].data.ptr == watch)
            loop->batch[i].data.ptr = NULL;
    }
}

static LoopTimerQueue *
find_queue(Loop *loop, guint ms)
{
    for (size_t i = 0; i < loop->n_queues; i++) {
        if (loop->queues[i].ms == ms)
            return &loop->queues[i];
    }
    g_assert(loop->n_queues < TIMER_QUEUES_MAX);
    LoopTimerQueue *q = &loop->queues[loop->n_queues++];
    q->ms = ms;
    return q;
}

void
loop_timer_set(Loop *loop, LoopTimer *timer, guint ms)
{
    loop_timer_cancel(loop, timer);
    LoopTimerQueue *q = find_queue(loop, ms);

    timer->due_us = clock_mono_us() + (gint64)ms * 1000;
    timer->queue = q;
    timer->next = NULL;
    timer->prev = q->last;
    if (q->last != NULL)
        q->last->next = timer;
    else
        q->first = timer;
    q->last = timer;
    if (q->first == timer)
        set_timer_source(loop);
}

void
loop_timer_cancel(Loop *loop, LoopTimer *timer)
{
    LoopTimerQueue *q = timer->queue;

    if (q == NULL)
        return;
    *(timer->prev != NULL ? &timer->prev->next : &q->first) = timer->next;
    *(timer->next != NULL ? &timer->next->prev : &q->last) = timer->prev;
    timer->prev = timer->next = NULL;
    timer->queue = NULL;
}
