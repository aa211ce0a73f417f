/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"
#include "json/json.h"

/* What a task may spend, where that is enforced: at the door.  An interface, as Mind is. */
typedef struct Purse {
    /* `bounds` {"tokens", "microusd", "calls"}, those there are; NULL: none any more.  What a person has set
     * for the task there stays as it is.  `done` from the loop or inside the call. */
    void (*bind)(void *ctx, const char *task_id, Json *bounds, DbDone done, void *data);
    /* Its bounds there are those of bind(), and no person's. */
    bool (*is_bound)(void *ctx, const char *task_id);
    void *ctx;
} Purse;
