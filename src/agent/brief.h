/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What the server wants of this session (docs/design/18-team.md).  Strings are borrowed from `tree`; those
 * that may be missing are NULL. */
typedef struct Brief {
    Json *tree;
    const char *execution_id, *agent, *role, *kind;
    const char *task_id, *step; /* step: its name */
    const char *system, *goal, *feedback;
    const char *dialect, *model;
    gint64 turns, seconds, context_tokens, output_tokens;
    const char *workdir, *branch;
    Json *checks, *tools; /* lists; NULL: none, all */
    const char *room_id;
} Brief;

enum {
    BRIEF_TURNS = 100,
    BRIEF_SECONDS = 1800,
    BRIEF_CONTEXT_TOKENS = 100 * 1000,
    BRIEF_OUTPUT_TOKENS = 8192,
};

/* Takes `tree`.  What is missing has its usual value; unknown members are for later programs. */
bool brief_read(Brief *ret_brief, Json *tree, GError **error);
void brief_clear(Brief *brief);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Brief, brief_clear)

/* It ends with a verdict. */
bool brief_is_review(const Brief *brief);
bool brief_has_tool(const Brief *brief, const char *name);
/* The first message: goal, feedback, conflict, plan, room. */
char *brief_format(const Brief *brief);
/* What is said to a session that knows the goal already: what Coop saw of the last try. */
char *brief_format_again(const Brief *brief);
/* A room's context in words (brief-room.c). */
char *brief_format_room(Json *room);
