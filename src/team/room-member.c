/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens in a room.
 *
 * A member is behind (it reads pages of what was said since `last`) or it is live (it gets frames as they
 * come).  Live frames that its sender has no room for wait in `queue`, which has a bound: what comes
 * beyond is counted, and told as one `missed` behind the queue, so that the order holds.  Nobody's queue is
 * anybody else's concern. */
#include <string.h>

#include "base/err.h"
#include "team/room-private.h"

typedef struct Waiting {
    GBytes *text;
    gint64 n; /* of the message; 0: none */
} Waiting;

struct RoomMember {
    guint refs; /* the one who joined, and the page that is being read */
    Rooms *rooms;
    Room *room; /* NULL: it left, or the room was closed */
    char *actor, *name, *execution_id, *seen_by, *for_name;
    RoomFilter filter;
    RoomMemberEvents events;
    void *ctx;
    gint64 last;   /* the newest message that was sent or queued */
    gint64 newest; /* while behind: what has been posted meanwhile */
    bool is_behind, is_reading;
    GQueue queue; /* Waiting * */
    guint missed;
    gint64 missed_after;
};

static void
waiting_free(void *data)
{
    Waiting *w = data;

    g_bytes_unref(w->text);
    g_free(w);
}

static void
member_unref(RoomMember *m)
{
    if (--m->refs > 0)
        return;
    g_queue_clear_full(&m->queue, waiting_free);
    g_free(m->actor);
    g_free(m->name);
    g_free(m->execution_id);
    g_free(m->seen_by);
    g_free(m->for_name);
    rooms_unref(m->rooms);
    g_free(m);
}

static RoomActor
member_actor(const RoomMember *m)
{
    return (RoomActor){
        .actor = m->actor, .name = m->name, .execution_id = m->execution_id, .seen_by = m->seen_by};
}

static bool
passes(const RoomFilter *filter, const RoomFrame *frame)
{
    if (frame->n == 0)
        return true;
    if (frame->priority < filter->at_least)
        return false;
    return filter->for_name == NULL || frame->recipient == NULL ||
           strcmp(frame->recipient, filter->for_name) == 0 || strcmp(frame->name, filter->for_name) == 0;
}

/* ---- one member's queue ---- */

static bool
send_bytes(RoomMember *m, GBytes *text)
{
    gsize n;
    const char *bytes = g_bytes_get_data(text, &n);

    return m->events.send(bytes, n, m->ctx);
}

static GBytes *
encode(Json *json)
{
    g_autoptr(Json) owned = json;
    char *text = json_encode(owned);

    return g_bytes_new_take(text, strlen(text));
}

static void
queue_or_miss(RoomMember *m, GBytes *text, gint64 n)
{
    if (m->missed > 0 || g_queue_get_length(&m->queue) >= ROOM_QUEUE_MAX) {
        if (m->missed++ == 0)
            m->missed_after = m->last;
        return;
    }
    Waiting *w = g_new(Waiting, 1);

    *w = (Waiting){.text = g_bytes_ref(text), .n = n};
    g_queue_push_tail(&m->queue, w);
    m->last = MAX(m->last, n);
}

static void
deliver(RoomMember *m, GBytes *text, gint64 n)
{
    if (m->missed > 0 || !g_queue_is_empty(&m->queue) || !send_bytes(m, text))
        queue_or_miss(m, text, n);
    else
        m->last = MAX(m->last, n);
}

/* False: there is no room again. */
static bool
flush(RoomMember *m)
{
    Waiting *w;

    while ((w = g_queue_peek_head(&m->queue)) != NULL) {
        if (!send_bytes(m, w->text))
            return false;
        waiting_free(g_queue_pop_head(&m->queue));
    }
    if (m->missed == 0)
        return true;
    g_autoptr(GBytes) text = encode(json_pack("{s:s, s:I, s:I}", "type", "missed", "count",
                                              (json_int_t)m->missed, "after", (json_int_t)m->missed_after));
    if (!send_bytes(m, text))
        return false;
    m->missed = 0;
    return true;
}

/* ---- those who are behind ---- */

static void read_on(RoomMember *m);

static void
on_page(Json *value, const GError *error, void *data)
{
    RoomMember *m = data;
    size_t i;
    Json *message;

    m->is_reading = false;
    if (m->room == NULL) {
        member_unref(m);
        return;
    }
    if (error != NULL)
        m->events.closed("the room cannot be read", m->ctx);
    json_array_foreach(json_object_get(value, "items"), i, message)
    {
        g_autoptr(GBytes) text = encode(json_pack("{s:s, s:O}", "type", "message", "message", message));

        deliver(m, text, row_int(message, "n"));
    }
    if (error == NULL && !row_is(value, "more") && m->newest <= m->last)
        m->is_behind = false;
    else if (error == NULL)
        read_on(m);
    member_unref(m);
}

/* The next page when the last one is on its way; a page fits into the queue. */
static void
read_on(RoomMember *m)
{
    if (!m->is_behind || m->is_reading || m->room == NULL || !g_queue_is_empty(&m->queue))
        return;
    RoomFilter filter = m->filter;

    filter.after = m->last;
    filter.limit = THREAD_PAGE_MAX;
    m->newest = 0; /* what is posted from here on may not be in the page */
    m->is_reading = true;
    m->refs++;
    room_messages(m->rooms, m->room->id, &filter, on_page, m);
}

void
room_member_ready(RoomMember *m)
{
    if (m->room != NULL && flush(m))
        read_on(m);
}

/* ---- all of them ---- */

void
rooms_broadcast(Rooms *rooms, const char *room_id, const RoomFrame *frame, Json *json,
                const RoomMember *except)
{
    g_autoptr(GBytes) text = encode(json);
    Room *room = g_hash_table_lookup(rooms->open, room_id);

    for (guint i = 0; room != NULL && i < room->members->len; i++) {
        RoomMember *m = room->members->pdata[i];

        /* A page may have had it before we heard of it here. */
        if (m == except || !passes(&m->filter, frame) || (frame->n > 0 && frame->n <= m->last))
            continue;
        if (m->is_behind && frame->n > 0)
            m->newest = frame->n;
        else
            deliver(m, text, frame->n);
    }
}

typedef struct Presence {
    const char *room_id, *kind;
    RoomActor who;
} Presence;

static bool
run_presence(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const Presence *p = data;
    g_autoptr(Json) room = room_load(job, p->room_id, error);

    return room != NULL && room_event(job, p->kind, &p->who, room, json_object(), error);
}

/* Agents are told of in the log too; people come and go with their browser's tabs. */
static void
tell_presence(RoomMember *m, const char *type, const char *kind)
{
    static const RowMember members[] = {ROW_AT_TEXT(Presence, room_id), ROW_AT_TEXT(Presence, kind),
                                        ROOM_AT_ACTOR(Presence, who), ROW_AT_END};
    static const RowOp op = {ROW_WRITES, sizeof(Presence), members, run_presence};
    RoomFrame frame = {.n = 0};
    Presence p = {.room_id = m->room->id, .kind = kind, .who = member_actor(m)};

    rooms_broadcast(m->rooms, m->room->id, &frame,
                    json_pack("{s:s, s:s, s:s}", "type", type, "name", m->name, "seen_by", m->seen_by), m);
    if (m->execution_id != NULL && m->rooms->team != NULL)
        team_run(m->rooms->team, &op, &p, NULL, NULL);
}

static Room *
open_room(Rooms *rooms, const char *id)
{
    Room *room = g_hash_table_lookup(rooms->open, id);

    if (room == NULL) {
        room = g_new0(Room, 1);
        *room = (Room){.rooms = rooms, .id = g_strdup(id), .members = g_ptr_array_new()};
        g_hash_table_insert(rooms->open, room->id, room);
    }
    return room;
}

static void
close_room(Room *room)
{
    g_hash_table_remove(room->rooms->open, room->id);
    g_ptr_array_unref(room->members);
    g_free(room->id);
    g_free(room);
}

static bool
may_join(Rooms *rooms, const char *room_id, const RoomActor *who, GError **error)
{
    Room *room = g_hash_table_lookup(rooms->open, room_id);
    guint own = 0;

    for (guint i = 0; room != NULL && i < room->members->len; i++) {
        const RoomMember *m = room->members->pdata[i];

        own += who->execution_id != NULL && g_strcmp0(m->execution_id, who->execution_id) == 0;
    }
    if (own >= ROOM_MEMBERS_EACH || (room != NULL && room->members->len >= ROOM_MEMBERS_MAX))
        return err_set(error, ERR_LIMIT, "too many listen in this room");
    return rooms_take(rooms, who, error);
}

RoomMember *
room_join(Rooms *rooms, const char *room_id, const RoomActor *who, const RoomFilter *filter,
          const RoomMemberEvents *events, void *ctx, GError **error)
{
    if (!may_join(rooms, room_id, who, error))
        return NULL;
    RoomMember *m = g_new0(RoomMember, 1);

    *m = (RoomMember){.refs = 1,
                      .rooms = rooms_ref(rooms),
                      .room = open_room(rooms, room_id),
                      .actor = g_strdup(who->actor),
                      .name = g_strdup(who->name),
                      .execution_id = g_strdup(who->execution_id),
                      .seen_by = g_strdup(who->seen_by),
                      .for_name = g_strdup(filter->for_name),
                      .filter = *filter,
                      .events = *events,
                      .ctx = ctx,
                      .last = MAX(filter->after, 0),
                      .is_behind = filter->after >= 0};
    m->filter.for_name = m->for_name;
    g_queue_init(&m->queue);
    g_ptr_array_add(m->room->members, m);
    tell_presence(m, "joined", "agent.joined");
    read_on(m);
    return m;
}

void
room_leave(RoomMember *m)
{
    Room *room = m->room;

    if (room != NULL) {
        tell_presence(m, "left", "agent.left");
        m->room = NULL;
        g_ptr_array_remove(room->members, m);
        if (room->members->len == 0)
            close_room(room);
    }
    member_unref(m);
}

void
rooms_close(Rooms *rooms, const char *why)
{
    g_autoptr(GList) all = g_hash_table_get_values(rooms->open);

    for (GList *l = all; l != NULL; l = l->next) {
        Room *room = l->data;

        for (guint i = 0; i < room->members->len; i++) {
            RoomMember *m = room->members->pdata[i];

            m->room = NULL;
            m->events.closed(why, m->ctx);
        }
        close_room(room);
    }
}
