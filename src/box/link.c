/* SPDX-License-Identifier: Apache-2.0 */
#include "box/link.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "box/link-private.h"

enum { ACTIVE_US = G_USEC_PER_SEC, FIRST_STREAMED_BITS = 24 };

BoxLink *
link_ref(BoxLink *link)
{
    link->refs++;
    return link;
}

void
link_unref(BoxLink *link)
{
    if (--link->refs > 0)
        return;
    g_hash_table_unref(link->runs);
    g_clear_pointer(&link->strangers, g_array_unref);
    g_clear_error(&link->error);
    g_free(link->folder);
    g_free(link);
}

/* ---- the channel ---- */

void
link_watch(BoxLink *link)
{
    /* The kernel tells of a hang-up whatever is asked for, so who does not want to read is not
     * watched at all. */
    bool hold = link->pending > LINK_PENDING_MAX || link->n_pending > LINK_PIECES_MAX || link->stray_run != 0;
    uint32_t events = EPOLLIN | (link->full ? EPOLLOUT : 0u);

    if (link->watch.fd < 0)
        return;
    if (hold && link->stray_run != 0)
        events = EPOLLOUT;
    else if (hold && link->watch.armed != 0) {
        loop_remove(link->loop, &link->watch);
        return;
    } else if (hold) {
        return;
    }
    if (link->watch.armed != 0)
        loop_set(link->loop, &link->watch, events);
    else if (!loop_add(link->loop, &link->watch, events, NULL))
        loop_timer_set(link->loop, &link->soon, LINK_RETRY_MS);
}

static void
on_channel(LoopWatch *watch, uint32_t events)
{
    g_autoptr(LinkRef) link = link_ref((BoxLink *)watch);

    if ((events & EPOLLOUT) != 0)
        link->full = false;
    link->quiet++;
    link_hear(link);
    link->quiet--;
    link_say(link);
    if (!link->freed)
        link_watch(link);
}

void
link_is_active(BoxLink *link)
{
    gint64 now = clock_mono_us();

    if (now - link->active_us < ACTIVE_US || link->events.active == NULL)
        return;
    link->active_us = now;
    link->active = true;
    loop_timer_set(link->loop, &link->soon, 0);
}

/* ---- what waits for the next turn ---- */

void
link_due(Run *run, RunDue what)
{
    BoxLink *link = run->link;

    if (!run->is_due) {
        run->is_due = true;
        g_queue_push_tail_link(&link->dues, &run_ref(run)->due_node);
    }
    run->due |= what;
    loop_timer_set(link->loop, &link->soon, 0);
}

static void
do_due(Run *run)
{
    unsigned due = run->due;

    run->due = 0;
    if ((due & DUE_DELIVER) != 0 && run->link != NULL)
        run_deliver(run);
    if ((due & DUE_ROOM) != 0 && run->link != NULL)
        run_room(run);
    if ((due & DUE_END) != 0 && run->link != NULL)
        run_check_end(run);
}

static void
on_soon(LoopTimer *timer)
{
    g_autoptr(LinkRef) link = link_ref((BoxLink *)(void *)((char *)timer - offsetof(BoxLink, soon)));

    link->quiet++;
    if (link->active) {
        link->active = false;
        link->events.active(link, link->ctx);
    }
    /* Those that come to it meanwhile have their turn later. */
    for (guint n = link->dues.length; n > 0 && link->dues.length > 0; n--) {
        Run *run = g_queue_pop_head_link(&link->dues)->data;

        run->is_due = false;
        do_due(run);
        run_unref(run);
    }
    link->quiet--;
    link_say(link);
    if (!link->freed)
        link_watch(link);
}

static void
clear_queues(BoxLink *link)
{
    GList *node;

    while ((node = g_queue_pop_head_link(&link->owing)) != NULL) {
        ((Run *)node->data)->is_owing = false;
        run_unref(node->data);
    }
    while ((node = g_queue_pop_head_link(&link->dues)) != NULL) {
        ((Run *)node->data)->is_due = false;
        run_unref(node->data);
    }
}

/* ---- runs ---- */

Run *
link_add(BoxLink *link, guint32 id, bool logged)
{
    Run *run = run_new(link->loop, id, logged);

    run->link = link;
    run->folder = logged ? g_strdup(link->folder) : NULL;
    g_hash_table_insert(link->runs, GUINT_TO_POINTER(id), run);
    return run;
}

void
link_remove(BoxLink *link, Run *run)
{
    link->pending -= run->pending;
    link->n_pending -= run->n_pending;
    run->link = NULL;
    g_hash_table_remove(link->runs, GUINT_TO_POINTER(run->id));
}

Run *
box_link_find(BoxLink *link, guint32 run)
{
    return g_hash_table_lookup(link->runs, GUINT_TO_POINTER(run));
}

void
box_link_each(BoxLink *link, void (*func)(Run *run, void *data), void *data)
{
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func((GDestroyNotify)run_unref);
    GHashTableIter iter;
    gpointer value;

    g_hash_table_iter_init(&iter, link->runs);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        g_ptr_array_add(runs, run_ref(value));
    for (guint i = 0; i < runs->len; i++)
        func(g_ptr_array_index(runs, i), data);
}

guint
box_link_live(const BoxLink *link)
{
    GHashTableIter iter;
    gpointer value;
    guint n = 0;

    g_hash_table_iter_init(&iter, link->runs);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Run *run = value;

        n += run->logged && !run->ended;
    }
    return n;
}

void
box_link_forget(BoxLink *link, Run *run)
{
    if (run->link != link || !run->ended)
        return;
    FAILPOINT("run-before-forget");
    link_owe(run, OWE_FORGET);
    link_remove(link, run);
}

void
box_link_set_oom(BoxLink *link, Run *run, bool oom)
{
    if (run->link != link || !run->asked_oom)
        return;
    run->asked_oom = false;
    loop_timer_cancel(run->loop, &run->oom_timer);
    if (oom)
        run->end.reason = RUN_OOM;
    link_due(run, DUE_END);
}

/* ---- the end ---- */

void
link_check_closed(BoxLink *link)
{
    GHashTableIter iter;
    gpointer value;

    if (!link->closing || link->closed)
        return;
    g_hash_table_iter_init(&iter, link->runs);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        if (!((Run *)value)->ended)
            return;
    }
    link->closed = true;
    if (link->events.closed != NULL)
        link->events.closed(link, link->error, link->ctx);
}

static void
lose_run(Run *run, void *data)
{
    const BoxLink *link = data;
    gint64 lived_us = clock_wall_us() - run->started_us;
    RunEnd end = {.reason = link->stopping ? RUN_STOPPED : RUN_LOST,
                  .out_bytes = run->streams[0].received,
                  .err_bytes = run->streams[1].received,
                  .duration_us = (guint64)MAX(lived_us, 0)};

    if (run->link == NULL)
        return;
    if (run->has_end)
        run_check_end(run);
    else
        run_take_end(run, &end);
}

static void
hang_up(BoxLink *link)
{
    if (link->watch.fd < 0)
        return;
    if (link->watch.armed != 0)
        loop_remove(link->loop, &link->watch);
    close(link->watch.fd);
    link->watch.fd = -1;
}

void
link_close(BoxLink *link, GError *error)
{
    if (link->closing || link->freed) {
        g_clear_error(&error);
        return;
    }
    link->closing = true;
    link->error = error;
    hang_up(link);
    clear_queues(link);
    link_connect_fail_all(link, ERR_UNAVAILABLE, "the box is gone");
    box_link_each(link, lose_run, link);
    if (!link->freed)
        link_check_closed(link);
}

/* Without a word but for those who would wait for ever. */
static void
drop_run(Run *run, void *data)
{
    BoxLink *link = data;
    const RunSink *sink = g_steal_pointer(&run->sink);
    void *ctx = run->sink_ctx;

    run->tap = NULL;
    run->on_room = NULL;
    if (!run->has_end)
        run->end = (RunEnd){
            .reason = RUN_LOST, .out_bytes = run->streams[0].received, .err_bytes = run->streams[1].received};
    run->ended = run->has_end = true;
    loop_timer_cancel(run->loop, &run->oom_timer);
    run_wake_followers_later(run);
    link_remove(link, run);
    if (sink != NULL && sink->dropped != NULL)
        sink->dropped(ctx);
}

void
box_link_free(BoxLink *link)
{
    if (link == NULL)
        return;
    link->freed = true;
    hang_up(link);
    clear_queues(link);
    loop_timer_cancel(link->loop, &link->soon);
    link_connect_fail_all(link, ERR_CANCELLED, "the server ends");
    box_link_each(link, drop_run, link);
    link_unref(link);
}

void
box_link_stop(BoxLink *link)
{
    if (link->stopping || link->closing)
        return;
    link->stopping = link->owe_stop = true;
    link_say(link);
}

/* ---- the beginning ---- */

/* Opens the logs from before a restart, to know from where on init has to send again. */
typedef struct Opening {
    BoxLink *link; /* a reference; looked into only on the loop */
    char *folder;
    guint n;
    struct {
        guint32 id;
        RunLog *logs[RUN_STREAMS];
    } runs[];
} Opening;

static void
do_open(void *data)
{
    Opening *o = data;
    autofd folder = open(o->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat st;

    for (guint i = 0; folder >= 0 && i < o->n; i++) {
        for (FrameStream s = STREAM_STDOUT; s <= STREAM_STDERR; s++) {
            g_autofree char *name = run_log_dup_name(o->runs[i].id, s);

            /* One that cannot be read is written anew from where init still has it. */
            if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                o->runs[i].logs[s - STREAM_STDOUT] = run_log_open(folder, name, NULL);
        }
    }
}

static void
take_log(RunStream *s, RunLog *log)
{
    if (log == NULL)
        return;
    s->log = log;
    s->received = s->settled = s->acked = s->floor = run_log_end(log);
}

static void
on_open(void *data)
{
    Opening *o = data;
    BoxLink *link = o->link;

    for (guint i = 0; i < o->n; i++) {
        Run *run = box_link_find(link, o->runs[i].id);

        for (int s = 0; s < RUN_STREAMS; s++) {
            if (run != NULL)
                take_log(&run->streams[s], o->runs[i].logs[s]);
            else
                run_log_close(o->runs[i].logs[s]);
        }
    }
    link->opening = false;
    link_say(link);
    g_free(o->folder);
    g_free(o);
    link_unref(link);
}

static void
open_logs(BoxLink *link, const BoxLinkSpec *spec)
{
    Opening *o = g_malloc0(sizeof *o + spec->n_runs * sizeof o->runs[0]);

    o->link = link_ref(link);
    o->folder = g_strdup(link->folder);
    for (size_t i = 0; i < spec->n_runs; i++) {
        Run *run = link_add(link, spec->runs[i].run, true);

        run->expected = run->takes_input = true;
        run->terminal = spec->runs[i].terminal;
        run->started_us = spec->runs[i].started_us;
        o->runs[o->n++].id = run->id;
        link->last_run = MAX(link->last_run, run->id);
    }
    link->opening = true;
    loop_offload(link->loop, do_open, on_open, o);
}

BoxLink *
box_link_new(const BoxLinkSpec *spec, GError **error)
{
    autofd fd = spec->fd;

    if (spec->n_runs > FRAME_RUNS_MAX || spec->last_run >= RUN_ID_STREAMED) {
        err_set(error, ERR_INVALID, "a box cannot have had that many commands");
        return NULL;
    }
    BoxLink *link = g_new0(BoxLink, 1);

    link->watch = (LoopWatch){.ready = on_channel, .fd = fd};
    link->loop = spec->loop;
    link->refs = 1;
    link->folder = g_strdup(spec->folder);
    link->events = spec->events;
    link->ctx = spec->ctx;
    link->runs = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)run_unref);
    link->last_run = spec->last_run;
    link->soon.expired = on_soon;
    id_random_bytes(&link->number, sizeof link->number);
    id_random_bytes(&link->last_streamed, sizeof link->last_streamed);
    link->last_streamed = RUN_ID_STREAMED | link->last_streamed >> (32 - FIRST_STREAMED_BITS);
    link->first_streamed = link->last_streamed + 1;
    link->last_connect = RUN_ID_CONNECT;
    link->owe_hello = true;
    if (!loop_add(spec->loop, &link->watch, EPOLLIN, error)) {
        link_unref(link);
        return NULL;
    }
    /* Room for a window of input; what the kernel allows of it is good too. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){FRAME_WINDOW}, sizeof(int));
    (void)g_steal_fd(&fd);
    if (spec->n_runs > 0)
        open_logs(link, spec);
    link_say(link);
    return link;
}
