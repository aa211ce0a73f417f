/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "cli/commands.h"
#include "cli/offline.h"
#include "cli/remote.h"
#include "cli/target.h"
#include "daemon/home.h"

typedef struct Backup {
    Cli *cli;
    Remote *remote;
    Target target;
    guint64 bytes;
    gint cancelled;
    GError *error; /* of our own side */
} Backup;

static gboolean
on_signal(gpointer data)
{
    Backup *b = data;

    g_atomic_int_set(&b->cancelled, 1);
    remote_cancel(b->remote);
    return G_SOURCE_CONTINUE;
}

static bool
on_data(const guint8 *bytes, size_t n, void *ctx)
{
    Backup *b = ctx;

    b->bytes += n;
    return io_write_all(b->target.fd, bytes, n) || err_errno(&b->error, "write the backup");
}

/* A backup that cannot be restored shows when it is needed: better now. */
static void
check_what_came(Backup *b)
{
    if (b->target.path == NULL)
        return;
    if (lseek(b->target.fd, 0, SEEK_SET) < 0)
        err_errno(&b->error, "read the backup");
    else if (!archive_check(b->target.fd, &b->error))
        b->error->code = ERR_INTERNAL; /* not the command line is wrong */
}

static ExitCode
fetch(Backup *b)
{
    RemoteCall call = REMOTE_CALL_INIT;

    call.path = "/api/v1/backup";
    call.answer_ms = 0; /* it is made first */
    call.data = on_data;
    call.ctx = b;
    ExitCode code = remote_run(b->remote, &call, NULL);
    if (code != EXIT_CODE_OK || b->cancelled != 0)
        return code;
    if (b->error == NULL)
        check_what_came(b);
    return b->error != NULL ? cli_fail_error(b->cli, b->error) : EXIT_CODE_OK;
}

static ExitCode
make(Backup *b)
{
    g_autoptr(GError) error = NULL;
    ArchiveInfo info;

    if (!offline_backup(remote_config(b->remote), b->target.fd, &b->cancelled, &info, &error) &&
        err_kind(error) != ERR_CANCELLED)
        return cli_fail_error(b->cli, error);
    off_t end = lseek(b->target.fd, 0, SEEK_CUR); /* fails for a pipe */
    b->bytes = end > 0 ? (guint64)end : 0;
    return EXIT_CODE_OK;
}

/* Of the data folder: objects, which can be gigabytes, and the keys that secrets in the database are
 * sealed with and receipts are signed with.  Beside what they seal these would be no seal. */
static Json *
left_out(const Config *config)
{
    static const char *const names[] = {"repos", "forge-key", "receipt-key"};
    Json *list = json_array();

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(config->home, names[i], NULL);

        if (config->server_url_is_set || g_file_test(path, G_FILE_TEST_EXISTS))
            json_array_append_new(list, json_string(names[i]));
    }
    return list;
}

static void
tell_left_out(Cli *cli, const Json *list)
{
    g_autoptr(GString) names = g_string_new(NULL);
    size_t i;
    Json *name;

    json_array_foreach(list, i, name)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", json_string_value(name));
    if (names->len > 0)
        out_notice(cli_out(cli),
                   "not in it are %s of the data folder: copy them as well, with the server stopped, and the "
                   "keys to another place than the backup",
                   names->str);
}

static ExitCode
finish(Backup *b)
{
    g_autoptr(GError) error = NULL;

    if (b->cancelled != 0)
        return cli_fail(b->cli, EXIT_CODE_FAILED, "interrupted: no backup was written");
    if (!target_finish(&b->target, &error))
        return cli_fail_error(b->cli, error);
    if (b->target.path == NULL)
        return EXIT_CODE_OK;
    Json *without = left_out(remote_config(b->remote));
    g_autoptr(Json) value = json_pack("{s:s, s:I, s:o}", "file", b->target.path, "bytes",
                                      (json_int_t)b->bytes, "left_out", without);
    g_autofree char *size = g_format_size_full(b->bytes, G_FORMAT_SIZE_IEC_UNITS);
    out_json(cli_out(b->cli), value);
    out_text(cli_out(b->cli), OUT_PLAIN, "wrote %s (%s)\n", b->target.path, size);
    if (out_format(cli_out(b->cli)) == OUT_TEXT)
        tell_left_out(b->cli, without);
    return EXIT_CODE_OK;
}

static ExitCode
run_with_target(Backup *b)
{
    const Config *config = remote_config(b->remote);
    const guint sources[] = {g_unix_signal_add(SIGINT, on_signal, b),
                             g_unix_signal_add(SIGTERM, on_signal, b)};
    bool by_server = config->server_url_is_set || home_is_locked(config->home);
    ExitCode code = by_server ? fetch(b) : make(b);

    if (code == EXIT_CODE_OK)
        code = finish(b);
    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
        g_source_remove(sources[i]);
    return code;
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    g_autoptr(GError) error = NULL;
    ExitCode code = remote_open(cli, &remote);
    Backup b = {.cli = cli, .remote = remote, .target = TARGET_INIT};

    if (code != EXIT_CODE_OK)
        return code;
    if (!target_open(cli_args(cli)[0], &b.target, &error))
        return cli_fail_error(cli, error);
    code = run_with_target(&b);
    target_clear(&b.target);
    g_clear_error(&b.error);
    return code;
}

const Command command_backup = {
    .name = "backup",
    .summary = "Write everything that is stored to a file",
    .args = "FILE",
    .args_min = 1,
    .args_max = 1,
    .details = "Through the server if one runs on the data folder, while it works on; else from the folder.\n"
               "FILE appears when it is whole; '-' is standard output. It holds the hashes of all keys, and\n"
               "what people wrote: keep it as safe as the server. Not in it are the objects of repositories\n"
               "(repos in the data folder) and the two keys beside them (forge-key, receipt-key).",
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
