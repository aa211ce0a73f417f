/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/remote.h"

static ExitCode
run_cost(Cli *cli)
{
    static const OutColumn columns[] = {{"id", "ID"},
                                        {"calls", "CALLS"},
                                        {"input_tokens", "IN"},
                                        {"cached_tokens", "CACHED"},
                                        {"output_tokens", "OUT"},
                                        {"model_cost", "MODELS $"},
                                        {"box_hours", "BOX HOURS"},
                                        {"box_cost", "BOXES $"},
                                        {"cost", "TOTAL $"},
                                        {NULL}};
    const char *by = cli_option(cli, "by"), *days = cli_option(cli, "days");
    g_autofree char *group = g_uri_escape_string(by != NULL ? by : "model", NULL, FALSE);
    g_autofree char *span = g_uri_escape_string(days != NULL ? days : "30", NULL, FALSE);
    g_autofree char *path = g_strdup_printf("/api/v1/usage?by=%s&days=%s", group, span);
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) usage = NULL;
    ExitCode code = remote_open(cli, &remote);
    Out *out = cli_out(cli);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", path, NULL, &usage);
    if (code != EXIT_CODE_OK)
        return code;
    const Json *total = json_object_get(usage, "total"), *rows = json_object_get(usage, "rows");

    if (!json_is_array(rows) || !json_is_object(total))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s did not say what it cost",
                        remote_address(remote));
    out_json(out, usage);
    if (out_format(out) == OUT_JSON)
        return EXIT_CODE_OK;
    out_table(out, columns, rows);
    out_text(out, OUT_BOLD,
             "%s days: $%.4f (models $%.4f, boxes $%.4f at $%.2f an hour); a month like this: $%.2f\n", span,
             json_number_value(json_object_get(total, "cost")),
             json_number_value(json_object_get(total, "model_cost")),
             json_number_value(json_object_get(total, "box_cost")),
             json_number_value(json_object_get(usage, "price_per_hour")),
             json_number_value(json_object_get(usage, "monthly_estimate")));
    return EXIT_CODE_OK;
}

static const CliOption options[] = {
    {.name = "by", .value = "WHAT", .help = "box, agent, task, squad, provider or model (default)"},
    {.name = "days", .value = "N", .help = "so many days back (default: 30)"},
    {NULL},
};

const Command command_cost = {
    .name = "cost",
    .summary = "Show what models and boxes came to",
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run_cost,
};
