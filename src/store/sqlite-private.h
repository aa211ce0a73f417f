/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <sqlite3.h>

#include "store/backend.h"

struct BackendConn {
    sqlite3 *db;
    GHashTable *cache; /* sql -> BackendStmt */
    GQueue order;      /* the same statements, least recently used first */
};

/* Says what SQLite's last error on `db` was; returns false. */
bool sqlite_fail(sqlite3 *db, GError **error);

/* ---- statements: those of Backend, and two for SQL that takes no values ---- */

BackendStmt *sqlite_prepare(BackendConn *c, const char *sql, GError **error);
bool sqlite_bind(BackendStmt *s, const DbValue *args, size_t n, BackendBind how, GError **error);
bool sqlite_step(BackendStmt *s, bool *ret_row, GError **error);
void sqlite_finish(BackendStmt *s);
bool sqlite_column_is_null(BackendStmt *s, int column);
gint64 sqlite_column_int(BackendStmt *s, int column);
const char *sqlite_column_text(BackendStmt *s, int column);
const void *sqlite_column_blob(BackendStmt *s, int column, size_t *ret_len);
bool sqlite_run(BackendConn *c, const char *sql, GError **error);
/* No row: *ret_value stays. */
bool sqlite_query_int(BackendConn *c, const char *sql, gint64 *ret_value, GError **error);

/* Before the connection is closed. */
void sqlite_drop_statements(BackendConn *c);
