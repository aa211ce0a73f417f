/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "cli/box-call.h"
#include "cli/box-spec.h"
#include "cli/commands.h"

static ExitCode
run_detached(Cli *cli, Remote *remote, const char *id, const Json *box, const char *const *words, guint n)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Json) body = command_spec_body(cli, words, n, &error);
    g_autofree char *path = box_path(id, "/commands");

    if (body == NULL)
        return cli_fail(cli, EXIT_CODE_USAGE, "%s", error->message);
    ExitCode code = remote_call(remote, "POST", path, body, NULL);
    if (code != EXIT_CODE_OK)
        return code;
    out_json(cli_out(cli), box);
    out_text(cli_out(cli), OUT_PLAIN, "%s\n", id);
    return EXIT_CODE_OK;
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(Json) box = NULL;
    g_autofree char *id = NULL;
    bool detached = cli_option(cli, "detach") != NULL;
    ExitCode code = remote_open(cli, &remote);

    signal(SIGPIPE, SIG_IGN);
    if (code == EXIT_CODE_OK)
        code = box_make(cli, remote, &box, &id);
    if (code != EXIT_CODE_OK)
        return code;
    if (detached)
        code = run_detached(cli, remote, id, box, cli_args(cli), cli_n_args(cli));
    else
        code = box_exec(cli, remote, id, cli_args(cli), cli_n_args(cli));
    if (!detached || code != EXIT_CODE_OK)
        box_remove_quietly(cli, id);
    return code;
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
