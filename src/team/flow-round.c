/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds of looking at the whole: who tests and who reviews, side by side, each in a clean box. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "team/flow-private.h"

enum { QUESTION_MAX = 2048 };

/* ---- steps that no plan had ---- */

typedef struct FlowExtra {
    const char *kind, *title, *details;
    Json *conflict; /* borrowed; NULL: none */
} FlowExtra;

static bool
insert_extra(RowJob *job, const Json *rows, const FlowExtra *extra, const char *state,
             char ret_id[ID_UUID_LEN + 1], GError **error)
{
    const Json *task = json_object_get(rows, "task"), *steps = json_object_get(rows, "steps");
    const Json *last = json_array_get(steps, json_array_size(steps) - 1);
    g_autofree char *conflict = extra->conflict != NULL ? json_encode(extra->conflict) : NULL;
    g_autofree char *name = g_strdup_printf("%s-%" G_GINT64_FORMAT, extra->kind, row_int(last, "n") + 1);

    id_new_uuid(ret_id);
    return db_exec(job->tx,
                   "INSERT INTO steps (id, task_id, plan_id, n, kind, name, title, details, role, "
                   "specialization, member_id, conflict, state) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   DB_ARGS(db_text(ret_id), db_text(row_text(task, "id")), db_text(row_text(task, "plan_id")),
                           db_int(row_int(last, "n") + 1), db_text(extra->kind), db_text(name),
                           db_text(extra->title), db_text(extra->details), db_text(row_text(last, "role")),
                           db_text(row_text(last, "specialization")), db_text(row_text(last, "member_id")),
                           db_text(conflict), db_text(state)),
                   error);
}

static bool
begin_extra(RowJob *job, const Json *rows, const FlowExtra *extra, GError **error)
{
    bool moved = false;
    char id[ID_UUID_LEN + 1];

    return flow_move(job, json_object_get(rows, "task"), "working", NULL, &moved, error) &&
           (!moved || insert_extra(job, rows, extra, "waiting", id, error));
}

/* The step is there, and begins when somebody has answered. */
static bool
ask_first(RowJob *job, const Json *rows, const FlowExtra *extra, const char *what, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    g_autofree char *problem = g_strdup_printf(
        "After %" G_GINT64_FORMAT " rounds there is still something to fix", row_int(task, "round"));
    g_autofree char *cut = flow_cut(what, QUESTION_MAX);
    g_autofree char *question = g_strdup_printf("%s:\n\n%s\nShall it be tried again?", problem, cut);
    char id[ID_UUID_LEN + 1];

    return insert_extra(job, rows, extra, "failed", id, error) &&
           flow_block(job, task, &(FlowBlock){problem, question, id}, error) &&
           db_exec(job->tx, "UPDATE tasks SET blocked_from = 'working' WHERE id = ? AND state = 'blocked'",
                   DB_ARGS(db_text(row_text(task, "id"))), error);
}

static bool
extra_step(RowJob *job, const Json *rows, const FlowExtra *extra, const char *what, guint rounds,
           GError **error)
{
    if (row_int(json_object_get(rows, "task"), "round") % rounds == 0)
        return ask_first(job, rows, extra, what, error);
    return begin_extra(job, rows, extra, error);
}

bool
flow_fix(RowJob *job, const Json *rows, const char *what, guint rounds, GError **error)
{
    g_autofree char *details = g_strdup_printf("Fix what was found:\n\n%s", what);
    const FlowExtra extra = {.kind = "fix", .title = "Fix what was found", .details = details};

    return extra_step(job, rows, &extra, what, rounds, error);
}

bool
flow_resolve(RowJob *job, const Json *rows, Json *conflict, guint rounds, GError **error)
{
    const FlowExtra extra = {.kind = "resolve",
                             .title = "Bring the change together with its target",
                             .details = "",
                             .conflict = conflict};

    return extra_step(job, rows, &extra, "The change conflicts with its target.\n", rounds, error);
}

/* ---- beginning a round ---- */

static const struct Looker {
    const char *kind, *archetype, *goal;
} lookers[] = {
    {"test", "tester",
     "Test the change of this task as a whole: run its tests with coverage, try what the request asks for, "
     "and "
     "look for what is not tested. Change nothing. Say `approve` or `changes`, with what you found; "
     "without a tool for that, in a last line of its own."},
    {"review", "reviewer",
     "Review the change of this task: read it against its base, run the linters and security scanners that "
     "fit, "
     "and look for mistakes. Change nothing. Say `approve` or `changes`, with findings on "
     "lines; without a tool for that, in a last line of its own."},
};

static bool
has_member(const Json *rows, const char *archetype)
{
    size_t i;
    const Json *member;

    json_array_foreach(json_object_get(rows, "members"), i, member)
    {
        if (flow_is(member, "archetype", archetype))
            return true;
    }
    return false;
}

Json *
flow_all_checks(const Json *rows)
{
    Json *all = json_array();
    size_t i;
    const Json *step;

    json_array_foreach(json_object_get(rows, "steps"), i, step)
        json_array_extend(all, json_object_get(step, "checks"));
    return all;
}

static bool
insert_looker(RowJob *job, const Json *rows, const struct Looker *looker, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    g_autofree char *tip = flow_tip(job, task, row_text(task, "branch"), error), *lease = NULL,
                    *branch = NULL;

    flow_look_names(rows, looker->archetype, &lease, &branch);
    const FlowAgent agent = {.rows = rows,
                             .kind = looker->kind,
                             .archetype = looker->archetype,
                             .lease = lease,
                             .branch = branch,
                             .base = tip,
                             .try = row_int(task, "round"),
                             .brief = json_pack("{s:s, s:n, s:n, s:o}", "goal", looker->goal, "feedback",
                                                "bundle", "checks", flow_all_checks(rows))};

    if (tip == NULL) {
        json_decref(agent.brief);
        return false;
    }
    return flow_agent_insert(job, &agent, error);
}

static bool
is_reviewing(const Json *task)
{
    return flow_is(task, "state", "reviewing") && json_is_null(json_object_get(task, "ending"));
}

static bool
run_round(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    g_autoptr(Json) rows = flow_rows_get(job, ((const FlowId *)data)->task_id, error);
    const Json *task = json_object_get(rows, "task");
    bool somebody = false, moved;

    if (rows == NULL)
        return false;
    if (!is_reviewing(task))
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(lookers); i++) {
        if (!has_member(rows, lookers[i].archetype))
            continue;
        somebody = true;
        if (!insert_looker(job, rows, &lookers[i], error))
            return false;
    }
    return somebody || flow_move(job, task, "landing", NULL, &moved, error);
}

static const RowOp round_op = {ROW_WRITES, sizeof(FlowId), flow_id_members, run_round};

static void
on_round(Json *value, const GError *error, void *data)
{
    if (!flow_goes_on(data, error))
        return;
    FAILPOINT("flow-round");
    flow_next(data);
}

void
flow_do_round(FlowTask *t, const FlowChoice *choice)
{
    team_run(t->flow->team, &round_op, &(FlowId){t->id}, on_round, t);
}

/* ---- one that was lost ---- */

typedef struct Again {
    const char *task_id, *agent_id, *kind, *problem;
    bool own; /* its budget, see flow_over() */
} Again;

/* `*ret_blocked`: asking the same model again would not help, and nobody has changed it since. */
static bool
block_without_model(RowJob *job, const Json *task, const Json *agent, const char *problem, bool *ret_blocked,
                    GError **error)
{
    g_autofree char *question = g_strdup_printf("%s. %s", problem, FLOW_NO_MODEL_REQUEST);
    gint64 answered_us;

    *ret_blocked = false;
    if (!flow_has_no_model(agent))
        return true;
    if (!flow_last_answer(job, task, &answered_us, error))
        return false;
    *ret_blocked = row_int(agent, "created_us") > answered_us;
    return !*ret_blocked ||
           flow_block(job, task, &(FlowBlock){.problem = problem, .question = question}, error);
}

static bool
run_again(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Again *again = data;
    g_autoptr(Json) rows = flow_rows_get(job, again->task_id, error);
    const Json *task = json_object_get(rows, "task");
    const struct Looker *looker = &lookers[strcmp(again->kind, "test") == 0 ? 0 : 1];
    const Json *agent = flow_agent_of(rows, again->agent_id);
    bool blocked = false;

    if (rows == NULL)
        return false;
    if (!is_reviewing(task))
        return true;
    if (!flow_over(job, task, agent, again->own, &blocked, error))
        return false;
    if (!blocked && !block_without_model(job, task, agent, again->problem, &blocked, error))
        return false;
    if (blocked)
        return true;
    if (row_int(task, "tries") + 1 >= FLOW_TRIES)
        return flow_block(job, task, &(FlowBlock){.problem = again->problem}, error);
    return insert_looker(job, rows, looker, error) &&
           db_exec(job->tx, "UPDATE tasks SET tries = tries + 1, problem = ? WHERE id = ?",
                   DB_ARGS(db_text(again->problem), db_text(again->task_id)), error);
}

static const RowMember again_members[] = {ROW_AT_TEXT(Again, task_id), ROW_AT_TEXT(Again, agent_id),
                                          ROW_AT_TEXT(Again, kind), ROW_AT_TEXT(Again, problem), ROW_AT_END};
static const RowOp again_op = {ROW_WRITES, sizeof(Again), again_members, run_again};

void
flow_do_again(FlowTask *t, const FlowChoice *choice)
{
    g_autofree char *why = flow_summary_of(choice->agent);
    g_autofree char *problem = g_strdup_printf("The %s did not come to its end: %s",
                                               row_text(choice->agent, "archetype"), why);
    const Again again = {.task_id = t->id,
                         .agent_id = row_text(choice->agent, "id"),
                         .kind = row_text(choice->agent, "kind"),
                         .problem = problem,
                         .own = flow_budget_is_own(t)};

    flow_write(t, &again_op, &again);
}

/* ---- the verdict ---- */

bool
flow_agent_refuses(const Json *agent)
{
    const Json *report = json_object_get(agent, "report");

    return !flow_is(report, "verdict", "approve") ||
           json_is_false(json_object_get(json_object_get(agent, "result"), "passed"));
}

static bool
round_refuses(const Json *rows, gint64 round)
{
    size_t i;
    const Json *agent;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        bool looks = flow_is(agent, "kind", "test") || flow_is(agent, "kind", "review");

        if (looks && row_int(agent, "try") == round && flow_is(agent, "state", "done") &&
            flow_agent_refuses(agent))
            return true;
    }
    return false;
}

typedef struct Verdict {
    const char *task_id;
    guint rounds;
} Verdict;

static bool
run_verdict(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Verdict *verdict = data;
    g_autoptr(Json) rows = flow_rows_get(job, verdict->task_id, error);
    const Json *task = json_object_get(rows, "task");
    bool moved;

    if (rows == NULL)
        return false;
    if (!is_reviewing(task))
        return true;
    if (!round_refuses(rows, row_int(task, "round")))
        return flow_move(job, task, "landing", "reviewed", &moved, error);
    g_autofree char *found = flow_findings(json_object_get(rows, "agents"), row_int(task, "round"));

    return flow_fix(job, rows, found, verdict->rounds, error);
}

static const RowMember verdict_members[] = {ROW_AT_TEXT(Verdict, task_id), ROW_AT_END};
static const RowOp verdict_op = {ROW_WRITES, sizeof(Verdict), verdict_members, run_verdict};

void
flow_do_verdict(FlowTask *t, const FlowChoice *choice)
{
    const Verdict verdict = {t->id, flow_policy_int(flow_row(t), "rounds", t->flow->team->limits.rounds)};

    flow_write(t, &verdict_op, &verdict);
}
