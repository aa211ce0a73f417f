/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "agent/dialect.h"

/* The model at the box's door.  What may pass (a broken stream, 429, 5xx, a door that is away) is asked
 * again; what cannot is an error whose reason says which. */
typedef struct Model Model;

enum {
    MODEL_PATIENCE_MS = 10 * 60 * 1000, /* how long it may be away */
    MODEL_HEAD_MS = 5 * 60 * 1000,      /* until it begins to answer */
    MODEL_STALL_MS = 2 * 60 * 1000,     /* between two pieces */
    MODEL_BROKEN_MAX = 8,               /* streams in a row that were no answer */
};

typedef enum ModelReason {
    MODEL_AWAY,    /* asked often enough */
    MODEL_BUDGET,  /* 402 */
    MODEL_LOOP,    /* the breaker's */
    MODEL_CONTEXT, /* the question is too long */
    MODEL_NONE,    /* nobody has it, or its provider does not accept the key: a person's to change */
    MODEL_REFUSED, /* for another cause that asking again does not change */
    MODEL_STOPPED, /* we were asked to end */
    MODEL_REASON_MAX,
} ModelReason;
const char *model_reason_name(ModelReason reason);

typedef struct ModelSpec {
    const char *dialect, *name;
    gint64 output_tokens;
    int cancel_fd;
    gint64 patience_ms; /* 0: MODEL_PATIENCE_MS */
} ModelSpec;

Model *model_new(const ModelSpec *spec, GError **error);
void model_free(Model *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Model, model_free)

/* No answer is waited for beyond it, nor for one that is away; on the monotonic clock. */
void model_set_deadline(Model *model, gint64 deadline_us);

/* `ret_answer` is initialised by the call, also when it fails. */
bool model_ask(Model *model, const char *system, Json *messages, Json *tools, Answer *ret_answer,
               ModelReason *ret_reason, GError **error);
