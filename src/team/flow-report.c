/* SPDX-License-Identifier: Apache-2.0 */
/* What a task came to: per agent, per model and in all. */
#include <string.h>

#include "report/coverage.h"
#include "team/flow-private.h"

enum { PERMILLE_OF_PERCENT = 10 };

/* ---- tests and checks ---- */

static const char *const counts[] = {"total", "passed", "failed", "skipped"};

static Json *
counts_new(void)
{
    Json *sum = json_object();

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        json_object_set_new(sum, counts[i], json_integer(0));
    return sum;
}

static void
counts_add(Json *sum, const Json *more)
{
    const char *name;
    Json *value;

    json_object_foreach(sum, name, value)
    {
        json_object_set_new(sum, name, json_integer(json_integer_value(value) + row_int(more, name)));
    }
}

static bool
is_scan(const Json *check)
{
    const char *name = row_text(check, "name");

    return name != NULL && g_str_has_prefix(name, "scan: ");
}

static Json *
check_json(const Json *check)
{
    const Json *tests = json_object_get(check, "tests");
    Json *sum = json_is_object(tests) ? counts_new() : json_null();

    if (json_is_object(tests))
        counts_add(sum, tests);
    return json_pack("{s:s?, s:O?, s:I, s:s?, s:o}", "name", row_text(check, "name"), "exit_code",
                     json_object_get(check, "exit_code"), "duration_ms",
                     (json_int_t)row_int(check, "duration_ms"), "skipped", row_text(check, "skipped"),
                     "tests", sum);
}

/* What Coop ran: each check, and all tests in them together. */
static Json *
checks_json(const Json *checks, Json *tests)
{
    Json *list = json_array();
    size_t i;
    const Json *check;

    json_array_foreach(checks, i, check)
    {
        json_array_append_new(list, check_json(check));
        counts_add(tests, json_object_get(check, "tests"));
    }
    return list;
}

static void
count_check(Json *sum, const Json *check)
{
    enum { TOTAL, PASSED, FAILED, SKIPPED };
    const char *what = row_text(check, "skipped") != NULL ? counts[SKIPPED]
                       : row_int(check, "exit_code") == 0 ? counts[PASSED]
                                                          : counts[FAILED];

    json_object_set_new(sum, counts[TOTAL], json_integer(row_int(sum, counts[TOTAL]) + 1));
    json_object_set_new(sum, what, json_integer(row_int(sum, what) + 1));
}

/* ---- agents ---- */

static Json *
agent_json(RowJob *job, const Json *agent, GError **error)
{
    const Json *result = json_object_get(agent, "result");
    gint64 began_us = row_int(agent, "started_us"), ended_us = row_int(agent, "ended_us");
    g_autoptr(Json) usage = spent_new(), models = json_array(), tests = counts_new();

    if (!spent_of_agent(job, row_text(agent, "id"), usage, models, error))
        return NULL;
    Json *checks = checks_json(json_object_get(result, "checks"), tests);

    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s?, s:s?, s:I, s:I, s:I, s:I, s:I, s:O, s:O, s:O?, s:o, s:O}", "id",
        row_text(agent, "id"), "agent", row_text(agent, "agent"), "kind", row_text(agent, "kind"), "role",
        row_text(agent, "role"), "state", row_text(agent, "state"), "provider", row_text(agent, "provider"),
        "model", row_text(agent, "model"), "try", (json_int_t)row_int(agent, "try"), "duration_ms",
        (json_int_t)team_ms_between(began_us, ended_us > 0 ? ended_us : job->now_us), "spawn_ms",
        (json_int_t)team_ms_between(row_int(agent, "created_us"), row_int(agent, "first_call_us")), "turns",
        (json_int_t)row_int(agent, "turns"), "tools", (json_int_t)row_int(agent, "tools"), "usage", usage,
        "models", models, "passed", json_object_get(result, "passed"), "checks", checks, "tests", tests);
}

/* Per mille; null: nothing that Coop ran for who tested last tells it. */
static Json *
coverage_json(const Json *rows)
{
    Json *found = NULL;
    size_t i, k;
    const Json *agent, *check;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        json_array_foreach(json_object_get(json_object_get(agent, "result"), "checks"), k, check)
        {
            const char *output = row_text(check, "output");
            guint permille;

            if (!flow_is(agent, "kind", "test") || output == NULL || !coverage_find(output, &permille))
                continue;
            json_decref(found);
            found = json_pack("{s:f, s:s?, s:s, s:s}", "percent", (double)permille / PERMILLE_OF_PERCENT,
                              "check", row_text(check, "name"), "agent", row_text(agent, "agent"), "seen_by",
                              "coop");
        }
    }
    return found != NULL ? found : json_null();
}

/* ---- all together ---- */

static gint64
count_tries(const Json *rows)
{
    gint64 tries = 0;
    size_t i;
    const Json *step;

    json_array_foreach(json_object_get(rows, "steps"), i, step) tries += row_int(step, "tries");
    return tries;
}

static gint64
count_steps(const Json *rows)
{
    gint64 n = 0;
    size_t i;
    const Json *step;

    json_array_foreach(json_object_get(rows, "steps"), i, step) n += flow_is(step, "kind", "work");
    return n;
}

/* Of the last try of each step: what holds, not what was on the way there. */
static Json *
final_tests(const Json *rows)
{
    Json *sum = counts_new();
    size_t i, k;
    const Json *step, *check;

    json_array_foreach(json_object_get(rows, "steps"), i, step)
    {
        json_array_foreach(json_object_get(json_object_get(step, "evidence"), "checks"), k, check)
            counts_add(sum, json_object_get(check, "tests"));
    }
    return sum;
}

static bool
add_agents(RowJob *job, const Json *rows, Json *report, GError **error)
{
    g_autoptr(Json) list = json_array(), tests = counts_new();
    g_autoptr(Json) checks = counts_new(), scans = counts_new();
    size_t i, k;
    const Json *agent, *check;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        Json *item = agent_json(job, agent, error);

        if (item == NULL)
            return false;
        json_array_append_new(list, item);
        counts_add(tests, json_object_get(item, "tests"));
        json_array_foreach(json_object_get(item, "checks"), k, check)
            count_check(is_scan(check) ? scans : checks, check);
    }
    json_object_set(report, "tests", tests);
    json_object_set_new(report, "final_tests", final_tests(rows));
    json_object_set(report, "checks", checks);
    json_object_set(report, "scans", scans);
    json_object_set_new(report, "coverage", coverage_json(rows));
    json_object_set(report, "agents", list);
    return true;
}

Json *
flow_report(RowJob *job, const Json *rows, const char *state, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    const char *id = row_text(task, "id");
    g_autoptr(Json) reasons = flow_fit(job, rows, error), models = json_array();
    g_autoptr(Json) usage = spent_new(), planning = spent_new();
    gint64 ended_us = row_int(task, "ended_us") > 0 ? row_int(task, "ended_us") : job->now_us;

    if (reasons == NULL || !spent_of_task(job, id, usage, models, error) ||
        !spent_on_plan(job, id, planning, error))
        return NULL;
    g_autoptr(Json) report = json_pack(
        "{s:s, s:s?, s:b, s:O, s:I, s:I, s:I, s:s?, s:I, s:I, s:O, s:O}", "state", state, "rung",
        row_text(task, "rung"), "production_ready", json_array_size(reasons) == 0, "reasons", reasons,
        "rounds", (json_int_t)row_int(task, "round"), "steps", (json_int_t)count_steps(rows), "tries",
        (json_int_t)count_tries(rows), "repository_id", row_text(task, "repository_id"), "pull_number",
        (json_int_t)row_int(task, "pull_number"), "duration_ms",
        (json_int_t)team_ms_between(row_int(task, "started_us"), ended_us), "usage", usage, "models", models);

    json_object_set(report, "planning", planning);
    return add_agents(job, rows, report, error) ? g_steal_pointer(&report) : NULL;
}

Json *
flow_report_event(Json *report)
{
    Json *data = json_copy(report);

    json_object_del(data, "agents");
    json_object_del(data, "models");
    return data;
}
