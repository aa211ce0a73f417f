/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* What the commands on squads and tasks share. */

/* "/api/v1/KIND/NAME" and `rest`, the name escaped. */
char *team_path(const char *kind, const char *name, const char *rest);
/* One call, whose answer is wanted; `ret_body` may be NULL. */
ExitCode team_send(Cli *cli, const char *method, const char *path, const Json *body, Json **ret_body);
/* The list NAME of `path`, which has a query; at most `max`. */
ExitCode team_fetch(Cli *cli, const char *path, const char *name, guint max, Json **ret_list);
/* Members of `body` from options of the same name; what is no UTF-8 is said. */
typedef struct TeamOption {
    const char *option, *member; /* NULL ends the list */
} TeamOption;
bool team_set_options(Cli *cli, const TeamOption *options, Json *body);
/* --config, --policy: a JSON object; NULL after a message.  Not given: an object without members. */
Json *team_read_object(Cli *cli, const char *option);
/* What stands in a file, or with "-" in the input; NULL after a message. */
char *team_read_file(Cli *cli, const char *path);
