/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Questions that the server itself asks of a model: plans, councils.  They go through the door as those of
 * boxes do, under the same budgets, and are told of as such; the server has no keys. */

enum {
    MIND_PROMPT_MAX = 512 * 1024, /* bytes, of system and prompt each */
    MIND_ANSWER_MAX = 256 * 1024,
    MIND_AT_ONCE = 32, /* questions under way; beyond: ERR_UNAVAILABLE */
};

typedef struct MindAsk {
    const char *agent; /* who is said to ask: "planner-7", "council-2-7" */
    const char *task_id, *squad_id;
    const char *provider, *model; /* of the row of a member; provider NULL: who has the model */
    const char *system, *prompt;
    guint output_max; /* tokens */
    guint timeout_ms;
} MindAsk;

typedef struct MindAnswer {
    const char *text;
    const char *model;
    guint64 input_tokens, output_tokens;
    gint64 duration_us;
} MindAnswer;

/* ERR_UNAVAILABLE: may be tried again (no door, 429, 5xx); ERR_NOT_FOUND: nobody has the model, ERR_DENIED:
 * its provider does not accept the key, until a person changes that; ERR_LIMIT: a budget; ERR_INVALID: an
 * answer that is none; ERR_TIMEOUT. */
typedef void (*MindFunc)(const MindAnswer *answer, const GError *error, void *data);

/* An interface, so that tests can think by themselves. */
typedef struct Mind {
    /* The spec is copied; `done` from the loop, never inside the call.  Returns what cancel() takes. */
    guint (*ask)(void *ctx, const MindAsk *ask, MindFunc done, void *data);
    void (*cancel)(void *ctx, guint id); /* `done` does not come any more */
    void *ctx;
} Mind;
