/* SPDX-License-Identifier: Apache-2.0 */
/* Rooms for people and for the agents in boxes.  The paths without /api/v1 are those that agents know;
 * both are the same. */
#include "api/room-visit.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/team-call.h"
#include "forge/row.h"
#include "http/ws.h"

/* ---- looking ---- */

static void
show(RoomVisit *visit)
{
    room_context(visit->rooms, visit->id, call_on_row, visit->call);
}

static void
get_room(ApiCall *call)
{
    if (http_request_wants_upgrade(call->request, "websocket"))
        room_socket(call);
    else
        call_visit(call, call_param(call, "room"), NULL, show);
}

static void
on_messages(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200,
                          json_pack("{s:O, s:O}", "messages", json_object_get(value, "items"), "more",
                                    json_object_get(value, "more")));
    http_request_unref(call->request);
}

static void
list(RoomVisit *visit)
{
    g_autoptr(GError) error = NULL;
    RoomQuery query;

    if (!room_query_read(visit->call, &query, &error)) {
        on_messages(NULL, error, visit->call);
        return;
    }
    RoomFilter filter = room_query_filter(&query, &visit->actor);

    room_messages(visit->rooms, visit->id, &filter, on_messages, visit->call);
}

static void
get_messages(ApiCall *call)
{
    call_visit(call, call_param(call, "room"), NULL, list);
}

/* ---- saying ---- */

static void
post(RoomVisit *visit)
{
    g_autoptr(GError) error = NULL;
    RoomMessage message;

    if (room_message_read(visit->body, &message, &error))
        room_post(visit->rooms, visit->id, &visit->actor, &message, call_on_made, visit->call);
    else
        call_on_made(NULL, error, visit->call);
}

static void
on_message_body(ApiCall *call, Json *body, void *data)
{
    call_visit(call, call_param(call, "room"), body, post);
}

static void
post_message(ApiCall *call)
{
    call_read_json(call, on_message_body, NULL);
}

static void
update(RoomVisit *visit)
{
    room_update(visit->rooms, visit->id, &visit->actor, visit->body, call_on_row, visit->call);
}

static void
on_update_body(ApiCall *call, Json *body, void *data)
{
    call_visit(call, call_param(call, "room"), body, update);
}

static void
patch_room(ApiCall *call)
{
    call_read_json(call, on_update_body, NULL);
}

const ApiRoute rooms_routes[] = {
    {"GET", "/rooms/{room}", SCOPE_READ, ROUTE_BOX | ROUTE_STREAM, get_room},
    {"PATCH", "/rooms/{room}", SCOPE_BOX, ROUTE_BOX, patch_room},
    {"GET", "/rooms/{room}/messages", SCOPE_READ, ROUTE_BOX, get_messages},
    {"POST", "/rooms/{room}/messages", SCOPE_BOX, ROUTE_BOX, post_message},
    {"GET", "/api/v1/rooms/{room}", SCOPE_READ, ROUTE_STREAM, get_room},
    {"PATCH", "/api/v1/rooms/{room}", SCOPE_BOX, 0, patch_room},
    {"GET", "/api/v1/rooms/{room}/messages", SCOPE_READ, 0, get_messages},
    {"POST", "/api/v1/rooms/{room}/messages", SCOPE_BOX, 0, post_message},
    {NULL},
};
