/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

StoreBench *
store_bench_new(void)
{
    StoreBench *b = g_new0(StoreBench, 1);

    /* In memory where possible: a unit test syncs often and proves nothing about a disk. */
    const char *top = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : g_get_tmp_dir();
    b->dir = g_build_filename(top, "coop-store-XXXXXX", NULL);
    g_assert_nonnull(g_mkdtemp(b->dir));
    b->path = g_build_filename(b->dir, "coop.db", NULL);
    return b;
}

void
store_bench_open(StoreBench *b, const DbSpec *spec)
{
    DbSpec s = spec != NULL ? *spec : (DbSpec){0};
    g_autoptr(GError) error = NULL;

    s.path = b->path;
    b->db = db_open(&s, &error);
    g_assert_no_error(error);
    b->log = event_log_new(b->db, &error);
    g_assert_no_error(error);
}

StoreBench *
store_bench_new_open(void)
{
    StoreBench *b = store_bench_new();

    store_bench_open(b, NULL);
    return b;
}

void
store_bench_close(StoreBench *b)
{
    g_clear_pointer(&b->log, event_log_free);
    g_clear_pointer(&b->db, db_close);
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

void
store_bench_free(StoreBench *b)
{
    if (b == NULL)
        return;
    store_bench_close(b);
    nftw(b->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    g_free(b->dir);
    g_free(b->path);
    g_free(b);
}

char *
store_bench_file(StoreBench *b, const char *name)
{
    return g_build_filename(b->dir, name, NULL);
}

typedef struct Call {
    DbWork work;
    void *data;
    bool done;
    GError *error;
} Call;

static bool
call_work(DbTx *tx, void *data, GError **error)
{
    Call *call = data;

    return call->work(tx, call->data, error);
}

static void
call_done(void *data, const GError *error)
{
    Call *call = data;

    call->done = true;
    if (error != NULL)
        call->error = g_error_copy(error);
}

static bool
call_wait(Call *call, GError **error)
{
    while (!call->done)
        g_main_context_iteration(NULL, TRUE);
    if (call->error == NULL)
        return true;
    g_propagate_error(error, call->error);
    return false;
}

bool
store_write(Db *db, DbWork work, void *data, GError **error)
{
    Call call = {.work = work, .data = data};

    db_write(db, call_work, call_done, &call, NULL);
    return call_wait(&call, error);
}

bool
store_read(Db *db, DbWork work, void *data, GError **error)
{
    Call call = {.work = work, .data = data};

    db_read(db, call_work, call_done, &call, NULL);
    return call_wait(&call, error);
}

bool
store_backup(Db *db, const char *path, GError **error)
{
    Call call = {0};

    db_backup(db, path, call_done, &call);
    return call_wait(&call, error);
}

bool
store_restore(Db *db, const char *path, GError **error)
{
    Call call = {0};

    db_restore(db, path, call_done, &call);
    return call_wait(&call, error);
}

void
store_prune(EventLog *log, gint64 before_us)
{
    Call call = {0};
    g_autoptr(GError) error = NULL;

    event_log_prune(log, before_us, call_done, &call);
    call_wait(&call, &error);
    g_assert_no_error(error);
}

static bool
exec_sql(DbTx *tx, void *data, GError **error)
{
    return db_exec(tx, data, DB_NO_ARGS, error);
}

bool
store_write_sql(Db *db, const char *sql, GError **error)
{
    g_autofree char *copy = g_strdup(sql);

    return store_write(db, exec_sql, copy, error);
}

typedef struct IntQuery {
    const char *sql;
    gint64 value;
} IntQuery;

static bool
query_int(DbTx *tx, void *data, GError **error)
{
    IntQuery *q = data;
    g_autoptr(DbRows) rows = db_query(tx, q->sql, DB_NO_ARGS, error);
    bool row;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    g_assert_true(row);
    q->value = db_rows_int(rows, 0);
    return true;
}

gint64
store_read_int(Db *db, const char *sql)
{
    IntQuery q = {.sql = sql};
    g_autoptr(GError) error = NULL;

    store_read(db, query_int, &q, &error);
    g_assert_no_error(error);
    return q.value;
}

typedef struct Append {
    const EventSpec *event;
    guint n;
    gint64 seq;
} Append;

static bool
append_work(DbTx *tx, void *data, GError **error)
{
    Append *a = data;

    for (guint i = 0; i < a->n; i++) {
        if (!event_append(tx, a->event, &a->seq, error))
            return false;
    }
    return true;
}

gint64
store_append(Db *db, const EventSpec *event, guint n)
{
    Append a = {.event = event, .n = n};
    g_autoptr(GError) error = NULL;

    store_write(db, append_work, &a, &error);
    g_assert_no_error(error);
    return a.seq;
}

typedef struct Verify {
    bool done;
    gint64 events, bad_seq;
} Verify;

static void
on_verified(gint64 events, gint64 bad_seq, const GError *error, void *data)
{
    g_assert_no_error(error);
    *(Verify *)data = (Verify){.done = true, .events = events, .bad_seq = bad_seq};
}

gint64
store_verify(EventLog *log, gint64 *ret_events)
{
    Verify v = {0};

    event_log_verify(log, on_verified, &v);
    while (!v.done)
        g_main_context_iteration(NULL, TRUE);
    if (ret_events != NULL)
        *ret_events = v.events;
    return v.bad_seq;
}

void
store_tamper(const char *path, const char *sql)
{
    sqlite3 *db;

    g_assert_cmpint(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL), ==,
                    SQLITE_OK);
    sqlite3_busy_timeout(db, DB_BUSY_MS);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        g_error("%s: %s", sql, sqlite3_errmsg(db));
    sqlite3_close(db);
}

bool
store_gate_work(DbTx *tx, void *data, GError **error)
{
    StoreGate *g = data;

    g_mutex_lock(&g->mutex);
    g->reached = true;
    g_cond_broadcast(&g->cond);
    while (!g->open)
        g_cond_wait(&g->cond, &g->mutex);
    g_mutex_unlock(&g->mutex);
    return true;
}

void
store_gate_wait(StoreGate *g)
{
    g_mutex_lock(&g->mutex);
    while (!g->reached)
        g_cond_wait(&g->cond, &g->mutex);
    g_mutex_unlock(&g->mutex);
}

void
store_gate_open(StoreGate *g)
{
    g_mutex_lock(&g->mutex);
    g->open = true;
    g_cond_broadcast(&g->cond);
    g_mutex_unlock(&g->mutex);
}
