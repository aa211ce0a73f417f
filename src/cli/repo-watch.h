/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/remote.h"

/* "/api/v1/repos/OWNER/NAME" and what comes behind it. */
char *repo_path(const char *owner, const char *name, const char *more);

/* The same of the repository that the first argument names; NULL after a message. */
char *repo_path_of_arg(Cli *cli, const char *more);

/* The subcommand of `coop repo`. */
extern const Command repo_set;

/* Posts `body` (may be NULL), which begins to make, import or fetch a repository, and shows by the
 * server's events how far it is until it has ended.  `*ret_repo` is the repository then. */
ExitCode repo_watch(Cli *cli, Remote *remote, const char *path, const Json *body, Json **ret_repo);
