/* SPDX-License-Identifier: Apache-2.0 */
#include "box/run.h"

#include <string.h>
#include <unistd.h>

#include "box/link-private.h"

Run *
run_new(Loop *loop, guint32 id, bool logged)
{
    Run *run = g_new0(Run, 1);

    run->refs = 1;
    run->id = id;
    run->loop = loop;
    run->logged = logged;
    run->fd = -1;
    run->owe_node.data = run->due_node.data = run;
    buf_init(&run->input, FRAME_WINDOW);
    return run;
}

void
run_drop_start(Run *run)
{
    g_clear_pointer(&run->start, g_bytes_unref);
    if (run->fd >= 0)
        close(run->fd);
    run->fd = -1;
}

Run *
run_ref(Run *run)
{
    run->refs++;
    return run;
}

void
run_unref(Run *run)
{
    if (run == NULL || --run->refs > 0)
        return;
    loop_timer_cancel(run->loop, &run->oom_timer);
    pieces_clear(&run->pieces);
    for (int i = 0; i < RUN_STREAMS; i++)
        run_log_close(run->streams[i].log);
    run_tests_free(run->tests);
    report_free(run->report);
    buf_clear(&run->input);
    run_drop_start(run);
    g_free(run->folder);
    g_free(run);
}

guint32
run_id(const Run *run)
{
    return run->id;
}

bool
run_has_ended(const Run *run)
{
    return run->ended;
}

const RunEnd *
run_end(const Run *run)
{
    return run->ended ? &run->end : NULL;
}

const TestReport *
run_test_report(const Run *run)
{
    return run->ended ? run->report : NULL;
}

guint
run_pid(const Run *run)
{
    return run->pid;
}

gint64
run_started_us(const Run *run)
{
    return run->started_us;
}

bool
run_is_terminal(const Run *run)
{
    return run->terminal;
}

void
run_abandon(Run *run)
{
    BoxLink *link = run->link;

    run->sink = NULL;
    run->tap = NULL;
    if (link == NULL || run->abandoned)
        return;
    g_autoptr(Run) held = run_ref(run);
    bool unsent = (run->owed & OWE_START) != 0;

    run->abandoned = true;
    run->owed = 0;
    run_drop_start(run);
    if (!run->logged)
        pieces_clear(&run->pieces);
    buf_clear(&run->input);
    if (!unsent && !link->closing)
        link_owe(run, OWE_FORGET);
    if (!run->ended && !run->has_end)
        run->end = (RunEnd){.reason = RUN_STOPPED};
    run->ended = run->has_end = true;
    link_remove(link, run);
    run_wake_followers_later(run);
}

void
run_resume(Run *run)
{
    if (!run->paused)
        return;
    run->paused = false;
    if (run->link != NULL)
        link_due(run, DUE_DELIVER);
}

void
run_is_active(Run *run)
{
    if (run->link != NULL)
        link_is_active(run->link);
}

void
run_tap(Run *run, const RunTap *tap, void *ctx)
{
    run->tap = tap;
    run->tap_ctx = ctx;
}

void
run_untap(Run *run)
{
    run->tap = NULL;
}

bool
run_on_input_room(Run *run, void (*room)(void *data), void *data)
{
    if (run->on_room != NULL && run->room_data != data)
        return false;
    run->on_room = room;
    run->room_data = data;
    return true;
}

void
run_tell_room(Run *run)
{
    void (*room)(void *data) = g_steal_pointer(&run->on_room);

    if (room != NULL)
        room(run->room_data);
}

void
run_room(Run *run)
{
    if (!run->want_room || run->has_end || buf_room(&run->input) < FRAME_WINDOW / 2)
        return;
    run->want_room = false;
    if (run->sink != NULL && run->sink->input_room != NULL)
        run->sink->input_room(run, run->sink_ctx);
    else
        run_tell_room(run);
}

bool
run_takes_input(const Run *run)
{
    return run->takes_input && !run->closing && !run->has_end;
}

guint64
run_output_bytes(const Run *run, FrameStream stream)
{
    return run->streams[stream - STREAM_STDOUT].received;
}

/* Straight from the caller's memory, as long as channel and window have room. */
static size_t
write_through(Run *run, const guint8 *bytes, size_t n)
{
    BoxLink *link = run->link;
    size_t sent = 0;

    while (sent < n && link->ready && !link->full && (run->owed & (OWE_START | OWE_INPUT)) == 0) {
        guint64 room = FRAME_WINDOW - (run->in_sent - run->in_acked);
        size_t step = MIN(MIN(n - sent, (size_t)FRAME_DATA_MAX), (size_t)room);
        FrameHead head = {
            .type = FRAME_STDIN, .run = run->id, .offset = run->in_sent, .length = (guint32)step};

        if (step == 0 || !link_send(link, &head, bytes + sent))
            break;
        run->in_sent += step;
        sent += step;
    }
    return sent;
}

size_t
run_write(Run *run, const void *bytes, size_t n)
{
    const guint8 *at = bytes;

    if (run->link == NULL || run->has_end || run->closing || !run->takes_input || n == 0)
        return 0;
    size_t taken = buf_len(&run->input) == 0 ? write_through(run, at, n) : 0;
    size_t kept = MIN(n - taken, buf_room(&run->input));

    if (kept > 0) {
        (void)!buf_put(&run->input, at + taken, kept);
        link_owe(run, OWE_INPUT);
    }
    if (taken > 0)
        link_is_active(run->link);
    run->want_room = taken + kept < n;
    return taken + kept;
}

void
run_close_input(Run *run)
{
    if (run->link == NULL || run->has_end || run->closing || !run->takes_input)
        return;
    run->closing = true;
    link_owe(run, OWE_CLOSE);
}

void
run_resize(Run *run, guint16 rows, guint16 columns)
{
    if (run->link == NULL || run->has_end || !run->terminal)
        return;
    run->rows = rows;
    run->columns = columns;
    link_owe(run, OWE_RESIZE);
}

void
run_signal(Run *run, int signal)
{
    if (run->link == NULL || run->has_end || signal <= 0 || signal > G_MAXINT8)
        return;
    if (run->n_signals > 0 && run->signals[run->n_signals - 1] == signal)
        return;
    /* The newest counts most: it may be the one that kills. */
    if (run->n_signals == RUN_SIGNALS_MAX)
        run->n_signals--;
    run->signals[run->n_signals++] = (guint8)signal;
    link_owe(run, OWE_SIGNALS);
}
