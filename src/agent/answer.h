/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* What a model said, put together from the pieces of a stream. */

enum {
    ANSWER_BYTES_MAX = 2 * 1024 * 1024, /* words, thoughts and arguments together */
    ANSWER_CALLS_MAX = 32,
};

typedef struct AnswerCall {
    gint64 index; /* by which the dialect names it while it comes */
    char *id, *name;
    GString *arguments; /* JSON, if the model got it right */
} AnswerCall;

typedef struct Answer {
    GString *text, *thought;
    GPtrArray *calls;                                  /* AnswerCall, in the order they began */
    gint64 input_tokens, output_tokens, cached_tokens; /* -1: not said */
    size_t bytes;
    bool finished;                 /* the model has come to an end: what is here is whole */
    bool cut_short;                /* at the bound of its length */
    char *error_code, *error_text; /* of an error in the stream; text NULL: none */
} Answer;

void answer_init(Answer *answer);
void answer_clear(Answer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Answer, answer_clear)

/* All of them: false with ERR_LIMIT past the bounds.  Text may be NULL: nothing. */
bool answer_add_text(Answer *answer, const char *text, GError **error);
bool answer_add_thought(Answer *answer, const char *text, GError **error);
/* A piece of the call that has this index; the first one begins it. */
typedef struct AnswerPiece {
    gint64 index; /* -1: a piece with an id begins a call, others belong to the last */
    const char *id, *name, *arguments;
} AnswerPiece;
bool answer_add_call(Answer *answer, const AnswerPiece *piece, GError **error);
void answer_set_error(Answer *answer, const char *code, const char *text);
