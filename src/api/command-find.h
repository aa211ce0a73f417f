/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "box/host.h"

/* Commands that a route names, also those that have ended, and those of boxes that have. */

typedef struct CommandPlace {
    Box *box; /* NULL: it has ended */
    Run *run; /* NULL: it is not in memory any more; its end is in `object` */
    const char *box_id;
    guint32 id;
    Json *object; /* as the API shows it */
} CommandPlace;
/* Everything is borrowed for the call; not called when something was answered already. */
typedef void (*CommandFunc)(ApiCall *call, const CommandPlace *place);
void call_command(ApiCall *call, CommandFunc func);
/* All of the box's, the newest `limit` of them, oldest first. */
typedef void (*CommandListFunc)(ApiCall *call, Json *list);
void call_commands(ApiCall *call, guint limit, CommandListFunc func);

/* Of a live box, in memory; for what is done to a command.  NULL: answered, 404 or 409. */
Run *call_live_run(ApiCall *call, Box **ret_box);

/* A row of box_host_commands() as the API shows it; `run` (NULL: none) knows more than that. */
Json *command_describe(Json *row, const Run *run);
/* A command of a live box that is in memory, as the API shows it. */
Json *run_describe(Box *box, Run *run);
