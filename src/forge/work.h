/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "base/loop.h"
#include "forge/forge.h"

/* The queue behind forge_read() and forge_write().
 *
 * It is the loop's: threads see one piece's function and its data, nothing else.  What waits is one
 * list in the order it came; a write begins when no earlier write of its repository is waiting,
 * under way or resting between two tries, so writes of one repository never change places.  Slow
 * work (imports, fetches, repacks) has a share of the threads and leaves the rest to those who wait
 * for an answer. */
typedef struct WorkQueue WorkQueue;

enum {
    WORK_SLOW_MAX = 2, /* of FORGE_THREADS */
    WORK_REST_MS = 100,
    WORK_REST_FACTOR = 4, /* the second rest is so many times the first, and so on */
};

typedef enum WorkFlags {
    WORK_WRITES = 1 << 0,
    WORK_SLOW = 1 << 1,
} WorkFlags;

typedef struct WorkSpec {
    GitRepo *git;     /* borrowed; its id is what writes are ordered by */
    const char *name; /* of the repository, for people */
    const char *what;
    unsigned flags; /* WorkFlags */
    ForgeWork work;
    DbDone done; /* NULL: nobody waits */
    void *data;
    GDestroyNotify destroy;
} WorkSpec;

typedef struct WorkStats {
    guint waiting; /* resting ones too */
    guint running;
    guint64 done, failed, tried_again;
} WorkStats;

WorkQueue *work_queue_new(Loop *loop);
/* Sets the flag of work_queue_cancel(), waits for what its threads do; what waits ends with
 * ERR_CANCELLED.  Every `done` has run when it returns. */
void work_queue_free(WorkQueue *queue);
/* Not 0 from the beginning of work_queue_free(): for GitCall.cancel of what takes long. */
const gint *work_queue_cancel(WorkQueue *queue);

/* `done` never runs inside. */
void work_queue_add(WorkQueue *queue, const WorkSpec *spec);

/* A git of somebody else's (a push, a fetch by a client) is in the repository: until it has left,
 * no lock there counts as stale. */
void work_queue_enter(WorkQueue *queue, const char *repo_id);
void work_queue_leave(WorkQueue *queue, const char *repo_id);

void work_queue_stats(WorkQueue *queue, WorkStats *ret_stats);
/* Oldest first. */
Json *work_queue_json(WorkQueue *queue);
