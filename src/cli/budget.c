/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/remote.h"

static const char budgets_path[] = "/api/v1/budgets";

/* Which option sets which bound, in which unit. */
static const struct {
    const char *option, *member;
    double unit;
} bounds[] = {
    {"usd", "microusd", 1e6}, {"usd-per-hour", "microusd_per_hour", 1e6},
    {"tokens", "tokens", 1},  {"tokens-per-minute", "tokens_per_min", 1},
    {"calls", "calls", 1},    {"calls-per-minute", "calls_per_min", 1},
};

static char *
path_of(const char *scope)
{
    g_autofree char *escaped = g_uri_escape_string(scope, NULL, FALSE);

    return g_strconcat(budgets_path, "/", escaped, NULL);
}

static void
add_row(Json *rows, const Json *budget)
{
    const Json *set = json_object_get(budget, "bounds"), *spent = json_object_get(budget, "spent");
    Json *row = json_pack("{s:O}", "scope", json_object_get(budget, "scope"));

    for (size_t i = 0; i < G_N_ELEMENTS(bounds); i++) {
        json_int_t most = json_integer_value(json_object_get(set, bounds[i].member));
        const Json *used = json_object_get(spent, bounds[i].member);
        g_autofree char *text = NULL;

        if (most == 0)
            continue;
        text = used != NULL
                   ? g_strdup_printf("%.10g of %.10g", (double)json_integer_value(used) / bounds[i].unit,
                                     (double)most / bounds[i].unit)
                   : g_strdup_printf("%.10g", (double)most / bounds[i].unit);
        json_object_set_new(row, bounds[i].member, json_string(text));
    }
    json_array_append_new(rows, row);
}

static ExitCode
show(Cli *cli, const Json *found)
{
    static const OutColumn columns[] = {{"scope", "SCOPE"},
                                        {"microusd", "DOLLARS"},
                                        {"microusd_per_hour", "PER HOUR"},
                                        {"tokens", "TOKENS"},
                                        {"tokens_per_min", "PER MINUTE"},
                                        {"calls", "CALLS"},
                                        {"calls_per_min", "PER MINUTE"},
                                        {NULL}};
    g_autoptr(Json) rows = json_array();
    const Json *list = json_object_get(found, "budgets");

    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), list);
        return EXIT_CODE_OK;
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        add_row(rows, json_array_get(list, i));
    out_table(cli_out(cli), columns, rows);
    return EXIT_CODE_OK;
}

static ExitCode
call(Cli *cli, const char *method, const char *path, const Json *body)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) found = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, method, path, body, &found);
    return code == EXIT_CODE_OK && found != NULL ? show(cli, found) : code;
}

static ExitCode
run_ls(Cli *cli)
{
    return call(cli, "GET", budgets_path, NULL);
}

static ExitCode
run_set(Cli *cli)
{
    g_autoptr(Json) body = json_object();
    g_autofree char *path = path_of(cli_args(cli)[0]);

    for (size_t i = 0; i < G_N_ELEMENTS(bounds); i++) {
        const char *text = cli_option(cli, bounds[i].option);
        char *end = NULL;
        double value = text != NULL ? g_ascii_strtod(text, &end) : 0;

        if (text == NULL)
            continue;
        if (end == text || *end != '\0' || !(value >= 0 && value < 1e12))
            return cli_fail(cli, EXIT_CODE_USAGE, "option --%s: '%s' is no number", bounds[i].option, text);
        json_object_set_new(body, bounds[i].member, json_integer((json_int_t)(value * bounds[i].unit + 0.5)));
    }
    if (json_object_size(body) == 0)
        return cli_fail(cli, EXIT_CODE_USAGE, "give at least one bound, such as --usd 5");
    return call(cli, "PUT", path, body);
}

static ExitCode
run_rm(Cli *cli)
{
    const char *scope = cli_args(cli)[0];
    g_autofree char *path = path_of(scope);
    ExitCode code = call(cli, "DELETE", path, NULL);

    if (code == EXIT_CODE_OK)
        out_text(cli_out(cli), OUT_GOOD, "%s: no budget any more\n", scope);
    return code;
}

static const CliOption set_options[] = {
    {.name = "usd", .value = "N", .help = "dollars in all"},
    {.name = "usd-per-hour", .value = "N", .help = "dollars in an hour"},
    {.name = "tokens", .value = "N", .help = "tokens in all, of every kind"},
    {.name = "tokens-per-minute", .value = "N", .help = "tokens in a minute"},
    {.name = "calls", .value = "N", .help = "calls in all"},
    {.name = "calls-per-minute", .value = "N", .help = "calls in a minute"},
    {NULL},
};
static const Command budget_set = {
    .name = "set",
    .summary = "Set what may be spent on models; it is checked before each call",
    .args = "SCOPE",
    .args_min = 1,
    .args_max = 1,
    .details = "SCOPE is all, box:ID, agent:ID, task:ID or squad:ID.",
    .options = set_options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_set,
};
static const Command budget_ls = {
    .name = "ls",
    .summary = "List the budgets and what was spent of them",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};
static const Command budget_rm = {
    .name = "rm",
    .summary = "Remove a budget",
    .args = "SCOPE",
    .args_min = 1,
    .args_max = 1,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_rm,
};
static const Command *const commands[] = {&budget_ls, &budget_set, &budget_rm, NULL};

const Command command_budget = {
    .name = "budget",
    .summary = "Show or set what may be spent on models",
    .commands = commands,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_ls,
};
