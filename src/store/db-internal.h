/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/event-writer.h"
#include "store/migrate.h"
#include "store/tx.h"

/* The inside of a Db, shared by its own files and the event log.
 *
 * A job waits in a lane, is run by one of the lane's threads and ends among the finished,
 * from where the loop delivers in the order of finishing.  One mutex guards the queues and
 * the counters; it is never held while SQL runs or a callback is called. */

typedef enum LaneId {
    LANE_WRITE,  /* one thread, the only connection that writes */
    LANE_READ,   /* short reads, in a snapshot each */
    LANE_UPKEEP, /* one thread for what takes long: backup, checking a file */
    LANE_MAX,
} LaneId;

typedef struct Job Job;
typedef void (*JobRaw)(Db *db, Job *job);

struct Job {
    GList link;  /* in a lane or among the finished; `data` is the job */
    DbWork work; /* inside a transaction */
    JobRaw raw;  /* or outside any; it must finish the job or push it on */
    DbChore chore;
    DbDone done;
    void *data;
    GDestroyNotify destroy;
    GError *error;
    char *path;          /* of a raw job */
    GQueue *events;      /* on the first job of a commit: to be published before its `done` */
    EventBounds *bounds; /* a restore: the ends of the log that is to come */
    guint generation;    /* a restore: not 0 once it was tried */
};

typedef struct Lane {
    GQueue jobs;
    GCond cond;
    bool closing;
} Lane;

typedef struct Worker {
    Db *db;
    GThread *thread;
    BackendConn *conn; /* NULL in the upkeep thread */
} Worker;

/* Told on the loop, before the `done` of the jobs concerned. */
typedef struct DbListener {
    void (*committed)(GQueue *events, void *data); /* Event *, borrowed, in order */
    /* A restore has ended; `bounds` is NULL if the content stayed. */
    void (*replaced)(const EventBounds *bounds, guint generation, void *data);
    void *data;
} DbListener;

struct Db {
    const Backend *backend;
    MigrationList migrations;
    char *path;
    guint busy_ms;
    guint queue_max;
    GSource *source;
    DbListener listener; /* the loop's */
    bool delivering;     /* the loop's */
    gint generation;     /* atomic: counts restores, raised before the content changes */
    EventWriter events;  /* the writer thread's */
    Worker writer, upkeep, *readers;
    guint n_readers;

    GMutex mutex; /* from here on */
    Lane lanes[LANE_MAX];
    GQueue finished;
    bool closing;
    bool restoring; /* the copy beside the database is in use */
    DbStats stats;
};

/* As db_open(), with other migrations: for tests. */
Db *db_open_with(const DbSpec *spec, const MigrationList *migrations, GError **error);

/* A read outside the lanes, in the calling thread: for start-up. */
bool db_read_now(Db *db, DbWork work, void *data, GError **error);

void db_listen(Db *db, const DbListener *listener); /* NULL: nobody */
guint db_generation(Db *db);

/* ---- jobs ---- */

Job *job_new(DbDone done, void *data);
/* Refused (queue full, closing) is finished with the error. */
void job_submit(Db *db, LaneId lane, Job *job);
/* From one lane on to another: was counted already. */
void job_push(Db *db, LaneId lane, Job *job);
void job_finish(Db *db, Job *job);
void jobs_finish(Db *db, GQueue *jobs);
/* Waits; false when the lane is closed and empty.  A raw job comes alone. */
bool jobs_take(Db *db, LaneId lane, guint max, GQueue *ret_jobs);

/* Delivers what is finished; false when there was nothing. */
bool jobs_deliver(Db *db);
GSource *jobs_source_new(Db *db);

/* ---- threads ---- */

gpointer writer_main(gpointer worker);
gpointer reader_main(gpointer worker);
gpointer upkeep_main(gpointer worker);
/* Left behind by a crash in the middle of a restore. */
void upkeep_remove_staging(Db *db);
