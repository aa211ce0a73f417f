/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/tape.h"

typedef enum PlayState { PLAY_HEAD, PLAY_PIECES, PLAY_OVER } PlayState;

struct TapePlay {
    guint refs; /* the owner, and the step under way */
    Tape *tape;
    TapeHandler handler;
    void *ctx;
    guint source; /* 0: none; scripts wait for as long as they like, so not a timer of a Loop */
    PlayState state;
    guint at;
    bool is_paused;
    bool was_resumed; /* during the running `data` callback */
};

static void
piece_clear(void *data)
{
    g_bytes_unref(((TapePiece *)data)->bytes);
}

Tape *
tape_new(int status, bool is_stream)
{
    Tape *tape = g_new0(Tape, 1);

    tape->refs = 1;
    tape->status = status;
    tape->is_stream = is_stream;
    tape->pieces = g_array_new(FALSE, FALSE, sizeof(TapePiece));
    g_array_set_clear_func(tape->pieces, piece_clear);
    return tape;
}

Tape *
tape_ref(Tape *tape)
{
    tape->refs++;
    return tape;
}

void
tape_unref(Tape *tape)
{
    if (tape == NULL || --tape->refs > 0)
        return;
    g_array_unref(tape->pieces);
    g_free(tape);
}

void
tape_add(Tape *tape, guint after_ms, const void *bytes, size_t n)
{
    TapePiece piece = {.after_ms = MIN(after_ms, (guint)TAPE_WAIT_MAX_MS), .bytes = g_bytes_new(bytes, n)};

    g_array_append_val(tape->pieces, piece);
}

/* ---- playing ---- */

static void
play_unref(TapePlay *play)
{
    if (--play->refs > 0)
        return;
    tape_unref(play->tape);
    g_free(play);
}

static gboolean on_step(gpointer data);

static void
arm(TapePlay *play)
{
    guint ms = 0;

    if (play->state == PLAY_OVER || play->is_paused || play->source != 0)
        return;
    if (play->state == PLAY_PIECES && play->at < play->tape->pieces->len)
        ms = g_array_index(play->tape->pieces, TapePiece, play->at).after_ms;
    play->source = g_timeout_add(ms, on_step, play);
}

/* Pieces without a wait between them go at once, as a socket would have them. */
static void
play_pieces(TapePlay *play)
{
    bool waited = true;

    while (play->state == PLAY_PIECES && !play->is_paused && play->at < play->tape->pieces->len) {
        const TapePiece *piece = &g_array_index(play->tape->pieces, TapePiece, play->at);
        size_t n;

        if (!waited && piece->after_ms > 0)
            return;
        waited = false;
        play->at++;
        const guint8 *bytes = g_bytes_get_data(piece->bytes, &n);
        play->was_resumed = false;
        /* A resume from inside the callback answers a stop that is only being returned. */
        if (!play->handler.data(bytes, n, play->ctx) && !play->was_resumed)
            play->is_paused = true;
    }
    if (play->state == PLAY_PIECES && !play->is_paused) {
        play->state = PLAY_OVER;
        play->handler.done(play->tape->is_cut, play->ctx);
        play_unref(play);
    }
}

static gboolean
on_step(gpointer data)
{
    TapePlay *play = data;

    play->source = 0;
    play->refs++;
    if (play->state == PLAY_HEAD) {
        play->state = PLAY_PIECES;
        play->handler.head(play->tape, play->ctx);
    } else {
        play_pieces(play);
    }
    arm(play);
    play_unref(play);
    return G_SOURCE_REMOVE;
}

TapePlay *
tape_play(Tape *tape, const TapeHandler *handler, void *ctx)
{
    TapePlay *play = g_new0(TapePlay, 1);

    *play = (TapePlay){.refs = 1, .tape = tape_ref(tape), .handler = *handler, .ctx = ctx};
    arm(play);
    return play;
}

void
tape_resume(TapePlay *play)
{
    play->was_resumed = true;
    if (!play->is_paused)
        return;
    play->is_paused = false;
    arm(play);
}

void
tape_stop(TapePlay *play)
{
    if (play->source != 0)
        g_source_remove(play->source);
    play->state = PLAY_OVER;
    play_unref(play);
}
