/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "store/sqlite-private.h"

/* SQLite behind the seam.  The write-ahead log lets readers go on while the writer commits;
 * synchronous=FULL makes a commit wait for the disk, which is what "acknowledged" means.
 *
 * SQLite may end a whole transaction by itself on FULL, IOERR and the like; in_transaction()
 * tells, and the writer asks after every error. */

enum {
    APPLICATION_ID = 0x436f6f70, /* "Coop" in the file's header */
    WAL_KEEP_BYTES = 16 * 1024 * 1024,
    /* Reading every page at start-up is affordable up to here (about 0.1 s). */
    OPEN_CHECK_BYTES_MAX = 64 * 1024 * 1024,
};

static gint64
changes(BackendConn *c)
{
    return sqlite3_changes64(c->db);
}

static bool
script(BackendConn *c, const char *sql, GError **error)
{
    g_autoptr(GString) text = g_string_new(sql);

    /* Only so spelled does SQLite use the column as the row's own key. */
    g_string_replace(text, "BIGINT PRIMARY KEY", "INTEGER PRIMARY KEY", 0);
    return sqlite3_exec(c->db, text->str, NULL, NULL, NULL) == SQLITE_OK || sqlite_fail(c->db, error);
}

static bool
begin(BackendConn *c, BackendMode mode, GError **error)
{
    /* IMMEDIATE: waits for the lock here, where waiting is harmless, and not in the middle. */
    return sqlite_run(c, mode == BACKEND_WRITE ? "BEGIN IMMEDIATE" : "BEGIN", error);
}

static bool
commit(BackendConn *c, GError **error)
{
    return sqlite_run(c, "COMMIT", error);
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
        (void)sqlite_run(c, "ROLLBACK", NULL); /* nothing is left to be done if it fails */
}

static bool
savepoint(BackendConn *c, GError **error)
{
    return sqlite_run(c, "SAVEPOINT job", error);
}

static bool
release(BackendConn *c, GError **error)
{
    return sqlite_run(c, "RELEASE job", error);
}

static bool
rollback_to(BackendConn *c, GError **error)
{
    return sqlite_run(c, "ROLLBACK TO job", error) && sqlite_run(c, "RELEASE job", error);
}

static bool
version(BackendConn *c, gint64 *ret_version, GError **error)
{
    return sqlite_query_int(c, "PRAGMA user_version", ret_version, error);
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
    sqlite_drop_statements(c);
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
            sqlite_fail(db, error);
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

    if (!sqlite_query_int(c, "PRAGMA application_id", &application, error) ||
        !sqlite_query_int(c, "PRAGMA user_version", &user, error) ||
        !sqlite_query_int(c, "SELECT count(*) FROM sqlite_master", &tables, error))
        return false;
    if (application == APPLICATION_ID || (application == 0 && user == 0 && tables == 0))
        return true;
    return err_set(error, ERR_INVALID, "it was written by another program, not by Coop");
}

static bool
check_pages(BackendConn *c, bool all, GError **error)
{
    gint64 pages = 0, size = 0;

    if (!sqlite_query_int(c, "PRAGMA page_count", &pages, error) ||
        !sqlite_query_int(c, "PRAGMA page_size", &size, error))
        return false;
    if (!all && pages * size > OPEN_CHECK_BYTES_MAX)
        return true;
    BackendStmt *s = sqlite_prepare(c, "PRAGMA quick_check(1)", error);
    bool row = false, ok = s != NULL && sqlite_step(s, &row, error);
    if (ok && (!row || g_strcmp0(sqlite_column_text(s, 0), "ok") != 0)) {
        g_autofree char *what = g_strdelimit(g_strdup(row ? sqlite_column_text(s, 0) : ""), "\n", ' ');

        ok = err_set(error, ERR_INTERNAL, "the database file is damaged: %s", what);
    }
    if (s != NULL)
        sqlite_finish(s);
    return ok;
}

/* The pragma answers with the mode it ended up in, and with no error. */
static bool
use_wal(BackendConn *c, GError **error)
{
    BackendStmt *s = sqlite_prepare(c, "PRAGMA journal_mode = WAL", error);
    bool row = false, ok = s != NULL && sqlite_step(s, &row, error);

    if (ok && (!row || g_strcmp0(sqlite_column_text(s, 0), "wal") != 0))
        ok = err_set(error, ERR_UNAVAILABLE, "its file system cannot hold a write-ahead log");
    if (s != NULL)
        sqlite_finish(s);
    return ok;
}

static bool
settle(BackendConn *c, BackendMode mode, GError **error)
{
    g_autofree char *limit = g_strdup_printf("PRAGMA journal_size_limit = %d", WAL_KEEP_BYTES);

    if (mode == BACKEND_WRITE && !use_wal(c, error))
        return false;
    return sqlite_run(c, "PRAGMA synchronous = FULL", error) &&
           sqlite_run(c, "PRAGMA foreign_keys = ON", error) && sqlite_run(c, limit, error) &&
           (mode == BACKEND_WRITE || sqlite_run(c, "PRAGMA query_only = ON", error));
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
        return sqlite_fail(to->db, error);
    /* Until the last step the destination holds an open transaction. */
    int rc = sqlite3_backup_step(b, 1);
    if (rc == SQLITE_OK) {
        FAILPOINT("store.restore.middle");
        rc = sqlite3_backup_step(b, -1);
    }
    (void)sqlite3_backup_finish(b); /* repeats `rc`, and leaves it in the destination */
    return rc == SQLITE_DONE || sqlite_fail(to->db, error);
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
           sqlite_run(target, "PRAGMA journal_mode = DELETE", error);
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
    .prepare = sqlite_prepare,
    .bind = sqlite_bind,
    .step = sqlite_step,
    .finish = sqlite_finish,
    .column_is_null = sqlite_column_is_null,
    .column_int = sqlite_column_int,
    .column_text = sqlite_column_text,
    .column_blob = sqlite_column_blob,
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
