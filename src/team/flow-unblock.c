/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "team/flow-private.h"

/* What it was in is where it goes on; what had failed there begins anew. */
static bool
move_back(RowJob *job, const char *task_id, GError **error)
{
    return db_exec(job->tx,
                   "UPDATE tasks SET state = blocked_from, blocked_from = NULL, problem = NULL, tries = 0, "
                   "wake_us = 0, ended_us = 0, updated_us = ? "
                   "WHERE id = ? AND state IN ('blocked', 'failed') AND blocked_from IS NOT NULL",
                   DB_ARGS(db_int(job->now_us), db_text(task_id)), error);
}

bool
flow_unblock(DbTx *tx, const char *task_id, const char *actor, GError **error)
{
    g_auto(RowJob) job = {0};

    row_job_init(&job, tx, "");
    g_autoptr(Json) task = flow_task_get(&job, task_id, error);

    if (task == NULL || !move_back(&job, task_id, error))
        return false;
    if (db_changes(tx) == 0)
        return true;
    return db_exec(tx,
                   "UPDATE steps SET state = 'waiting', wake_us = 0, ended_us = 0 "
                   "WHERE task_id = ? AND state IN ('failed', 'cancelled')",
                   DB_ARGS(db_text(task_id)), error) &&
           flow_moved(tx, task, row_text(task, "blocked_from"), actor, NULL, error);
}
