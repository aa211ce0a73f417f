/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include "cli/attach.h"
#include "cli/box-call.h"
#include "cli/box-spec.h"
#include "cli/commands.h"

/* A login shell of the image's own, or the one that is always there. */
static const char *const shell_words[] = {
    "if [ -x /bin/bash ]; then exec /bin/bash -l; else exec /bin/sh -l; fi"};

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    const char *id = cli_n_args(cli) > 0 ? cli_args(cli)[0] : NULL;
    ExitCode code = remote_open(cli, &remote);

    signal(SIGPIPE, SIG_IGN);
    if (code == EXIT_CODE_OK && isatty(STDIN_FILENO) != 1)
        return cli_fail(cli, EXIT_CODE_USAGE,
                        "a shell needs a terminal: 'coop run -i -- sh' reads commands from standard input");
    if (code != EXIT_CODE_OK)
        return code;
    return box_exec_terminal(cli, remote, id, shell_words, G_N_ELEMENTS(shell_words));
}

static const CliOption options[] = {
    BOX_OPTIONS,
    {.name = "env", .letter = 'e', .value = "NAME=VALUE", .help = "a variable; NAME alone passes ours on"},
    {.name = "user", .letter = 'u', .value = "USER", .help = "a name or number inside"},
    {.name = "workdir", .letter = 'w', .value = "FOLDER", .help = "where it starts"},
    {.name = "root", .help = "as root inside"},
    {NULL},
};

const Command command_shell = {
    .name = "shell",
    .summary = "Open a shell in a box, or in a new one that goes with it",
    .args = "[BOX]",
    .args_max = 1,
    .details = "Ctrl-P Ctrl-Q leaves a shell in a box of yours running.",
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
