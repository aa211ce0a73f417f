/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/hook.h"

/* What webhooks tell of squads and their tasks. */

/* A HookLook: {"squad": {id, name}, "task": {id, number, title, state, …}}, each null where there is none
 * (any more). */
Json *team_told_look(RowJob *job, const char *task_id, const char *squad_id, GError **error);
/* A HookRender for squads: the event as the API shows it, with `squad` and `task`; a ping has the `hook`. */
Json *team_told_body(Repo *repo, const HookEvent *event, void *ctx);
