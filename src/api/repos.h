/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "forge/repo.h"

/* The routes of the forge find their repository by {owner} and {repo}.  Both answer themselves
 * when there is none, and give NULL. */
Forge *call_forge(ApiCall *call);
Repo *call_repo(ApiCall *call);

/* The end of work that was begun with a reference to the request, which this drops: `data` is the
 * call, answered with the value.  A ForgeJsonFunc. */
void call_on_json(Json *value, const GError *error, void *data);

/* A member that is microseconds since 1970, as the API shows times; null for 0. */
Json *row_time_json(const Json *row, const char *member);
/* Entries of the merge queue, as the API shows them; of {"items"}. */
Json *merges_json(const Json *list);
