/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "cli/cli.h"
#include "json/json.h"

/* Whom a command of `coop door` is about. */

#define DOOR_SCOPE_OPTIONS                                                                                   \
    {.name = "box", .value = "ID", .help = "for this box alone"},                                            \
        {.name = "template", .value = "NAME", .help = "for boxes of this template"},                         \
    {                                                                                                        \
        .name = "squad", .value = "NAME", .help = "for boxes of this squad"                                  \
    }

/* --box, --template or --squad; none: the server.  False after a message. */
bool door_scope_add(Cli *cli, Json *body);
char *door_scope_shown(Json *body);

extern const Command door_limits; /* door-limits.c */
