/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "brain/budget.h"
#include "store/db.h"
#include "json/json.h"

/* Providers and budgets as rows; private to this folder.  Functions that take a DbTx run in the
 * store's threads. */
typedef struct StoredProvider {
    Json *provider;
    char *name, *sealed, *script, *actor;
    gint64 created_us;
} StoredProvider;

typedef struct StoredBudget {
    char *scope, *actor;
    Json *bounds;
    BudgetSpent spent;
    gint64 created_us;
} StoredBudget;

void stored_provider_free(StoredProvider *provider);
void stored_budget_free(StoredBudget *budget);

bool provider_rows_load(DbTx *tx, GPtrArray *ret_providers, GError **error);
/* An empty `sealed` is filled with the key that the row of that name has. */
bool provider_row_put(DbTx *tx, StoredProvider *provider, GError **error);
bool provider_row_remove(DbTx *tx, const char *name, GError **error); /* ERR_NOT_FOUND */

/* With what was spent. */
bool budget_rows_load(DbTx *tx, GPtrArray *ret_budgets, GError **error);
bool budget_row_put(DbTx *tx, StoredBudget *budget, GError **error);
bool budget_row_remove(DbTx *tx, const char *scope, GError **error); /* ERR_NOT_FOUND */
