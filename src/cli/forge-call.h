/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* What the commands on pull requests and issues share: one repository of one server, over
 * /api/v3. */
typedef struct ForgeCall {
    Cli *cli;
    Remote *remote;
    char *owner, *name;
} ForgeCall;

#define REPO_OPTION                                                                                          \
    {                                                                                                        \
        .name = "repo", .letter = 'R', .value = "[OWNER/]NAME",                                              \
        .help = "the repository; not needed where the server has only one"                                   \
    }

/* The repository of --repo, or the only one. */
ExitCode forge_call_open(Cli *cli, ForgeCall *ret_call);
/* The same for a command whose first argument is a number: "7", or "#7". */
ExitCode forge_call_begin(Cli *cli, ForgeCall *ret_call, gint64 *ret_number);
void forge_call_clear(ForgeCall *call);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ForgeCall, forge_call_clear)

/* Below /api/v3/repos/OWNER/NAME; what goes in by the format is escaped already. */
char *forge_call_path(const ForgeCall *call, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* Says what went wrong; what is not there is named. */
ExitCode forge_call_fail(ForgeCall *call, const RemoteReply *reply);
/* As remote_call(). */
ExitCode
forge_call_run(ForgeCall *call, const char *method, const char *path, const Json *body, Json **ret_body);
/* Page after page, until there are `max` that `keep` (NULL: all); `path` has a query. */
typedef bool (*ForgeKeep)(const Json *item);
ExitCode forge_call_list(ForgeCall *call, const char *path, guint max, ForgeKeep keep, Json *into);

/* The text of a member, or of a member's member; "" when there is none. */
const char *forge_text(const Json *object, const char *member);
const char *forge_text_of(const Json *object, const char *outer, const char *member);
