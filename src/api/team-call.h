/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "team/task.h"

/* What the faces of squads, tasks, plans, rooms and agents share. */

/* NULL: answered, since this server has none. */
Team *call_team(ApiCall *call);
/* The one of the path's {task}, if it is the caller's. */
TaskRef call_task_ref(ApiCall *call);

/* A row as the API shows it: `…_us` that are points in time become `…_at`, null for 0, in objects and
 * lists inside it too. */
Json *team_show(const Json *row);

/* The end of work that was begun with a reference to the request, which these drop: `data` is the call.
 * TeamJsonFuncs.  With 200; with 201, or 200 where `created` is false; a list under the name of the last
 * fixed part of the route ("tasks", with `total` and the `seq` of the newest event). */
void call_on_row(Json *value, const GError *error, void *data);
void call_on_made(Json *value, const GError *error, void *data);
void call_on_rows(Json *value, const GError *error, void *data);

typedef struct CallPage {
    gint64 page, per_page;
} CallPage;
bool call_read_page(ApiCall *call, CallPage *ret_page, GError **error);
/* Of lists that may be those of one task: `*ret_task` NULL: of all.  False: answered. */
bool call_read_task_page(ApiCall *call, char **ret_task, ForgePage *ret_page);
