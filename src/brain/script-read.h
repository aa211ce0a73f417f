/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/script.h"

/* A script as it was read; see script.h for the file. */
typedef struct ScriptTool {
    char *name;
    Json *arguments; /* an object; its strings may have placeholders */
} ScriptTool;

typedef struct ScriptTurn {
    char *text;       /* NULL: none */
    GPtrArray *tools; /* ScriptTool */
    bool has_usage;
    guint64 input, output, cached;
    guint64 first_ms, delay_ms, chunk;
    bool is_cut;
    guint64 error_status; /* 0: no error */
    char *error_message;
} ScriptTurn;

typedef struct Conversation {
    GPatternSpec *role, *model; /* NULL: any; so are the next */
    GRegex *system, *match, *asked;
    char *last;
    char *model_name; /* `model` as it was written */
    guint64 first_turn;
    GPtrArray *turns; /* ScriptTurn */
} Conversation;

struct BrainScript {
    guint refs;
    GPtrArray *conversations;
};

/* The name of a placeholder that does not exist, in `text`; NULL: all do. */
char *script_unknown_placeholder(const char *text);
