/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said to init.  Each run says one thing after the other in an order that makes sense of
 * them: start, input, its end, the rest, and to be forgotten last.  The first packet that the
 * channel has no room for stops everything until it has.
 */
#include <string.h>

#include "base/failpoint.h"
#include "box/link-private.h"
#include "wire/channel.h"

bool
link_send_fd(BoxLink *link, const FrameHead *head, const void *body, int fd)
{
    if (link->full || link->watch.fd < 0)
        return false;
    if (channel_send2(link->watch.fd, head, sizeof *head, body, head->length, &fd, fd >= 0 ? 1 : 0) == 0)
        return true;
    /* Of a channel that broke the loop hears by itself. */
    link->full = true;
    link_watch(link);
    return false;
}

bool
link_send(BoxLink *link, const FrameHead *head, const void *body)
{
    return link_send_fd(link, head, body, -1);
}

static bool
say_start(BoxLink *link, Run *run)
{
    gsize n;
    const void *payload = g_bytes_get_data(run->start, &n);
    FrameHead head = {.type = FRAME_START, .run = run->id, .length = (guint32)n};

    if (!link_send_fd(link, &head, payload, run->fd))
        return false;
    FAILPOINT("run-started");
    run->expected = link->owe_hello;
    run_drop_start(run);
    return true;
}

/* True: the channel has room; the window may have none. */
static bool
say_input(BoxLink *link, Run *run)
{
    size_t n;
    const guint8 *bytes;

    while ((bytes = buf_peek(&run->input, &n)) != NULL && n > 0) {
        guint64 room = FRAME_WINDOW - (run->in_sent - run->in_acked);
        size_t step = MIN(MIN(n, (size_t)FRAME_DATA_MAX), (size_t)room);
        FrameHead head = {
            .type = FRAME_STDIN, .run = run->id, .offset = run->in_sent, .length = (guint32)step};

        if (step == 0)
            break;
        if (!link_send(link, &head, bytes))
            return false;
        run->in_sent += step;
        buf_skip(&run->input, step);
        link_is_active(link);
    }
    if (run->want_room)
        link_due(run, DUE_ROOM);
    return true;
}

static bool
say_signals(BoxLink *link, Run *run)
{
    while (run->n_signals > 0) {
        FrameHead head = {.type = FRAME_SIGNAL, .run = run->id, .value = run->signals[0]};

        if (!link_send(link, &head, NULL))
            return false;
        run->n_signals--;
        memmove(run->signals, run->signals + 1, run->n_signals);
    }
    return true;
}

static bool
say_ack(BoxLink *link, Run *run, FrameStream stream)
{
    RunStream *s = &run->streams[stream - STREAM_STDOUT];
    FrameHead head = {.type = FRAME_ACK, .stream = (guint8)stream, .run = run->id, .offset = s->settled};

    if (!link_send(link, &head, NULL))
        return false;
    s->acked = s->settled;
    s->acked_data = s->settled_data;
    return true;
}

static bool
say_one(BoxLink *link, Run *run, RunOwed what)
{
    FrameHead head = {.run = run->id};

    switch ((unsigned)what) {
    case OWE_START:
        return say_start(link, run);
    case OWE_INPUT:
        return say_input(link, run);
    case OWE_CLOSE:
        head.type = FRAME_STDIN_CLOSE;
        return link_send(link, &head, NULL);
    case OWE_RESIZE:
        head.type = FRAME_RESIZE;
        head.value = (guint32)run->rows << 16 | run->columns;
        return link_send(link, &head, NULL);
    case OWE_SIGNALS:
        return say_signals(link, run);
    case OWE_ACK:
        return say_ack(link, run, STREAM_STDOUT);
    case OWE_ACK << 1:
        return say_ack(link, run, STREAM_STDERR);
    default:
        head.type = FRAME_FORGET;
        return link_send(link, &head, NULL);
    }
}

static bool
say_run(BoxLink *link, Run *run)
{
    for (unsigned bit = 1; bit <= OWE_FORGET; bit <<= 1) {
        /* The end of input waits for the input. */
        if ((run->owed & bit) == 0 || (bit == OWE_CLOSE && buf_len(&run->input) > 0))
            continue;
        if (!say_one(link, run, (RunOwed)bit))
            return false;
        run->owed &= ~bit;
    }
    return true;
}

static bool
say_hello(BoxLink *link)
{
    g_autofree FrameRun *known = g_new0(FrameRun, FRAME_RUNS_MAX);
    GHashTableIter iter;
    gpointer value;
    guint n = 0;

    g_hash_table_iter_init(&iter, link->runs);
    while (g_hash_table_iter_next(&iter, NULL, &value) && n < FRAME_RUNS_MAX) {
        const Run *run = value;

        if (run->expected)
            known[n++] = (FrameRun){.run = run->id,
                                    .out_offset = run->streams[0].received,
                                    .err_offset = run->streams[1].received};
    }
    FrameHead head = {.type = FRAME_HELLO,
                      .offset = link->number,
                      .value = FRAME_VERSION,
                      .length = n * (guint32)sizeof(FrameRun)};
    return link_send(link, &head, known);
}

static bool
say_stray(BoxLink *link)
{
    FrameHead head = {.type = FRAME_ACK,
                      .stream = (guint8)link->stray_stream,
                      .run = link->stray_run,
                      .offset = link->stray_offset};

    if (link->stray_run != 0 && !link_send(link, &head, NULL))
        return false;
    link->stray_run = 0;
    return true;
}

void
link_say_stray(BoxLink *link)
{
    (void)say_stray(link);
}

static void
say_runs(BoxLink *link)
{
    GList *node;

    while ((node = g_queue_peek_head_link(&link->owing)) != NULL) {
        Run *run = node->data;

        if (!say_run(link, run))
            return;
        g_queue_unlink(&link->owing, node);
        run->is_owing = false;
        run_unref(run);
    }
}

/* A start that is in the channel outlives us, and a caller was told of it already: it waits
 * neither for our HELLO nor for a first process that is slow to answer that. */
static void
say_starts(BoxLink *link)
{
    for (GList *node = link->owing.head; node != NULL; node = node->next) {
        Run *run = node->data;

        if ((run->owed & OWE_START) == 0)
            continue;
        if (!say_start(link, run))
            return;
        run->owed &= ~(unsigned)OWE_START;
    }
}

void
link_say(BoxLink *link)
{
    const FrameHead stop = {.type = FRAME_SHUTDOWN};

    if (link->quiet > 0 || link->freed || link->closing || link->full)
        return;
    if (!link->ready)
        say_starts(link);
    if (link->opening || link->full)
        return;
    if (link->owe_hello) {
        if (!say_hello(link))
            return;
        link->owe_hello = false;
    }
    if (link->owe_stop) {
        if (!link_send(link, &stop, NULL))
            return;
        link->owe_stop = false;
    }
    if (link->ready && say_stray(link) && link_connect_say(link))
        say_runs(link);
    link_watch(link);
}

void
link_owe(Run *run, unsigned what)
{
    BoxLink *link = run->link;

    if (link == NULL || link->closing)
        return;
    if (!run->is_owing) {
        run->is_owing = true;
        g_queue_push_tail_link(&link->owing, &run_ref(run)->owe_node);
    }
    run->owed |= what;
    link_say(link);
}
