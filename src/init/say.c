/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What init says.  Each function sends at most one frame and returns what became of it, so that
 * runs take turns, and stops at the first packet that the channel has no room for.  Nothing is
 * remembered but the debt itself.
 */
#include <errno.h>
#include <string.h>

#include "init/box.h"
#include "init/init.h"

typedef enum Said { SAID_NOTHING, SAID_SOME, SAID_FULL } Said;

static Said
send_frame(Box *box, const FrameHead *head, const void *body, const int *fds, size_t n_fds)
{
    if (channel_send2(INIT_CHANNEL_FD, head, sizeof *head, body, head->length, fds, n_fds) == 0)
        return SAID_SOME;
    if (errno == EPIPE)
        box->gone = true;
    box->retry = errno != EAGAIN;
    return SAID_FULL;
}

static Said
say_hello(Box *box)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < box->n_slots; i++) {
        const Run *run = &box->runs[i];

        if (run->state == RUN_STATE_FREE)
            continue;
        box->hello[n++] = (FrameRun){
            .run = run->id,
            .state = run->state == RUN_STATE_FAILED  ? RUN_FAILED
                     : run->state == RUN_STATE_ENDED ? RUN_ENDED
                                                     : RUN_RUNNING,
            .out_offset = run->streams[0].end,
            .err_offset = run->streams[1].end,
            .in_offset = run->input.taken,
        };
    }
    FrameHead head = {.type = FRAME_HELLO,
                      .offset = box->hello_number,
                      .value = FRAME_VERSION,
                      .length = n * (uint32_t)sizeof(FrameRun)};
    return send_frame(box, &head, box->hello, NULL, 0);
}

static Said
say_connect(Box *box, Connect *c)
{
    FrameHead head = {.type = c->error == 0 ? FRAME_CONNECTED : FRAME_FAILED,
                      .run = c->asked,
                      .stage = c->error == 0 ? 0 : FAIL_CONNECT,
                      .value = (uint32_t)c->error};
    Said said = send_frame(box, &head, NULL, &c->fd, c->error == 0 ? 1 : 0);

    if (said == SAID_SOME)
        connect_done(c);
    return said;
}

static Said
say_stream(Box *box, Run *run, int index)
{
    Stream *s = &run->streams[index];
    StreamPiece piece = stream_next(s, box->scratch);

    if (piece.n == 0)
        return SAID_NOTHING;
    FrameHead head = {.type = piece.bytes != NULL ? FRAME_OUTPUT : FRAME_GAP,
                      .stream = (uint8_t)(index == 0 ? STREAM_STDOUT : STREAM_STDERR),
                      .run = run->id,
                      .offset = piece.offset,
                      .value = piece.bytes != NULL ? 0 : piece.n,
                      .length = piece.bytes != NULL ? piece.n : 0};
    Said said = send_frame(box, &head, piece.bytes, NULL, 0);

    if (said == SAID_SOME)
        stream_was_sent(s, &piece);
    return said;
}

static Said
say_owed(Box *box, Run *run, RunOwed what, FrameHead head, const void *body)
{
    head.run = run->id;
    Said said = send_frame(box, &head, body, NULL, 0);

    if (said == SAID_SOME)
        run->owed &= ~(uint32_t)what;
    return said;
}

static bool
all_is_sent(const Run *run)
{
    return run->streams[0].sent == run->streams[0].end && run->streams[1].sent == run->streams[1].end;
}

static Said
say_run(Box *box, Run *run)
{
    if ((run->owed & OWE_FAILED) != 0)
        return say_owed(box, run, OWE_FAILED,
                        (FrameHead){.type = FRAME_FAILED,
                                    .stage = (uint8_t)run->fail_stage,
                                    .value = (uint32_t)run->fail_error},
                        NULL);
    if ((run->owed & OWE_STARTED) != 0)
        return say_owed(box, run, OWE_STARTED,
                        (FrameHead){.type = FRAME_STARTED, .value = (uint32_t)run->main}, NULL);
    if ((run->owed & OWE_STDIN_ACK) != 0) {
        run->acked_input = run->input.written;
        return say_owed(box, run, OWE_STDIN_ACK,
                        (FrameHead){.type = FRAME_STDIN_ACK, .offset = run->acked_input}, NULL);
    }
    Said said = say_stream(box, run, 0);
    if (said == SAID_NOTHING)
        said = say_stream(box, run, 1);
    if (said == SAID_NOTHING && (run->owed & OWE_ENDED) != 0 && all_is_sent(run))
        return say_owed(box, run, OWE_ENDED, (FrameHead){.type = FRAME_ENDED, .length = sizeof run->end},
                        &run->end);
    return said;
}

static Said
say_connects(Box *box)
{
    Said all = SAID_NOTHING;

    for (size_t i = 0; i < CONNECTS_MAX && all != SAID_FULL; i++) {
        if (box->connects[i].used && box->connects[i].done)
            all = say_connect(box, &box->connects[i]);
    }
    return all == SAID_FULL ? SAID_FULL : SAID_NOTHING;
}

static Said
say_refusals(Box *box)
{
    uint32_t n = 0;
    Said said = SAID_NOTHING;

    while (n < box->n_refusals && (said = send_frame(box, &box->refusals[n], NULL, NULL, 0)) == SAID_SOME)
        n++;
    box->n_refusals -= n;
    memmove(box->refusals, box->refusals + n, box->n_refusals * sizeof box->refusals[0]);
    return said;
}

/* One frame of each run. */
static Said
say_round(Box *box)
{
    Said all = SAID_NOTHING;

    for (uint32_t i = 0; i < box->n_slots; i++) {
        uint32_t slot = (box->next_slot + i) % box->n_slots;
        Run *run = &box->runs[slot];
        Said said = run->state == RUN_STATE_FREE ? SAID_NOTHING : say_run(box, run);

        if (said == SAID_FULL) {
            box->next_slot = slot;
            return SAID_FULL;
        }
        if (said == SAID_SOME)
            all = SAID_SOME;
    }
    return all;
}

void
box_say(Box *box)
{
    Said said = SAID_SOME;

    box->retry = false;
    if (box->owe_hello) {
        said = say_hello(box);
        box->owe_hello = said == SAID_FULL;
    }
    if (said != SAID_FULL)
        said = say_refusals(box);
    if (said != SAID_FULL)
        said = say_connects(box);
    /* Connects are said again only in the next turn of the loop; they are few. */
    while (said != SAID_FULL && (said = say_round(box)) == SAID_SOME)
        ;
    box->channel_full = said == SAID_FULL && !box->gone;
}
