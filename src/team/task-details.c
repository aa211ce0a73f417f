/* SPDX-License-Identifier: Apache-2.0 */
/* What task_get() has beside the row: everything of a task that people look at. */
#include "team/kept.h"
#include "team/plan-private.h"
#include "team/task-private.h"

static const RowColumn step_columns[] = {
    {"id", ROW_TEXT},        {"n", ROW_INT},        {"kind", ROW_TEXT},     {"name", ROW_TEXT},
    {"title", ROW_TEXT},     {"feature", ROW_TEXT}, {"role", ROW_TEXT},     {"specialization", ROW_TEXT},
    {"depends", ROW_JSON},   {"files", ROW_JSON},   {"checks", ROW_JSON},   {"state", ROW_TEXT},
    {"member_id", ROW_TEXT}, {"branch", ROW_TEXT},  {"head_oid", ROW_TEXT}, {"joined_oid", ROW_TEXT},
    {"tries", ROW_INT},      {"joins", ROW_INT},    {"problem", ROW_TEXT},  {"evidence", ROW_JSON},
    {"started_us", ROW_INT}, {"ended_us", ROW_INT},
};
static const RowTable step_table = {"step", "steps", step_columns, G_N_ELEMENTS(step_columns)};

static const RowColumn agent_columns[] = {
    {"id", ROW_TEXT},
    {"agent", ROW_TEXT},
    {"step_id", ROW_TEXT},
    {"member_id", ROW_TEXT},
    {"kind", ROW_TEXT},
    {"role", ROW_TEXT},
    {"specialization", ROW_TEXT},
    {"adapter", ROW_TEXT},
    {"provider", ROW_TEXT},
    {"model", ROW_TEXT},
    {"box_id", ROW_TEXT},
    {"run", ROW_INT},
    {"state", ROW_TEXT},
    {"problem", ROW_TEXT},
    {"try", ROW_INT},
    {"report", ROW_JSON},
    {"result", ROW_JSON},
    {"git_branch", ROW_TEXT},
    {"pull_request_url", ROW_TEXT},
    {"commit_history", ROW_JSON},
    {"turns", ROW_INT},
    {"tools", ROW_INT},
    {"created_us", ROW_INT},
    {"started_us", ROW_INT},
    {"first_call_us", ROW_INT},
    {"ended_us", ROW_INT},
};
static const RowTable agent_table = {"agent", "task_executions", agent_columns, G_N_ELEMENTS(agent_columns)};

static const RowColumn question_columns[] = {
    {"id", ROW_TEXT},        {"execution_id", ROW_TEXT}, {"step_id", ROW_TEXT}, {"text", ROW_TEXT},
    {"options", ROW_JSON},   {"state", ROW_TEXT},        {"answer", ROW_TEXT},  {"answered_by", ROW_TEXT},
    {"created_us", ROW_INT}, {"answered_us", ROW_INT},
};
const RowTable question_table = {"question", "questions", question_columns, G_N_ELEMENTS(question_columns)};

/* ---- numbers ---- */

/* Of what Coop has seen itself, each agent's last run of each check. */
static void
add_tests(const Json *agents, Json *totals)
{
    static const char *const names[] = {"total", "passed", "failed", "skipped"};
    gint64 sums[G_N_ELEMENTS(names)] = {0};
    size_t i, c;
    Json *agent, *check, *tests = json_object();

    json_array_foreach((Json *)(guintptr)agents, i, agent)
    {
        json_array_foreach(json_object_get(json_object_get(agent, "result"), "checks"), c, check)
        {
            for (size_t n = 0; n < G_N_ELEMENTS(names); n++)
                sums[n] += row_int(json_object_get(check, "tests"), names[n]);
        }
    }
    for (size_t n = 0; n < G_N_ELEMENTS(names); n++)
        json_object_set_new(tests, names[n], json_integer(sums[n]));
    json_object_set_new(totals, "tests", tests);
}

static bool
add_usage(RowJob *job, const char *task_id, Json *totals, GError **error)
{
    static const char *const names[] = {"calls", "failed_calls", "input_tokens", "output_tokens", "microusd"};
    g_autoptr(DbRows) rows = db_query(job->tx,
                                      "SELECT SUM(calls), SUM(failed), SUM(input_tokens + cached_tokens + "
                                      "cache_write_tokens), SUM(output_tokens), SUM(microusd) FROM usage "
                                      "WHERE task_id = ?",
                                      DB_ARGS(db_text(task_id)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        json_object_set_new(totals, names[i], json_integer(found ? db_rows_int(rows, (int)i) : 0));
    return true;
}

static Json *
totals_of(RowJob *job, const Json *task, const Json *agents, GError **error)
{
    g_autoptr(Json) totals = json_object();
    gint64 turns = 0, tools = 0, busy_us = 0, begun = row_int(task, "started_us");
    gint64 until = row_int(task, "ended_us") != 0 ? row_int(task, "ended_us") : job->now_us;
    size_t i;
    Json *agent;

    json_array_foreach((Json *)(guintptr)agents, i, agent)
    {
        gint64 from = row_int(agent, "started_us"), to = row_int(agent, "ended_us");

        turns += row_int(agent, "turns");
        tools += row_int(agent, "tools");
        busy_us += from != 0 ? MAX(0, (to != 0 ? to : job->now_us) - from) : 0;
    }
    json_object_set_new(totals, "agents", json_integer((json_int_t)json_array_size(agents)));
    json_object_set_new(totals, "turns", json_integer(turns));
    json_object_set_new(totals, "tools", json_integer(tools));
    json_object_set_new(totals, "agent_ms", json_integer(busy_us / 1000));
    json_object_set_new(totals, "duration_ms", json_integer(begun != 0 ? MAX(0, until - begun) / 1000 : 0));
    add_tests(agents, totals);
    return add_usage(job, row_text(task, "id"), totals, error) ? g_steal_pointer(&totals) : NULL;
}

/* ---- all together ---- */

static bool
add_rows(RowJob *job, const RowTable *table, const char *where, Json *task, const char *name, GError **error)
{
    Json *rows = row_all(job, table, where, DB_ARGS(db_text(row_text(task, "id"))), error);

    if (rows == NULL)
        return false;
    json_object_set_new(task, name, rows);
    return true;
}

static bool
add_plan(RowJob *job, Json *task, GError **error)
{
    g_autoptr(Json) plan = NULL;

    if (!plan_newest(job, row_text(task, "id"), &plan, error))
        return false;
    if (plan != NULL)
        json_object_del(plan, "council");
    json_object_set_new(task, "plan", plan != NULL ? json_incref(plan) : json_null());
    return true;
}

bool
task_add_details(RowJob *job, Json *task, GError **error)
{
    if (!add_plan(job, task, error) ||
        !add_rows(job, &step_table, "task_id = ? ORDER BY n", task, "steps", error) ||
        !add_rows(job, &agent_table, "task_id = ? ORDER BY created_us, id", task, "agents", error) ||
        !add_rows(job, &question_table, "task_id = ? ORDER BY created_us, id", task, "questions", error) ||
        !add_rows(job, &kept_table, "k.task_id = ? ORDER BY k.created_us", task, "kept", error))
        return false;
    Json *totals = totals_of(job, task, json_object_get(task, "agents"), error);

    if (totals == NULL)
        return false;
    json_object_set_new(task, "totals", totals);
    return true;
}
