/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/team.h"

/* Rooms: what the agents and people of a task share.  The id of a task's room is "room-" and the task's
 * id.
 *
 * Everybody gets every message that passes his filter, in order; nobody waits for anybody: a member who
 * does not read is told how many he missed, and a sender is bounded by a rate, not by readers.  Who a
 * message is from follows from the caller, never from the message. */
typedef struct Rooms Rooms;

enum {
    ROOM_TEXT_MAX = 8192,       /* bytes of a message */
    ROOM_DATA_MAX = 16 * 1024,  /* of its data, as JSON */
    ROOM_STATE_MAX = 64 * 1024, /* of plan, of assignments */
    ROOM_KNOWLEDGE_MAX = 200,   /* entries */
    ROOM_MESSAGES_KEPT = 10000,
    ROOM_CONTEXT_MESSAGES = 10,
    ROOM_MEMBERS_MAX = 200,
    ROOM_MEMBERS_EACH = 4, /* of one agent */
    ROOM_QUEUE_MAX = 256,  /* messages waiting for one member; beyond: told as missed */
    ROOM_HEARTBEAT_MS = 10 * 1000,
    ROOM_SENDS_PER_MIN = 60, /* of one agent; beyond: ERR_LIMIT */
};

typedef enum RoomPriority { ROOM_LOW, ROOM_NORMAL, ROOM_HIGH, ROOM_URGENT, ROOM_PRIORITY_MAX } RoomPriority;
const char *room_priority_name(RoomPriority priority);
bool room_priority_parse(const char *name, RoomPriority *ret_priority);

Rooms *rooms_new(Team *team);
void rooms_free(Rooms *rooms); /* members are closed; each is left as usual */
Rooms *team_rooms(Team *team);

/* Who acts in a room, as the face found out. */
typedef struct RoomActor {
    const char *actor;        /* "agent:…", "key:…", "local", "coop" */
    const char *name;         /* "coder-1", "coop", the key's name */
    const char *execution_id; /* of agents; else NULL */
    const char *seen_by;      /* agent, person, coop */
} RoomActor;

/* Who a caller is in a room, and whether he may come in: {id, task_id, number, actor, name, execution_id,
 * seen_by}.  ERR_NOT_FOUND: there is no such room, or it is not his.  An agent's room is that of its own
 * task. */
typedef struct RoomAsk {
    const char *room_id; /* or the task's id or number; with `box_id` NULL: its own */
    const char *box_id;  /* of an agent; NULL: a person, who is: */
    const char *owner;   /* NULL: may enter all */
    const char *actor, *name;
} RoomAsk;
void room_admit(Rooms *rooms, const RoomAsk *ask, TeamJsonFunc done, void *data);
/* Borrowed from what room_admit() answered. */
RoomActor room_actor_of(const Json *admitted);

/* Functions that take a room's id take the task's id and number too.  A task has its room from the
 * beginning; the row is made by the first who writes.
 *
 * The id; owned by the caller. */
char *room_id_of(const char *task_id);
/* Inside the transaction that makes the task ready to work; a second time changes nothing. */
bool room_make(DbTx *tx, const char *task_id, const char *owner, gint64 now_us, GError **error);

typedef struct RoomMessage {
    const char *text;
    const char *kind; /* message, status, question, answer, finding; NULL: message */
    RoomPriority priority;
    const char *recipient; /* a member's name; NULL: all */
    Json *data;            /* NULL: none */
} RoomMessage;
/* Answers with the message as stored ({n, author, name, seen_by, priority, kind, text, …}). */
void room_post(Rooms *rooms, const char *room_id, const RoomActor *who, const RoomMessage *message,
               TeamJsonFunc done, void *data);

/* Merges `update` (RFC 7396 in plan and assignments; a text of null removes knowledge) {plan?, assignments?,
 * knowledge?: [{name, text, evidence, expires_s}]} into the state and broadcasts it as `context-update`;
 * answers with that frame.  An agent changes what agents wrote, and its own assignment: else ERR_DENIED. */
void room_update(Rooms *rooms, const char *room_id, const RoomActor *who, Json *update, TeamJsonFunc done,
                 void *data);

/* {plan, assignments, messages: the last ten, knowledge}: what an agent gets; `sources` {plan: {member: {by,
 * seen_by, at}}, assignments: …} says whose words they are. */
void room_context(Rooms *rooms, const char *room_id, TeamJsonFunc done, void *data);

typedef struct RoomFilter {
    gint64 after; /* n; < 0: from now on; of room_messages(): the newest */
    RoomPriority at_least;
    const char *for_name; /* messages to others alone are left out; NULL: all */
    guint limit;
} RoomFilter;
void
room_messages(Rooms *rooms, const char *room_id, const RoomFilter *filter, TeamJsonFunc done, void *data);

/* ---- members that listen ---- */

typedef struct RoomMember RoomMember;
/* `text` is one JSON frame: {"type": "message" | "context-update" | "missed" | "joined" | "left", …}; false:
 * no room now, room_member_ready() follows. */
typedef struct RoomMemberEvents {
    bool (*send)(const char *text, size_t n, void *ctx);
    void (*closed)(const char *why, void *ctx); /* the room is gone, or too many are in it */
} RoomMemberEvents;
RoomMember *room_join(Rooms *rooms, const char *room_id, const RoomActor *who, const RoomFilter *filter,
                      const RoomMemberEvents *events, void *ctx, GError **error);
void room_member_ready(RoomMember *member);
void room_leave(RoomMember *member);

/* ---- the plan as text (plan-text.c) ---- */

/* Project, status, progress n/m, phase, active agents with what they do, recent updates with their times,
 * numbered next steps, and an estimate of the time left. */
void room_plan_text(Rooms *rooms, const char *task_id, TeamJsonFunc done /* {"text"} */, void *data);
