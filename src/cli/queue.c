/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/remote.h"

static void
show_merges(Out *out, const Json *merges)
{
    static const OutColumn columns[] = {
        {"repository", "REPOSITORY"}, {"number", "PULL"}, {"target", "INTO"},
        {"state", "STATE"},           {"tries", "TRIES"}, {NULL},
    };

    if (json_array_size(merges) == 0)
        return;
    out_text(out, OUT_PLAIN, "\n%zu to be merged\n", json_array_size(merges));
    out_table(out, columns, merges);
}

static ExitCode
run(Cli *cli)
{
    static const OutColumn columns[] = {
        {"repository", "REPOSITORY"}, {"what", "WHAT"},   {"state", "STATE"},
        {"waiting_ms", "MS"},         {"tries", "TRIES"}, {NULL},
    };
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) body = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = remote_call(remote, "GET", "/api/v1/queue", NULL, &body);
    if (code != EXIT_CODE_OK)
        return code;
    if (out_format(cli_out(cli)) == OUT_JSON) {
        out_json(cli_out(cli), body);
        return EXIT_CODE_OK;
    }
    out_text(cli_out(cli), OUT_PLAIN, "%d of at most %d waiting, %d under way\n",
             (int)json_integer_value(json_object_get(body, "depth")),
             (int)json_integer_value(json_object_get(body, "limit")),
             (int)json_integer_value(json_object_get(body, "running")));
    if (json_array_size(json_object_get(body, "work")) > 0)
        out_table(cli_out(cli), columns, json_object_get(body, "work"));
    show_merges(cli_out(cli), json_object_get(body, "merges"));
    return EXIT_CODE_OK;
}

const Command command_queue = {
    .name = "queue",
    .summary = "Show what git works on, what waits, and what is to be merged",
    .details = "Writes of one repository are done one after the other, in the order they came,\n"
               "and so are merges into one branch: 'coop pr merge' puts them here.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
