/* SPDX-License-Identifier: Apache-2.0 */
#include "base/offload.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct Piece {
    void (*work)(void *data);
    void (*done)(void *data);
    void *data;
} Piece;

struct Offload {
    LoopWatch watch; /* first: the loop hands back its address */
    Loop *loop;
    GThreadPool *pool;
    GAsyncQueue *finished; /* Piece* */
};

static void
run_piece(gpointer data, gpointer user_data)
{
    Offload *o = user_data;
    Piece *p = data;
    const eventfd_t one = 1;

    p->work(p->data);
    g_async_queue_push(o->finished, p);
    (void)eventfd_write(o->watch.fd, one); /* only a full counter fails, and that wakes as well */
}

static void
deliver(Offload *o)
{
    Piece *p;

    while ((p = g_async_queue_try_pop(o->finished)) != NULL) {
        p->done(p->data);
        g_free(p);
    }
}

static void
on_finished(LoopWatch *watch, uint32_t events)
{
    Offload *o = (Offload *)watch;
    eventfd_t n;

    (void)eventfd_read(watch->fd, &n); /* cleared before the queue is read: nothing is missed */
    deliver(o);
}

Offload *
offload_new(Loop *loop, guint threads)
{
    Offload *o = g_new0(Offload, 1);
    g_autoptr(GError) error = NULL;

    o->loop = loop;
    o->finished = g_async_queue_new();
    o->pool = g_thread_pool_new(run_piece, o, (gint)threads, FALSE, NULL);
    o->watch = (LoopWatch){.ready = on_finished, .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (o->watch.fd < 0)
        g_error("eventfd: %s", g_strerror(errno));
    if (!loop_add(loop, &o->watch, EPOLLIN, &error))
        g_error("%s", error->message);
    return o;
}

void
offload_free(Offload *offload)
{
    if (offload == NULL)
        return;
    g_thread_pool_free(offload->pool, FALSE, TRUE);
    deliver(offload);
    loop_remove(offload->loop, &offload->watch);
    close(offload->watch.fd);
    g_async_queue_unref(offload->finished);
    g_free(offload);
}

void
offload_push(Offload *offload, void (*work)(void *data), void (*done)(void *data), void *data)
{
    Piece *p = g_new(Piece, 1);

    *p = (Piece){.work = work, .done = done, .data = data};
    g_thread_pool_push(offload->pool, p, NULL); /* fails only to start a thread: another takes it */
}
