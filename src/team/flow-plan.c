/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to steps. */
#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "team/flow-private.h"

/* ---- who makes it ---- */

/* Not an action: whoever stops the task does not wait for a model. */
static void
on_made(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;
    Flow *flow = t->flow;

    t->planning = false;
    if (!flow->closed && error != NULL && err_kind(error) == ERR_LIMIT && !t->busy) {
        t->busy = true;
        flow_plan_over(t, error->message);
        return;
    }
    if (!flow->closed && error != NULL && err_kind(error) != ERR_CANCELLED && !t->busy) {
        t->busy = true;
        flow_problem(t, error);
        return;
    }
    if (!flow->closed)
        flow_wake(flow, t->id);
    flow_task_unref(t);
}

void
flow_do_make(FlowTask *t, const FlowChoice *choice)
{
    bool begins = !t->planning;

    t->planning = true;
    flow_rest(flow_task_ref(t));
    if (begins)
        t->flow->hands.plan(t->flow->team, t->id, on_made, flow_task_ref(t));
    flow_task_unref(t);
}

void
flow_do_await(FlowTask *t, const FlowChoice *choice)
{
    flow_write(t, &flow_move_op, &(FlowMove){.task_id = t->id, .from = "planning", .to = "approving"});
}

/* ---- steps ---- */

typedef struct Adopt {
    const char *task_id, *plan_id;
} Adopt;

static Json *
acceptance_of(const Json *body, const char *feature)
{
    size_t i;
    const Json *item;

    json_array_foreach(json_object_get(body, "features"), i, item)
    {
        Json *checks = json_object_get(item, "acceptance");

        if (flow_is(item, "name", feature) && checks != NULL)
            return json_incref(checks);
    }
    return json_array();
}

static char *
encode_list(const Json *item, const char *name)
{
    const Json *list = json_object_get(item, name);

    return json_is_array(list) ? json_encode(list) : g_strdup("[]");
}

static bool
insert_step(RowJob *job, const Adopt *adopt, const Json *body, const Json *item, size_t n, GError **error)
{
    g_autoptr(Json) acceptance = acceptance_of(body, row_text(item, "feature"));
    g_autofree char *checks = json_encode(acceptance), *depends = encode_list(item, "depends"),
                    *files = encode_list(item, "files");
    const char *details = row_text(item, "details"), *role = row_text(item, "role");
    char id[ID_UUID_LEN + 1];

    id_new_uuid(id);
    return db_exec(job->tx,
                   "INSERT INTO steps (id, task_id, plan_id, n, name, title, feature, details, role, "
                   "specialization, depends, files, checks, state) "
                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
                   DB_ARGS(db_text(id), db_text(adopt->task_id), db_text(adopt->plan_id), db_int((gint64)n),
                           db_text(row_text(item, "name")), db_text(row_text(item, "title")),
                           db_text(row_text(item, "feature")), db_text(details != NULL ? details : ""),
                           db_text(role != NULL ? role : "coder"), db_text(row_text(item, "specialization")),
                           db_text(depends), db_text(files), db_text(checks)),
                   error);
}

static bool
insert_steps(RowJob *job, const Adopt *adopt, const Json *body, GError **error)
{
    size_t i;
    const Json *item;

    json_array_foreach(json_object_get(body, "steps"), i, item)
    {
        if (!insert_step(job, adopt, body, item, i + 1, error))
            return false;
    }
    return i > 0 || err_set(error, ERR_INVALID, "the plan has no steps");
}

static bool
tell_planned(RowJob *job, const Json *task, const Json *plan, GError **error)
{
    const Json *body = json_object_get(plan, "body");

    return team_event(job->tx,
                      &(TeamEvent){.kind = "task.planned",
                                   .actor = "coop",
                                   .task_id = row_text(task, "id"),
                                   .squad_id = row_text(task, "squad_id"),
                                   .data = json_pack("{s:s, s:s, s:i}", "plan_id", row_text(plan, "id"),
                                                     "producer", row_text(plan, "producer"), "steps",
                                                     (int)json_array_size(json_object_get(body, "steps")))},
                      error);
}

static bool
run_adopt(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Adopt *adopt = data;
    g_autoptr(Json) rows = flow_rows_get(job, adopt->task_id, error);
    const Json *task = json_object_get(rows, "task"), *plan = json_object_get(rows, "plan");
    bool moved = false;

    if (rows == NULL)
        return false;
    /* Another plan came meanwhile, or the work has begun: the rows decide anew. */
    if (!flow_is(plan, "id", adopt->plan_id) ||
        !(flow_is(task, "state", "planning") || flow_is(task, "state", "approving")))
        return true;
    if (!flow_move(job, task, "preparing", NULL, &moved, error))
        return false;
    return !moved || (db_exec(job->tx, "UPDATE tasks SET plan_id = ? WHERE id = ?",
                              DB_ARGS(db_text(adopt->plan_id), db_text(adopt->task_id)), error) &&
                      db_exec(job->tx, "UPDATE plans SET state = 'approved', updated_us = ? WHERE id = ?",
                              DB_ARGS(db_int(job->now_us), db_text(adopt->plan_id)), error) &&
                      insert_steps(job, adopt, json_object_get(plan, "body"), error) &&
                      room_make(job->tx, adopt->task_id, row_text(task, "owner"), job->now_us, error) &&
                      tell_planned(job, task, plan, error));
}

static const RowMember adopt_members[] = {ROW_AT_TEXT(Adopt, task_id), ROW_AT_TEXT(Adopt, plan_id),
                                          ROW_AT_END};
static const RowOp adopt_op = {ROW_WRITES, sizeof(Adopt), adopt_members, run_adopt};

static void
on_adopted(Json *value, const GError *error, void *data)
{
    if (!flow_goes_on(data, error))
        return;
    FAILPOINT("flow-planned");
    flow_next(data);
}

void
flow_do_adopt(FlowTask *t, const FlowChoice *choice)
{
    const Adopt adopt = {t->id, row_text(json_object_get(t->rows, "plan"), "id")};

    team_run(t->flow->team, &adopt_op, &adopt, on_adopted, t);
}
