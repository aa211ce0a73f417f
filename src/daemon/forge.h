/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "base/loop.h"
#include "box/host.h"
#include "daemon/config.h"
#include "forge/forge.h"
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

/* NULL with ERR_UNAVAILABLE: a program is missing. */
Forge *serve_forge_new(const ServeForgeSpec *spec, GError **error);
