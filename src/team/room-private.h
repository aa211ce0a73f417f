/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/rate.h"
#include "forge/row.h"
#include "team/room.h"
#include "team/team-private.h"

/* What room*.c share.  Nothing of a room is in memory but who listens. */
struct Rooms {
    Team *team;        /* NULL: it is being freed */
    guint refs;        /* its owner's, and one of each job that is under way */
    GHashTable *open;  /* id -> Room: those that have members */
    GHashTable *rates; /* execution id -> RateBucket */
};

typedef struct Room {
    Rooms *rooms;
    char *id;
    GPtrArray *members; /* RoomMember *, borrowed */
} Room;

Rooms *rooms_ref(Rooms *rooms);
void rooms_unref(Rooms *rooms);

/* One more of this agent's; false: too many a minute.  Others than agents are bounded where they come in. */
bool rooms_take(Rooms *rooms, const RoomActor *who, GError **error);
/* A change that counts against the agent's rate and that the members hear of; `done` may be NULL, and comes
 * inside the call when the rate is used up. */
typedef void (*RoomTell)(Rooms *rooms, Json *value);
void rooms_write(Rooms *rooms, const RoomActor *who, const RowOp *op, const void *spec, RoomTell tell,
                 TeamJsonFunc done, void *data);

/* What decides who gets a frame; `n` 0: it is no message, and everybody does. */
typedef struct RoomFrame {
    gint64 n;
    RoomPriority priority;
    const char *recipient, *name; /* of a message */
} RoomFrame;
/* Takes `json`. */
void rooms_broadcast(Rooms *rooms, const char *room_id, const RoomFrame *frame, Json *json,
                     const RoomMember *except);
/* Nobody hears anything any more. */
void rooms_close(Rooms *rooms, const char *why);

/* ---- rows (in a job) ---- */

/* {id, task_id, squad_id, owner, plan, assignments, sources, version, created_us} of a room whose task is
 * there; the row itself is made with the first thing that is written. */
Json *room_load(RowJob *job, const char *room_id, GError **error);
/* The same, with its row. */
Json *room_load_for_writing(RowJob *job, const char *room_id, GError **error);
/* `data`, an object that is taken, gets the room's id and whose word it is. */
bool
room_event(RowJob *job, const char *kind, const RoomActor *who, const Json *room, Json *data, GError **error);
/* {"items": oldest first, "more"}. */
Json *room_read_messages(RowJob *job, const char *room_id, const RoomFilter *filter, GError **error);
Json *room_read_knowledge(RowJob *job, const char *room_id, GError **error);
/* Adds, replaces or removes one; what was stored is put into `changed`. */
bool room_put_knowledge(RowJob *job, const RoomActor *who, const Json *room, Json *entry, Json *changed,
                        GError **error);

/* The members of a row whose names end in _us, as times of the API. */
void room_show_times(Json *row);

#define ROOM_AT_ACTOR(type, member)                                                                          \
    ROW_AT_TEXT(type, member.actor), ROW_AT_TEXT(type, member.name), ROW_AT_TEXT(type, member.execution_id), \
        ROW_AT_TEXT(type, member.seen_by)
