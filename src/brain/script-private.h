/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/script.h"
#include "brain/usage.h"

/* What was said up to now, out of a request of any dialect. */
typedef struct Talk {
    char *system;
    char *asked; /* the first text of the user; "" for none, as the next */
    char *last, *last_user, *last_tool;
    bool last_is_tool;
    guint turn; /* from 1: how often the model has spoken, and once more */
} Talk;

void talk_init(Talk *talk, RouteKind kind, Json *body);
void talk_clear(Talk *talk);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Talk, talk_clear)

/* One answer, placeholders filled in. */
typedef struct SaidTool {
    char *id, *name, *arguments;
} SaidTool;

typedef struct Said {
    char *text;       /* NULL: none */
    GPtrArray *tools; /* SaidTool */
    Usage usage;
    guint first_ms, delay_ms, chunk;
    bool is_cut;
    const char *model;
    char id[2 * 8 + 1];
} Said;

/* In the dialect and the API of the route; `usage_chunk`: as the client asked. */
Tape *render_chat(const Said *said, bool is_stream);
Tape *render_responses(const Said *said, bool is_stream);
Tape *render_messages(const Said *said, bool is_stream);
Tape *render_embeddings(const Said *said, Json *body);

/* The next piece of a text, in whole characters; NULL at the end. */
char *said_next_piece(const Said *said, const char **at);
/* `event` NULL: without a name.  `object` is taken. */
void said_add_event(const Said *said, Tape *tape, const char *event, Json *object);
Tape *said_whole(const Said *said, Json *object);
