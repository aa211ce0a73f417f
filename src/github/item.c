/* SPDX-License-Identifier: Apache-2.0 */
#include "github/item.h"

bool
upstream_item_put(DbTx *tx, const char *repository_id, const UpstreamItem *item, GError **error)
{
    return db_exec(
        tx,
        "INSERT INTO upstream_items (repository_id, kind, upstream_id, id) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (repository_id, kind, upstream_id) DO NOTHING",
        DB_ARGS(db_text(repository_id), db_text(item->kind), db_int(item->upstream_id), db_int(item->id)),
        error);
}

static bool
find(DbTx *tx, const char *sql, const char *repository_id, const char *kind, gint64 by, gint64 *ret_found,
     GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, sql, DB_ARGS(db_text(repository_id), db_text(kind), db_int(by)), error);
    bool more = false;

    if (rows == NULL || !db_rows_next(rows, &more, error))
        return false;
    *ret_found = more ? db_rows_int(rows, 0) : 0;
    return true;
}

bool
upstream_item_here(DbTx *tx, const char *repository_id, const char *kind, gint64 upstream_id, gint64 *ret_id,
                   GError **error)
{
    return find(tx, "SELECT id FROM upstream_items WHERE repository_id = ? AND kind = ? AND upstream_id = ?",
                repository_id, kind, upstream_id, ret_id, error);
}

bool
upstream_item_there(DbTx *tx, const char *repository_id, const char *kind, gint64 id, gint64 *ret_upstream_id,
                    GError **error)
{
    return find(tx, "SELECT upstream_id FROM upstream_items WHERE repository_id = ? AND kind = ? AND id = ?",
                repository_id, kind, id, ret_upstream_id, error);
}
