/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "agent/answer.h"
#include "agent/brief.h"

/* The conversation with the model, in the form of dialect.h, and in a file beside the work tree: a program
 * that is started again in the same box goes on where the last one was, and a second try of a step knows
 * what the first one did. */
typedef struct Talk Talk;

typedef enum TalkFound {
    TALK_NEW,     /* there was nothing to go on with */
    TALK_SAME,    /* this very session */
    TALK_ANOTHER, /* an earlier try of the same step */
} TalkFound;

enum { TALK_FILE_MAX = 64 * 1024 * 1024 };

/* `path` NULL: kept in memory alone. */
Talk *talk_open(const char *path, const Brief *brief, TalkFound *ret_found);
void talk_free(Talk *talk);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Talk, talk_free)

/* Borrowed; changed by the others alone. */
Json *talk_messages(const Talk *talk);
bool talk_is_role(const Json *message, const char *role);
/* How often the model has spoken in this session. */
gint64 talk_turns(const Talk *talk);

void talk_add_user(Talk *talk, const char *text);
/* One that stays whole when older turns are summarised: what a later try was told. */
void talk_add_goal(Talk *talk, const char *text);
/* Arguments that are no JSON object are kept as an empty one: servers refuse them later. */
void talk_add_answer(Talk *talk, const Answer *answer);
void talk_add_result(Talk *talk, const char *id, const char *name, const char *text);
/* Calls of the last answer that have no result, because the program ended; a list that the caller owns. */
Json *talk_pending(const Talk *talk);

/* In place of the messages from..to-1, whole turns, comes one of a user, behind the last goal among them. */
void talk_replace(Talk *talk, size_t from, size_t to, const char *text);
/* The text of one message; the arguments of one of its calls. */
void talk_set_text(Talk *talk, size_t index, const char *text);
void talk_set_arguments(Talk *talk, size_t index, size_t call, const char *arguments);
/* Writes the file anew, after the last three. */
void talk_save(Talk *talk);
