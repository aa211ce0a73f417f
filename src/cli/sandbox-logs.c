/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/attach.h"
#include "cli/box-call.h"
#include "cli/commands.h"
#include "cli/sandbox.h"

/* The newest command, when none is named. */
static ExitCode
find_number(Cli *cli, Remote *remote, const char *id, gint64 *ret_number)
{
    g_autofree char *path = box_path(id, "/commands");
    g_autoptr(Json) body = NULL;
    guint64 given;

    if (cli_n_args(cli) > 1) {
        if (!g_ascii_string_to_unsigned(cli_args(cli)[1], 10, 1, G_MAXUINT32, &given, NULL))
            return cli_fail(cli, EXIT_CODE_USAGE, "'%s' is not the number of a command", cli_args(cli)[1]);
        *ret_number = (gint64)given;
        return EXIT_CODE_OK;
    }
    ExitCode code = remote_call(remote, "GET", path, NULL, &body);
    if (code != EXIT_CODE_OK)
        return code;
    size_t i;
    Json *command;
    json_array_foreach(json_object_get(body, "commands"), i, command)
    {
        *ret_number = MAX(*ret_number, json_integer_value(json_object_get(command, "id")));
    }
    return *ret_number > 0 ? EXIT_CODE_OK
                           : cli_fail(cli, EXIT_CODE_NOT_FOUND, "no command has run in %s yet", id);
}

static bool
write_out(const guint8 *bytes, size_t n, void *ctx)
{
    return io_write_all(GPOINTER_TO_INT(ctx), bytes, n);
}

static ExitCode
print_stream(Remote *remote, const char *id, gint64 number, const char *stream, int fd)
{
    g_autofree char *rest = g_strdup_printf("/commands/%lld/output?stream=%s", (long long)number, stream);
    g_autofree char *path = box_path(id, rest);
    RemoteCall call = REMOTE_CALL_INIT;

    call.path = path;
    call.data = write_out;
    call.ctx = GINT_TO_POINTER(fd);
    return remote_run(remote, &call, NULL);
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    const char *id = cli_args(cli)[0];
    gint64 number = 0;
    int exit_code = 0;
    ExitCode code = remote_open(cli, &remote);

    signal(SIGPIPE, SIG_IGN);
    if (code == EXIT_CODE_OK)
        code = find_number(cli, remote, id, &number);
    if (code != EXIT_CODE_OK)
        return code;
    if (cli_option(cli, "follow") != NULL)
        return attach_run(
            &(AttachSpec){.cli = cli, .remote = remote, .box = id, .number = number, .watch = true},
            &exit_code, NULL);
    code = print_stream(remote, id, number, "stdout", STDOUT_FILENO);
    return code == EXIT_CODE_OK ? print_stream(remote, id, number, "stderr", STDERR_FILENO) : code;
}

static const CliOption options[] = {
    {.name = "follow", .letter = 'f', .help = "go on until the command ends"},
    {NULL},
};
#define LOGS_COMMAND                                                                                         \
    {                                                                                                        \
        .name = "logs", .summary = "Print the output of a command in a box", .args = "BOX [NUMBER]",         \
        .args_min = 1, .args_max = 2, .options = options, .settings = CLI_SETTINGS_CLIENT, .run = run,       \
        .details = "Without a number, of the newest command. Output stays for a while after the box's end.", \
    }
const Command sandbox_logs = LOGS_COMMAND;
const Command command_logs = LOGS_COMMAND;
