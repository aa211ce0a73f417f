/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tx.h"

#include <string.h>

#include "base/err.h"

/* Statements inside a job.  Once the database has ended the transaction by itself, a further
 * statement would run and commit on its own; so from then on every call fails with the error
 * that caused it. */

struct DbRows {
    DbTx *tx;
    BackendStmt *stmt;
    bool ended;
};

void
db_tx_clear(DbTx *tx)
{
    g_clear_error(&tx->lost);
}

DbValue
db_null(void)
{
    return (DbValue){.type = DB_NULL};
}

DbValue
db_int(gint64 v)
{
    return (DbValue){.type = DB_INT, .num = v};
}

DbValue
db_text(const char *v)
{
    if (v == NULL)
        return db_null();
    return (DbValue){.type = DB_TEXT, .bytes = v, .len = strlen(v)};
}

DbValue
db_blob(const void *p, size_t n)
{
    return (DbValue){.type = DB_BLOB, .bytes = p, .len = n};
}

static bool
check_not_lost(DbTx *tx, GError **error)
{
    if (tx->lost == NULL)
        return true;
    g_propagate_error(error, g_error_copy(tx->lost));
    return false;
}

static bool
step(DbTx *tx, BackendStmt *stmt, bool *ret_row, GError **error)
{
    g_autoptr(GError) local = NULL;

    if (tx->backend->step(stmt, ret_row, &local))
        return true;
    if (tx->lost == NULL && !tx->backend->in_transaction(tx->conn))
        tx->lost = g_error_copy(local);
    g_propagate_error(error, g_steal_pointer(&local));
    return false;
}

bool
db_exec(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, GError **error)
{
    const Backend *be = tx->backend;

    if (!check_not_lost(tx, error))
        return false;
    BackendStmt *stmt = be->prepare(tx->conn, sql, error);
    if (stmt == NULL)
        return false;
    bool row = true, ok = be->bind(stmt, args, n_args, BACKEND_BORROW, error);
    while (ok && row)
        ok = step(tx, stmt, &row, error);
    be->finish(stmt);
    if (ok)
        tx->changes = be->changes(tx->conn);
    return ok;
}

gint64
db_changes(DbTx *tx)
{
    return tx->changes;
}

DbRows *
db_query(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, GError **error)
{
    const Backend *be = tx->backend;

    if (!check_not_lost(tx, error))
        return NULL;
    BackendStmt *stmt = be->prepare(tx->conn, sql, error);
    if (stmt == NULL)
        return NULL;
    if (!be->bind(stmt, args, n_args, BACKEND_COPY, error)) {
        be->finish(stmt);
        return NULL;
    }
    DbRows *rows = g_new0(DbRows, 1);
    *rows = (DbRows){.tx = tx, .stmt = stmt};
    tx->rows_open++;
    return rows;
}

bool
db_rows_next(DbRows *rows, bool *ret_row, GError **error)
{
    bool row = false;

    if (!check_not_lost(rows->tx, error))
        return false;
    /* One more step after the end would run the statement again. */
    if (!rows->ended && !step(rows->tx, rows->stmt, &row, error))
        return false;
    rows->ended = !row;
    *ret_row = row;
    return true;
}

bool
db_rows_is_null(DbRows *rows, int column)
{
    return rows->tx->backend->column_is_null(rows->stmt, column);
}

gint64
db_rows_int(DbRows *rows, int column)
{
    return rows->tx->backend->column_int(rows->stmt, column);
}

const char *
db_rows_text(DbRows *rows, int column)
{
    return rows->tx->backend->column_text(rows->stmt, column);
}

const void *
db_rows_blob(DbRows *rows, int column, size_t *ret_len)
{
    return rows->tx->backend->column_blob(rows->stmt, column, ret_len);
}

void
db_rows_free(DbRows *rows)
{
    if (rows == NULL)
        return;
    rows->tx->rows_open--;
    rows->tx->backend->finish(rows->stmt);
    g_free(rows);
}
