/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/usage.h"

static const Command *
find(const Command *parent, const char *name)
{
    for (const Command *const *c = parent->commands; c != NULL && *c != NULL; c++) {
        if (strcmp((*c)->name, name) == 0)
            return *c;
    }
    return NULL;
}

static ExitCode
run(Cli *cli)
{
    const Command *path[CLI_DEPTH_MAX] = {cli_root(cli)};
    guint depth = 1;

    for (const char *const *arg = cli_args(cli); *arg != NULL; arg++) {
        path[depth] = find(path[depth - 1], *arg);
        if (path[depth] == NULL)
            return cli_fail(cli, EXIT_CODE_USAGE, "there is no command '%s'", *arg);
        depth++;
    }
    usage_show(cli_out(cli), path, depth);
    return EXIT_CODE_OK;
}

const Command command_help = {
    .name = "help",
    .summary = "Show the help of a command",
    .args = "[COMMAND]...",
    .args_max = CLI_DEPTH_MAX - 1,
    .run = run,
};
