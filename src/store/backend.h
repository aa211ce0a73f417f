/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "store/db.h"

/* The seam between the store and a database.
 *
 * Everything above it (jobs, migrations, the event log) speaks through this table, so a
 * second database is one more file.  A connection belongs to one thread at a time.  Errors
 * arrive in our own kinds: ERR_FULL (no room), ERR_UNAVAILABLE (locked by someone else),
 * ERR_CONFLICT (unique or foreign key), ERR_INVALID (another constraint), ERR_INTERNAL
 * (damage and our own mistakes). */
typedef struct BackendConn BackendConn;
typedef struct BackendStmt BackendStmt;

typedef enum BackendMode { BACKEND_WRITE, BACKEND_READ } BackendMode;
/* Whether bound bytes stay where they are until finish() or are copied. */
typedef enum BackendBind { BACKEND_BORROW, BACKEND_COPY } BackendBind;

typedef struct BackendSpec {
    const char *path;
    BackendMode mode; /* BACKEND_READ refuses every write */
    guint busy_ms;    /* how long a lock of another process is waited for */
    bool check_all;   /* look at every page for damage, however large the file is */
} BackendSpec;

typedef struct Backend {
    /* Refuses what is damaged or belongs to another program; makes what is not there (in
     * BACKEND_WRITE). */
    BackendConn *(*open)(const BackendSpec *spec, GError **error);
    void (*close)(BackendConn *conn);

    /* finish() hands the statement back, to be prepared again at no cost. */
    BackendStmt *(*prepare)(BackendConn *conn, const char *sql, GError **error);
    bool (*bind)(BackendStmt *stmt, const DbValue *args, size_t n_args, BackendBind how, GError **error);
    bool (*step)(BackendStmt *stmt, bool *ret_row, GError **error);
    void (*finish)(BackendStmt *stmt);
    bool (*column_is_null)(BackendStmt *stmt, int column);
    gint64 (*column_int)(BackendStmt *stmt, int column);
    const char *(*column_text)(BackendStmt *stmt, int column);
    const void *(*column_blob)(BackendStmt *stmt, int column, size_t *ret_len);
    gint64 (*changes)(BackendConn *conn);

    /* Several statements of the common dialect; types are translated here. */
    bool (*script)(BackendConn *conn, const char *sql, GError **error);

    bool (*begin)(BackendConn *conn, BackendMode mode, GError **error);
    bool (*commit)(BackendConn *conn, GError **error);
    void (*rollback)(BackendConn *conn);
    /* One level is enough: a savepoint is one job inside a group commit. */
    bool (*savepoint)(BackendConn *conn, GError **error);
    bool (*release)(BackendConn *conn, GError **error);
    bool (*rollback_to)(BackendConn *conn, GError **error);
    /* False inside a transaction: the database gave it up by itself (disk full, I/O). */
    bool (*in_transaction)(BackendConn *conn);

    /* 0: empty.  Set inside the transaction of the migration. */
    bool (*version)(BackendConn *conn, gint64 *ret_version, GError **error);
    bool (*set_version)(BackendConn *conn, gint64 version, GError **error);

    /* A consistent copy of `from` as one self-contained file; `to` must not exist. */
    bool (*copy)(const char *from, const char *to, guint busy_ms, GError **error);
    /* The whole content of the connection becomes that of the file, in one transaction. */
    bool (*replace)(BackendConn *conn, const char *from, GError **error);
} Backend;

extern const Backend backend_sqlite;
