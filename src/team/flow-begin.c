/* SPDX-License-Identifier: Apache-2.0 */
/* A try of a step: its branch, what is said to its agent, the row of it. */
#include <string.h>

#include "base/failpoint.h"
#include "forge/workspace.h"
#include "team/flow-private.h"

static const char *
kind_of(const Json *step)
{
    return json_is_null(json_object_get(step, "conflict")) ? row_text(step, "kind") : "resolve";
}

typedef struct Begin {
    FlowStepId id;
    const char *archetype;
} Begin;

/* A squad may have a role of that very name; else it is what everybody means by it. */
static const char *
archetype_of(const Json *rows, const Json *step, const char *usual)
{
    const char *role = row_text(step, "role");
    size_t i;
    const Json *member;

    json_array_foreach(json_object_get(rows, "members"), i, member)
    {
        if (flow_is(member, "role", role))
            return row_text(member, "archetype");
    }
    const char *of_file = flow_file_archetype(json_object_get(rows, "task"), role);

    return of_file != NULL ? of_file : usual;
}

/* ---- what is said ---- */

static char *
goal_of(const Json *task, const Json *step)
{
    const Json *conflict = json_object_get(step, "conflict");

    if (!json_is_null(conflict)) {
        const char *branch = row_text(json_object_get(conflict, "ours"), "name");

        return g_strdup_printf("Your branch and '%s' changed the same places. Bring them together: run `git "
                               "fetch origin %s` and `git merge FETCH_HEAD` in your work tree, resolve the "
                               "conflicts so that what both sides wanted holds, run the checks, and commit.",
                               branch, branch);
    }
    return g_strdup_printf("%s\n\n%s", row_text(step, "title"), row_text(step, "details"));
}

/* What a person answered to the last question about this step. */
static bool
append_answer(RowJob *job, const Json *step, GString *out, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx,
                                      "SELECT answer FROM questions WHERE step_id = ? AND answer IS NOT NULL "
                                      "AND state = 'answered' ORDER BY answered_us DESC LIMIT 1",
                                      DB_ARGS(db_text(row_text(step, "id"))), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (found)
        g_string_append_printf(out, "\nA person was asked, and says: %s\n", db_rows_text(rows, 0));
    return true;
}

static Json *
brief_of(RowJob *job, const Json *rows, const Json *step, GError **error)
{
    const Json *last = flow_last_agent(rows, row_text(step, "id"));
    g_autofree char *goal = goal_of(json_object_get(rows, "task"), step);
    g_autofree char *seen = last != NULL && row_text(step, "problem") != NULL ? flow_feedback(last) : NULL;
    g_autoptr(GString) feedback = g_string_new(seen);
    Json *conflict = json_object_get(step, "conflict"), *checks = json_object_get(step, "checks");

    if (seen == NULL && row_text(step, "problem") != NULL)
        g_string_append(feedback, row_text(step, "problem"));
    if (!append_answer(job, step, feedback, error))
        return NULL;
    return json_pack("{s:s, s:s?, s:O, s:O}", "goal", goal, "feedback",
                     feedback->len > 0 ? feedback->str : NULL, "bundle", conflict, "checks", checks);
}

/* ---- the row ---- */

/* "task-12--coder-1": the number is the step's. */
static char *
branch_of(const Json *task, const char *archetype, const Json *step, GError **error)
{
    g_autofree char *pattern = g_strconcat(row_text(task, "branch"), WORKSPACE_STEP, NULL);
    const BranchName name = {.pattern = pattern, .role = archetype, .n = (guint)row_int(step, "n")};

    return workspace_branch_name(&name, error);
}

char *
flow_lease(const Json *task, const Json *step)
{
    gint64 number = row_int(task, "number");

    return row_text(task, "repository_id") == NULL
               ? g_strdup_printf("task-%" G_GINT64_FORMAT, number)
               : g_strdup_printf("task-%" G_GINT64_FORMAT "-%s", number, row_text(step, "name"));
}

static bool
mark_begun(RowJob *job, const Json *step, const char *branch, const char *start, GError **error)
{
    return db_exec(
        job->tx,
        "UPDATE steps SET state = 'working', tries = tries + 1, wake_us = 0, "
        "branch = COALESCE(branch, ?), start_oid = COALESCE(start_oid, ?), "
        "started_us = CASE started_us WHEN 0 THEN ? ELSE started_us END WHERE id = ?",
        DB_ARGS(db_text(branch), db_text(start), db_int(job->now_us), db_text(row_text(step, "id"))), error);
}

static bool
tell_begun(RowJob *job, const Json *task, const Json *step, GError **error)
{
    return team_event(
        job->tx,
        &(TeamEvent){.kind = "step.started",
                     .actor = "coop",
                     .task_id = row_text(task, "id"),
                     .squad_id = row_text(task, "squad_id"),
                     .data = json_pack("{s:s, s:s, s:s, s:s, s:I}", "step_id", row_text(step, "id"), "name",
                                       row_text(step, "name"), "title", row_text(step, "title"), "kind",
                                       kind_of(step), "try", (json_int_t)row_int(step, "tries") + 1)},
        error);
}

static bool
begin(RowJob *job, const Json *rows, const Json *step, const char *usual, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    const char *archetype = archetype_of(rows, step, usual);
    bool has_repo = row_text(task, "repository_id") != NULL;
    g_autofree char *lease = flow_lease(task, step), *branch = NULL, *start = NULL;

    if (has_repo) {
        branch = row_text(step, "branch") != NULL ? g_strdup(row_text(step, "branch"))
                                                  : branch_of(task, archetype, step, error);
        start = flow_tip(job, task, row_text(task, "branch"), error);
        if (branch == NULL || start == NULL)
            return false;
    }
    Json *brief = brief_of(job, rows, step, error);
    const FlowAgent agent = {.rows = rows,
                             .step = step,
                             .kind = kind_of(step),
                             .archetype = archetype,
                             .lease = lease,
                             .branch = branch,
                             .base = start,
                             .try = row_int(step, "tries") + 1,
                             .brief = brief};

    return brief != NULL && flow_agent_insert(job, &agent, error) &&
           mark_begun(job, step, branch, start, error) && tell_begun(job, task, step, error);
}

static bool
run_begin(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Begin *spec = data;
    g_autoptr(Json) rows = flow_rows_get(job, spec->id.task_id, error);
    const Json *task = json_object_get(rows, "task"), *step = flow_step_of(rows, spec->id.step_id);

    if (rows == NULL)
        return false;
    if (step == NULL || !flow_is(step, "state", "waiting") || !flow_is(task, "state", "working") ||
        !json_is_null(json_object_get(task, "ending")))
        return true;
    return begin(job, rows, step, spec->archetype, error);
}

static const RowMember begin_members[] = {ROW_AT_TEXT(Begin, id.task_id), ROW_AT_TEXT(Begin, id.step_id),
                                          ROW_AT_TEXT(Begin, archetype), ROW_AT_END};
static const RowOp begin_op = {ROW_WRITES, sizeof(Begin), begin_members, run_begin};

static void
on_begun(Json *value, const GError *error, void *data)
{
    if (!flow_goes_on(data, error))
        return;
    FAILPOINT("flow-agent");
    flow_next(data);
}

void
flow_do_begin(FlowTask *t, const FlowChoice *choice)
{
    const Role *role = team_role(t->flow->team, row_text(choice->step, "role"), NULL);
    const Begin spec = {{t->id, row_text(choice->step, "id")}, role != NULL ? role->archetype : "coder"};

    team_run(t->flow->team, &begin_op, &spec, on_begun, t);
}
