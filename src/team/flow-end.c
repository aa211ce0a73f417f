/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes go, branches of steps go, and then the row says that it is over. */
#include "base/err.h"
#include "base/failpoint.h"
#include "forge/landing.h"
#include "forge/thread.h"
#include "team/flow-private.h"

void
flow_enders_tell(FlowTask *t, const GError *error)
{
    g_autoptr(GPtrArray) enders = g_steal_pointer(&t->enders);

    t->enders = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < enders->len; i++) {
        FlowEnder *ender = enders->pdata[i];

        if (ender->done != NULL)
            ender->done(ender->data, error);
    }
}

/* ---- letting go ---- */

typedef struct Clear {
    FlowTask *t;
    const char *keep; /* NULL: nothing */
    guint left;
    GError *error; /* the first */
    void (*then)(FlowTask *t);
} Clear;

static void
on_cleared(void *data, const GError *error)
{
    Clear *clear = data;

    if (error != NULL && err_kind(error) != ERR_NOT_FOUND && clear->error == NULL)
        clear->error = g_error_copy(error);
    if (--clear->left > 0)
        return;
    if (flow_goes_on(clear->t, clear->error))
        clear->then(clear->t);
    g_clear_error(&clear->error);
    g_free(clear);
}

/* Each lease once; those with an agent in them stay, where they shall. */
static void
release_all(Clear *clear, bool with_agents)
{
    FlowTask *t = clear->t;
    g_autoptr(GHashTable) leases = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GHashTableIter iter;
    gpointer lease;
    size_t i;
    const Json *agent;

    json_array_foreach(json_object_get(t->rows, "agents"), i, agent)
        g_hash_table_add(leases, g_strdup(row_text(agent, "lease")));
    json_array_foreach(json_object_get(t->rows, "agents"), i, agent)
    {
        if (!with_agents && !flow_agent_ended(agent))
            g_hash_table_remove(leases, row_text(agent, "lease"));
    }
    clear->left += g_hash_table_size(leases);
    g_hash_table_iter_init(&iter, leases);
    while (g_hash_table_iter_next(&iter, &lease, NULL))
        t->flow->hands.release(t->flow->team->crew, t->id, lease, clear->keep, on_cleared, clear);
}

static const char *
keep_of(const Json *task)
{
    const char *keep = flow_policy_text(task, "keep");

    return keep != NULL ? keep : "files";
}

static void
clear_boxes(FlowTask *t, const char *keep, bool with_agents, void (*then)(FlowTask *t))
{
    Clear *clear = g_new0(Clear, 1);

    *clear = (Clear){.t = t, .keep = keep, .left = 1, .then = then};
    release_all(clear, with_agents);
    on_cleared(clear, NULL);
}

static void
released(FlowTask *t)
{
    t->released = true;
    flow_next(t);
}

void
flow_do_release(FlowTask *t, const FlowChoice *choice)
{
    clear_boxes(t, keep_of(flow_row(t)), false, released);
}

/* ---- the last row ---- */

typedef struct End {
    const char *task_id, *state;
} End;

static const char *
event_of(const char *state)
{
    static const struct {
        const char *state, *kind;
    } kinds[] = {{"done", "task.completed"}, {"failed", "task.failed"}, {"cancelled", "task.cancelled"}};
    const char *kind = NULL;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        kind = g_str_equal(kinds[i].state, state) ? kinds[i].kind : kind;
    return kind;
}

static bool
close_rows(RowJob *job, const Json *task, const char *state, GError **error)
{
    const char *id = row_text(task, "id");

    return db_exec(
               job->tx,
               "UPDATE steps SET state = 'cancelled' WHERE task_id = ? AND state NOT IN ('done', 'failed')",
               DB_ARGS(db_text(id)), error) &&
           db_exec(job->tx, "UPDATE questions SET state = 'closed' WHERE task_id = ? AND state = 'open'",
                   DB_ARGS(db_text(id)), error);
}

static bool
run_over(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const End *end = data;
    g_autoptr(Json) rows = flow_rows_get(job, end->task_id, error);
    const Json *task = json_object_get(rows, "task"), *ending = json_object_get(task, "ending");

    if (rows == NULL || flow_task_ended(task))
        return rows != NULL;
    g_autoptr(Json) report = flow_report(job, rows, end->state, error);
    g_autofree char *text = report != NULL ? json_encode(report) : NULL;
    const char *reason = row_text(ending, "reason"), *actor = row_text(ending, "actor");

    if (report == NULL ||
        !db_exec(job->tx,
                 "UPDATE tasks SET state = ?, blocked_from = CASE ? WHEN 'done' THEN NULL ELSE "
                 "COALESCE(blocked_from, state) END, report = ?, problem = ?, ending = NULL, ended_us = ?, "
                 "updated_us = ? WHERE id = ?",
                 DB_ARGS(db_text(end->state), db_text(end->state), db_text(text), db_text(reason),
                         db_int(job->now_us), db_int(row_later_us(job, task)), db_text(end->task_id)),
                 error))
        return false;
    return close_rows(job, task, end->state, error) &&
           flow_moved(job->tx, task, end->state, actor != NULL ? actor : "coop", reason, error) &&
           team_event(job->tx,
                      &(TeamEvent){.kind = event_of(end->state),
                                   .actor = actor != NULL ? actor : "coop",
                                   .task_id = end->task_id,
                                   .squad_id = row_text(task, "squad_id"),
                                   .data = flow_report_event(report)},
                      error);
}

static const RowMember end_members[] = {ROW_AT_TEXT(End, task_id), ROW_AT_TEXT(End, state), ROW_AT_END};
static const RowOp end_op = {ROW_WRITES, sizeof(End), end_members, run_over};

static void
on_ended(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;
    Team *team = t->flow->team;

    if (!flow_goes_on(t, error))
        return;
    const Json *ending = json_object_get(flow_row(t), "ending");

    if (json_is_null(ending))
        team->completed++;
    else if (flow_is(ending, "state", "failed"))
        team->failed++;
    else
        team->cancelled++;
    flow_admit(t->flow);
    flow_next(t);
}

static void
end(FlowTask *t, const char *state)
{
    team_run(t->flow->team, &end_op, &(End){t->id, state}, on_ended, t);
}

/* ---- done ---- */

static void
end_done(FlowTask *t)
{
    end(t, "done");
}

static void
finished(FlowTask *t)
{
    FAILPOINT("flow-done");
    flow_unbind(t, end_done);
}

static void
finish_boxes(FlowTask *t)
{
    /* Whoever is still at work was sent by hand. */
    clear_boxes(t, NULL, false, finished);
}

void
flow_do_finish(FlowTask *t, const FlowChoice *choice)
{
    flow_branches_remove(t, finish_boxes);
}

/* ---- stopped ---- */

static void
end_stopped(FlowTask *t)
{
    end(t, row_text(json_object_get(flow_row(t), "ending"), "state"));
}

static void
stopped(FlowTask *t)
{
    FAILPOINT("flow-stop");
    flow_unbind(t, end_stopped);
}

static void
on_closed(Json *value, const GError *error, void *data)
{
    /* One that is merged, or gone, is as good as closed. */
    if (flow_goes_on(data, NULL))
        stopped(data);
}

static void
close_pull(FlowTask *t)
{
    const Json *task = flow_row(t);
    Repo *repo = row_int(task, "pull_number") > 0 ? flow_repo(t, NULL) : NULL;
    const ThreadEdit edit = {
        .actor = "coop", .number = row_int(task, "pull_number"), .kind = "pull", .state = "closed"};

    if (repo == NULL)
        stopped(t);
    else
        thread_edit(t->flow->team->spec.forge, repo, &edit, on_closed, t);
}

static void
stop_boxes(FlowTask *t)
{
    clear_boxes(t, keep_of(flow_row(t)), true, close_pull);
}

static void
stop_agents(FlowTask *t)
{
    Clear *clear = g_new0(Clear, 1);
    size_t i;
    const Json *agent;

    *clear = (Clear){.t = t, .left = 1, .then = stop_boxes};
    json_array_foreach(json_object_get(t->rows, "agents"), i, agent)
    {
        if (flow_agent_ended(agent))
            continue;
        clear->left++;
        t->flow->hands.stop(t->flow->team->crew, row_text(agent, "id"), "the task was stopped", on_cleared,
                            clear);
    }
    on_cleared(clear, NULL);
}

static void
on_removed(Json *value, const GError *error, void *data)
{
    /* An entry that has ended, or whose branch is being moved, cannot be taken out any more. */
    if (flow_goes_on(data, NULL))
        stop_agents(data);
}

void
flow_do_stop(FlowTask *t, const FlowChoice *choice)
{
    const Json *task = flow_row(t);
    Repo *repo = row_int(task, "merge_id") > 0 ? flow_repo(t, NULL) : NULL;

    if (t->planning)
        t->flow->hands.plan_cancel(t->flow->team, t->id);
    if (repo == NULL)
        stop_agents(t);
    else
        landing_remove(t->flow->team->spec.landings, repo, "coop", row_int(task, "merge_id"), on_removed, t);
}

/* ---- asked for ---- */

bool
flow_ending(DbTx *tx, const char *task_id, const char *state, const char *reason, const char *actor,
            GError **error)
{
    g_autoptr(Json) value = json_pack("{s:s, s:s?, s:s}", "state", state, "reason", reason, "actor", actor);
    g_autofree char *text = json_encode(value);

    return db_exec(
        tx,
        "UPDATE tasks SET ending = ?, wake_us = 0 WHERE id = ? AND ending IS NULL AND state NOT IN "
        "('done', 'failed', 'cancelled')",
        DB_ARGS(db_text(text), db_text(task_id)), error);
}

typedef struct Ending {
    const char *task_id, *state, *reason, *actor;
} Ending;

static bool
run_ending(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Ending *e = data;

    return flow_ending(job->tx, e->task_id, e->state, e->reason, e->actor, error);
}

static void
on_ending(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    if (!t->flow->closed && error != NULL)
        flow_enders_tell(t, error);
    if (!t->flow->closed && error == NULL)
        flow_wake(t->flow, t->id);
    flow_task_unref(t);
}

void
flow_stop(Flow *flow, const char *task_id, const char *state, const char *reason, const char *actor,
          DbDone done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(Ending, task_id), ROW_AT_TEXT(Ending, state),
                                        ROW_AT_TEXT(Ending, reason), ROW_AT_TEXT(Ending, actor), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(Ending), members, run_ending};
    FlowTask *t = flow_task_of(flow, task_id);
    const FlowEnder ender = {done, data};

    g_ptr_array_add(t->enders, g_memdup2(&ender, sizeof ender));
    team_run(flow->team, &op, &(Ending){task_id, state, reason, actor}, on_ending, flow_task_ref(t));
}
