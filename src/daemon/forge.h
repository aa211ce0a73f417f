/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "api/api.h"
#include "base/loop.h"
#include "box/host.h"
#include "daemon/config.h"
#include "forge/forge.h"
#include "forge/hook.h"
#include "store/db.h"
#include "store/events.h"

/* The forge of this server, made from its configuration. */
typedef struct ServeForgeSpec {
    const Config *config; /* borrowed, as is everything */
    Loop *loop;
    Db *db;
    EventLog *events;
    BoxHost *boxes; /* NULL: none */
    const char *address;
} ServeForgeSpec;

/* The webhooks of repositories and squads, with what they are sealed with. */
typedef struct ServeHooks {
    Hooks *hooks; /* NULL: none */
    Seal *seal;
} ServeHooks;
/* `forge` NULL: those of squads alone. */
bool serve_hooks_open(ServeHooks *hooks, const ServeForgeSpec *spec, Forge *forge, Api *api, GError **error);
void serve_hooks_stop(ServeHooks *hooks);  /* before the forge is freed */
void serve_hooks_clear(ServeHooks *hooks); /* after the database was closed: its jobs seal */

/* NULL with ERR_UNAVAILABLE: a program is missing. */
Forge *serve_forge_new(const ServeForgeSpec *spec, GError **error);
