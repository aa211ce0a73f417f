/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "base/loop.h"
#include "json/json.h"

/* What the package clients of this machine use, so that a company's mirror works in boxes
 * without a line of configuration.  Asked once at the start, in the background; until then what
 * was found the last time is true. */
typedef struct DoorClients DoorClients;

/* `changed` from the loop, when what was found is not what was known. */
DoorClients *door_clients_new(Loop *loop, const char *cache_file, void (*changed)(void *ctx), void *ctx);
void door_clients_free(DoorClients *clients);
/* Begins to ask. */
void door_clients_ask(DoorClients *clients);

/* {"npm": {"urls": […], "env": […]}, …}; borrowed. */
Json *door_clients_found(const DoorClients *clients);
/* Rules of policy.h that allow what was found; the caller owns it. */
Json *door_clients_rules(const DoorClients *clients);
/* The environment of boxes: the door as proxy, the mirrors, where models are; NULL-terminated. */
char **door_clients_env(const DoorClients *clients);
