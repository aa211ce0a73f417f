/* SPDX-License-Identifier: Apache-2.0 */
#include <pwd.h>

#include "base/subids.h"
#include "cli/commands.h"
#include "daemon/keeper-place.h"

static char *
read_text(const char *file)
{
    char *text = NULL;

    return g_file_get_contents(file, &text, NULL, NULL) ? text : g_strdup("");
}

static ExitCode
run(Cli *cli)
{
    const char *name = cli_args(cli)[0];
    const struct passwd *user = getpwnam(name);
    guint32 first;

    if (user == NULL)
        return cli_fail(cli, EXIT_CODE_NOT_FOUND, "there is no user '%s'", name);
    g_autofree char *users = read_text("/etc/subuid");
    g_autofree char *groups = read_text("/etc/subgid");

    /* Should they differ, more of them would not help; 'coop start' says so. */
    if (subids_find(users, name, user->pw_uid, KEEPER_SUB_IDS, &first) &&
        subids_find(groups, name, user->pw_uid, KEEPER_SUB_IDS, &first))
        return EXIT_CODE_OK;
    g_autofree char *fix = subids_dup_fix(users, groups, name);

    out_text(cli_out(cli), OUT_PLAIN, "%s\n", fix);
    return EXIT_CODE_OK;
}

const Command command_sub_ids = {
    .name = "__sub-ids",
    .summary = "Print the command that lends a user ids; nothing if they are lent already",
    .args = "USER",
    .args_min = 1,
    .args_max = 1,
    .hidden = true,
    .run = run,
};
