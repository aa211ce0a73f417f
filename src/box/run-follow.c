/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower is a place in each of the two streams.  What memory does not hold any more is read
 * from the log, standard output first; from there on the pieces come in the order in which they
 * arrived.  A follower outlives the link, so that what was written down can be read to its end.
 */
#include "box/link-private.h"

static void
follower_wake(RunFollower *f)
{
    if (!f->waiting)
        return;
    f->waiting = f->woken = false;
    f->wake(f->data);
}

static void
on_timer(LoopTimer *timer)
{
    follower_wake((RunFollower *)(void *)((char *)timer - offsetof(RunFollower, timer)));
}

void
run_wake_followers_later(Run *run)
{
    for (guint i = 0; run->followers != NULL && i < run->followers->len; i++) {
        RunFollower *f = g_ptr_array_index(run->followers, i);

        loop_timer_set(run->loop, &f->timer, 0);
    }
}

RunFollower *
run_follow(Run *run, guint64 out_offset, guint64 err_offset, void (*wake)(void *data), void *data)
{
    RunFollower *f = g_new0(RunFollower, 1);

    f->run = run_ref(run);
    f->at[0] = out_offset;
    f->at[1] = err_offset;
    f->next = run->pieces.first;
    f->wake = wake;
    f->data = data;
    f->timer.expired = on_timer;
    if (run->followers == NULL)
        run->followers = g_ptr_array_new();
    g_ptr_array_add(run->followers, f);
    return f;
}

static void
follower_destroy(RunFollower *f)
{
    g_free(f->read_bytes);
    run_unref(f->run);
    g_free(f);
}

void
run_follower_free(RunFollower *follower)
{
    Run *run = follower != NULL ? follower->run : NULL;

    if (follower == NULL)
        return;
    loop_timer_cancel(run->loop, &follower->timer);
    g_ptr_array_remove(run->followers, follower);
    if (run->followers->len == 0)
        g_clear_pointer(&run->followers, g_ptr_array_unref);
    run_trim(run);
    follower->waiting = false;
    if (run->readers != NULL && g_ptr_array_remove(run->readers, follower)) {
        follower->reading = false;
        if (run->readers->len == 0)
            g_clear_pointer(&run->readers, g_ptr_array_unref);
    }
    /* The log is being read for it. */
    if (follower->reading)
        follower->dead = true;
    else
        follower_destroy(follower);
}

void
follower_read_done(RunFollower *follower)
{
    follower->read_ready = true;
    if (follower->dead)
        follower_destroy(follower);
    else
        follower_wake(follower);
}

static void
ask_log(RunFollower *f, FrameStream stream)
{
    Run *run = f->run;

    if (f->reading)
        return;
    f->reading = true;
    f->read_stream = stream;
    f->read_offset = f->at[stream - STREAM_STDOUT];
    if (run->readers == NULL)
        run->readers = g_ptr_array_new();
    g_ptr_array_add(run->readers, f);
    run_work(run);
}

/* What the log gave for where this follower is.  It may tell of less than memory has dropped: the
 * rest could not be written, and is missing. */
static RunStep
take_read(RunFollower *f, RunPiece *ret_piece)
{
    RunStream *s = &f->run->streams[f->read_stream - STREAM_STDOUT];
    guint64 *at = &f->at[f->read_stream - STREAM_STDOUT];
    guint64 missing = f->read_gap > 0 ? f->read_gap : s->floor - *at;

    f->read_ready = false;
    if (f->read_n < 0)
        return RUN_STEP_FAILED;
    *ret_piece = (RunPiece){.stream = f->read_stream, .offset = *at};
    ret_piece->n = (size_t)(f->read_n > 0 ? MIN((guint64)f->read_n, s->floor - *at) : missing);
    ret_piece->bytes = f->read_n > 0 ? f->read_bytes : NULL;
    *at += ret_piece->n;
    return f->read_n > 0 ? RUN_STEP_DATA : RUN_STEP_GAP;
}

/* The next of the pieces that this follower has not seen. */
static bool
take_piece(RunFollower *f, RunPiece *ret_piece, RunStep *ret_step)
{
    const Pieces *p = &f->run->pieces;

    /* The last one may still grow, so the place stays on it. */
    for (f->next = MAX(f->next, p->first); f->next < pieces_end(p); f->next++) {
        const Piece *piece = pieces_at(p, f->next);
        guint64 *at = &f->at[piece->stream - STREAM_STDOUT];

        if (piece->offset + piece->n > *at) {
            guint64 skip = *at > piece->offset ? *at - piece->offset : 0;

            *ret_piece = (RunPiece){.stream = piece->stream, .offset = piece->offset + skip};
            ret_piece->n = (size_t)(piece->n - skip);
            ret_piece->bytes = piece->gap ? NULL : piece->bytes + skip;
            *ret_step = piece->gap ? RUN_STEP_GAP : RUN_STEP_DATA;
            *at = piece->offset + piece->n;
            return true;
        }
        if (f->next + 1 == pieces_end(p))
            break;
    }
    return false;
}

RunStep
run_follower_next(RunFollower *follower, RunPiece *ret_piece)
{
    Run *run = follower->run;
    RunStep step = RUN_STEP_WAIT;

    if (follower->reading) {
        follower->waiting = true;
        return RUN_STEP_WAIT;
    }
    if (follower->read_ready)
        return take_read(follower, ret_piece);
    g_clear_pointer(&follower->read_bytes, g_free);
    for (FrameStream s = STREAM_STDOUT; s <= STREAM_STDERR; s++) {
        if (follower->at[s - STREAM_STDOUT] < run->streams[s - STREAM_STDOUT].floor) {
            ask_log(follower, s);
            follower->waiting = true;
            return RUN_STEP_WAIT;
        }
    }
    if (take_piece(follower, ret_piece, &step))
        return step;
    run_trim(run);
    if (run->ended)
        return RUN_STEP_END;
    follower->waiting = true;
    return RUN_STEP_WAIT;
}
