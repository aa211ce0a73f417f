/* SPDX-License-Identifier: Apache-2.0 */
/* What a task came to: per agent and in all, and whether it is fit for production (decision: tests pass in a
 * clean box, lint and security scan are clean, the pull request can be merged). */
#include <string.h>

#include "team/flow-private.h"

typedef struct Spent {
    gint64 calls, input_tokens, output_tokens, microusd;
} Spent;

static bool
read_spent(RowJob *job, const char *column, const char *value, Spent *ret, GError **error)
{
    g_autofree char *sql = g_strdup_printf(
        "SELECT COALESCE(SUM(calls), 0), COALESCE(SUM(input_tokens), 0), COALESCE(SUM(output_tokens), 0), "
        "COALESCE(SUM(microusd), 0) FROM usage WHERE %s = ?",
        column);
    g_autoptr(DbRows) rows = db_query(job->tx, sql, DB_ARGS(db_text(value)), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    *ret = (Spent){db_rows_int(rows, 0), db_rows_int(rows, 1), db_rows_int(rows, 2), db_rows_int(rows, 3)};
    return true;
}

static Json *
spent_json(const Spent *spent)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "calls", (json_int_t)spent->calls, "input_tokens",
                     (json_int_t)spent->input_tokens, "output_tokens", (json_int_t)spent->output_tokens,
                     "microusd", (json_int_t)spent->microusd);
}

/* ---- tests ---- */

static const char *const counts[] = {"total", "passed", "failed", "skipped"};

static Json *
tests_new(void)
{
    Json *sum = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        json_object_set_new(sum, counts[i], json_integer(0));
    return sum;
}

static void
add_tests(Json *sum, const Json *checks)
{
    size_t i;
    const Json *check;

    json_array_foreach(checks, i, check)
    {
        const Json *tests = json_object_get(check, "tests");

        for (size_t k = 0; json_is_object(tests) && k < G_N_ELEMENTS(counts); k++)
            json_object_set_new(sum, counts[k],
                                json_integer(row_int(sum, counts[k]) + row_int(tests, counts[k])));
    }
}

static Json *
agent_json(RowJob *job, const Json *agent, GError **error)
{
    const Json *result = json_object_get(agent, "result"), *checks = json_object_get(result, "checks");
    gint64 from_us = row_int(agent, "started_us"), to_us = row_int(agent, "ended_us");
    Json *tests = tests_new();
    Spent spent;

    if (!read_spent(job, "agent_id", row_text(agent, "agent"), &spent, error)) {
        json_decref(tests);
        return NULL;
    }
    add_tests(tests, checks);
    return json_pack("{s:s, s:s, s:s, s:s, s:s?, s:I, s:I, s:I, s:I, s:o, s:O?, s:i, s:o}", "id",
                     row_text(agent, "id"), "agent", row_text(agent, "agent"), "kind",
                     row_text(agent, "kind"), "state", row_text(agent, "state"), "model",
                     row_text(agent, "model"), "try", (json_int_t)row_int(agent, "try"), "duration_ms",
                     (json_int_t)(from_us > 0 && to_us > from_us ? (to_us - from_us) / 1000 : 0), "turns",
                     (json_int_t)row_int(agent, "turns"), "tools", (json_int_t)row_int(agent, "tools"),
                     "usage", spent_json(&spent), "passed", json_object_get(result, "passed"), "checks",
                     (int)json_array_size(checks), "tests", tests);
}

static Json *
agents_json(RowJob *job, const Json *rows, GError **error)
{
    g_autoptr(Json) list = json_array();
    size_t i;
    const Json *agent;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        Json *item = agent_json(job, agent, error);

        if (item == NULL)
            return NULL;
        json_array_append_new(list, item);
    }
    return g_steal_pointer(&list);
}

/* Of the last try of each step, and of the last who tested: what holds, not what was on the way there. */
static Json *
tests_json(const Json *rows)
{
    Json *sum = tests_new();
    size_t i;
    const Json *step;

    json_array_foreach(json_object_get(rows, "steps"), i, step)
        add_tests(sum, json_object_get(json_object_get(step, "evidence"), "checks"));
    return sum;
}

/* ---- fit for production ---- */

/* `*ret_n`: how many checks of the merged or offered head Coop has seen that pass the condition. */
static bool
count_checks(RowJob *job, const Json *task, const char *where, gint64 *ret_n, GError **error)
{
    g_autofree char *sql = g_strdup_printf(
        "SELECT COUNT(*) FROM checks c JOIN check_suites s ON s.id = c.suite WHERE s.repository_id = ? "
        "AND s.number = ? AND s.id = (SELECT id FROM check_suites WHERE repository_id = s.repository_id AND "
        "number = s.number AND state IN ('passed', 'failed', 'error') ORDER BY created_us DESC LIMIT 1) AND "
        "%s",
        where);

    *ret_n = 0;
    return row_ask_int(
        job, sql, DB_ARGS(db_text(row_text(task, "repository_id")), db_int(row_int(task, "pull_number"))),
        ret_n, error);
}

static void
add_reason(Json *reasons, const char *name, const char *why)
{
    g_autofree char *text = name != NULL ? g_strdup_printf("%s: %s", name, why) : g_strdup(why);

    json_array_append_new(reasons, json_string(text));
}

/* Linters and scanners are run by Coop in the box of whoever reviewed last (scan.h). */
static void
add_scans(Json *reasons, const Json *rows)
{
    gint64 round = row_int(json_object_get(rows, "task"), "round");
    const Json *scans = NULL;
    guint seen = 0;
    size_t i;
    const Json *item;

    json_array_foreach(json_object_get(rows, "agents"), i, item)
    {
        if (flow_is(item, "kind", "review") && flow_is(item, "state", "done") &&
            row_int(item, "try") == round)
            scans = json_object_get(json_object_get(item, "result"), "checks");
    }
    json_array_foreach(scans, i, item)
    {
        const char *name = row_text(item, "name");

        if (name == NULL || !g_str_has_prefix(name, "scan: "))
            continue;
        seen++;
        if (row_text(item, "skipped") != NULL)
            add_reason(reasons, name, row_text(item, "skipped"));
        else if (row_int(item, "exit_code") != 0)
            add_reason(reasons, name, "it found errors");
    }
    if (seen == 0)
        add_reason(reasons, NULL, "nothing was scanned");
}

static Json *
reasons_of(const Json *rows, gint64 tested, gint64 failed, bool merged)
{
    Json *reasons = json_array();

    if (tested == 0)
        add_reason(reasons, NULL, "no check passed in a clean box");
    if (failed > 0)
        add_reason(reasons, NULL, "a check failed in a clean box");
    add_scans(reasons, rows);
    if (!merged)
        add_reason(reasons, NULL, "it is not merged");
    return reasons;
}

Json *
flow_report(RowJob *job, const Json *rows, const char *state, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    gint64 began_us = row_int(task, "started_us"), tested = 0, failed = 0;
    bool merged = flow_is(task, "rung", "merged") && strcmp(state, "done") == 0;
    Spent spent;

    if (!read_spent(job, "task_id", row_text(task, "id"), &spent, error) ||
        (row_int(task, "pull_number") > 0 &&
         (!count_checks(job, task, "c.conclusion = 'success'", &tested, error) ||
          !count_checks(job, task, "c.conclusion NOT IN ('success', 'neutral', 'skipped')", &failed, error))))
        return NULL;
    Json *agents = agents_json(job, rows, error);

    if (agents == NULL)
        return NULL;
    Json *reasons = reasons_of(rows, tested, failed, merged);

    return json_pack("{s:s, s:s?, s:b, s:o, s:I, s:I, s:o, s:o, s:o}", "state", state, "rung",
                     row_text(task, "rung"), "production_ready", json_array_size(reasons) == 0, "reasons",
                     reasons, "rounds", (json_int_t)row_int(task, "round"), "duration_ms",
                     (json_int_t)(began_us > 0 ? (job->now_us - began_us) / 1000 : 0), "usage",
                     spent_json(&spent), "tests", tests_json(rows), "agents", agents);
}

Json *
flow_report_event(Json *report)
{
    Json *data = json_copy(report);

    json_object_del(data, "agents");
    return data;
}
