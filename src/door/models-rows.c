/* SPDX-License-Identifier: Apache-2.0 */
#include "door/models-rows.h"

#include <string.h>

#include "base/err.h"
#include "brain/provider.h"
#include "door/usage-rows.h"

void
stored_provider_free(StoredProvider *p)
{
    if (p == NULL)
        return;
    json_decref(p->provider);
    g_free(p->name);
    g_free(p->sealed);
    g_free(p->script);
    g_free(p->actor);
    g_free(p);
}

void
stored_budget_free(StoredBudget *b)
{
    if (b == NULL)
        return;
    g_free(b->scope);
    g_free(b->actor);
    json_decref(b->bounds);
    g_free(b);
}

static Json *
object_of(DbRows *rows, int column)
{
    const char *text = db_rows_text(rows, column);

    return json_decode(text, strlen(text), NULL);
}

/* ---- providers ---- */

bool
provider_rows_load(DbTx *tx, GPtrArray *ret, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx,
                                      "SELECT name, provider, sealed, script, actor, created_us "
                                      "FROM providers ORDER BY name",
                                      DB_NO_ARGS, error);
    bool row = true;

    while (rows != NULL) {
        if (!db_rows_next(rows, &row, error))
            return false;
        if (!row)
            return true;
        StoredProvider *p = g_new(StoredProvider, 1);

        *p = (StoredProvider){.provider = object_of(rows, 1),
                              .name = g_strdup(db_rows_text(rows, 0)),
                              .sealed = g_strdup(db_rows_text(rows, 2)),
                              .script = g_strdup(db_rows_text(rows, 3)),
                              .actor = g_strdup(db_rows_text(rows, 4)),
                              .created_us = db_rows_int(rows, 5)};
        if (p->provider != NULL)
            g_ptr_array_add(ret, p);
        else
            stored_provider_free(p);
    }
    return false;
}

/* The door would refuse a key that was sealed for another place. */
static bool
is_same_place(Json *before, Json *after)
{
    g_autoptr(Provider) a = before != NULL ? provider_new(before, NULL) : NULL;
    g_autoptr(Provider) b = provider_new(after, NULL);

    return a != NULL && b != NULL && provider_kind(a) == provider_kind(b) &&
           g_strcmp0(provider_base_url(a), provider_base_url(b)) == 0;
}

static bool
keep_key(DbTx *tx, StoredProvider *p, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT sealed, provider FROM providers WHERE name = ?",
                                      DB_ARGS(db_text(p->name)), error);
    bool row;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    g_autoptr(Json) before = row ? object_of(rows, 1) : NULL;

    if (is_same_place(before, p->provider)) {
        g_free(p->sealed);
        p->sealed = g_strdup(db_rows_text(rows, 0));
    }
    return true;
}

bool
provider_row_put(DbTx *tx, StoredProvider *p, GError **error)
{
    g_autofree char *text = json_encode(p->provider);

    if (*p->sealed == '\0' && !keep_key(tx, p, error))
        return false;
    return db_exec(tx,
                   "INSERT INTO providers (name, provider, sealed, script, actor, created_us) "
                   "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET "
                   "provider = excluded.provider, sealed = excluded.sealed, script = excluded.script, "
                   "actor = excluded.actor, created_us = excluded.created_us",
                   DB_ARGS(db_text(p->name), db_text(text), db_text(p->sealed), db_text(p->script),
                           db_text(p->actor), db_int(p->created_us)),
                   error);
}

bool
provider_row_remove(DbTx *tx, const char *name, GError **error)
{
    if (!db_exec(tx, "DELETE FROM providers WHERE name = ?", DB_ARGS(db_text(name)), error))
        return false;
    return db_changes(tx) > 0 || err_set(error, ERR_NOT_FOUND, "there is no provider '%s'", name);
}

/* ---- budgets ---- */

bool
budget_rows_load(DbTx *tx, GPtrArray *ret, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        tx, "SELECT scope, bounds, actor, created_us FROM budgets ORDER BY scope", DB_NO_ARGS, error);
    bool row = true;

    while (rows != NULL && row) {
        if (!db_rows_next(rows, &row, error))
            return false;
        if (!row)
            break;
        StoredBudget *b = g_new0(StoredBudget, 1);

        *b = (StoredBudget){.scope = g_strdup(db_rows_text(rows, 0)),
                            .bounds = object_of(rows, 1),
                            .actor = g_strdup(db_rows_text(rows, 2)),
                            .created_us = db_rows_int(rows, 3)};
        if (b->bounds != NULL)
            g_ptr_array_add(ret, b);
        else
            stored_budget_free(b);
    }
    if (rows == NULL)
        return false;
    for (guint i = 0; i < ret->len; i++) {
        StoredBudget *b = ret->pdata[i];

        if (!usage_rows_spent(tx, b->scope, &b->spent, error))
            return false;
    }
    return true;
}

bool
budget_row_put(DbTx *tx, StoredBudget *b, GError **error)
{
    g_autofree char *text = json_encode(b->bounds);

    return usage_rows_spent(tx, b->scope, &b->spent, error) &&
           db_exec(tx,
                   "INSERT INTO budgets (scope, bounds, actor, created_us) VALUES (?, ?, ?, ?) "
                   "ON CONFLICT (scope) DO UPDATE SET bounds = excluded.bounds, actor = excluded.actor, "
                   "created_us = excluded.created_us",
                   DB_ARGS(db_text(b->scope), db_text(text), db_text(b->actor), db_int(b->created_us)),
                   error);
}

bool
budget_row_remove(DbTx *tx, const char *scope, GError **error)
{
    if (!db_exec(tx, "DELETE FROM budgets WHERE scope = ?", DB_ARGS(db_text(scope)), error))
        return false;
    return db_changes(tx) > 0 || err_set(error, ERR_NOT_FOUND, "there is no budget for '%s'", scope);
}
