/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of one task, as flow-decide.c looks at them. */
#include <string.h>

#include "team/crew-private.h"
#include "team/flow-private.h"
#include "team/repo-file.h"

const RowMember flow_id_members[] = {ROW_AT_TEXT(FlowId, task_id), ROW_AT_END};

static const RowColumn task_columns[] = {
    {"id", ROW_TEXT},           {"number", ROW_INT},     {"squad_id", ROW_TEXT},  {"owner", ROW_TEXT},
    {"actor", ROW_TEXT},        {"title", ROW_TEXT},     {"request", ROW_TEXT},   {"repository_id", ROW_TEXT},
    {"base_branch", ROW_TEXT},  {"base_oid", ROW_TEXT},  {"branch", ROW_TEXT},    {"pull_number", ROW_INT},
    {"pull_url", ROW_TEXT},     {"policy", ROW_JSON},    {"plan_id", ROW_TEXT},   {"state", ROW_TEXT},
    {"blocked_from", ROW_TEXT}, {"problem", ROW_TEXT},   {"rung", ROW_TEXT},      {"round", ROW_INT},
    {"tries", ROW_INT},         {"wake_us", ROW_INT},    {"ending", ROW_JSON},    {"merge_id", ROW_INT},
    {"report", ROW_JSON},       {"created_us", ROW_INT}, {"started_us", ROW_INT}, {"ended_us", ROW_INT},
    {"updated_us", ROW_INT},    {"file", ROW_JSON},
};
static const RowTable task_table = {"task", "tasks", task_columns, G_N_ELEMENTS(task_columns)};

static const RowColumn step_columns[] = {
    {"id", ROW_TEXT},        {"n", ROW_INT},          {"kind", ROW_TEXT},
    {"name", ROW_TEXT},      {"title", ROW_TEXT},     {"feature", ROW_TEXT},
    {"details", ROW_TEXT},   {"role", ROW_TEXT},      {"specialization", ROW_TEXT},
    {"depends", ROW_JSON},   {"files", ROW_JSON},     {"checks", ROW_JSON},
    {"state", ROW_TEXT},     {"member_id", ROW_TEXT}, {"branch", ROW_TEXT},
    {"start_oid", ROW_TEXT}, {"head_oid", ROW_TEXT},  {"joined_oid", ROW_TEXT},
    {"tries", ROW_INT},      {"joins", ROW_INT},      {"wake_us", ROW_INT},
    {"problem", ROW_TEXT},   {"conflict", ROW_JSON},  {"evidence", ROW_JSON},
    {"started_us", ROW_INT}, {"ended_us", ROW_INT},
};
static const RowTable step_table = {"step", "steps", step_columns, G_N_ELEMENTS(step_columns)};

static const RowColumn agent_columns[] = {
    {"id", ROW_TEXT},        {"agent", ROW_TEXT},      {"step_id", ROW_TEXT},      {"member_id", ROW_TEXT},
    {"kind", ROW_TEXT},      {"role", ROW_TEXT},       {"archetype", ROW_TEXT},    {"lease", ROW_TEXT},
    {"state", ROW_TEXT},     {"problem", ROW_TEXT},    {"try", ROW_INT},           {"report", ROW_JSON},
    {"result", ROW_JSON},    {"git_branch", ROW_TEXT}, {"git_base", ROW_TEXT},     {"review_id", ROW_INT},
    {"provider", ROW_TEXT},  {"model", ROW_TEXT},      {"turns", ROW_INT},         {"tools", ROW_INT},
    {"created_us", ROW_INT}, {"started_us", ROW_INT},  {"first_call_us", ROW_INT}, {"ended_us", ROW_INT},
};
static const RowTable agent_table = {"agent", "task_executions", agent_columns, G_N_ELEMENTS(agent_columns)};

static const RowColumn plan_columns[] = {
    {"id", ROW_TEXT}, {"version", ROW_INT}, {"producer", ROW_TEXT}, {"state", ROW_TEXT}, {"body", ROW_JSON},
};
static const RowTable plan_table = {"plan", "plans", plan_columns, G_N_ELEMENTS(plan_columns)};

static const RowColumn member_columns[] = {
    {"id", ROW_TEXT},        {"name", ROW_TEXT},           {"role", ROW_TEXT},
    {"archetype", ROW_TEXT}, {"specialization", ROW_TEXT}, {"adapter", ROW_TEXT},
    {"template", ROW_TEXT},  {"llm_provider", ROW_TEXT},   {"llm_model", ROW_TEXT},
};
static const RowTable member_table = {"member", "squad_members", member_columns,
                                      G_N_ELEMENTS(member_columns)};

Json *
flow_task_get(RowJob *job, const char *task_id, GError **error)
{
    return row_get(job, &task_table, "id = ?", DB_ARGS(db_text(task_id)), error);
}

/* Each is put into `rows` under its name; false: it could not be read. */
static bool
add_all(RowJob *job, Json *rows, const char *name, const RowTable *table, const char *where, const char *id,
        GError **error)
{
    Json *items = row_all(job, table, where, DB_ARGS(db_text(id)), error);

    return items != NULL && json_object_set_new(rows, name, items) == 0;
}

Json *
flow_rows_get(RowJob *job, const char *task_id, GError **error)
{
    g_autoptr(Json) task = flow_task_get(job, task_id, error);
    g_autoptr(Json) rows = json_object();

    if (task == NULL)
        return NULL;
    json_object_set(rows, "task", task);
    if (!add_all(job, rows, "steps", &step_table, "task_id = ? ORDER BY n", task_id, error) ||
        !add_all(job, rows, "agents", &agent_table, "task_id = ? ORDER BY created_us, id", task_id, error) ||
        !add_all(job, rows, "members", &member_table, "squad_id = ? AND is_active = 1 ORDER BY position",
                 row_text(task, "squad_id"), error) ||
        !add_all(job, rows, "plans", &plan_table,
                 "task_id = ? AND state IN ('draft', 'approved') ORDER BY version DESC LIMIT 1", task_id,
                 error))
        return NULL;
    json_object_set_new(rows, "members",
                        repo_members_over(json_object_get(task, "file"), json_object_get(rows, "members")));
    Json *newest = json_array_get(json_object_get(rows, "plans"), 0);

    json_object_set_new(rows, "plan", newest != NULL ? json_incref(newest) : json_null());
    json_object_del(rows, "plans");
    return g_steal_pointer(&rows);
}

static bool
run_look(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    *ret_value = flow_rows_get(job, ((const FlowId *)data)->task_id, error);
    return *ret_value != NULL;
}

const RowOp flow_look_op = {ROW_READS, sizeof(FlowId), flow_id_members, run_look};

/* ---- what they say ---- */

bool
flow_is(const Json *row, const char *name, const char *value)
{
    return g_strcmp0(row_text(row, name), value) == 0;
}

static bool
is_one_of(const Json *row, const char *name, const char *const *values)
{
    const char *value = row_text(row, name);

    return value != NULL && g_strv_contains(values, value);
}

bool
flow_agent_ended(const Json *agent)
{
    static const char *const ended[] = {"done", "failed", "lost", "stopped", NULL};

    return is_one_of(agent, "state", ended);
}

bool
flow_agent_by_hand(const Json *agent)
{
    const char *lease = row_text(agent, "lease");

    return lease != NULL && g_str_has_prefix(lease, CREW_HAND_LEASE);
}

bool
flow_task_ended(const Json *task)
{
    static const char *const ended[] = {"done", "failed", "cancelled", NULL};

    return is_one_of(task, "state", ended);
}

const Json *
flow_last_agent(const Json *rows, const char *step_id)
{
    const Json *agents = json_object_get(rows, "agents"), *last = NULL;
    size_t i;
    const Json *agent;

    json_array_foreach(agents, i, agent)
    {
        if (flow_is(agent, "step_id", step_id))
            last = agent;
    }
    return last;
}

const Json *
flow_row_of(const Json *list, const char *id)
{
    size_t i;
    const Json *row;

    json_array_foreach(list, i, row)
    {
        if (flow_is(row, "id", id))
            return row;
    }
    return NULL;
}

const Json *
flow_agent_of(const Json *rows, const char *id)
{
    return flow_row_of(json_object_get(rows, "agents"), id);
}

const Json *
flow_step_of(const Json *rows, const char *id)
{
    return flow_row_of(json_object_get(rows, "steps"), id);
}

guint
flow_policy_int(const Json *task, const char *name, guint usual)
{
    json_int_t value = json_integer_value(json_object_get(json_object_get(task, "policy"), name));

    return value > 0 && value <= G_MAXINT ? (guint)value : usual;
}

const char *
flow_policy_text(const Json *task, const char *name)
{
    return row_text(json_object_get(task, "policy"), name);
}
