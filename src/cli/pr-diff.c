/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/forge-call.h"
#include "cli/pager.h"
#include "cli/pr.h"
#include "cli/threads.h"

typedef struct Diff {
    Cli *cli;
    Pager *pager; /* NULL until there is something to show */
} Diff;

static bool
on_bytes(const guint8 *bytes, size_t n, void *ctx)
{
    Diff *d = ctx;

    if (d->pager == NULL)
        d->pager = pager_open(d->cli);
    return pager_write(d->pager, bytes, n);
}

static ExitCode
run(Cli *cli)
{
    static const char *const diff[] = {"Accept: application/vnd.github.diff", NULL};
    static const char *const patch[] = {"Accept: application/vnd.github.patch", NULL};
    g_auto(ForgeCall) call = {0};
    g_auto(RemoteReply) reply = {0};
    RemoteCall ask = REMOTE_CALL_INIT;
    gint64 number;

    ExitCode code = forge_call_begin(cli, &call, &number);

    if (code != EXIT_CODE_OK)
        return code;
    g_autofree char *path = forge_call_path(&call, "/pulls/%" G_GINT64_FORMAT, number);
    Diff d = {.cli = cli};

    ask.path = path;
    ask.headers = cli_option(cli, "patch") != NULL ? patch : diff;
    ask.stall_ms = 0; /* as long as somebody reads */
    ask.data = on_bytes;
    ask.ctx = &d;
    remote_try(call.remote, &ask, &reply);
    bool written = d.pager == NULL || pager_close(d.pager);

    if (reply.message != NULL)
        return forge_call_fail(&call, &reply);
    return written ? EXIT_CODE_OK : cli_fail(cli, EXIT_CODE_FAILED, "the diff could not be written");
}

static const CliOption options[] = {
    {.name = "patch", .help = "one patch for each commit, as git am takes them"}, REPO_OPTION, {NULL}};
const Command pr_diff = {
    .name = "diff",
    .summary = "Show what a pull request changes",
    ONE_THREAD,
    .details = "On a terminal through $PAGER; elsewhere it is written as it is.",
    .options = options,
    .run = run,
};
