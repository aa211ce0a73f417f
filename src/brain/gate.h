/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "brain/budget.h"
#include "brain/provider.h"
#include "http/request.h"
#include "json/json.h"

/* The model gateway: takes a box's request for a model, checks it (route, JSON, model, budget,
 * loop), sends what was checked to the provider with the key added, and passes the answer on
 * byte by byte while it counts.
 *
 * Knows no boxes: who asks is a GateCaller. */
typedef struct Gate Gate;

typedef struct GateCaller {
    const char *box, *agent, *task, *squad; /* NULL: none; box is always there */
    Breaker *breaker;                       /* the box's own */
} GateCaller;

enum {
    GATE_BODY_MAX = 32 * 1024 * 1024,
    GATE_RETRIES_MAX = 2, /* before the first byte only */
    GATE_STREAMS_PER_BOX = 32,
};

/* 0: as gate-private.h has it. */
typedef struct GateTimes {
    guint body_ms;                   /* of the request; a long one has more */
    guint connect_ms, first_byte_ms; /* of the provider */
    guint idle_ms;                   /* without a byte of its answer */
    guint total_ms;
    guint retry_ms;  /* before the second try; doubled before the third */
    guint linger_ms; /* for what a whole stream used, when the client has gone */
} GateTimes;

typedef struct GateSpec {
    Loop *loop; /* borrowed, as is the next */
    Budgets *budgets;
    PriceTable *prices;     /* borrowed */
    const char *recordings; /* a folder; NULL: neither recording nor replay */
    /* A fact for the log ("model.called", "budget.exceeded", "budget.warned", "loop.broken", and
     * "provider.refused" when a key is not accepted); `fact` is taken. */
    void (*tell)(Json *fact, void *ctx);
    bool (*may_tell)(void *ctx); /* false: the log is full, so calls are refused */
    void *ctx;
    GateTimes times;
} GateSpec;

Gate *gate_new(const GateSpec *spec);
void gate_free(Gate *gate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Gate, gate_free)

/* Replaces or adds by name; `script` is the text of a PROVIDER_SCRIPT's file (NULL otherwise;
 * copied). */
/* Whether gate_set_provider() would take it. */
bool gate_check_provider(Gate *gate, Provider *provider, const char *script, GError **error);
bool gate_set_provider(Gate *gate, Provider *provider, const char *script, GError **error);
void gate_remove_provider(Gate *gate, const char *name);
void gate_each_provider(Gate *gate, void (*func)(Provider *provider, void *data), void *data);

/* Whether this path is the gateway's: /openai/…, /anthropic/…. */
bool gate_owns(const char *path);
/* Answers the request, now or later.  Strings of `caller` are copied; its breaker outlives the
 * request or gate_forget_box() comes first. */
void gate_handle(Gate *gate, HttpRequest *request, const GateCaller *caller);
/* The box is gone: its streams are cut, the upstream calls cancelled and accounted. */
void gate_forget_box(Gate *gate, const char *box);

/* One small call (the models list) with the provider's key: {"models", "latency_ms"}, or for a
 * script {"brain": "script"}; or ERR_DENIED (the key), ERR_UNAVAILABLE, ERR_NOT_FOUND.  `done`
 * does not come when the gate is freed before. */
typedef void (*GateTestFunc)(Json *result, const GError *error, void *data);
void gate_test_provider(Gate *gate, const char *name, GateTestFunc done, void *data);
