/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/offline.h"
#include "cli/remote.h"
#include "daemon/home.h"

enum { PIECE = 64 * 1024, ANSWER_MAX = 16 };

/* ---- what is restored ---- */

/* A pipe is read to its end first: what is sent has to be a file. */
static int
spool(int from, GError **error)
{
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "coop-restore-XXXXXX", NULL);
    autofd to = mkostemp(path, O_CLOEXEC);
    g_autofree char *piece = g_malloc(PIECE);
    ssize_t n = 1;

    if (to < 0) {
        err_errno(error, "create '%s'", path);
        return -1;
    }
    (void)unlink(path); /* it needs no name, and a name that stays does no harm */
    while (n > 0 && (n = io_read_full(from, piece, PIECE)) > 0) {
        if (!io_write_all(to, piece, (size_t)n))
            n = -1;
    }
    if (n < 0 || lseek(to, 0, SEEK_SET) < 0) {
        err_errno(error, "copy the backup to '%s'", g_get_tmp_dir());
        return -1;
    }
    return g_steal_fd(&to);
}

static int
open_backup(const char *path, GError **error)
{
    autofd fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0) {
        err_errno(error, "open '%s'", path);
        return -1;
    }
    if (S_ISDIR(st.st_mode)) {
        err_set(error, ERR_INVALID, "'%s' is a folder", path);
        return -1;
    }
    return S_ISREG(st.st_mode) ? g_steal_fd(&fd) : spool(fd, error);
}

/* ---- is it meant? ---- */

static bool
ask(Cli *cli, const char *where)
{
    char answer[ANSWER_MAX] = "";

    out_notice(cli_out(cli), "this replaces everything stored at %s. Go on? [y/N]", where);
    ssize_t n = read(STDIN_FILENO, answer, sizeof answer - 1);
    g_strstrip(answer);
    return n > 0 && (g_ascii_strcasecmp(answer, "y") == 0 || g_ascii_strcasecmp(answer, "yes") == 0);
}

static ExitCode
confirm(Cli *cli, const char *where)
{
    if (cli_option(cli, "yes") != NULL)
        return EXIT_CODE_OK;
    if (isatty(STDIN_FILENO) != 1)
        return cli_fail(cli, EXIT_CODE_USAGE, "this replaces everything stored at %s: add --yes", where);
    return ask(cli, where) ? EXIT_CODE_OK : cli_fail(cli, EXIT_CODE_FAILED, "nothing was changed");
}

/* ---- doing it ---- */

static void
show(Cli *cli, const Json *result)
{
    Out *out = cli_out(cli);

    out_json(out, result);
    out_text(out, OUT_GOOD, "restored the backup of %s (Coop %s)\n",
             json_string_value(json_object_get(result, "created_at")),
             json_string_value(json_object_get(result, "version")));
    if (!json_is_true(json_object_get(result, "key_file_valid")))
        out_notice(out,
                   "the key in the data folder is not one of what was restored, whose own keys work: with "
                   "the server running, 'coop key new NAME --scopes admin' makes another for its owner");
}

/* A bad file is not a bad command line. */
static ExitCode
code_of(ExitCode code)
{
    return code == EXIT_CODE_USAGE ? EXIT_CODE_FAILED : code;
}

static ExitCode
send_to_server(Cli *cli, Remote *remote, int fd)
{
    /* With Expect a refusal comes before everything was sent. */
    static const char *const headers[] = {"Content-Type: application/octet-stream", "Expect: 100-continue",
                                          NULL};
    g_auto(RemoteReply) reply = {0};
    RemoteCall call = REMOTE_CALL_INIT;

    call.method = "POST";
    call.path = "/api/v1/restore";
    call.headers = headers;
    call.body_fd = fd;
    call.answer_ms = 0; /* it is checked and exchanged first */
    remote_try(remote, &call, &reply);
    if (reply.message != NULL)
        return cli_fail(cli, code_of(reply.code), "%s", reply.message);
    if (!json_is_string(json_object_get(reply.body, "created_at")) ||
        !json_is_string(json_object_get(reply.body, "version")))
        return cli_fail(cli, EXIT_CODE_FAILED, "the server at %s did not say what it did",
                        remote_address(remote));
    show(cli, reply.body);
    return EXIT_CODE_OK;
}

static ExitCode
restore_folder(Cli *cli, const Config *config, int fd)
{
    g_auto(OfflineResult) r = {0};
    g_autoptr(GError) error = NULL;

    if (!offline_restore(config, fd, &r, &error))
        return cli_fail(cli, code_of(exit_code_of(error)), "%s", error->message);
    if (r.set_aside != NULL)
        out_notice(cli_out(cli), "the database that was there cannot be opened; it was kept as %s",
                   r.set_aside);
    g_autoptr(Json) result = json_pack("{s:s, s:I, s:s, s:I, s:b, s:s*}", "version", r.info.version, "schema",
                                       (json_int_t)r.info.schema, "created_at", r.info.created_at, "bytes",
                                       (json_int_t)r.info.bytes, "key_file_valid", (int)r.key_file_valid,
                                       "set_aside", r.set_aside);
    show(cli, result);
    return EXIT_CODE_OK;
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(GError) error = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code != EXIT_CODE_OK)
        return code;
    autofd fd = open_backup(cli_args(cli)[0], &error);
    if (fd < 0)
        return cli_fail_error(cli, error);
    const Config *config = remote_config(remote);
    bool by_server = config->server_url_is_set || home_is_locked(config->home);
    code = confirm(cli, by_server ? remote_address(remote) : config->home);
    if (code != EXIT_CODE_OK)
        return code;
    return by_server ? send_to_server(cli, remote, fd) : restore_folder(cli, config, fd);
}

static const CliOption options[] = {
    {.name = "yes", .letter = 'y', .help = "do not ask"},
    {NULL},
};

const Command command_restore = {
    .name = "restore",
    .summary = "Replace everything that is stored by a backup",
    .args = "FILE",
    .args_min = 1,
    .args_max = 1,
    .details =
        "Through the server if one runs on the data folder, which goes on with the new content; else in\n"
        "the folder. '-' is standard input. A file that is not whole changes nothing.",
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
