/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says.  A frame that makes no sense is dropped. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "init/box.h"
#include "init/init.h"
#include "init/leader.h"
#include "init/pty.h"

static Run *
find_run(Box *box, uint32_t id)
{
    for (uint32_t i = 0; i < box->n_slots; i++) {
        if (box->runs[i].state != RUN_STATE_FREE && box->runs[i].id == id)
            return &box->runs[i];
    }
    return NULL;
}

static Run *
free_run(Box *box)
{
    for (uint32_t i = 0; i < FRAME_RUNS_MAX; i++) {
        if (box->runs[i].state != RUN_STATE_FREE)
            continue;
        if (i >= box->n_slots)
            box->n_slots = i + 1;
        return &box->runs[i];
    }
    return NULL;
}

/* Said behind the HELLO that may be owed, before which a server hears nothing.  A next server is
 * not told: it finds no such run in HELLO. */
static void
refuse(Box *box, const FrameHead *head, FrameStage stage, int error)
{
    if (box->n_refusals < REFUSALS_MAX)
        box->refusals[box->n_refusals++] = (FrameHead){
            .type = FRAME_FAILED, .run = head->run, .stage = (uint8_t)stage, .value = (uint32_t)error};
}

static void
on_start(Box *box, const FrameHead *head, void *payload, int *fd)
{
    /* A server that came back may not know whether it had asked. */
    if (find_run(box, head->run) != NULL)
        return;
    Run *run = free_run(box);
    if (run == NULL)
        refuse(box, head, FAIL_LIMIT, EAGAIN);
    else if (!frame_start_unpack(payload, head->length, &box->start))
        refuse(box, head, FAIL_FRAME, EINVAL);
    else if (box->stop != STOP_NOT)
        refuse(box, head, FAIL_LIMIT, ESHUTDOWN);
    else if ((box->start.flags & (START_IN_FD | START_OUT_FD)) != 0 && *fd < 0)
        refuse(box, head, FAIL_FRAME, EBADF);
    else {
        run->memory = &box->memory;
        run->way = box->way;
        run_begin(run, head->run, &box->start, fd, now_us());
    }
}

static void
on_connect(Box *box, const FrameHead *head)
{
    if (!connect_begin(box, head->run, head->value))
        refuse(box, head, FAIL_LIMIT, EAGAIN);
}

/* A run that the server does not name starts from what is left of it. */
static void
on_hello(Box *box, const FrameHead *head, const void *payload)
{
    connect_clear(box);
    box->n_refusals = 0;
    for (uint32_t i = 0; i < box->n_slots; i++) {
        Run *run = &box->runs[i];

        if (run->state == RUN_STATE_FREE)
            continue;
        stream_rewind(&run->streams[0], 0);
        stream_rewind(&run->streams[1], 0);
        if (run->state != RUN_STATE_STARTING && run->state != RUN_STATE_FAILED)
            run->owed |= OWE_STARTED | OWE_STDIN_ACK;
        if (run->state == RUN_STATE_ENDED)
            run->owed |= OWE_ENDED;
        if (run->state == RUN_STATE_FAILED)
            run->owed |= OWE_FAILED;
    }
    for (uint32_t at = 0; at + sizeof(FrameRun) <= head->length; at += (uint32_t)sizeof(FrameRun)) {
        FrameRun known;

        memcpy(&known, (const uint8_t *)payload + at, sizeof known);
        Run *run = find_run(box, known.run);
        if (run != NULL) {
            stream_rewind(&run->streams[0], known.out_offset);
            stream_rewind(&run->streams[1], known.err_offset);
        }
    }
    box->owe_hello = true;
    box->hello_number = head->offset;
}

static void
on_forget(Run *run)
{
    if (run->state == RUN_STATE_ENDED || run->state == RUN_STATE_FAILED) {
        run_clear(run);
        return;
    }
    run->forget = true;
    run_kill(run, REASON_STOPPED, now_us());
}

/* Of a run that has just begun it waits, blocked, until the command is there. */
static void
on_signal(Run *run, uint32_t number)
{
    if (!run_is_live(run) || number == 0 || number >= (uint32_t)SIGRTMIN)
        return;
    if ((run->flags & START_BUILTIN) != 0)
        (void)kill(run->leader, (int)number);
    else
        leader_ask_signal(run->leader, (int)number);
}

static void
on_input(Run *run, const FrameHead *head, const void *payload)
{
    input_put(&run->input, head->offset, payload, head->length);
    run_drain_input(run);
}

static void
on_run_frame(Run *run, const FrameHead *head, const void *payload)
{
    bool live = run_is_live(run);

    switch ((int)head->type) {
    case FRAME_STDIN:
        on_input(run, head, payload);
        break;
    case FRAME_STDIN_CLOSE:
        input_close(&run->input);
        break;
    case FRAME_RESIZE:
        if (live && (run->flags & START_TTY) != 0)
            pty_resize(run->streams[0].fd, (uint16_t)(head->value >> 16), (uint16_t)head->value);
        break;
    case FRAME_SIGNAL:
        on_signal(run, head->value);
        break;
    case FRAME_ACK:
        stream_ack(&run->streams[head->stream - STREAM_STDOUT], head->offset);
        break;
    case FRAME_FORGET:
        on_forget(run);
        break;
    default:
        break;
    }
}

static void
on_shutdown(Box *box)
{
    if (box->stop != STOP_NOT)
        return;
    box->stop = STOP_TERM;
    box->stop_us = now_us() + (uint64_t)SHUTDOWN_TERM_MS * 1000;
    for (uint32_t i = 0; i < box->n_slots; i++) {
        if (box->runs[i].state != RUN_STATE_FREE)
            on_signal(&box->runs[i], SIGTERM);
    }
}

static void
hear_frame(Box *box, size_t n, int *fd)
{
    FrameHead head;
    uint8_t *payload = box->packet + sizeof head;

    if (!frame_check(box->packet, n))
        return;
    memcpy(&head, box->packet, sizeof head);
    Run *run = head.run != 0 ? find_run(box, head.run) : NULL;
    if (head.type == FRAME_HELLO)
        on_hello(box, &head, payload);
    else if (head.type == FRAME_START)
        on_start(box, &head, payload, fd);
    else if (head.type == FRAME_CONNECT)
        on_connect(box, &head);
    else if (head.type == FRAME_SHUTDOWN)
        on_shutdown(box);
    else if (run != NULL)
        on_run_frame(run, &head, payload);
}

void
box_hear(Box *box, size_t n, int fd)
{
    hear_frame(box, n, &fd);
    if (fd >= 0)
        close(fd);
}
