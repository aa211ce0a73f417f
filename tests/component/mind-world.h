/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "daemon/mind.h"
#include "support/control-bench.h"
#include "support/store.h"

/* A door with a scripted provider "script", a server's end of it with a database, and a mind. */
typedef struct MindWorld {
    StoreBench *store;
    ControlBench *bench; /* the door */
    DoorService *door;
    ServeMind *mind;
    Mind face;
    guint waiting;
} MindWorld;

MindWorld *mind_world_new(const char *script);
void mind_world_free(MindWorld *world);
/* `script` "": it is none. */
void mind_world_provider(MindWorld *world, const char *json, const char *script);
void mind_world_budget(MindWorld *world, const char *scope, Json *bounds);
