/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a step becomes part of the task's branch, or what is in its way becomes work. */
#include "base/failpoint.h"
#include "team/flow-git.h"

typedef struct Joined {
    const char *task_id, *step_id;
    const char *oid;
    Json *conflict; /* NULL: joined */
    guint joins;    /* how often a step may be sent back */
} Joined;

static bool
tell_joined(RowJob *job, const Json *task, const Json *step, const char *oid, GError **error)
{
    const Json *evidence = json_object_get(step, "evidence");

    return team_event(
        job->tx,
        &(TeamEvent){.kind = "step.ended",
                     .actor = "coop",
                     .task_id = row_text(task, "id"),
                     .squad_id = row_text(task, "squad_id"),
                     .data = json_pack(
                         "{s:s, s:s, s:s, s:s, s:I, s:b, s:O?, s:s, s:s}", "step_id", row_text(step, "id"),
                         "name", row_text(step, "name"), "title", row_text(step, "title"), "state", "done",
                         "try", (json_int_t)row_int(step, "tries"), "last", 1, "passed",
                         json_object_get(evidence, "passed"), "joined_oid", oid, "seen_by", "coop")},
        error);
}

static bool
send_back(RowJob *job, const Json *task, const Json *step, const Joined *joined, GError **error)
{
    g_autofree char *bundle = json_encode(joined->conflict);
    gint64 joins = row_int(step, "joins") + 1;
    bool over = joins % joined->joins == 0;
    g_autofree char *sentence = g_strdup_printf(
        "The step \"%s\" conflicts with the task's branch, %" G_GINT64_FORMAT " times",
        row_text(step, "title"), joins);

    if (!db_exec(job->tx,
                 "UPDATE steps SET state = ?, joins = ?, conflict = ?, problem = NULL, ended_us = 0 "
                 "WHERE id = ?",
                 DB_ARGS(db_text(over ? "failed" : "waiting"), db_int(joins), db_text(bundle),
                         db_text(row_text(step, "id"))),
                 error) ||
        !team_event(
            job->tx,
            &(TeamEvent){.kind = "merge.conflicted",
                         .actor = "coop",
                         .task_id = row_text(task, "id"),
                         .squad_id = row_text(task, "squad_id"),
                         .data = json_pack("{s:s, s:s, s:s}", "step_id", row_text(step, "id"), "head",
                                           row_text(step, "branch"), "base", row_text(task, "branch"))},
            error))
        return false;
    return !over || flow_block(job, task, &(FlowBlock){sentence, NULL, row_text(step, "id")}, error);
}

static bool
run_joined(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Joined *joined = data;
    g_autoptr(Json) rows = flow_rows_get(job, joined->task_id, error);
    const Json *task = json_object_get(rows, "task"), *step = flow_step_of(rows, joined->step_id);

    if (rows == NULL)
        return false;
    if (step == NULL || !flow_is(step, "state", "joining"))
        return true;
    if (joined->conflict != NULL)
        return send_back(job, task, step, joined, error);
    return db_exec(job->tx, "UPDATE steps SET state = 'done', joined_oid = ?, ended_us = ? WHERE id = ?",
                   DB_ARGS(db_text(joined->oid), db_int(job->now_us), db_text(joined->step_id)), error) &&
           tell_joined(job, task, step, joined->oid, error);
}

static const RowMember joined_members[] = {ROW_AT_TEXT(Joined, task_id), ROW_AT_TEXT(Joined, step_id),
                                           ROW_AT_TEXT(Joined, oid), ROW_AT_JSON(Joined, conflict),
                                           ROW_AT_END};
static const RowOp joined_op = {ROW_WRITES, sizeof(Joined), joined_members, run_joined};

/* The one that is being joined: there is one at a time. */
static const Json *
joining_step(const Json *rows)
{
    size_t i;
    const Json *step;

    json_array_foreach(json_object_get(rows, "steps"), i, step)
    {
        if (flow_is(step, "state", "joining"))
            return step;
    }
    return NULL;
}

/* Its box is not needed any more; whoever ends the task lets go of what is left. */
static void
on_released(void *data, const GError *error)
{
}

static void
joined_git(FlowGit *git)
{
    FlowTask *t = git->t;
    const Json *task = flow_row(t), *step = joining_step(t->rows);
    const Json *agent = flow_last_agent(t->rows, row_text(step, "id"));
    const Joined joined = {.task_id = t->id,
                           .step_id = row_text(step, "id"),
                           .oid = git->new,
                           .conflict = git->conflict,
                           .joins = flow_policy_int(task, "tries", t->flow->team->limits.tries)};

    if (git->conflict == NULL && agent != NULL)
        t->flow->hands.release(t->flow->team->crew, t->id, row_text(agent, "lease"), NULL, on_released, NULL);
    flow_write(t, &joined_op, &joined);
    flow_git_free(git);
}

void
flow_do_join(FlowTask *t, const FlowChoice *choice)
{
    const Json *step = choice->step;
    g_autoptr(GError) error = NULL;
    FlowGit *git = flow_git_new(t, joined_git, &error);

    if (git == NULL) {
        flow_problem(t, error);
        return;
    }
    git->base = g_strdup(row_text(step, "head_oid"));
    g_free(git->path);
    git->path = g_strdup(row_text(step, "branch"));
    git->message = g_strdup_printf("chore: join %s\n\n%s\n\nTask: %s\n", row_text(step, "branch"),
                                   row_text(step, "title"), t->id);
    git->time_s = row_int(step, "ended_us") / G_USEC_PER_SEC;
    flow_git_run(git, "join a step", flow_git_join);
}
