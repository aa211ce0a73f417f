/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that passed each by itself need not pass together.  Who goes on to be reviewed and merged is looked
 * at as a whole there; for a task that ends before, Coop runs all checks on the joined tree, in a clean box
 * of their own; without a repository in the one box that has what all of them wrote.  It is an execution
 * without a program (crew-work.c), so a restart finds it as it finds others. */
#include "base/failpoint.h"
#include "team/flow-private.h"

static bool
is_working(const Json *task)
{
    return flow_is(task, "state", "working") && json_is_null(json_object_get(task, "ending"));
}

/* As a coder of the squad would work, but without a model. */
static Json *
checker_of(const Json *rows)
{
    const Json *coder = NULL, *member;
    size_t i;

    json_array_foreach(json_object_get(rows, "members"), i, member)
    {
        if (coder == NULL && flow_is(member, "archetype", "coder"))
            coder = member;
    }
    return json_pack("{s:s, s:s, s:s, s:s?}", "role", coder != NULL ? row_text(coder, "role") : "coder",
                     "archetype", "checker", "adapter", "coop", "template", row_text(coder, "template"));
}

/* ---- beginning ---- */

static bool
insert_check(RowJob *job, const Json *rows, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    bool has_repo = row_text(task, "repository_id") != NULL;
    g_autofree char *tip = has_repo ? flow_tip(job, task, row_text(task, "branch"), error) : NULL;
    g_autofree char *lease = NULL, *branch = NULL;
    g_autoptr(Json) checker = checker_of(rows);

    if (has_repo && tip == NULL)
        return false;
    if (has_repo)
        flow_look_names(rows, "checker", &lease, &branch);
    else
        lease = flow_lease(task, NULL);
    const FlowAgent agent = {.rows = rows,
                             .kind = "check",
                             .archetype = "checker",
                             .member = checker,
                             .lease = lease,
                             .branch = branch,
                             .base = tip,
                             .try = row_int(task, "round") + 1,
                             .brief = json_pack("{s:s, s:n, s:n, s:o}", "goal", "", "feedback", "bundle",
                                                "checks", flow_all_checks(rows))};

    return flow_agent_insert(job, &agent, error);
}

static bool
run_check(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_autoptr(Json) rows = flow_rows_get(job, ((const FlowId *)data)->task_id, error);

    if (rows == NULL)
        return false;
    return !is_working(json_object_get(rows, "task")) || insert_check(job, rows, error);
}

static const RowOp check_op = {ROW_WRITES, sizeof(FlowId), flow_id_members, run_check};

static void
on_check(Json *value, const GError *error, void *data)
{
    if (!flow_goes_on(data, error))
        return;
    FAILPOINT("flow-check");
    flow_next(data);
}

void
flow_do_check(FlowTask *t, const FlowChoice *choice)
{
    team_run(t->flow->team, &check_op, &(FlowId){t->id}, on_check, t);
}

/* ---- what came of it ---- */

typedef struct Checked {
    const char *task_id, *agent_id;
    guint rounds;
} Checked;

/* Something was seen, or its box was lost. */
static bool
judge(RowJob *job, const Json *rows, const Json *agent, guint rounds, GError **error)
{
    Json *task = json_object_get(rows, "task");
    g_autofree char *seen = flow_feedback(agent);
    const char *problem = seen != NULL ? seen : "The checks did not pass.";
    const char *id = row_text(task, "id");

    if (flow_is(agent, "state", "done")) {
        json_object_set_new(task, "round", json_integer(row_int(task, "round") + 1));
        return db_exec(job->tx, "UPDATE tasks SET round = round + 1 WHERE id = ?", DB_ARGS(db_text(id)),
                       error) &&
               flow_fix(job, rows, problem, rounds, error);
    }
    if (row_int(task, "tries") + 1 >= FLOW_TRIES)
        return flow_block(job, task, &(FlowBlock){.problem = problem}, error);
    return insert_check(job, rows, error) &&
           db_exec(job->tx, "UPDATE tasks SET tries = tries + 1, problem = ? WHERE id = ?",
                   DB_ARGS(db_text(problem), db_text(id)), error);
}

static bool
run_checked(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Checked *checked = data;
    g_autoptr(Json) rows = flow_rows_get(job, checked->task_id, error);
    const Json *agent = flow_agent_of(rows, checked->agent_id);

    if (rows == NULL)
        return false;
    return agent == NULL || !is_working(json_object_get(rows, "task")) ||
           judge(job, rows, agent, checked->rounds, error);
}

static const RowMember checked_members[] = {ROW_AT_TEXT(Checked, task_id), ROW_AT_TEXT(Checked, agent_id),
                                            ROW_AT_END};
static const RowOp checked_op = {ROW_WRITES, sizeof(Checked), checked_members, run_checked};

void
flow_do_checked(FlowTask *t, const FlowChoice *choice)
{
    const Checked checked = {t->id, row_text(choice->agent, "id"),
                             flow_policy_int(flow_row(t), "rounds", t->flow->team->limits.rounds)};

    flow_write(t, &checked_op, &checked);
}
