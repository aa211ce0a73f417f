/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/err.h"
#include "store/sqlite-private.h"

enum { STMT_CACHE_MAX = 64 };

struct BackendStmt {
    GList link; /* in `order` */
    sqlite3_stmt *stmt;
    BackendConn *conn;
    char *sql; /* NULL: not in the cache, gone after finish() */
    bool busy;
};

static bool
is_no_room(int system_errno)
{
    return system_errno == ENOSPC || system_errno == EDQUOT;
}

static ErrKind
constraint_kind(int extended)
{
    switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return ERR_CONFLICT;
    default:
        return ERR_INVALID;
    }
}

bool
sqlite_fail(sqlite3 *db, GError **error)
{
    int rc = sqlite3_extended_errcode(db);
    const char *text = sqlite3_errmsg(db);

    switch (rc & 0xff) {
    case SQLITE_FULL:
        return err_set(error, ERR_FULL, "the disk under the database is full");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if (is_no_room(sqlite3_system_errno(db)))
            return err_set(error, ERR_FULL, "the disk under the database is full");
        return err_set(error, ERR_INTERNAL, "the database file cannot be read or written: %s (%s)", text,
                       g_strerror(sqlite3_system_errno(db)));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(error, ERR_UNAVAILABLE, "the database is locked by another program");
    case SQLITE_CONSTRAINT:
        return err_set(error, constraint_kind(rc), "%s", text);
    case SQLITE_TOOBIG:
        return err_set(error, ERR_LIMIT, "a value is too large for the database");
    case SQLITE_READONLY:
        return err_set(error, ERR_DENIED, "the database may not be written here: %s", text);
    case SQLITE_CORRUPT:
        return err_set(error, ERR_INTERNAL, "the database file is damaged: %s", text);
    case SQLITE_NOTADB:
        return err_set(error, ERR_INTERNAL, "the file is not a database, or its beginning is damaged");
    default:
        return err_set(error, ERR_INTERNAL, "database: %s", text);
    }
}

static void
stmt_free(BackendStmt *s)
{
    sqlite3_finalize(s->stmt);
    g_free(s->sql);
    g_free(s);
}

static void
cache_evict_one(BackendConn *c)
{
    for (GList *l = c->order.head; l != NULL; l = l->next) {
        BackendStmt *s = l->data;

        if (s->busy)
            continue;
        g_queue_unlink(&c->order, &s->link);
        g_hash_table_remove(c->cache, s->sql);
        stmt_free(s);
        return;
    }
}

static void
cache_add(BackendConn *c, BackendStmt *s, const char *sql)
{
    if (c->order.length >= STMT_CACHE_MAX)
        cache_evict_one(c);
    s->sql = g_strdup(sql);
    g_hash_table_insert(c->cache, s->sql, s);
    g_queue_push_tail_link(&c->order, &s->link);
}

void
sqlite_drop_statements(BackendConn *c)
{
    g_hash_table_unref(c->cache);
    for (GList *l = c->order.head, *next; l != NULL; l = next) {
        next = l->next;
        stmt_free(l->data);
    }
}

BackendStmt *
sqlite_prepare(BackendConn *c, const char *sql, GError **error)
{
    BackendStmt *s = g_hash_table_lookup(c->cache, sql);

    if (s != NULL && !s->busy) {
        g_queue_unlink(&c->order, &s->link);
        g_queue_push_tail_link(&c->order, &s->link);
        s->busy = true;
        return s;
    }
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &stmt, NULL) != SQLITE_OK) {
        sqlite_fail(c->db, error);
        return NULL;
    }
    bool nested = s != NULL;
    s = g_new0(BackendStmt, 1);
    *s = (BackendStmt){.stmt = stmt, .conn = c, .busy = true};
    s->link.data = s;
    if (!nested)
        cache_add(c, s, sql);
    return s;
}

void
sqlite_finish(BackendStmt *s)
{
    /* Both results repeat what sqlite_step() has reported. */
    (void)sqlite3_reset(s->stmt);
    (void)sqlite3_clear_bindings(s->stmt);
    s->busy = false;
    if (s->sql == NULL)
        stmt_free(s);
}

static int
bind_one(sqlite3_stmt *stmt, int i, const DbValue *v, sqlite3_destructor_type how)
{
    switch (v->type) {
    case DB_INT:
        return sqlite3_bind_int64(stmt, i, v->num);
    case DB_TEXT:
        return sqlite3_bind_text64(stmt, i, v->bytes, v->len, how, SQLITE_UTF8);
    case DB_BLOB:
        if (v->len == 0)
            return sqlite3_bind_zeroblob(stmt, i, 0);
        return sqlite3_bind_blob64(stmt, i, v->bytes, v->len, how);
    case DB_NULL:
        return sqlite3_bind_null(stmt, i);
    }
    g_assert_not_reached();
}

bool
sqlite_bind(BackendStmt *s, const DbValue *args, size_t n, BackendBind how, GError **error)
{
    sqlite3_destructor_type keep = how == BACKEND_COPY ? SQLITE_TRANSIENT : SQLITE_STATIC;

    g_assert((size_t)sqlite3_bind_parameter_count(s->stmt) == n);
    for (size_t i = 0; i < n; i++) {
        if (bind_one(s->stmt, (int)i + 1, &args[i], keep) != SQLITE_OK)
            return sqlite_fail(s->conn->db, error);
    }
    return true;
}

bool
sqlite_step(BackendStmt *s, bool *ret_row, GError **error)
{
    int rc = sqlite3_step(s->stmt);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return sqlite_fail(s->conn->db, error);
    *ret_row = rc == SQLITE_ROW;
    return true;
}

bool
sqlite_column_is_null(BackendStmt *s, int column)
{
    return sqlite3_column_type(s->stmt, column) == SQLITE_NULL;
}

gint64
sqlite_column_int(BackendStmt *s, int column)
{
    return sqlite3_column_int64(s->stmt, column);
}

const char *
sqlite_column_text(BackendStmt *s, int column)
{
    return (const char *)sqlite3_column_text(s->stmt, column);
}

const void *
sqlite_column_blob(BackendStmt *s, int column, size_t *ret_len)
{
    /* In this order: the length of what the first call returned. */
    const void *bytes = sqlite3_column_blob(s->stmt, column);

    *ret_len = (size_t)sqlite3_column_bytes(s->stmt, column);
    return bytes;
}

bool
sqlite_run(BackendConn *c, const char *sql, GError **error)
{
    BackendStmt *s = sqlite_prepare(c, sql, error);
    bool row = true, ok = s != NULL;

    while (ok && row)
        ok = sqlite_step(s, &row, error);
    if (s != NULL)
        sqlite_finish(s);
    return ok;
}

bool
sqlite_query_int(BackendConn *c, const char *sql, gint64 *ret_value, GError **error)
{
    BackendStmt *s = sqlite_prepare(c, sql, error);
    bool row = false, ok = s != NULL && sqlite_step(s, &row, error);

    if (row)
        *ret_value = sqlite_column_int(s, 0);
    if (s != NULL)
        sqlite_finish(s);
    return ok;
}
