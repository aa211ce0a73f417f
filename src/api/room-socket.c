/* SPDX-License-Identifier: Apache-2.0 */
/* A room over a WebSocket, JSON in text frames.
 *
 * Out: {"type": "welcome" | "message" | "context-update" | "missed" | "joined" | "left" | "posted" | "error"
 * | "pong", …}.  In: {"type": "message", "text", …}, {"type": "context-update", "data": {…}}, {"type":
 * "ping"}; a "ref" comes back with what it led to.
 *
 * One thing that came in is under way at a time: until it is stored the socket is not read, so whoever
 * sends faster than the disk writes waits, and nobody else does. */
#include <string.h>

#include "api/room-visit.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/err.h"
#include "forge/row.h"
#include "http/ws.h"

enum {
    MESSAGE_MAX = 160 * 1024, /* an update, with what is around it */
    QUEUE_MAX = 512 * 1024,
    REF_MAX = 64,
    CLOSE_AWAY = 1001,
    CLOSE_POLICY = 1008,
    CLOSE_LATER = 1013,
};

typedef struct Socket {
    guint refs;    /* the connection's, and that of what is under way */
    ApiCall *call; /* with a reference to its request */
    WsConn *ws;    /* NULL: closed */
    RoomMember *member;
    Json *order; /* what came in and is under way; NULL: nothing */
} Socket;

static void
socket_unref(Socket *s)
{
    if (--s->refs > 0)
        return;
    json_decref(s->order);
    http_request_unref(s->call->request);
    g_free(s);
}

/* ---- out ---- */

static bool
is_dismissed(Socket *s)
{
    if (caller_is_still_known(s->call))
        return false;
    ws_close(s->ws, CLOSE_POLICY, "the key is not valid any more");
    return true;
}

static bool
send_frame(const char *text, size_t n, void *ctx)
{
    Socket *s = ctx;

    return is_dismissed(s) || ws_send(s->ws, WS_TEXT, text, n);
}

static void
on_room_closed(const char *why, void *ctx)
{
    Socket *s = ctx;

    ws_close(s->ws, CLOSE_AWAY, why);
}

/* Takes `json`.  A client that does not read what it asked for loses it. */
static void
answer(Socket *s, Json *json)
{
    g_autoptr(Json) owned = json;
    Json *ref = json_object_get(s->order, "ref");

    if (s->ws == NULL)
        return;
    if (json_is_string(ref) && json_string_length(ref) <= REF_MAX)
        json_object_set(owned, "ref", ref);
    g_autofree char *text = json_encode(owned);

    (void)!ws_send(s->ws, WS_TEXT, text, strlen(text));
}

static void
refuse(Socket *s, const GError *error)
{
    bool is_ours = err_kind(error) == ERR_INTERNAL;
    g_autofree char *valid = g_utf8_make_valid(is_ours ? "an internal error" : error->message, -1);

    answer(s, json_pack("{s:s, s:i, s:s}", "type", "error", "code", error_status(error), "message", valid));
}

/* ---- in ---- */

static void
end_order(Socket *s)
{
    g_clear_pointer(&s->order, json_decref);
    if (s->ws != NULL)
        ws_resume(s->ws);
    socket_unref(s);
}

static void
on_stored(Json *value, const GError *error, void *data)
{
    Socket *s = data;

    if (error != NULL)
        refuse(s, error);
    else if (json_object_get(s->order, "ref") != NULL)
        answer(s, json_pack("{s:s, s:O*, s:O*}", "type", "posted", "n", json_object_get(value, "n"),
                            "version", json_object_get(value, "version")));
    end_order(s);
}

static bool
obey(Socket *s, const Json *who, GError **error)
{
    RoomActor actor = room_actor_of(who);
    Rooms *rooms = team_rooms(s->call->api->team);
    g_autoptr(Json) rest = json_copy(s->order);
    const char *type = row_text(s->order, "type");
    RoomMessage message;

    json_object_del(rest, "type");
    json_object_del(rest, "ref");
    if (g_strcmp0(type, "context-update") == 0) {
        Json *update = json_object_get(rest, "data");

        if (!json_is_object(update) || json_object_size(rest) != 1)
            return err_set(error, ERR_INVALID, "a context-update has 'data', an object");
        room_update(rooms, row_text(who, "id"), &actor, update, on_stored, s);
        return true;
    }
    if (g_strcmp0(type, "message") != 0)
        return err_set(error, ERR_INVALID, "'type' must be one of message, context-update, ping");
    if (!room_message_read(rest, &message, error))
        return false;
    room_post(rooms, row_text(who, "id"), &actor, &message, on_stored, s);
    return true;
}

/* Asked again for each: the box may have another agent by now, or none. */
static void
on_known(Json *who, const GError *error, void *data)
{
    Socket *s = data;
    g_autoptr(GError) bad = NULL;

    if (error != NULL)
        refuse(s, error);
    else if (s->call->api->team != NULL) {
        if (obey(s, who, &bad))
            return;
        refuse(s, bad);
    }
    end_order(s);
}

static bool
may_say(Socket *s, GError **error)
{
    const Caller *caller = &s->call->caller;

    return caller->kind == CALLER_BOX || scopes_allow(caller->scopes, SCOPE_BOX) ||
           err_set(error, ERR_DENIED, "this key may read only");
}

static bool
on_message(WsConn *ws, WsKind kind, const guint8 *bytes, size_t n, void *ctx)
{
    Socket *s = ctx;
    g_autoptr(GError) error = NULL;

    if (is_dismissed(s))
        return true;
    g_autoptr(Json) order = kind == WS_TEXT ? json_decode(bytes, n, &error) : NULL;

    if (order == NULL && error == NULL)
        err_set(&error, ERR_INVALID, "frames are text");
    if (order != NULL && !json_is_object(order))
        err_set(&error, ERR_INVALID, "a frame is an object");
    s->order = error == NULL ? g_steal_pointer(&order) : NULL;
    bool is_ping = g_strcmp0(row_text(s->order, "type"), "ping") == 0;

    if (is_ping || error != NULL || !may_say(s, &error)) {
        if (is_ping)
            answer(s, json_pack("{s:s}", "type", "pong"));
        else
            refuse(s, error);
        g_clear_pointer(&s->order, json_decref);
        return true;
    }
    s->refs++;
    call_admit(s->call, call_param(s->call, "room"), on_known, s);
    return false;
}

static void
on_drained(WsConn *ws, void *ctx)
{
    Socket *s = ctx;

    if (s->member != NULL)
        room_member_ready(s->member);
}

static void
on_closed(WsConn *ws, guint16 code, void *ctx)
{
    Socket *s = ctx;

    s->ws = NULL;
    g_clear_pointer(&s->member, room_leave);
    socket_unref(s);
}

/* ---- coming in ---- */

static void
join(Socket *s, RoomVisit *visit, const RoomFilter *filter)
{
    static const RoomMemberEvents events = {.send = send_frame, .closed = on_room_closed};
    g_autoptr(GError) error = NULL;

    answer(s,
           json_pack("{s:s, s:s, s:s, s:s, s:i}", "type", "welcome", "room", visit->id, "name",
                     visit->actor.name, "seen_by", visit->actor.seen_by, "heartbeat_ms", ROOM_HEARTBEAT_MS));
    s->member = room_join(visit->rooms, visit->id, &visit->actor, filter, &events, s, &error);
    if (s->member == NULL)
        ws_close(s->ws, CLOSE_LATER, error->message);
}

static void
open_socket(RoomVisit *visit)
{
    static const WsHandler handler = {.message = on_message, .drained = on_drained, .closed = on_closed};
    WsSpec spec = WS_SPEC_INIT;
    g_autoptr(GError) error = NULL;
    RoomQuery query;

    if (!room_query_read(visit->call, &query, &error)) {
        call_respond_error(visit->call, error);
        http_request_unref(visit->call->request);
        return;
    }
    RoomFilter filter = room_query_filter(&query, &visit->actor);
    Socket *s = g_new0(Socket, 1);

    spec.message_max = MESSAGE_MAX;
    spec.queue_max = QUEUE_MAX;
    spec.ping_ms = ROOM_HEARTBEAT_MS;
    *s = (Socket){.refs = 1, .call = visit->call};
    s->ws = ws_accept(visit->call->request, visit->call->api->loop, &spec, &handler, s);
    if (s->ws == NULL)
        socket_unref(s);
    else
        join(s, visit, &filter);
}

void
room_socket(ApiCall *call)
{
    call_visit(call, call_param(call, "room"), NULL, open_socket);
}
