/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/loop.h"
#include "door/service.h"
#include "team/mind.h"

/* The server asks models as a box does.  To the door each who asks ("planner-7" of a task) is a box of its
 * own, with the labels of who asks and a policy that lets nothing out but model calls: it has its own
 * listener, a socket that only we can reach, and its own breaker; budgets and events see it like any other.
 * Such a box is kept for the next question of the same one, until there are too many. */
typedef struct ServeMind ServeMind;

enum {
    MIND_BOXES_MAX = 128,
    MIND_DOOR_MS = 3000, /* how long a question waits for a door that is away */
};

/* `door` is borrowed and loaded; sockets are below `run`, a folder that is closed to others. */
ServeMind *serve_mind_new(Loop *loop, DoorService *door, const char *run);
void serve_mind_free(ServeMind *mind); /* before the door; questions under way are dropped */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ServeMind, serve_mind_free)
Mind serve_mind_face(ServeMind *mind);
