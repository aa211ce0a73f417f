/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* SQL that never blocks the loop.
 *
 * One writer thread and a few reader threads own the connections.  The loop hands them a
 * function and a piece of data that is theirs until `done` runs on the loop; nothing else is
 * shared.  A write is one transaction: it commits whole or not at all, and `done` with no
 * error means it is on the disk.  Writes that wait together are committed together (each in
 * a savepoint of its own, so that one failing leaves the others alone): that is how many
 * small durable writes a second are possible.
 *
 * No type of a back end leaves this folder.  Statements keep to the subset that SQLite and
 * PostgreSQL share: '?' placeholders, TEXT, BIGINT, BLOB (spelled so; the back end
 * translates), ON CONFLICT, RETURNING; times are BIGINT microseconds, JSON and UUIDs are
 * TEXT. */
typedef struct Db Db;
typedef struct DbTx DbTx;
typedef struct DbRows DbRows;

/* ---- opening ---- */

typedef struct DbSpec {
    const char *path;      /* SQLite file */
    GMainContext *context; /* where `done` runs; NULL: the default one */
    guint readers;         /* reader threads; 0: 2 */
    guint queue_max;       /* jobs waiting, per direction; 0: 8192 */
    guint busy_ms;         /* how long a lock of another process is waited for; 0: DB_BUSY_MS */
} DbSpec;

/* Blocks: for start-up.  Applies the migrations that are missing, each in its own
 * transaction; a file written by a newer version, a foreign file or a damaged one is refused
 * with a message that says so. */
Db *db_open(const DbSpec *spec, GError **error);
/* Finishes what is queued, then stops the threads; `done` callbacks that have not run are
 * delivered before it returns. */
void db_close(Db *db);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Db, db_close)

/* ---- jobs ---- */

/* Runs in a database thread.  False with the error set rolls a write back. */
typedef bool (*DbWork)(DbTx *tx, void *data, GError **error);
/* Runs on the loop.  ERR_LIMIT: the queue was full; ERR_FULL: the disk is; ERR_UNAVAILABLE:
 * locked by someone else for longer than DB_BUSY_MS. */
typedef void (*DbDone)(void *data, const GError *error);

enum { DB_BUSY_MS = 5000 };

/* `done` may be NULL.  `data` is freed by `destroy` (may be NULL) on the loop, after
 * `done`. */
void db_write(Db *db, DbWork work, DbDone done, void *data, GDestroyNotify destroy);
void db_read(Db *db, DbWork work, DbDone done, void *data, GDestroyNotify destroy);

/* ---- statements, inside a job ---- */

typedef enum DbType { DB_NULL, DB_INT, DB_TEXT, DB_BLOB } DbType;

typedef struct DbValue {
    DbType type;
    gint64 num;
    const void *bytes; /* borrowed for the call */
    size_t len;
} DbValue;

DbValue db_null(void);
DbValue db_int(gint64 v);
DbValue db_text(const char *v); /* NULL becomes SQL NULL */
DbValue db_blob(const void *p, size_t n);

bool db_exec(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, GError **error);
/* Rows touched by the last db_exec() in this job. */
gint64 db_changes(DbTx *tx);

DbRows *db_query(DbTx *tx, const char *sql, const DbValue *args, size_t n_args, GError **error);
/* `*ret_row` false: no more.  Column pointers live until the next call on `rows`. */
bool db_rows_next(DbRows *rows, bool *ret_row, GError **error);
bool db_rows_is_null(DbRows *rows, int column);
gint64 db_rows_int(DbRows *rows, int column);
const char *db_rows_text(DbRows *rows, int column); /* NULL for SQL NULL */
const void *db_rows_blob(DbRows *rows, int column, size_t *ret_len);
void db_rows_free(DbRows *rows);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DbRows, db_rows_free)

#define DB_ARGS(...)                                                                                         \
    ((const DbValue[]){__VA_ARGS__}), (sizeof((const DbValue[]){__VA_ARGS__}) / sizeof(DbValue))
#define DB_NO_ARGS NULL, 0

/* ---- state, backup, restore ---- */

typedef struct DbStats {
    guint writes_waiting;
    guint reads_waiting;
    guint64 writes;
    guint64 commits; /* fewer than writes: they were committed together */
    guint64 failures;
    gint64 schema;
    bool degraded; /* the last commit failed (disk full, I/O) */
} DbStats;
void db_stats(Db *db, DbStats *ret_stats);

/* Work beside the database that takes long, such as packing a backup; in the thread of the
 * two below, which take turns with it. */
typedef bool (*DbChore)(void *data, GError **error);
void db_chore(Db *db, DbChore chore, DbDone done, void *data, GDestroyNotify destroy);

/* A consistent copy of the live database in a new file, while everything goes on. */
void db_backup(Db *db, const char *to_path, DbDone done, void *data);
/* Replaces the whole content by that of `from_path` in one step (a crash leaves the old or
 * the new content), after checking it; migrates it if it is older. */
void db_restore(Db *db, const char *from_path, DbDone done, void *data);
