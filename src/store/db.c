/* SPDX-License-Identifier: Apache-2.0 */
#include "store/db.h"

#include <signal.h>
#include <sodium.h>

#include "base/err.h"
#include "store/db-internal.h"

enum { READERS_DEFAULT = 2, READERS_MAX = 64, QUEUE_DEFAULT = 8192 };

static BackendConn *
connect_to(Db *db, BackendMode mode, GError **error)
{
    const BackendSpec spec = {.path = db->path, .mode = mode, .busy_ms = db->busy_ms};

    BackendConn *conn = db->backend->open(&spec, error);

    if (conn == NULL)
        g_prefix_error(error, "database '%s': ", db->path);
    return conn;
}

static Db *
db_new(const DbSpec *spec, const MigrationList *migrations)
{
    Db *db = g_new0(Db, 1);

    db->backend = &backend_sqlite;
    db->migrations = *migrations;
    db->path = g_strdup(spec->path);
    db->busy_ms = spec->busy_ms != 0 ? spec->busy_ms : DB_BUSY_MS;
    db->queue_max = spec->queue_max != 0 ? spec->queue_max : QUEUE_DEFAULT;
    db->n_readers = spec->readers != 0 ? MIN(spec->readers, READERS_MAX) : READERS_DEFAULT;
    db->readers = g_new0(Worker, db->n_readers);
    db->source = jobs_source_new(db);
    g_source_attach(db->source, spec->context);
    g_mutex_init(&db->mutex);
    for (int i = 0; i < LANE_MAX; i++)
        g_cond_init(&db->lanes[i].cond);
    db->stats.schema = migrations_newest(migrations);
    return db;
}

static bool
connect_all(Db *db, GError **error)
{
    if ((db->writer.conn = connect_to(db, BACKEND_WRITE, error)) == NULL)
        return false;
    if (!migrate(db->backend, db->writer.conn, &db->migrations, error)) {
        g_prefix_error(error, "database '%s': ", db->path);
        return false;
    }
    for (guint i = 0; i < db->n_readers; i++) {
        if ((db->readers[i].conn = connect_to(db, BACKEND_READ, error)) == NULL)
            return false;
    }
    return true;
}

static void
start(Db *db, Worker *worker, const char *name, GThreadFunc run)
{
    worker->db = db;
    worker->thread = g_thread_new(name, run, worker);
}

static void
start_all(Db *db)
{
    sigset_t all, before;

    /* Signals are the loop's; threads inherit the mask. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    start(db, &db->writer, "store-write", writer_main);
    start(db, &db->upkeep, "store-upkeep", upkeep_main);
    for (guint i = 0; i < db->n_readers; i++)
        start(db, &db->readers[i], "store-read", reader_main);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

Db *
db_open_with(const DbSpec *spec, const MigrationList *migrations, GError **error)
{
    if (sodium_init() < 0) {
        err_set(error, ERR_INTERNAL, "libsodium does not start");
        return NULL;
    }
    g_autoptr(Db) db = db_new(spec, migrations);
    if (!connect_all(db, error))
        return NULL;
    upkeep_remove_staging(db);
    start_all(db);
    return g_steal_pointer(&db);
}

Db *
db_open(const DbSpec *spec, GError **error)
{
    return db_open_with(spec, &migrations_builtin, error);
}

static void
stop(Db *db, LaneId lane, Worker *workers, guint n)
{
    g_mutex_lock(&db->mutex);
    db->lanes[lane].closing = true;
    g_cond_broadcast(&db->lanes[lane].cond);
    g_mutex_unlock(&db->mutex);
    for (guint i = 0; i < n; i++)
        g_clear_pointer(&workers[i].thread, g_thread_join);
}

static void
disconnect_all(Db *db)
{
    for (guint i = 0; i < db->n_readers; i++)
        g_clear_pointer(&db->readers[i].conn, db->backend->close);
    /* The last to go: it moves the write-ahead log into the file. */
    g_clear_pointer(&db->writer.conn, db->backend->close);
}

void
db_close(Db *db)
{
    if (db == NULL)
        return;
    g_assert(!db->delivering);
    g_mutex_lock(&db->mutex);
    db->closing = true;
    g_mutex_unlock(&db->mutex);
    /* In this order: the upkeep thread hands jobs to the writer. */
    stop(db, LANE_UPKEEP, &db->upkeep, 1);
    stop(db, LANE_WRITE, &db->writer, 1);
    stop(db, LANE_READ, db->readers, db->n_readers);
    while (jobs_deliver(db))
        continue;
    disconnect_all(db);
    g_source_destroy(db->source);
    g_source_unref(db->source);
    event_writer_clear(&db->events);
    for (int i = 0; i < LANE_MAX; i++)
        g_cond_clear(&db->lanes[i].cond);
    g_mutex_clear(&db->mutex);
    g_free(db->readers);
    g_free(db->path);
    g_free(db);
}

static void
submit(Db *db, LaneId lane, DbWork work, Job *job, GDestroyNotify destroy)
{
    job->work = work;
    job->destroy = destroy;
    job_submit(db, lane, job);
}

void
db_write(Db *db, DbWork work, DbDone done, void *data, GDestroyNotify destroy)
{
    submit(db, LANE_WRITE, work, job_new(done, data), destroy);
}

void
db_read(Db *db, DbWork work, DbDone done, void *data, GDestroyNotify destroy)
{
    submit(db, LANE_READ, work, job_new(done, data), destroy);
}

static bool
read_once(Db *db, BackendConn *conn, DbWork work, void *data, GError **error)
{
    g_auto(DbTx) tx = {.backend = db->backend, .conn = conn};
    g_autoptr(GError) local = NULL;

    bool ok = db->backend->begin(conn, BACKEND_READ, &local) && work(&tx, data, &local);
    g_assert(tx.rows_open == 0);
    db->backend->rollback(conn);
    if (!ok && local == NULL)
        err_set(&local, ERR_INTERNAL, "a read job failed without saying why");
    if (!ok)
        g_propagate_error(error, g_steal_pointer(&local));
    return ok;
}

gpointer
reader_main(gpointer data)
{
    Worker *me = data;
    GQueue jobs = G_QUEUE_INIT;

    while (jobs_take(me->db, LANE_READ, 1, &jobs)) {
        Job *job = jobs.head->data;

        read_once(me->db, me->conn, job->work, job->data, &job->error);
        jobs_finish(me->db, &jobs);
    }
    return NULL;
}

bool
db_read_now(Db *db, DbWork work, void *data, GError **error)
{
    BackendConn *conn = connect_to(db, BACKEND_READ, error);

    if (conn == NULL)
        return false;
    bool ok = read_once(db, conn, work, data, error);
    db->backend->close(conn);
    return ok;
}

void
db_listen(Db *db, const DbListener *listener)
{
    db->listener = listener != NULL ? *listener : (DbListener){0};
}

guint
db_generation(Db *db)
{
    return (guint)g_atomic_int_get(&db->generation);
}

void
db_stats(Db *db, DbStats *ret_stats)
{
    g_mutex_lock(&db->mutex);
    *ret_stats = db->stats;
    ret_stats->writes_waiting = db->lanes[LANE_WRITE].jobs.length;
    ret_stats->reads_waiting = db->lanes[LANE_READ].jobs.length;
    g_mutex_unlock(&db->mutex);
}
