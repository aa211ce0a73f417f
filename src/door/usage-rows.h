/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/budget.h"
#include "store/db.h"
#include "json/json.h"

/* What model calls came to, as rows: one for each hour, box, agent, task, squad, provider and
 * model.  All run in the store's threads. */

/* Adds a fact "model.called"; others are no matter. */
bool usage_row_add(DbTx *tx, Json *fact, GError **error);

/* The provider gave nothing for it, and it counts against no budget.  That the client went is no
 * failure: the provider has worked. */
bool usage_call_failed(const Json *fact);

/* What was ever spent in a scope of budgets; calls without those that failed. */
bool usage_rows_spent(DbTx *tx, const char *scope, BudgetSpent *ret, GError **error);

typedef enum UsageBy {
    USAGE_BY_BOX,
    USAGE_BY_AGENT,
    USAGE_BY_TASK,
    USAGE_BY_SQUAD,
    USAGE_BY_PROVIDER,
    USAGE_BY_MODEL,
    USAGE_BY_MAX,
} UsageBy;
const char *usage_by_name(UsageBy by);
bool usage_by_from_name(const char *name, UsageBy *ret);

enum { USAGE_ROWS_MAX = 1000 };

/* An array of {"id", "calls", "failed", "unpriced_calls", "input_tokens", …, "microusd",
 * "latency_ms"}, the dearest first, of the hours in since..until; the caller owns it. */
Json *usage_rows_sum(DbTx *tx, UsageBy by, gint64 since_us, gint64 until_us, GError **error);
