/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/box-stats.h"
#include "cli/sandbox.h"

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_auto(BoxSample) sample = {0};
    ExitCode code = remote_open(cli, &remote);

    if (code == EXIT_CODE_OK)
        code = box_sample(remote, cli_args(cli), cli_n_args(cli), NULL, &sample);
    if (code == EXIT_CODE_OK)
        out_table(cli_out(cli), box_stats_columns, sample.rows);
    return code;
}

const Command sandbox_stats = {
    .name = "stats",
    .summary = "Show what boxes use now",
    .args = "[BOX...]",
    .args_max = CLI_ARGS_MANY,
    .details = "'coop top' goes on looking.",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
