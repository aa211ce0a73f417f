/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "team/room.h"

/* Who asks for a room.  A box is the agent that works in it, whatever it says of itself. */

/* What room_admit() answers to this caller; `room` NULL: the agent's own. */
void call_admit(ApiCall *call, const char *room, TeamJsonFunc func, void *data);

/* A call whose caller may be in the room; `who` is borrowed, and freed after it.  It answers. */
typedef struct RoomVisit {
    ApiCall *call; /* with a reference to its request */
    Rooms *rooms;
    Json *who;
    const char *id;  /* of the room */
    RoomActor actor; /* of `who` */
    Json *body;      /* NULL: none */
} RoomVisit;
typedef void (*RoomVisitFunc)(RoomVisit *visit);
void call_visit(ApiCall *call, const char *room, Json *body, RoomVisitFunc func);

/* {"text", "kind", "priority", "recipient", "data"}; borrowed from it. */
bool room_message_read(Json *body, RoomMessage *ret_message, GError **error);
/* "low", …; NULL: all. */
bool room_priority_read(const char *name, RoomPriority *ret_priority, GError **error);

/* ?after=, ?priority=, ?all=, ?limit=.  An agent hears what is for all or for itself, unless it asks for all.
 */
typedef struct RoomQuery {
    gint64 after, limit;
    RoomPriority at_least;
    bool all;
} RoomQuery;
bool room_query_read(const ApiCall *call, RoomQuery *ret_query, GError **error);
RoomFilter room_query_filter(const RoomQuery *query, const RoomActor *who);

/* GET of a room with Upgrade. */
void room_socket(ApiCall *call);
