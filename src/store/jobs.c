/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "base/failpoint.h"
#include "store/db-internal.h"

Job *
job_new(DbDone done, void *data)
{
    Job *job = g_new0(Job, 1);

    job->link.data = job;
    job->done = done;
    job->data = data;
    return job;
}

static void
job_free(Job *job)
{
    if (job->destroy != NULL)
        job->destroy(job->data);
    g_clear_error(&job->error);
    g_free(job->path);
    g_free(job->bounds);
    event_queue_free(job->events);
    g_free(job);
}

static void
push_locked(Db *db, LaneId id, Job *job)
{
    g_queue_push_tail_link(&db->lanes[id].jobs, &job->link);
    g_cond_signal(&db->lanes[id].cond);
}

void
job_push(Db *db, LaneId id, Job *job)
{
    g_mutex_lock(&db->mutex);
    push_locked(db, id, job);
    g_mutex_unlock(&db->mutex);
}

void
job_submit(Db *db, LaneId id, Job *job)
{
    g_mutex_lock(&db->mutex);
    if (db->closing)
        err_set(&job->error, ERR_CANCELLED, "the database is being closed");
    else if (db->lanes[id].jobs.length >= db->queue_max)
        err_set(&job->error, ERR_LIMIT, "%u database jobs are waiting already", db->queue_max);
    else
        push_locked(db, id, job);
    bool refused = job->error != NULL;
    g_mutex_unlock(&db->mutex);

    /* A job that was accepted may be gone already. */
    if (refused)
        job_finish(db, job);
}

bool
jobs_take(Db *db, LaneId id, guint max, GQueue *ret_jobs)
{
    Lane *lane = &db->lanes[id];

    g_mutex_lock(&db->mutex);
    while (lane->jobs.length == 0 && !lane->closing)
        g_cond_wait(&lane->cond, &db->mutex);
    while (lane->jobs.length > 0 && ret_jobs->length < max) {
        Job *job = lane->jobs.head->data;

        if (job->raw != NULL && ret_jobs->length > 0)
            break;
        g_queue_push_tail_link(ret_jobs, g_queue_pop_head_link(&lane->jobs));
        if (job->raw != NULL)
            break;
    }
    g_mutex_unlock(&db->mutex);
    return ret_jobs->length > 0;
}

void
jobs_finish(Db *db, GQueue *jobs)
{
    g_mutex_lock(&db->mutex);
    bool was_empty = db->finished.length == 0;
    for (GList *link; (link = g_queue_pop_head_link(jobs)) != NULL;) {
        Job *job = link->data;

        if (job->error != NULL)
            db->stats.failures++;
        g_queue_push_tail_link(&db->finished, link);
    }
    if (was_empty)
        g_source_set_ready_time(db->source, 0);
    g_mutex_unlock(&db->mutex);
}

void
job_finish(Db *db, Job *job)
{
    GQueue one = G_QUEUE_INIT;

    g_queue_push_tail_link(&one, &job->link);
    jobs_finish(db, &one);
}

static void
deliver(Db *db, Job *job)
{
    if (job->generation != 0 && db->listener.replaced != NULL)
        db->listener.replaced(job->error == NULL ? job->bounds : NULL, job->generation, db->listener.data);
    if (job->events != NULL && db->listener.committed != NULL) {
        FAILPOINT("store.publish.before");
        db->listener.committed(job->events, db->listener.data);
    }
    if (job->done != NULL)
        job->done(job->data, job->error);
    job_free(job);
}

bool
jobs_deliver(Db *db)
{
    g_mutex_lock(&db->mutex);
    GQueue jobs = db->finished;
    g_queue_init(&db->finished);
    g_mutex_unlock(&db->mutex);

    bool any = jobs.length > 0;
    db->delivering = true;
    for (GList *link; (link = g_queue_pop_head_link(&jobs)) != NULL;)
        deliver(db, link->data);
    db->delivering = false;
    return any;
}

typedef struct JobsSource {
    GSource source;
    Db *db;
} JobsSource;

static gboolean
on_finished(GSource *source, GSourceFunc callback, gpointer data)
{
    /* Before the queue is emptied: what is finished after that wakes the loop again. */
    g_source_set_ready_time(source, -1);
    jobs_deliver(((JobsSource *)source)->db);
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs source_funcs = {.dispatch = on_finished};

GSource *
jobs_source_new(Db *db)
{
    GSource *source = g_source_new(&source_funcs, sizeof(JobsSource));

    ((JobsSource *)source)->db = db;
    g_source_set_static_name(source, "store");
    return source;
}
