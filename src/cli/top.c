/* SPDX-License-Identifier: Apache-2.0 */
#include <glib-unix.h>
#include <signal.h>
#include <unistd.h>

#include "cli/box-stats.h"
#include "cli/commands.h"

enum { TICK_MS = 1000 };

/* Home, and clear to the end: without a flicker. */
static const char clear_screen[] = "\033[H\033[J";

static gboolean
on_interrupt(gpointer data)
{
    remote_cancel(data);
    return G_SOURCE_CONTINUE;
}

static ExitCode
watch(Cli *cli, Remote *remote)
{
    Out *out = cli_out(cli);
    bool screen = out_format(out) == OUT_TEXT && isatty(out_fd(out)) == 1;
    bool once = cli_option(cli, "once") != NULL;
    g_auto(BoxSample) before = {0};
    ExitCode code = EXIT_CODE_OK;

    for (;;) {
        g_auto(BoxSample) now = {0};

        code = box_sample(remote, cli_args(cli), cli_n_args(cli), before.rows != NULL ? &before : NULL, &now);
        if (code != EXIT_CODE_OK || remote_is_cancelled(remote))
            return code;
        /* What a core was used for is known from the second look on. */
        if (!once || before.rows != NULL) {
            if (screen && !once)
                out_raw(out, clear_screen);
            out_table(out, box_stats_columns, now.rows);
        }
        if ((once && before.rows != NULL) || !out_ok(out) || out_is_gone(out) ||
            !remote_wait(remote, TICK_MS))
            return EXIT_CODE_OK;
        box_sample_clear(&before);
        before = now;
        now = (BoxSample){0};
    }
}

static ExitCode
run(Cli *cli)
{
    g_autoptr(Remote) remote = NULL;
    ExitCode code = remote_open(cli, &remote);

    if (code != EXIT_CODE_OK)
        return code;
    signal(SIGPIPE, SIG_IGN);
    const guint sources[] = {g_unix_signal_add(SIGINT, on_interrupt, remote),
                             g_unix_signal_add(SIGTERM, on_interrupt, remote)};
    code = watch(cli, remote);
    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
        g_source_remove(sources[i]);
    return code;
}

static const CliOption options[] = {
    {.name = "once", .help = "look for one second, print, and end"},
    {NULL},
};

const Command command_top = {
    .name = "top",
    .summary = "Watch what boxes use: cpu, memory, disk",
    .args = "[BOX...]",
    .args_max = CLI_ARGS_MANY,
    .options = options,
    .settings = CLI_SETTINGS_CLIENT,
    .run = run,
};
