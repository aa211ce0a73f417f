/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of output: a logged run keeps a copy until it is written down and hands it to whoever
 * listens at once; a streamed run hands it to its sink, and keeps only what comes while that has
 * said "enough".
 */
#include <signal.h>

#include "base/failpoint.h"
#include "box/link-private.h"

static RunStream *
stream_of(Run *run, FrameStream stream)
{
    return &run->streams[stream - STREAM_STDOUT];
}

/* Init may forget it: told in steps well below the window.  A gap is told at once, because init
 * keeps track of only a few. */
static void
settle(Run *run, FrameStream stream, guint64 end, guint64 data)
{
    RunStream *s = stream_of(run, stream);

    s->settled = end;
    s->settled_data += data;
    if (!run->has_end && (data == 0 || s->settled_data - s->acked_data >= RUN_ACK_BYTES))
        link_owe(run, (unsigned)OWE_ACK << (stream - STREAM_STDOUT));
}

void
run_settle(Run *run, const Piece *piece)
{
    settle(run, piece->stream, piece->offset + piece->n, piece->gap ? 0 : piece->n);
}

static void
drop_first(Run *run)
{
    const Piece *piece = pieces_at(&run->pieces, run->pieces.first);

    stream_of(run, piece->stream)->floor = piece->offset + piece->n;
    pieces_drop_first(&run->pieces);
}

/* Where the slowest follower is. */
static guint64
least_next(const Run *run)
{
    guint64 least = G_MAXUINT64;

    for (guint i = 0; run->followers != NULL && i < run->followers->len; i++) {
        const RunFollower *f = g_ptr_array_index(run->followers, i);

        least = MIN(least, f->next);
    }
    return least;
}

void
run_trim(Run *run)
{
    guint64 least = least_next(run);

    while (pieces_count(&run->pieces) > 0 && run->pieces.first < run->pieces.stored &&
           (run->pieces.first < least || run->pieces.bytes > RUN_KEEP_BYTES))
        drop_first(run);
}

void
run_wake_followers(Run *run)
{
    guint n = run->followers != NULL ? run->followers->len : 0;

    if (n == 0)
        return;
    g_autoptr(Run) held = run_ref(run);
    for (guint i = 0; i < n; i++) {
        RunFollower *f = g_ptr_array_index(run->followers, i);

        f->woken = f->waiting;
    }
    /* A callback may free any of them, so the list is looked at anew each time. */
    for (guint i = 0; held->followers != NULL && i < held->followers->len;) {
        RunFollower *f = g_ptr_array_index(held->followers, i++);

        if (!f->woken)
            continue;
        f->woken = f->waiting = false;
        f->wake(f->data);
        i = 0;
    }
}

static void
take_logged(Run *run, FrameStream stream, guint64 offset, const void *bytes, guint64 n)
{
    guint64 busy = MAX(run->work_end, run->pieces.stored);

    if (pieces_add(&run->pieces, stream, offset, bytes, n, busy)) {
        run->n_pending++;
        run->link->n_pending++;
    }
    if (bytes != NULL) {
        run->pending += (size_t)n;
        run->link->pending += (size_t)n;
    }
    FAILPOINT("run-before-write");
    run_work(run);
    if (run->tap != NULL && bytes != NULL)
        run->tap->output(run, stream, bytes, (size_t)n, run->tap_ctx);
    else if (run->tap != NULL && run->tap->gap != NULL)
        run->tap->gap(run, stream, n, run->tap_ctx);
    run_wake_followers(run);
}

static void
take_streamed(Run *run, FrameStream stream, guint64 offset, const void *bytes, guint64 n)
{
    RunStream *s = stream_of(run, stream);

    if (run->paused || pieces_count(&run->pieces) > 0) {
        (void)pieces_add(&run->pieces, stream, offset, bytes, n, 0);
        return;
    }
    bool more = run->sink->output(run, stream, bytes, (size_t)n, run->sink_ctx);
    if (run->sink == NULL)
        return;
    run->paused |= !more;
    s->floor = offset + n;
    settle(run, stream, offset + n, n);
}

void
run_take_output(Run *run, FrameStream stream, guint64 offset, const void *bytes, guint64 n)
{
    RunStream *s = stream_of(run, stream);

    s->received = offset + n;
    s->received_data += bytes != NULL ? n : 0;
    if (run->logged)
        take_logged(run, stream, offset, bytes, n);
    else
        take_streamed(run, stream, offset, bytes, n);
}

void
run_deliver(Run *run)
{
    while (run->sink != NULL && !run->paused && pieces_count(&run->pieces) > 0) {
        const Piece *piece = pieces_at(&run->pieces, run->pieces.first);
        bool more = run->sink->output(run, piece->stream, piece->bytes, (size_t)piece->n, run->sink_ctx);

        if (run->sink == NULL)
            return;
        run->paused |= !more;
        run_settle(run, piece);
        drop_first(run);
    }
    run_check_end(run);
}

static void
on_oom_timer(LoopTimer *timer)
{
    Run *run = (Run *)(void *)((char *)timer - offsetof(Run, oom_timer));
    g_autoptr(Run) held = run_ref(run);

    run->asked_oom = false;
    run_check_end(run);
}

static bool
may_be_oom(const RunEnd *end)
{
    return (end->reason == RUN_SIGNAL && end->code == SIGKILL) ||
           (end->reason == RUN_EXIT && end->code == 128 + SIGKILL);
}

/* A short output is still in memory; a longer one is read out of the log. */
static void
read_tests_at_once(Run *run)
{
    const RunStream *out = &run->streams[0], *err = &run->streams[1];

    if (run->logged && out->floor + err->floor == 0 && out->received + err->received <= RUN_TESTS_AT_ONCE) {
        g_autoptr(RunTests) tests = run_tests_new(out->received, err->received);

        for (guint64 i = run->pieces.first; i < pieces_end(&run->pieces); i++) {
            const Piece *piece = pieces_at(&run->pieces, i);

            if (piece->gap)
                run_tests_gap(tests, piece->stream);
            else
                run_tests_feed(tests, piece->stream, piece->bytes, (size_t)piece->n);
        }
        run->report = run_tests_end(tests);
        run->tests_read = true;
    }
}

void
run_take_end(Run *run, const RunEnd *end)
{
    BoxLink *link = run->link;

    if (run->has_end)
        return;
    run->end = *end;
    /* Of a box that is being ended init asks everything to end, and the keeper kills it. */
    if (link->stopping && end->reason == RUN_SIGNAL && (end->code == SIGTERM || end->code == SIGKILL))
        run->end.reason = RUN_STOPPED;
    run->has_end = true;
    run->owed = 0;
    buf_clear(&run->input);
    read_tests_at_once(run);
    if (may_be_oom(&run->end) && link->events.ask_oom != NULL && !link->closing) {
        run->asked_oom = true;
        run->oom_timer.expired = on_oom_timer;
        loop_timer_set(run->loop, &run->oom_timer, LINK_OOM_ASK_MS);
        link->events.ask_oom(link, run, link->ctx);
    }
    run_check_end(run);
}

static void
finish_logged(Run *run)
{
    g_autoptr(LinkRef) link = link_ref(run->link);
    const RunTap *tap = g_steal_pointer(&run->tap);

    FAILPOINT("run-ended");
    if (tap != NULL && tap->ended != NULL)
        tap->ended(run, &run->end, run->tap_ctx);
    run_tell_room(run);
    run_wake_followers(run);
    if (run->link != NULL && link->events.ended != NULL)
        link->events.ended(link, run, link->ctx);
    if (!link->freed)
        link_check_closed(link);
}

static void
finish_streamed(Run *run)
{
    g_autoptr(LinkRef) link = link_ref(run->link);
    const RunSink *sink = g_steal_pointer(&run->sink);

    pieces_clear(&run->pieces);
    link_owe(run, OWE_FORGET);
    link_remove(link, run);
    if (sink != NULL)
        sink->ended(run, &run->end, run->sink_ctx);
    if (!link->freed)
        link_check_closed(link);
}

static bool
is_done(const Run *run)
{
    if (run->logged)
        return run->tests_read && run->pieces.stored == pieces_end(&run->pieces);
    return run->link->closing || (!run->paused && pieces_count(&run->pieces) == 0);
}

void
run_check_end(Run *run)
{
    if (run->has_end && run->logged && !run->tests_read)
        run_work(run);
    if (!run->has_end || run->ended || run->link == NULL || (run->asked_oom && !run->link->closing) ||
        !is_done(run))
        return;
    g_autoptr(Run) held = run_ref(run);

    run->ended = true;
    run->asked_oom = false;
    loop_timer_cancel(run->loop, &run->oom_timer);
    run_trim(run);
    if (run->logged)
        finish_logged(run);
    else
        finish_streamed(run);
}
