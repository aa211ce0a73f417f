/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#define COMMAND_ROW(name) &command_##name,
static const Command *const all[] = {COMMANDS(COMMAND_ROW) NULL};
#undef COMMAND_ROW

static const CliOption options[] = {
    {.name = "version", .help = "the same as 'coop version'"},
    {NULL},
};

static ExitCode
run(Cli *cli)
{
    if (cli_option(cli, "version") != NULL)
        return command_version.run(cli);
    return cli_fail(cli, EXIT_CODE_USAGE, "a command is missing\nTry 'coop --help'.");
}

const Command command_root = {
    .name = "coop",
    .summary = "A self-hosted home for AI coding agents",
    .details = "Run 'coop help COMMAND' for the help of one command.",
    .options = options,
    .commands = all,
    .run = run,
};
