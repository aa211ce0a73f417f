/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as people see them. */
#include "team/plan.h"

#include <string.h>

#include "base/err.h"
#include "team/plan-private.h"

/* ---- reading ---- */

/* With what was said, and as text. */
static Json *
show(RowJob *job, const Json *task, GError **error)
{
    g_autoptr(Json) plan = NULL, voices = NULL;
    Json *body;

    if (!plan_newest(job, row_text(task, "id"), &plan, error))
        return NULL;
    if (plan == NULL) {
        err_set(error, ERR_NOT_FOUND, "task %" G_GINT64_FORMAT " has no plan", row_int(task, "number"));
        return NULL;
    }
    voices = plan_voices(job, row_text(plan, "id"), error);
    if (voices == NULL)
        return NULL;
    body = json_object_get(plan, "body");
    g_autofree char *text = json_is_object(body) ? plan_format(body, row_text(task, "request")) : NULL;

    json_object_set(plan, "voices", voices);
    json_object_set_new(plan, "text", text != NULL ? json_string(text) : json_null());
    return g_steal_pointer(&plan);
}

static const RowMember ref_members[] = {ROW_AT_TEXT(TaskRef, id), ROW_AT_TEXT(TaskRef, owner),
                                        ROW_AT_TEXT(TaskRef, actor), ROW_AT_END};

static bool
run_get(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    g_autoptr(Json) task = task_row(job, spec, error);

    *ret_value = task != NULL ? show(job, task, error) : NULL;
    return *ret_value != NULL;
}

static const RowOp get_op = {ROW_READS, sizeof(TaskRef), ref_members, run_get};

void
plan_get(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data)
{
    team_run(team, &get_op, ref, done, data);
}

/* ---- changing: the flow looks at the task afterwards ---- */

typedef struct Change {
    Team *team; /* a reference */
    TeamJsonFunc done;
    void *data;
} Change;

static void
on_changed(Json *value, const GError *error, void *data)
{
    g_autofree Change *change = data;
    Team *team = change->team;

    if (error == NULL && team->flow != NULL) {
        plan_cancel(team, row_text(value, "task_id"));
        flow_wake(team->flow, row_text(value, "task_id"));
    }
    change->done(value, error, change->data);
    team_unref(team);
}

static void
run_change(Team *team, const RowOp *op, const void *spec, TeamJsonFunc done, void *data)
{
    Change *change = g_new(Change, 1);

    *change = (Change){.team = team_ref(team), .done = done, .data = data};
    team_run(team, op, spec, on_changed, change);
}

/* Before the first step is given to anybody. */
static bool
check_not_begun(const Json *task, GError **error)
{
    static const char *const before[] = {"queued", "planning", "approving", NULL};
    const char *state = row_text(task, "state"), *from = row_text(task, "blocked_from");

    if (strcmp(state, "blocked") == 0 && from != NULL)
        state = from;
    return g_strv_contains(before, state) ||
           err_set(error, ERR_CONFLICT, "the task is %s: its plan is not changed any more", state);
}

typedef struct Put {
    TaskRef ref;
    Json *body;
} Put;

static const RowMember put_members[] = {ROW_AT_TEXT(Put, ref.id), ROW_AT_TEXT(Put, ref.owner),
                                        ROW_AT_TEXT(Put, ref.actor), ROW_AT_JSON(Put, body), ROW_AT_END};

static bool
run_put(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const Put *put = spec;
    g_autoptr(Json) body = plan_check(put->body, error);
    g_autoptr(Json) task = body != NULL ? task_row(job, &put->ref, error) : NULL;

    if (task == NULL || !check_not_begun(task, error) ||
        !plan_insert(job,
                     &(PlanInsert){.task_id = row_text(task, "id"),
                                   .producer = "person",
                                   .state = "approved",
                                   .actor = put->ref.actor,
                                   .body = body},
                     error))
        return false;
    *ret_value = show(job, task, error);
    return *ret_value != NULL;
}

static const RowOp put_op = {ROW_WRITES, sizeof(Put), put_members, run_put};

void
plan_put(Team *team, const TaskRef *ref, Json *body, TeamJsonFunc done, void *data)
{
    run_change(team, &put_op, &(Put){*ref, body}, done, data);
}

/* One that is approved stays so, whoever says it again. */
static bool
run_approve(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const TaskRef *ref = spec;
    g_autoptr(Json) task = task_row(job, ref, error);
    g_autoptr(Json) plan = task != NULL ? show(job, task, error) : NULL;
    const char *state = plan != NULL ? row_text(plan, "state") : NULL;

    if (plan == NULL)
        return false;
    if (strcmp(state, "draft") == 0) {
        if (!check_not_begun(task, error) ||
            !db_exec(
                job->tx, "UPDATE plans SET state = 'approved', actor = ?, updated_us = ? WHERE id = ?",
                DB_ARGS(db_text(ref->actor), db_int(row_later_us(job, plan)), db_text(row_text(plan, "id"))),
                error))
            return false;
    } else if (strcmp(state, "approved") != 0) {
        return err_set(error, ERR_CONFLICT, "the plan is %s: there is nothing to approve", state);
    }
    *ret_value = show(job, task, error);
    return *ret_value != NULL;
}

static const RowOp approve_op = {ROW_WRITES, sizeof(TaskRef), ref_members, run_approve};

void
plan_approve(Team *team, const TaskRef *ref, TeamJsonFunc done, void *data)
{
    run_change(team, &approve_op, ref, done, data);
}
