/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "door/link.h"
#include "store/db.h"

/* Providers and budgets as `coop serve` keeps them, and what was spent.  A provider's key is here
 * only as the door sealed it; nobody but the door can open it. */
typedef struct DoorModels DoorModels;

enum {
    MODELS_PROVIDERS_MAX = 64,
    MODELS_BUDGETS_MAX = 4096,
    MODELS_SEALED_MAX = 4096,
};

DoorModels *door_models_new(Db *db);
void door_models_free(DoorModels *models);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DoorModels, door_models_free)
/* Reads the rows; also again, after a restore. */
void door_models_load(DoorModels *models, DbDone done, void *data);
/* What there is goes to the door, and so does every change from then on.  `link` is borrowed; NULL:
 * no longer. */
void door_models_attach(DoorModels *models, DoorLink *link);
/* Counts what the door has told of a call, before it is stored, so that a door that comes anew begins
 * with it. */
void door_models_note(DoorModels *models, Json *fact);

/* Since the server's start. */
typedef struct DoorModelCounts {
    guint64 calls, failed, input_tokens, output_tokens, cached_tokens, microusd, latency_ms;
    guint64 budgets_exceeded, loops_broken;
} DoorModelCounts;
const DoorModelCounts *door_models_counts(const DoorModels *models);

typedef struct DoorProviderSpec {
    Json *provider;     /* as brain/provider.h has it */
    const char *sealed; /* hex; "": none, or the one it had */
    const char *script; /* "": none */
    const char *actor;
} DoorProviderSpec;

/* Each writes first and then tells the door.  Takes the place of one of the same name.
 * ERR_INVALID, ERR_LIMIT through `done`. */
void door_models_put_provider(DoorModels *models, const DoorProviderSpec *spec, DbDone done, void *data);
/* ERR_NOT_FOUND through `done`. */
void door_models_remove_provider(DoorModels *models, const char *name, DbDone done, void *data);
/* `scope` as in brain/budget.h; `bounds` {"tokens", "microusd", "calls", "microusd_per_hour",
 * "calls_per_min", "tokens_per_min"}, each optional. */
void door_models_put_budget(DoorModels *models, const char *scope, Json *bounds, const char *actor,
                            DbDone done, void *data);
void door_models_remove_budget(DoorModels *models, const char *scope, DbDone done, void *data);
/* Who has set it, borrowed; NULL: there is none. */
const char *door_models_budget_actor(const DoorModels *models, const char *scope);

/* What can be said without the door. */
bool door_models_check_provider(const DoorModels *models, const DoorProviderSpec *spec, GError **error);
bool door_models_has_provider(const DoorModels *models, const char *name);
/* Lists; the caller owns them.  Of a key only whether there is one. */
Json *door_models_providers(const DoorModels *models);
Json *door_models_budgets(const DoorModels *models);
