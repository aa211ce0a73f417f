/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "store/db-internal.h"

/* Backup and restore.
 *
 * A backup is written under another name and renamed when it is whole and on the disk.
 *
 * A restore first makes a copy beside the database, and all checking and migrating is done
 * on that copy: the file that was named may change under us and is never written.  Then the
 * writer takes the copy over, in one transaction, so readers see the old content or the new,
 * and a crash leaves one of them. */

gpointer
upkeep_main(gpointer data)
{
    Db *db = ((Worker *)data)->db;
    GQueue jobs = G_QUEUE_INIT;

    while (jobs_take(db, LANE_UPKEEP, 1, &jobs)) {
        Job *job = jobs.head->data;

        g_queue_unlink(&jobs, &job->link);
        job->raw(db, job);
    }
    return NULL;
}

static void
submit(Db *db, JobRaw raw, const char *path, DbDone done, void *data)
{
    Job *job = job_new(done, data);

    job->raw = raw;
    job->path = g_strdup(path);
    job_submit(db, LANE_UPKEEP, job);
}

static void
run_chore(Db *db, Job *job)
{
    if (!job->chore(job->data, &job->error) && job->error == NULL)
        err_set(&job->error, ERR_INTERNAL, "a chore failed without saying why");
    job_finish(db, job);
}

void
db_chore(Db *db, DbChore chore, DbDone done, void *data, GDestroyNotify destroy)
{
    Job *job = job_new(done, data);

    job->raw = run_chore;
    job->chore = chore;
    job->destroy = destroy;
    job_submit(db, LANE_UPKEEP, job);
}

/* A database and what SQLite may have put beside it. */
static void
remove_files(const char *path)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};

    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        g_autofree char *name = g_strconcat(path, endings[i], NULL);

        (void)unlink(name); /* most are not there; one that stays is removed the next time */
    }
}

static bool
sync_folder(const char *path, GError **error)
{
    g_autofree char *folder = g_path_get_dirname(path);
    autofd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return (fd >= 0 && fsync(fd) == 0) || err_errno(error, "sync folder '%s'", folder);
}

static bool
rename_new(const char *from, const char *to, GError **error)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    /* EINVAL: the file system does not know the flag. */
    return (errno == EINVAL && rename(from, to) == 0) || err_errno(error, "rename '%s' to '%s'", from, to);
}

static bool
back_up(Db *db, const char *to, GError **error)
{
    g_autofree char *part = g_strconcat(to, ".part", NULL);

    if (access(to, F_OK) == 0)
        return err_set(error, ERR_CONFLICT, "'%s' is there already", to);
    remove_files(part);
    if (!db->backend->copy(db->path, part, db->busy_ms, error) || !rename_new(part, to, error)) {
        remove_files(part);
        return false;
    }
    return sync_folder(to, error);
}

static void
run_backup(Db *db, Job *job)
{
    back_up(db, job->path, &job->error);
    job_finish(db, job);
}

void
db_backup(Db *db, const char *to_path, DbDone done, void *data)
{
    submit(db, run_backup, to_path, done, data);
}

static char *
staging_path(Db *db)
{
    return g_strconcat(db->path, ".restore", NULL);
}

void
upkeep_remove_staging(Db *db)
{
    g_autofree char *staging = staging_path(db);

    remove_files(staging);
}

static bool
load_bounds(Db *db, BackendConn *conn, EventBounds *ret_bounds, GError **error)
{
    g_auto(DbTx) tx = {.backend = db->backend, .conn = conn};

    return event_bounds_load(&tx, ret_bounds, error);
}

/* An empty file would do as a beginning, but never as a backup. */
static bool
check_not_empty(Db *db, BackendConn *conn, GError **error)
{
    gint64 version;

    if (!db->backend->version(conn, &version, error))
        return false;
    return version > 0 || err_set(error, ERR_INVALID, "it is empty, not a backup");
}

static bool
prepare_staging(Db *db, const char *staging, EventBounds *ret_bounds, GError **error)
{
    const Backend *be = db->backend;
    const BackendSpec spec = {
        .path = staging, .mode = BACKEND_WRITE, .busy_ms = db->busy_ms, .check_all = true};
    BackendConn *conn = be->open(&spec, error);

    if (conn == NULL)
        return false;
    bool ok = check_not_empty(db, conn, error) && migrate(be, conn, &db->migrations, error) &&
              load_bounds(db, conn, ret_bounds, error);
    be->close(conn);
    return ok;
}

/* What is wrong with the file is the caller's to change; what is wrong with us is not. */
static void
blame_file(GError **error)
{
    if (*error != NULL && err_kind(*error) == ERR_INTERNAL)
        (*error)->code = ERR_INVALID;
    g_prefix_error(error, "the backup cannot be restored: ");
}

/* One at a time: the copy beside the database has one name. */
static bool
begin_restore(Db *db, GError **error)
{
    g_mutex_lock(&db->mutex);
    bool busy = db->restoring;
    db->restoring = true;
    g_mutex_unlock(&db->mutex);
    return !busy || err_set(error, ERR_CONFLICT, "another restore is under way");
}

static void
end_restore(Db *db, Job *job)
{
    upkeep_remove_staging(db);
    g_mutex_lock(&db->mutex);
    db->restoring = false;
    g_mutex_unlock(&db->mutex);
    job_finish(db, job);
}

static void
swap(Db *db, Job *job)
{
    g_autofree char *staging = staging_path(db);

    job->generation = (guint)g_atomic_int_add(&db->generation, 1) + 1;
    event_writer_rewind(&db->events, 0);
    db->backend->replace(db->writer.conn, staging, &job->error);
    end_restore(db, job);
}

static void
stage(Db *db, Job *job)
{
    g_autofree char *staging = staging_path(db);

    if (!begin_restore(db, &job->error)) {
        job_finish(db, job);
        return;
    }
    remove_files(staging);
    job->bounds = g_new0(EventBounds, 1);
    if (db->backend->copy(job->path, staging, db->busy_ms, &job->error) &&
        prepare_staging(db, staging, job->bounds, &job->error)) {
        job->raw = swap;
        job_push(db, LANE_WRITE, job);
        return;
    }
    blame_file(&job->error);
    end_restore(db, job);
}

void
db_restore(Db *db, const char *from_path, DbDone done, void *data)
{
    submit(db, stage, from_path, done, data);
}
