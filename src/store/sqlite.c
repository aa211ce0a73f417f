/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "store/backend.h"

/* SQLite behind the seam.  The write-ahead log lets readers go on while the writer commits;
 * synchronous=FULL makes a commit wait for the disk, which is what "acknowledged" means.
 *
 * SQLite may end a whole transaction by itself on FULL, IOERR and the like; in_transaction()
 * tells, and the writer asks after every error. */

enum {
    APPLICATION_ID = 0x436f6f70, /* "Coop" in the file's header */
    STMT_CACHE_MAX = 64,
    WAL_KEEP_BYTES = 16 * 1024 * 1024,
    /* Reading every page at start-up is affordable up to here (about 0.1 s). */
    OPEN_CHECK_BYTES_MAX = 64 * 1024 * 1024,
};

struct BackendConn {
    sqlite3 *db;
    GHashTable *cache; /* sql -> BackendStmt */
    GQueue order;      /* the same statements, least recently used first */
};

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

static bool
fail(sqlite3 *db, GError **error)
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

static BackendStmt *
prepare(BackendConn *c, const char *sql, GError **error)
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
        fail(c->db, error);
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

static void
finish(BackendStmt *s)
{
    /* Both results repeat what step() has reported. */
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

static bool
bind(BackendStmt *s, const DbValue *args, size_t n, BackendBind how, GError **error)
{
    sqlite3_destructor_type keep = how == BACKEND_COPY ? SQLITE_TRANSIENT : SQLITE_STATIC;

    g_assert((size_t)sqlite3_bind_parameter_count(s->stmt) == n);
    for (size_t i = 0; i < n; i++) {
        if (bind_one(s->stmt, (int)i + 1, &args[i], keep) != SQLITE_OK)
            return fail(s->conn->db, error);
    }
    return true;
}

static bool
step(BackendStmt *s, bool *ret_row, GError **error)
{
    int rc = sqlite3_step(s->stmt);

    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return fail(s->conn->db, error);
    *ret_row = rc == SQLITE_ROW;
    return true;
}

static bool
column_is_null(BackendStmt *s, int column)
{
    return sqlite3_column_type(s->stmt, column) == SQLITE_NULL;
}

static gint64
column_int(BackendStmt *s, int column)
{
    return sqlite3_column_int64(s->stmt, column);
}

static const char *
column_text(BackendStmt *s, int column)
{
    return (const char *)sqlite3_column_text(s->stmt, column);
}

static const void *
column_blob(BackendStmt *s, int column, size_t *ret_len)
{
    /* In this order: the length of what the first call returned. */
    const void *bytes = sqlite3_column_blob(s->stmt, column);

    *ret_len = (size_t)sqlite3_column_bytes(s->stmt, column);
    return bytes;
}

static gint64
changes(BackendConn *c)
{
    return sqlite3_changes64(c->db);
}

static bool
run(BackendConn *c, const char *sql, GError **error)
{
    BackendStmt *s = prepare(c, sql, error);
    bool row = true, ok = s != NULL;

    while (ok && row)
        ok = step(s, &row, error);
    if (s != NULL)
        finish(s);
    return ok;
}

static bool
query_int(BackendConn *c, const char *sql, gint64 *ret_value, GError **error)
{
    BackendStmt *s = prepare(c, sql, error);
    bool row = false, ok = s != NULL && step(s, &row, error);

    if (row)
        *ret_value = column_int(s, 0);
    if (s != NULL)
        finish(s);
    return ok;
}

static bool
script(BackendConn *c, const char *sql, GError **error)
{
    g_autoptr(GString) text = g_string_new(sql);

    /* Only so spelled does SQLite use the column as the row's own key. */
    g_string_replace(text, "BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY", 0);
    return sqlite3_exec(c->db, text->str, NULL, NULL, NULL) == SQLITE_OK || fail(c->db, error);
}

static bool
begin(BackendConn *c, BackendMode mode, GError **error)
{
    /* IMMEDIATE: waits for the lock here, where waiting is harmless, and not in the middle. */
    return run(c, mode == BACKEND_WRITE ? "BEGIN IMMEDIATE" : "BEGIN", error);
}

static bool
commit(BackendConn *c, GError **error)
{
    return run(c, "COMMIT", error);
}

static bool
in_transaction(BackendConn *c)
{
    return sqlite3_get_autocommit(c->db) == 0;
}

static void
rollback(BackendConn *c)
{
    if (in_transaction(c))
        (void)run(c, "ROLLBACK", NULL); /* nothing is left to be done if it fails */
}

static bool
savepoint(BackendConn *c, GError **error)
{
    return run(c, "SAVEPOINT job", error);
}

static bool
release(BackendConn *c, GError **error)
{
    return run(c, "RELEASE job", error);
}

static bool
rollback_to(BackendConn *c, GError **error)
{
    return run(c, "ROLLBACK TO job", error) && run(c, "RELEASE job", error);
}

static bool
version(BackendConn *c, gint64 *ret_version, GError **error)
{
    return query_int(c, "PRAGMA user_version", ret_version, error);
}

static bool
set_version(BackendConn *c, gint64 to, GError **error)
{
    g_autofree char *sql = g_strdup_printf(
        "PRAGMA application_id = %d; PRAGMA user_version = %" G_GINT64_FORMAT, APPLICATION_ID, to);

    return script(c, sql, error);
}

static void
conn_close(BackendConn *c)
{
    if (c == NULL)
        return;
    g_hash_table_unref(c->cache);
    for (GList *l = c->order.head, *next; l != NULL; l = next) {
        next = l->next;
        stmt_free(l->data);
    }
    sqlite3_close(c->db);
    g_free(c);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BackendConn, conn_close)

static BackendConn *
conn_new(const char *path, int flags, guint busy_ms, GError **error)
{
    sqlite3 *db = NULL;
    bool ok = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL) ==
              SQLITE_OK;

    if (!ok) {
        if ((errno = sqlite3_system_errno(db)) != 0)
            err_errno(error, "open '%s'", path);
        else
            fail(db, error);
        sqlite3_close(db);
        return NULL;
    }
    sqlite3_busy_timeout(db, (int)busy_ms);
    BackendConn *c = g_new0(BackendConn, 1);
    c->db = db;
    c->cache = g_hash_table_new(g_str_hash, g_str_equal);
    return c;
}

/* Ours, or empty and so ours to fill. */
static bool
check_owner(BackendConn *c, GError **error)
{
    gint64 application = 0, user = 0, tables = 0;

    if (!query_int(c, "PRAGMA application_id", &application, error) ||
        !query_int(c, "PRAGMA user_version", &user, error) ||
        !query_int(c, "SELECT count(*) FROM sqlite_master", &tables, error))
        return false;
    if (application == APPLICATION_ID || (application == 0 && user == 0 && tables == 0))
        return true;
    return err_set(error, ERR_INVALID, "it was written by another program, not by Coop");
}

static bool
check_pages(BackendConn *c, bool all, GError **error)
{
    gint64 pages = 0, size = 0;

    if (!query_int(c, "PRAGMA page_count", &pages, error) || !query_int(c, "PRAGMA page_size", &size, error))
        return false;
    if (!all && pages * size > OPEN_CHECK_BYTES_MAX)
        return true;
    BackendStmt *s = prepare(c, "PRAGMA quick_check(1)", error);
    bool row = false, ok = s != NULL && step(s, &row, error);
    if (ok && (!row || g_strcmp0(column_text(s, 0), "ok") != 0)) {
        g_autofree char *what = g_strdelimit(g_strdup(row ? column_text(s, 0) : ""), "\n", ' ');

        ok = err_set(error, ERR_INTERNAL, "the database file is damaged: %s", what);
    }
    if (s != NULL)
        finish(s);
    return ok;
}

/* The pragma answers with the mode it ended up in, and with no error. */
static bool
use_wal(BackendConn *c, GError **error)
{
    BackendStmt *s = prepare(c, "PRAGMA journal_mode = WAL", error);
    bool row = false, ok = s != NULL && step(s, &row, error);

    if (ok && (!row || g_strcmp0(column_text(s, 0), "wal") != 0))
        ok = err_set(error, ERR_UNAVAILABLE, "its file system cannot hold a write-ahead log");
    if (s != NULL)
        finish(s);
    return ok;
}

static bool
settle(BackendConn *c, BackendMode mode, GError **error)
{
    g_autofree char *limit = g_strdup_printf("PRAGMA journal_size_limit = %d", WAL_KEEP_BYTES);

    if (mode == BACKEND_WRITE && !use_wal(c, error))
        return false;
    return run(c, "PRAGMA synchronous = FULL", error) && run(c, "PRAGMA foreign_keys = ON", error) &&
           run(c, limit, error) && (mode == BACKEND_WRITE || run(c, "PRAGMA query_only = ON", error));
}

/* SQLite would make it readable by all; the files beside it get the same mode. */
static bool
create_private(const char *path, int flags, GError **error)
{
    autofd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);

    return fd >= 0 || err_errno(error, "create '%s'", path);
}

static BackendConn *
conn_open(const BackendSpec *spec, GError **error)
{
    if (spec->mode == BACKEND_WRITE && !create_private(spec->path, 0, error))
        return NULL;
    g_autoptr(BackendConn) c = conn_new(spec->path, SQLITE_OPEN_READWRITE, spec->busy_ms, error);
    if (c == NULL)
        return NULL;
    bool ok = check_owner(c, error);
    if (ok && spec->mode == BACKEND_WRITE)
        ok = check_pages(c, spec->check_all, error);
    return ok && settle(c, spec->mode, error) ? g_steal_pointer(&c) : NULL;
}

static bool
copy_pages(BackendConn *to, BackendConn *from, GError **error)
{
    sqlite3_backup *b = sqlite3_backup_init(to->db, "main", from->db, "main");

    if (b == NULL)
        return fail(to->db, error);
    /* Until the last step the destination holds an open transaction. */
    int rc = sqlite3_backup_step(b, 1);
    if (rc == SQLITE_OK) {
        FAILPOINT("store.restore.middle");
        rc = sqlite3_backup_step(b, -1);
    }
    (void)sqlite3_backup_finish(b); /* repeats `rc`, and leaves it in the destination */
    return rc == SQLITE_DONE || fail(to->db, error);
}

static bool
copy(const char *from, const char *to, guint busy_ms, GError **error)
{
    g_autoptr(BackendConn) source = conn_new(from, SQLITE_OPEN_READONLY, busy_ms, error);
    if (source == NULL || !create_private(to, O_EXCL, error))
        return false;
    g_autoptr(BackendConn) target = conn_new(to, SQLITE_OPEN_READWRITE, busy_ms, error);

    /* The copied header says "write-ahead log"; a file that travels must not need a second
     * one beside it. */
    return target != NULL && copy_pages(target, source, error) &&
           run(target, "PRAGMA journal_mode = DELETE", error);
}

static bool
replace(BackendConn *c, const char *from, GError **error)
{
    g_autoptr(BackendConn) source = conn_new(from, SQLITE_OPEN_READWRITE, 0, error);

    return source != NULL && copy_pages(c, source, error);
}

const Backend backend_sqlite = {
    .open = conn_open,
    .close = conn_close,
    .prepare = prepare,
    .bind = bind,
    .step = step,
    .finish = finish,
    .column_is_null = column_is_null,
    .column_int = column_int,
    .column_text = column_text,
    .column_blob = column_blob,
    .changes = changes,
    .script = script,
    .begin = begin,
    .commit = commit,
    .rollback = rollback,
    .savepoint = savepoint,
    .release = release,
    .rollback_to = rollback_to,
    .in_transaction = in_transaction,
    .version = version,
    .set_version = set_version,
    .copy = copy,
    .replace = replace,
};
