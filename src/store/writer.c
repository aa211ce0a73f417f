/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/failpoint.h"
#include "store/db-internal.h"

/* Group commit.  The writer takes what waits, never waits for more, and commits it with one
 * sync of the disk:
 *
 *     BEGIN;  SAVEPOINT; job 1; RELEASE;  SAVEPOINT; job 2; ROLLBACK TO;  …  COMMIT
 *
 * 1. No job hears of success before the commit has returned.
 * 2. A job that fails takes back its own rows, its own events and nothing else.
 * 3. If the database ends the transaction by itself, every job that has run in it fails;
 *    those that have not run go into a fresh one.  None runs twice: a job may have written
 *    into its data. */

enum { BATCH_MAX = 512 };

static void
take_back(Db *db, DbTx *tx, Job *job, gint64 mark)
{
    const Backend *be = db->backend;

    event_writer_rewind(&db->events, mark);
    if (tx->lost == NULL && !be->in_transaction(tx->conn))
        tx->lost = g_error_copy(job->error);
    if (tx->lost == NULL)
        be->rollback_to(tx->conn, &tx->lost);
}

static void
run_job(Db *db, DbTx *tx, Job *job)
{
    const Backend *be = db->backend;
    gint64 mark = event_writer_mark(&db->events);

    FAILPOINT("store.job.begin");
    tx->changes = 0;
    bool ok = be->savepoint(tx->conn, &job->error) && job->work(tx, job->data, &job->error);
    g_assert(tx->rows_open == 0);
    if (ok && tx->lost == NULL) {
        g_clear_error(&job->error);
        ok = be->release(tx->conn, &job->error);
    }
    if (ok && tx->lost == NULL)
        return;
    if (tx->lost != NULL) {
        g_clear_error(&job->error);
        job->error = g_error_copy(tx->lost);
    }
    if (job->error == NULL)
        err_set(&job->error, ERR_INTERNAL, "a write job failed without saying why");
    take_back(db, tx, job, mark);
}

static bool
commit(Db *db, DbTx *tx, GError **error)
{
    if (tx->lost != NULL) {
        g_propagate_error(error, g_error_copy(tx->lost));
        return false;
    }
    FAILPOINT("store.commit.before");
    bool ok = db->backend->commit(tx->conn, error);
    FAILPOINT("store.commit.after");
    return ok;
}

/* True if one of them is on the disk. */
static bool
settle(GQueue *ran, const GError *error, guint *ret_written)
{
    *ret_written = 0;
    for (GList *l = ran->head; l != NULL; l = l->next) {
        Job *job = l->data;

        if (error != NULL && job->error == NULL)
            job->error = g_error_copy(error);
        if (job->error == NULL)
            (*ret_written)++;
    }
    return *ret_written > 0;
}

static void
hand_over(Db *db, GQueue *ran, const GError *error)
{
    guint written;
    bool any = settle(ran, error, &written);

    if (error == NULL)
        ((Job *)ran->head->data)->events = event_writer_steal(&db->events);
    else
        event_writer_rewind(&db->events, 0);
    g_mutex_lock(&db->mutex);
    db->stats.writes += written;
    db->stats.commits += any;
    if (any || error != NULL)
        db->stats.degraded = error != NULL;
    g_mutex_unlock(&db->mutex);
    jobs_finish(db, ran);
}

/* Runs jobs from the head of `batch` until it is empty or the transaction is lost. */
static void
write_batch(Db *db, GQueue *batch)
{
    g_auto(DbTx) tx = {.backend = db->backend, .conn = db->writer.conn, .events = &db->events};
    g_autoptr(GError) error = NULL;
    GQueue ran = G_QUEUE_INIT;

    if (!db->backend->begin(tx.conn, BACKEND_WRITE, &error)) {
        hand_over(db, batch, error);
        return;
    }
    while (batch->length > 0 && tx.lost == NULL) {
        GList *link = g_queue_pop_head_link(batch);

        run_job(db, &tx, link->data);
        g_queue_push_tail_link(&ran, link);
    }
    if (!commit(db, &tx, &error))
        db->backend->rollback(tx.conn);
    hand_over(db, &ran, error);
}

gpointer
writer_main(gpointer data)
{
    Db *db = ((Worker *)data)->db;
    GQueue batch = G_QUEUE_INIT;

    while (jobs_take(db, LANE_WRITE, BATCH_MAX, &batch)) {
        Job *first = batch.head->data;

        if (first->raw != NULL) {
            g_queue_unlink(&batch, &first->link);
            first->raw(db, first);
        }
        while (batch.length > 0)
            write_batch(db, &batch);
    }
    return NULL;
}
