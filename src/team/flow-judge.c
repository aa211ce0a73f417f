/* SPDX-License-Identifier: Apache-2.0 */
/* What became of a try: done as Coop saw it, once more, or a question. */
#include <string.h>

#include "base/failpoint.h"
#include "team/flow-private.h"

typedef struct Judge {
    const char *task_id, *step_id;
    gint64 retry_us;
    guint tries;
    bool own; /* its budget, see flow_over() */
} Judge;

enum { ERRORS_MAX = 4096 }; /* bytes */

typedef enum Outcome {
    OUTCOME_PASSED,
    OUTCOME_AGAIN,
    OUTCOME_LOST,
    OUTCOME_OVER,
    OUTCOME_NO_MODEL,
} Outcome;

/* A step that has checks of its own may find them passing already. */
static bool
brought_nothing(const Json *task, const Json *step, const Json *result)
{
    return row_text(task, "repository_id") != NULL && flow_is(step, "kind", "work") &&
           json_array_size(json_object_get(step, "checks")) == 0 &&
           flow_is(step, "start_oid", row_text(result, "head_oid"));
}

/* Nothing that the agent could have done better: its box or its model was away. */
static bool
is_lost(const Json *agent)
{
    return flow_is(agent, "state", "lost") ||
           (flow_is(agent, "state", "failed") &&
            flow_is(json_object_get(agent, "report"), "reason", "model_away"));
}

static Outcome
outcome_of(const Json *task, const Json *step, const Json *agent)
{
    const Json *result = json_object_get(agent, "result");

    if (agent == NULL || is_lost(agent) || flow_is(agent, "state", "stopped"))
        return OUTCOME_LOST;
    if (flow_is(json_object_get(agent, "report"), "reason", "budget_exceeded"))
        return OUTCOME_OVER;
    if (flow_has_no_model(agent))
        return OUTCOME_NO_MODEL;
    if (!flow_is(agent, "state", "done") || json_is_false(json_object_get(result, "passed")) ||
        brought_nothing(task, step, result))
        return OUTCOME_AGAIN;
    return OUTCOME_PASSED;
}

/* Those at the end of the list. */
static guint
count_lost(const Json *rows, const char *step_id)
{
    const Json *agents = json_object_get(rows, "agents");
    guint n = 0;

    for (size_t i = json_array_size(agents); i > 0; i--) {
        const Json *agent = json_array_get(agents, i - 1);

        if (!flow_is(agent, "step_id", step_id))
            continue;
        if (!is_lost(agent))
            break;
        n++;
    }
    return n;
}

/* What the checks that failed said to their standard error; NULL: nothing. */
static char *
errors_of(const Json *result)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t i;
    const Json *check;

    json_array_foreach(json_object_get(result, "checks"), i, check)
    {
        const char *errors = row_text(check, "stderr");

        if (row_int(check, "exit_code") != 0 && errors != NULL)
            g_string_append(text, errors);
    }
    if (text->len == 0)
        return NULL;
    if (text->len > ERRORS_MAX)
        g_string_erase(text, 0, (gssize)(text->len - ERRORS_MAX));
    return g_utf8_make_valid(text->str, -1);
}

/* `last`: there will be no other try. */
static bool
tell_ended(RowJob *job, const Json *task, const Json *step, const Json *agent, const char *state, bool last,
           GError **error)
{
    const Json *result = json_object_get(agent, "result");
    bool done = strcmp(state, "done") == 0;
    g_autofree char *problem = done ? NULL : flow_summary_of(agent);
    g_autofree char *errors = done ? NULL : errors_of(result);

    return team_event(
        job->tx,
        &(TeamEvent){.kind = "step.ended",
                     .actor = "coop",
                     .task_id = row_text(task, "id"),
                     .squad_id = row_text(task, "squad_id"),
                     .execution_id = row_text(agent, "id"),
                     .data = json_pack("{s:s, s:s, s:s, s:s, s:I, s:b, s:O?, s:s?, s:s?, s:s}", "step_id",
                                       row_text(step, "id"), "name", row_text(step, "name"), "title",
                                       row_text(step, "title"), "state", state, "try",
                                       (json_int_t)row_int(step, "tries"), "last", last, "passed",
                                       json_object_get(result, "passed"), "problem", problem, "stderr",
                                       errors, "seen_by", "coop")},
        error);
}

static bool
pass(RowJob *job, const Json *task, const Json *step, const Json *agent, GError **error)
{
    const Json *result = json_object_get(agent, "result");
    g_autofree char *evidence = json_encode(result);
    bool joins = row_text(task, "repository_id") != NULL;

    return db_exec(job->tx,
                   "UPDATE steps SET state = ?, head_oid = ?, evidence = ?, problem = NULL, conflict = NULL, "
                   "ended_us = ? WHERE id = ?",
                   DB_ARGS(db_text(joins ? "joining" : "done"), db_text(row_text(result, "head_oid")),
                           db_text(evidence), db_int(job->now_us), db_text(row_text(step, "id"))),
                   error) &&
           (joins || tell_ended(job, task, step, agent, "done", true, error));
}

/* `lost`: it does not count as a try of the agent's. */
static bool
wait_again(RowJob *job, const Json *step, const char *problem, bool lost, gint64 wake_us, GError **error)
{
    return db_exec(
        job->tx,
        "UPDATE steps SET state = 'waiting', tries = tries - ?, problem = ?, wake_us = ? "
        "WHERE id = ?",
        DB_ARGS(db_int(lost ? 1 : 0), db_text(problem), db_int(wake_us), db_text(row_text(step, "id"))),
        error);
}

/* `n`: how many tries.  A model that nobody has is not the agent's to find. */
static bool
give_up(RowJob *job, const Json *task, const Json *step, Outcome outcome, const char *problem, guint n,
        GError **error)
{
    const char *title = row_text(step, "title");
    bool no_model = outcome == OUTCOME_NO_MODEL;
    g_autofree char *sentence =
        no_model
            ? g_strdup_printf("The step \"%s\" has no model: %s", title, problem)
            : g_strdup_printf("The step \"%s\" did not come to its end in %u tries: %s", title, n, problem);
    g_autofree char *question = g_strdup_printf("%s. %s", sentence,
                                                no_model ? FLOW_NO_MODEL_REQUEST
                                                         : "What shall the agent do, or shall it try again?");

    return db_exec(job->tx,
                   "UPDATE steps SET state = 'failed', tries = tries - ?, problem = ?, ended_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_int(no_model ? 1 : 0), db_text(problem), db_int(job->now_us),
                           db_text(row_text(step, "id"))),
                   error) &&
           flow_block(job, task, &(FlowBlock){sentence, question, row_text(step, "id")}, error);
}

static bool
judge(RowJob *job, const Judge *spec, const Json *rows, const Json *step, GError **error)
{
    const Json *task = json_object_get(rows, "task"), *agent = flow_last_agent(rows, spec->step_id);
    Outcome outcome = outcome_of(task, step, agent);
    g_autofree char *problem = outcome != OUTCOME_PASSED ? flow_summary_of(agent) : NULL;
    guint lost = count_lost(rows, spec->step_id);
    gint64 tries = row_int(step, "tries");
    bool over = false;

    if (outcome == OUTCOME_PASSED)
        return pass(job, task, step, agent, error);
    bool once_more = outcome == OUTCOME_OVER ||
                     (outcome == OUTCOME_LOST && (lost == 0 || lost % FLOW_LOST_MAX != 0)) ||
                     (outcome == OUTCOME_AGAIN && tries % spec->tries != 0);

    bool failed = outcome == OUTCOME_AGAIN || outcome == OUTCOME_NO_MODEL;

    if (!tell_ended(job, task, step, agent, failed ? "failed" : "lost", !once_more, error))
        return false;
    if (outcome == OUTCOME_OVER)
        return flow_over(job, task, agent, spec->own, &over, error) &&
               wait_again(job, step, problem, true, 0, error);
    if (once_more && outcome == OUTCOME_LOST)
        return wait_again(job, step, problem, true, job->now_us + (spec->retry_us << MIN(lost, FLOW_TRIES)),
                          error);
    if (once_more)
        return wait_again(job, step, problem, false, 0, error);
    return give_up(job, task, step, outcome, problem, outcome == OUTCOME_LOST ? lost : (guint)tries, error);
}

static bool
run_judge(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Judge *spec = data;
    g_autoptr(Json) rows = flow_rows_get(job, spec->task_id, error);
    const Json *task = json_object_get(rows, "task"), *step = flow_step_of(rows, spec->step_id);

    if (rows == NULL)
        return false;
    return step == NULL || !flow_is(step, "state", "working") || !flow_is(task, "state", "working") ||
           judge(job, spec, rows, step, error);
}

static const RowMember judge_members[] = {ROW_AT_TEXT(Judge, task_id), ROW_AT_TEXT(Judge, step_id),
                                          ROW_AT_END};
static const RowOp judge_op = {ROW_WRITES, sizeof(Judge), judge_members, run_judge};

static void
on_judged(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    if (!flow_goes_on(t, error))
        return;
    FAILPOINT("flow-proved");
    flow_admit(t->flow);
    flow_next(t);
}

void
flow_do_judge(FlowTask *t, const FlowChoice *choice)
{
    const TeamLimits *limits = &t->flow->team->limits;
    const Judge judge_spec = {.task_id = t->id,
                              .step_id = row_text(choice->step, "id"),
                              .retry_us = (gint64)limits->retry_ms * 1000,
                              .tries = flow_policy_int(flow_row(t), "tries", limits->tries),
                              .own = flow_budget_is_own(t)};

    team_run(t->flow->team, &judge_op, &judge_spec, on_judged, t);
}

/* ---- all of them ---- */

static bool
run_worked(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const char *id = ((const FlowId *)data)->task_id;
    g_autoptr(Json) task = flow_task_get(job, id, error);
    bool moved = false;

    if (task == NULL)
        return false;
    if (!flow_is(task, "state", "working"))
        return true;
    if (!flow_move(job, task, "reviewing", row_text(task, "rung") == NULL ? "tested" : NULL, &moved, error))
        return false;
    return !moved || db_exec(job->tx, "UPDATE tasks SET round = round + 1, merge_id = NULL WHERE id = ?",
                             DB_ARGS(db_text(id)), error);
}

static const RowOp worked_op = {ROW_WRITES, sizeof(FlowId), flow_id_members, run_worked};

void
flow_do_worked(FlowTask *t, const FlowChoice *choice)
{
    flow_write(t, &worked_op, &(FlowId){t->id});
}
