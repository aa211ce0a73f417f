/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/forge-call.h"
#include "cli/number.h"
#include "cli/team-call.h"

enum { SHOWN = 30, SHOWN_MAX = 100, SECOND_MS = 1000, MINUTE_S = 60, MEGABYTE = 1000 * 1000, TIME_LEN = 16 };

static gint64
number(const Json *o, const char *name)
{
    return json_integer_value(json_object_get(o, name));
}

/* Replaces nothing of the server's: for people only. */
static void
set_text(Json *o, const char *name, char *text)
{
    json_object_set_new(o, name, json_string(text));
    g_free(text);
}

/* ---- values ---- */

static char *
value_text(gint64 value, const char *unit)
{
    if (strcmp(unit, "bytes") == 0)
        return g_strdup_printf("%.1f MB", (double)value / MEGABYTE);
    if (value < SECOND_MS)
        return g_strdup_printf("%" G_GINT64_FORMAT " ms", value);
    if (value < MINUTE_S * SECOND_MS)
        return g_strdup_printf("%.1f s", (double)value / SECOND_MS);
    return g_strdup_printf("%" G_GINT64_FORMAT " min %" G_GINT64_FORMAT " s", value / SECOND_MS / MINUTE_S,
                           value / SECOND_MS % MINUTE_S);
}

/* What it is, and what it should be. */
static void
make_rate_readable(Json *rate)
{
    const char *unit = forge_text(rate, "unit");
    const Json *share = json_object_get(rate, "rate"), *target = json_object_get(rate, "target");
    const Json *limit = json_object_get(rate, "limit"), *met = json_object_get(rate, "met");
    gint64 total = number(rate, "total");

    set_text(rate, "of",
             g_strdup_printf("%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT, number(rate, "good"), total));
    if (total == 0)
        set_text(rate, "is", g_strdup("-"));
    else if (json_is_integer(json_object_get(rate, "p95")))
        set_text(rate, "is", value_text(number(rate, "p95"), unit));
    else if (json_is_number(share))
        set_text(rate, "is", g_strdup_printf("%.1f%%", json_number_value(share) * 100));
    if (json_is_number(target))
        set_text(rate, "wanted", g_strdup_printf("> %g%%", json_number_value(target) * 100));
    else if (json_is_integer(limit)) {
        g_autofree char *below = value_text(json_integer_value(limit), unit);

        set_text(rate, "wanted", g_strdup_printf("< %s", below));
    }
    if (json_is_integer(json_object_get(rate, "average")))
        set_text(rate, "mean", value_text(number(rate, "average"), unit));
    if (!json_is_null(met))
        set_text(rate, "fine", g_strdup(json_is_true(met) ? "yes" : "no"));
}

static void
make_money_readable(Json *o)
{
    set_text(o, "usd", g_strdup_printf("%.4f", (double)number(o, "microusd") / MEGABYTE));
}

static void
make_agent_readable(Json *agent)
{
    const Json *usage = json_object_get(agent, "usage"), *tests = json_object_get(agent, "tests");
    const Json *passed = json_object_get(agent, "passed");

    set_text(agent, "time", value_text(number(agent, "duration_ms"), "ms"));
    set_text(
        agent, "tokens",
        g_strdup_printf("%" G_GINT64_FORMAT, number(usage, "input_tokens") + number(usage, "output_tokens")));
    set_text(agent, "usd", g_strdup_printf("%.4f", (double)number(usage, "microusd") / MEGABYTE));
    set_text(agent, "passed_tests",
             g_strdup_printf("%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT, number(tests, "passed"),
                             number(tests, "total")));
    set_text(agent, "seen",
             g_strdup(json_is_true(passed)    ? "passed"
                      : json_is_false(passed) ? "failed"
                                              : ""));
}

static void
each(const Json *list, void (*make)(Json *item))
{
    size_t i;
    Json *item;

    json_array_foreach((Json *)(guintptr)list, i, item) make(item);
}

/* ---- tables ---- */

static OutStyle
met_style(const char *value)
{
    return strcmp(value, "no") == 0 ? OUT_BAD : strcmp(value, "yes") == 0 ? OUT_GOOD : OUT_PLAIN;
}

static const OutColumn model_columns[] = {
    {"provider", "PROVIDER"},      {"model", "MODEL"},       {"calls", "CALLS"}, {"failed_calls", "FAILED"},
    {"input_tokens", "TOKENS IN"}, {"output_tokens", "OUT"}, {"usd", "$"},       {NULL},
};

static void
show_table(Cli *cli, const char *title, const OutColumn *columns, const Json *rows)
{
    if (json_array_size(rows) == 0)
        return;
    out_text(cli_out(cli), OUT_BOLD, "\n%s\n", title);
    out_table(cli_out(cli), columns, rows);
}

/* ---- one task ---- */

static void
show_ready(Cli *cli, const Json *report)
{
    size_t i;
    const Json *reason;

    if (json_is_true(json_object_get(report, "production_ready"))) {
        out_text(cli_out(cli), OUT_GOOD, "Production-ready: yes\n");
        return;
    }
    out_text(cli_out(cli), OUT_WARN, "Production-ready: no\n");
    json_array_foreach(json_object_get(report, "reasons"), i, reason)
        out_text(cli_out(cli), OUT_PLAIN, "  - %s\n", json_string_value(reason));
}

static void
show_sums(Cli *cli, const Json *report)
{
    const Json *tests = json_object_get(report, "tests"), *usage = json_object_get(report, "usage");
    const Json *coverage = json_object_get(report, "coverage");
    g_autofree char *time = value_text(number(report, "duration_ms"), "ms");

    out_text(cli_out(cli), OUT_PLAIN,
             "Time: %s, %" G_GINT64_FORMAT " steps in %" G_GINT64_FORMAT " tries, %" G_GINT64_FORMAT
             " rounds of review\n",
             time, number(report, "steps"), number(report, "tries"), number(report, "rounds"));
    out_text(cli_out(cli), OUT_PLAIN,
             "Tests: total %" G_GINT64_FORMAT ", passed %" G_GINT64_FORMAT ", failed %" G_GINT64_FORMAT "\n",
             number(tests, "total"), number(tests, "passed"), number(tests, "failed"));
    if (json_is_object(coverage))
        out_text(cli_out(cli), OUT_PLAIN, "Coverage: %.1f%%\n",
                 json_number_value(json_object_get(coverage, "percent")));
    out_text(cli_out(cli), OUT_PLAIN,
             "Models: %" G_GINT64_FORMAT " calls, %" G_GINT64_FORMAT " tokens in, %" G_GINT64_FORMAT
             " out, %.4f $\n",
             number(usage, "calls"), number(usage, "input_tokens"), number(usage, "output_tokens"),
             (double)number(usage, "microusd") / MEGABYTE);
}

static ExitCode
show_task(Cli *cli, const char *name)
{
    static const OutColumn fields[] = {{"number", "Number"},
                                       {"title", "Title"},
                                       {"state", "State"},
                                       {"repository", "Repository"},
                                       {"pull_url", "Pull request"},
                                       {"problem", "Problem"},
                                       {NULL}};
    static const OutColumn agents[] = {
        {"agent", "AGENT"},        {"kind", "DOES"}, {"state", "STATE"},
        {"model", "MODEL"},        {"try", "TRY"},   {"seen", "CHECKS"},
        {"passed_tests", "TESTS"}, {"time", "TIME"}, {"turns", "TURNS"},
        {"tokens", "TOKENS"},      {"usd", "$"},     {NULL},
    };
    g_autofree char *path = team_path("tasks", name, "/report");
    g_autoptr(Json) task = NULL;
    ExitCode code = team_send(cli, "GET", path, NULL, &task);
    const Json *report = json_object_get(task, "report");

    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_object(report))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server gave no report");
    out_fields(cli_out(cli), fields, task);
    if (out_format(cli_out(cli)) == OUT_JSON)
        return EXIT_CODE_OK;
    show_sums(cli, report);
    show_ready(cli, report);
    each(json_object_get(report, "agents"), make_agent_readable);
    each(json_object_get(report, "models"), make_money_readable);
    show_table(cli, "Agents", agents, json_object_get(report, "agents"));
    show_table(cli, "Models", model_columns, json_object_get(report, "models"));
    return EXIT_CODE_OK;
}

/* ---- all of them ---- */

static void
make_task_readable(Json *task)
{
    const Json *report = json_object_get(task, "report"), *tests = json_object_get(report, "tests");
    const Json *usage = json_object_get(report, "usage");

    set_text(task, "time", value_text(number(report, "duration_ms"), "ms"));
    set_text(task, "tries", g_strdup_printf("%" G_GINT64_FORMAT, number(report, "tries")));
    set_text(task, "tests",
             g_strdup_printf("%" G_GINT64_FORMAT "/%" G_GINT64_FORMAT, number(tests, "passed"),
                             number(tests, "total")));
    set_text(task, "usd", g_strdup_printf("%.4f", (double)number(usage, "microusd") / MEGABYTE));
    set_text(task, "ready",
             g_strdup(json_is_true(json_object_get(report, "production_ready")) ? "yes" : "no"));
}

static void
make_role_readable(Json *role)
{
    set_text(role, "time", value_text(number(role, "duration_ms"), "ms"));
}

static void
show_all(Cli *cli, const Json *all)
{
    static const OutColumn rates[] = {
        {"title", "RATE"},          {"row", "ROW"},   {"of", "GOOD"}, {"is", "IS"}, {"wanted", "WANTED"},
        {"fine", "MET", met_style}, {"mean", "MEAN"}, {NULL}};
    static const OutColumn errors[] = {{"class", "ERRORS"}, {"total", "TOTAL"}, {NULL}};
    static const OutColumn roles[] = {{"role", "ROLE"},   {"model", "MODEL"}, {"total", "AGENTS"},
                                      {"done", "DONE"},   {"tasks", "TASKS"}, {"time", "TIME"},
                                      {"turns", "TURNS"}, {"tools", "TOOLS"}, {NULL}};
    static const OutColumn tasks[] = {{"number", "TASK"},
                                      {"title", "TITLE"},
                                      {"state", "STATE"},
                                      {"tries", "TRIES"},
                                      {"tests", "TESTS"},
                                      {"time", "TIME"},
                                      {"usd", "$"},
                                      {"ready", "PRODUCTION-READY"},
                                      {NULL}};
    static const struct {
        const char *name, *title;
        const OutColumn *columns;
        void (*make)(Json *item);
    } parts[] = {
        {"rates", "How well things go", rates, make_rate_readable},
        {"errors", "What went wrong", errors, NULL},
        {"models", "Models", model_columns, make_money_readable},
        {"agents", "Agents", roles, make_role_readable},
        {"tasks", "Tasks", tasks, make_task_readable},
    };
    const Json *cost = json_object_get(all, "cost");

    out_text(cli_out(cli), OUT_BOLD, "%.*s to %.*s: %" G_GINT64_FORMAT " %s, %.4f $\n", TIME_LEN,
             forge_text(all, "since_at"), TIME_LEN, forge_text(all, "until_at"), number(all, "total"),
             number(all, "total") == 1 ? "task" : "tasks", json_number_value(json_object_get(cost, "total")));
    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        const Json *list = json_object_get(all, parts[i].name);

        if (parts[i].make != NULL)
            each(list, parts[i].make);
        show_table(cli, parts[i].title, parts[i].columns, list);
    }
}

static ExitCode
run_report(Cli *cli)
{
    static const char *const names[] = {"since", "until", "squad", "repo"};
    g_autoptr(GString) path = g_string_new(NULL);
    g_autoptr(Json) all = NULL;
    g_autoptr(GError) error = NULL;
    gint64 limit = SHOWN;

    if (cli_n_args(cli) > 0)
        return show_task(cli, cli_args(cli)[0]);
    if (!cli_read_number(cli, "limit", SETTING_INT, 1, SHOWN_MAX, &limit, &error))
        return cli_fail_error(cli, error);
    g_string_printf(path, "/api/v1/reports?per_page=%" G_GINT64_FORMAT, limit);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *value = cli_option(cli, names[i]);
        g_autofree char *escaped = value != NULL ? g_uri_escape_string(value, NULL, FALSE) : NULL;

        if (value != NULL)
            g_string_append_printf(path, "&%s=%s", names[i], escaped);
    }
    ExitCode code = team_send(cli, "GET", path->str, NULL, &all);

    if (code != EXIT_CODE_OK)
        return code;
    if (!json_is_array(json_object_get(all, "rates")))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server gave no report");
    out_json(cli_out(cli), all);
    if (out_format(cli_out(cli)) == OUT_TEXT)
        show_all(cli, all);
    return EXIT_CODE_OK;
}

static const CliOption options[] = {
    {.name = "since",
     .value = "TIME",
     .help = "from this time on: 7d, 2026-01-31 or 2026-01-31T12:00:00Z; 30d if not named"},
    {.name = "until", .value = "TIME", .help = "up to this time; now if not named"},
    {.name = "squad", .letter = 's', .value = "SQUAD", .help = "only of this one"},
    {.name = "repo", .letter = 'R', .value = "[OWNER/]NAME", .help = "only of this repository"},
    {.name = "limit", .value = "N", .help = "at most so many tasks; 30 if not named"},
    {NULL},
};

const Command command_report = {
    .name = "report",
    .summary = "Show how well things go, and what tasks came to",
    .args = "[TASK]",
    .args_max = 1,
    .details =
        "With TASK, what that one came to: per agent and model, with tests, checks and cost. Without, the\n"
        "success rates with what is wanted of them, errors by class, models, agents and tasks.",
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_report,
};
