/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#include "cli/commands.h"

static ExitCode
run(Cli *cli)
{
    g_autoptr(Json) value = json_pack("{s:s,s:s*}", "version", version_number(), "commit", version_commit());

    out_json(cli_out(cli), value);
    out_text(cli_out(cli), OUT_PLAIN, "coop %s", version_number());
    if (version_commit() != NULL)
        out_text(cli_out(cli), OUT_PLAIN, " (%s)", version_commit());
    out_text(cli_out(cli), OUT_PLAIN, "\n");
    return EXIT_CODE_OK;
}

const Command command_version = {
    .name = "version",
    .summary = "Show the version",
    .run = run,
};
