/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "cli/box-call.h"
#include "cli/box-spec.h"
#include "cli/commands.h"

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    signal(SIGPIPE, SIG_IGN);
    if (code != EXIT_CODE_OK)
        return code;
    if (cli_option(cli, "detach") != NULL)
        return box_run_detached(cli, remote, cli_args(cli), cli_n_args(cli));
    return box_exec(cli, remote, NULL, cli_args(cli), cli_n_args(cli));
}

static const CliOption options[] = {
    BOX_OPTIONS,
    COMMAND_OPTIONS,
    {.name = "detach", .letter = 'd', .help = "print the box and leave it running"},
    {.name = "rm", .help = "accepted: the box is removed anyway, unless --detach"},
    {NULL},
};

const Command command_run = {
    .name = "run",
    .summary = "Run a command in a new box and throw the box away",
    .args = "-- COMMAND...",
    .args_min = 1,
    .args_max = CLI_ARGS_MANY,
    .details = "One word is a line for the shell inside; several are the program and its arguments.\n"
               "The exit code is the command's: 128 + signal when one killed it, 124 at its time limit, 137 "
               "when memory ran out.",
    .options = options,
    .rest = true,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
