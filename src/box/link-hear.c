/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What init says, which is what the box says: each frame is held against what is known, and the
 * first that cannot be ends the link.  Until init's HELLO brings our number back everything was
 * meant for a predecessor.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "box/link-private.h"
#include "wire/channel.h"

enum { SIGNAL_MAX = 64, EXIT_MAX = 255 };
/* A packet that does not fit is dropped by the kernel, and looks like nonsense. */
_Static_assert(sizeof(FrameHead) + FRAME_DATA_MAX <= LOOP_READ_SIZE, "output fits into one read");
_Static_assert(sizeof(FrameHead) + FRAME_RUNS_MAX * sizeof(FrameRun) <= LOOP_READ_SIZE, "so does HELLO");
/* Numbers that are only shown: what every reader of JSON can hold. */
#define NUMBER_MAX (G_GUINT64_CONSTANT(1) << 53)

/* ---- HELLO ---- */

static void
forget_stranger(BoxLink *link, guint32 id)
{
    g_autoptr(Run) run = run_new(link->loop, id, false);

    if (link->strangers == NULL)
        link->strangers = g_array_new(FALSE, FALSE, sizeof id);
    g_array_append_val(link->strangers, id);
    run->link = link;
    link_owe(run, OWE_FORGET);
    run->link = NULL;
}

/* Where input goes on: init holds everything below `in_offset`, and how much of that is still in
 * its ring it says next. */
static void
take_up(Run *run, const FrameRun *row)
{
    run->expected = false;
    run->in_sent = row->in_offset;
    run->in_acked = row->in_offset - MIN(row->in_offset, (guint64)FRAME_WINDOW);
}

static bool
on_hello_run(BoxLink *link, const FrameRun *row, GPtrArray *found)
{
    Run *run = box_link_find(link, row->run);

    if (row->run == 0 || row->run >= RUN_ID_CONNECT || row->state < RUN_RUNNING || row->state > RUN_FAILED ||
        row->in_offset > G_MAXINT64)
        return false;
    if (run != NULL && !run->expected)
        return run->start == NULL; /* it was faster than its answer to us */
    if (run != NULL) {
        take_up(run, row);
        return true;
    }
    if (row->run >= RUN_ID_STREAMED) {
        forget_stranger(link, row->run);
        return true;
    }
    run = link_add(link, row->run, true);
    run->takes_input = true;
    run->started_us = clock_wall_us();
    take_up(run, row);
    link->last_run = MAX(link->last_run, row->run);
    g_ptr_array_add(found, run_ref(run));
    return true;
}

static void
lose_unnamed(Run *run, void *data)
{
    RunEnd end = {
        .reason = RUN_LOST, .out_bytes = run->streams[0].received, .err_bytes = run->streams[1].received};

    if (!run->expected || run->link == NULL)
        return;
    run->expected = false;
    run_take_end(run, &end);
}

static bool
on_hello(BoxLink *link, const FrameHead *head, const guint8 *payload)
{
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func((GDestroyNotify)run_unref);

    if (head->value != FRAME_VERSION || link->ready)
        return false;
    for (guint32 at = 0; at < head->length; at += (guint32)sizeof(FrameRun)) {
        FrameRun row;

        memcpy(&row, payload + at, sizeof row);
        if (!on_hello_run(link, &row, found))
            return false;
    }
    link->ready = true;
    if (link->events.ready != NULL)
        link->events.ready(link, link->ctx);
    for (guint i = 0; i < found->len && !link->freed; i++) {
        Run *run = g_ptr_array_index(found, i);

        if (run->link != NULL && link->events.found != NULL)
            link->events.found(link, run, link->ctx);
    }
    if (!link->freed)
        box_link_each(link, lose_unnamed, NULL);
    return true;
}

/* ---- frames of a run ---- */

static bool
on_output(BoxLink *link, Run *run, const FrameHead *head, const guint8 *payload)
{
    RunStream *s = &run->streams[head->stream - STREAM_STDOUT];
    bool gap = head->type == FRAME_GAP;
    guint64 n = gap ? head->value : head->length;

    if (head->offset > G_MAXINT64)
        return false;
    if (!s->begun && head->offset > s->received) {
        /* A predecessor had it and lost it, or never told us. */
        s->received = s->settled = s->acked = s->floor = head->offset;
    }
    s->begun = true;
    if (head->offset != s->received || n == 0 || n > G_MAXINT64 - s->received || (gap && !run->logged))
        return false;
    if (!gap && s->received_data - s->acked_data + n > FRAME_WINDOW)
        return false;
    link_is_active(link);
    run_take_output(run, (FrameStream)head->stream, head->offset, gap ? NULL : payload, n);
    return true;
}

static bool
take_stream_end(RunStream *s, guint64 bytes)
{
    if (!s->begun && bytes > s->received && bytes <= G_MAXINT64)
        s->received = s->settled = s->acked = s->floor = bytes;
    return s->received == bytes;
}

static bool
reason_of(const FrameEnd *end, RunReason *ret_reason)
{
    switch ((FrameReason)end->reason) {
    case REASON_EXIT:
        *ret_reason = RUN_EXIT;
        return end->code >= 0 && end->code <= EXIT_MAX;
    case REASON_SIGNAL:
        *ret_reason = RUN_SIGNAL;
        return end->code > 0 && end->code <= SIGNAL_MAX;
    case REASON_TIMEOUT:
        *ret_reason = RUN_TIMEOUT;
        return true;
    case REASON_OOM:
        *ret_reason = RUN_OOM;
        return true;
    case REASON_STOPPED:
        *ret_reason = RUN_STOPPED;
        return true;
    }
    return false;
}

static bool
on_ended(Run *run, const guint8 *payload)
{
    FrameEnd said;
    RunEnd end = {0};

    memcpy(&said, payload, sizeof said);
    if (!reason_of(&said, &end.reason) || !take_stream_end(&run->streams[0], said.out_bytes) ||
        !take_stream_end(&run->streams[1], said.err_bytes))
        return false;
    end.code = said.code;
    end.out_bytes = said.out_bytes;
    end.err_bytes = said.err_bytes;
    end.duration_us = MIN(said.duration_us, NUMBER_MAX);
    end.cpu_us = MIN(said.cpu_us, NUMBER_MAX);
    end.max_rss_bytes = MIN(said.max_rss_bytes, NUMBER_MAX);
    run_take_end(run, &end);
    return true;
}

static bool
on_failed(Run *run, const FrameHead *head)
{
    RunEnd end = {.reason = RUN_NOT_STARTED, .code = (int)(head->value & 0xfff), .stage = head->stage};

    if (run->pid != 0 || head->stage == 0 || head->stage >= FAIL_STAGE_MAX)
        return false;
    run_take_end(run, &end);
    return true;
}

static bool
on_started(BoxLink *link, Run *run, const FrameHead *head)
{
    if (run->pid != 0 || head->value == 0)
        return false;
    run->pid = head->value;
    if (link->events.started != NULL && run->logged)
        link->events.started(link, run, link->ctx);
    return true;
}

static bool
on_stdin_ack(Run *run, const FrameHead *head)
{
    if (head->offset < run->in_acked || head->offset > run->in_sent)
        return false;
    run->in_acked = head->offset;
    if (buf_len(&run->input) > 0)
        link_owe(run, OWE_INPUT);
    else if (run->want_room)
        link_due(run, DUE_ROOM);
    return true;
}

static bool
on_run_frame(BoxLink *link, Run *run, const FrameHead *head, const guint8 *payload)
{
    g_autoptr(Run) held = run_ref(run);

    if (run->has_end || (run->owed & OWE_START) != 0)
        return false;
    switch ((int)head->type) {
    case FRAME_STARTED:
        return on_started(link, run, head);
    case FRAME_OUTPUT:
    case FRAME_GAP:
        return on_output(link, run, head, payload);
    case FRAME_STDIN_ACK:
        return on_stdin_ack(run, head);
    case FRAME_ENDED:
        return on_ended(run, payload);
    case FRAME_FAILED:
        return on_failed(run, head);
    default:
        return false;
    }
}

/* A run that was abandoned or forgotten says its last words.  Its output is acknowledged: init
 * waits for that with the end of a blocking stream. */
static bool
on_stray_frame(BoxLink *link, const FrameHead *head)
{
    bool known = head->run <= link->last_run ||
                 (head->run >= link->first_streamed && head->run <= link->last_streamed);

    for (guint i = 0; !known && link->strangers != NULL && i < link->strangers->len; i++)
        known = g_array_index(link->strangers, guint32, i) == head->run;
    if (!known || head->type < FRAME_STARTED)
        return false;
    if (head->type != FRAME_OUTPUT && head->type != FRAME_GAP)
        return true;
    link->stray_run = head->run;
    link->stray_stream = (FrameStream)head->stream;
    link->stray_offset = head->offset + (head->type == FRAME_GAP ? head->value : head->length);
    return true;
}

/* ---- the channel ---- */

static bool
on_frame(BoxLink *link, const guint8 *packet, size_t n, int *fd)
{
    FrameHead head;

    if (!frame_check(packet, n))
        return false;
    memcpy(&head, packet, sizeof head);
    if (head.type == FRAME_HELLO && head.offset == link->number)
        return !link->owe_hello && on_hello(link, &head, packet + sizeof head);
    if (!link->ready)
        return true;
    if (head.type == FRAME_CONNECTED || (head.type == FRAME_FAILED && head.run >= RUN_ID_CONNECT))
        return link_connect_answer(link, &head, fd);
    if (head.run == 0)
        return false;
    Run *run = box_link_find(link, head.run);

    return run != NULL ? on_run_frame(link, run, &head, packet + sizeof head) : on_stray_frame(link, &head);
}

static bool
may_hear(const BoxLink *link)
{
    return !link->freed && !link->closing && link->pending <= LINK_PENDING_MAX &&
           link->n_pending <= LINK_PIECES_MAX && link->stray_run == 0;
}

void
link_hear(BoxLink *link)
{
    guint8 *buffer = loop_read_buffer(link->loop);

    for (int i = 0; i < LINK_FRAMES_MAX && may_hear(link); i++) {
        autofd fd = -1;
        size_t n_fds = 1;
        ssize_t n = channel_recv(link->watch.fd, buffer, LOOP_READ_SIZE, &fd, &n_fds);

        if (n < 0 && errno == EAGAIN)
            return;
        if (n == 0) {
            link_close(link, NULL);
            return;
        }
        if (n < 0 || !on_frame(link, buffer, (size_t)n, &fd)) {
            link_close(link, g_error_new_literal(ERR_DOMAIN, ERR_INTERNAL, "the box's init talks nonsense"));
            return;
        }
        if (link->stray_run != 0)
            link_say_stray(link);
    }
}
