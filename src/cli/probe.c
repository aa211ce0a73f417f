/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/probe.h"

#include <unistd.h>

#include "cli/commands.h"

/* The process is of no use after the trial: namespaces and filters cannot be taken back. */
static ExitCode
run(Cli *cli)
{
    const char *const *args = cli_args(cli);

    if (!probe_child(args[0], args[1]))
        return cli_fail(cli, EXIT_CODE_USAGE, "there is no probe '%s'", args[0]);
    _exit(EXIT_CODE_OK);
}

const Command command_probe = {
    .name = "__probe",
    .summary = "Try one thing for 'coop doctor'",
    .args = "NAME HOME",
    .args_min = 2,
    .args_max = 2,
    .hidden = true,
    .run = run,
};
