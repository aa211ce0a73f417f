/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"
#include "cli/commands.h"

static ExitCode
run(Cli *cli)
{
    static const OutColumn columns[] = {
        {"method", "METHOD"}, {"pattern", "PATH"}, {"scopes", "SCOPES"}, {"public", "PUBLIC"}, {NULL}};
    g_autoptr(Json) rows = api_describe_routes();

    out_table(cli_out(cli), columns, rows);
    return EXIT_CODE_OK;
}

/* For the test that calls every route as every kind of caller. */
const Command command_routes = {
    .name = "__routes",
    .summary = "Show every route of the server and who may call it",
    .hidden = true,
    .run = run,
};
