/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks are under way at once.  Those that wait for a person take no place. */
#include "base/log.h"
#include "team/flow-private.h"

/* An agent that has asked waits for a person too; once it has its answer it goes on, as what was blocked
 * does, whether there is a place or not. */
#define AGENT "EXISTS (SELECT 1 FROM task_executions e WHERE e.task_id = tasks.id AND e.ended_us = 0 AND "
#define RUNNING                                                                                              \
    "state IN ('planning', 'preparing', 'working', 'reviewing', 'landing') AND "                             \
    "NOT (" AGENT "e.state = 'asking') AND NOT " AGENT "e.state <> 'asking'))"

typedef struct Admit {
    guint at_once;
} Admit;

static bool
admit_one(RowJob *job, const char *task_id, GError **error)
{
    g_autoptr(Json) task = flow_task_get(job, task_id, error);
    bool moved = false;

    if (task == NULL || !flow_move(job, task, "planning", NULL, &moved, error))
        return false;
    return !moved || db_exec(job->tx, "UPDATE tasks SET started_us = ? WHERE id = ? AND started_us = 0",
                             DB_ARGS(db_int(job->now_us), db_text(task_id)), error);
}

static bool
count(RowJob *job, Json *ret_counts, GError **error)
{
    static const struct {
        const char *name, *sql;
    } counts[] = {
        {"queued", "SELECT COUNT(*) FROM tasks WHERE state = 'queued'"},
        {"running", "SELECT COUNT(*) FROM tasks WHERE " RUNNING},
        {"blocked", "SELECT COUNT(*) FROM tasks WHERE state IN ('approving', 'blocked')"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++) {
        gint64 n = 0;

        if (!row_ask_int(job, counts[i].sql, DB_NO_ARGS, &n, error))
            return false;
        json_object_set_new(ret_counts, counts[i].name, json_integer(n));
    }
    return true;
}

static bool
run_admit(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const RowColumn columns[] = {{"id", ROW_TEXT}};
    static const RowTable table = {"task", "tasks", columns, G_N_ELEMENTS(columns)};
    gint64 running = 0;
    size_t i;
    const Json *task;

    if (!row_ask_int(job, "SELECT COUNT(*) FROM tasks WHERE " RUNNING, DB_NO_ARGS, &running, error))
        return false;
    gint64 room = MAX((gint64)((const Admit *)data)->at_once - running, 0);
    g_autoptr(Json)
        admitted = row_all(job, &table, "state = 'queued' AND ending IS NULL ORDER BY number LIMIT ?",
                           DB_ARGS(db_int(room)), error);

    json_array_foreach(admitted, i, task)
    {
        if (!admit_one(job, row_text(task, "id"), error))
            return false;
    }
    g_autoptr(Json) value = json_pack("{s:O?}", "admitted", admitted);

    if (admitted == NULL || !count(job, value, error))
        return false;
    *ret_value = g_steal_pointer(&value);
    return true;
}

static void
on_admitted(Json *value, const GError *error, void *data)
{
    Flow *flow = data;
    size_t i;
    const Json *task;

    flow->admitting = false;
    if (error != NULL && !flow->closed) {
        log_warn("team", "no task can be begun", log_gerror(error));
        flow_try_again(flow);
    }
    if (error == NULL && !flow->closed) {
        flow->team->tasks_queued = (guint)row_int(value, "queued");
        flow->team->tasks_running = (guint)row_int(value, "running");
        flow->team->tasks_blocked = (guint)row_int(value, "blocked");
        json_array_foreach(json_object_get(value, "admitted"), i, task) flow_wake(flow, row_text(task, "id"));
        if (flow->admit_again)
            flow_admit(flow);
    }
    flow_unref(flow);
}

void
flow_admit(Flow *flow)
{
    static const RowOp op = {ROW_WRITES, sizeof(Admit), NULL, run_admit};

    flow->admit_again = flow->admitting;
    if (flow->admitting)
        return;
    flow->admitting = true;
    team_run(flow->team, &op, &(Admit){flow->team->limits.tasks_at_once}, on_admitted, flow_ref(flow));
}
