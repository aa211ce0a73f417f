/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* An answer as it is played: a status, and pieces with the time to wait before each.  Scripts
 * write them, recordings keep them. */
typedef struct TapePiece {
    guint after_ms;
    GBytes *bytes;
} TapePiece;

typedef struct Tape {
    guint refs;
    int status;
    bool is_stream; /* server-sent events; else JSON */
    bool is_cut;    /* breaks off after the last piece */
    GArray *pieces; /* TapePiece */
} Tape;

enum {
    TAPE_PIECES_MAX = 64 * 1024,
    TAPE_BYTES_MAX = 32 * 1024 * 1024,
    TAPE_WAIT_MAX_MS = 60 * 1000,
};

Tape *tape_new(int status, bool is_stream);
Tape *tape_ref(Tape *tape);
void tape_unref(Tape *tape);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Tape, tape_unref)
void tape_add(Tape *tape, guint after_ms, const void *bytes, size_t n);

/* Plays it on the default context, as http/client.h plays a server's answer: never from inside
 * tape_play(), nothing after tape_stop(). */
typedef struct TapePlay TapePlay;
typedef struct TapeHandler {
    void (*head)(const Tape *tape, void *ctx);
    bool (*data)(const guint8 *bytes, size_t n, void *ctx); /* false: stop until tape_resume() */
    void (*done)(bool is_cut, void *ctx);                   /* the play is freed when it returns */
} TapeHandler;

TapePlay *tape_play(Tape *tape, const TapeHandler *handler, void *ctx);
void tape_resume(TapePlay *play);
void tape_stop(TapePlay *play);
