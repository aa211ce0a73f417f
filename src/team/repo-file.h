/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/team-private.h"

/* What a repository asks of the squads that work on it, in its coop.yaml:
 *
 *     team:
 *       planner: council
 *       until: reviewed
 *       rounds: 2
 *
 * is a squad's config, below what the squad itself and the request say.  A repository may not decide what is
 * spent or kept: budget, council and keep are refused. */

/* Pure.  NULL without an error: the file says nothing of it. */
Json *repo_file_parse(const char *text, size_t len, GError **error);

/* The file of a branch (NULL: the default one); {} where there is none.  `done` may run inside the call. */
void repo_file_read(Team *team, const char *repository_id, const char *branch, TeamJsonFunc done, void *data);
