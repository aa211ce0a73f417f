/* SPDX-License-Identifier: Apache-2.0 */
#include "api/room-visit.h"

#include "api/call-box.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/err.h"
#include "forge/row.h"
#include "http/url.h"

enum { WORD_MAX = 20, NAME_MAX_BYTES = 400, LIMIT_MAX = THREAD_PAGE_MAX };

static const char *
caller_name(ApiCall *call)
{
    Key *key = caller_key(call->api, &call->caller);

    return key != NULL ? key->name : call->caller.actor;
}

void
call_admit(ApiCall *call, const char *room, TeamJsonFunc func, void *data)
{
    bool is_box = call->caller.kind == CALLER_BOX;

    room_admit(team_rooms(call->api->team),
               &(RoomAsk){.room_id = room,
                          .box_id = is_box ? call->caller.box_id : NULL,
                          .owner = caller_owner(&call->caller),
                          .actor = call->caller.actor,
                          .name = caller_name(call)},
               func, data);
}

typedef struct Visiting {
    ApiCall *call;
    Json *body;
    RoomVisitFunc func;
} Visiting;

static void
on_admitted(Json *value, const GError *error, void *data)
{
    g_autofree Visiting *v = data;
    g_autoptr(Json) body = v->body;

    if (error != NULL || v->call->api->team == NULL) {
        if (error != NULL)
            call_respond_error(v->call, error);
        http_request_unref(v->call->request);
        return;
    }
    RoomVisit visit = {.call = v->call,
                       .rooms = team_rooms(v->call->api->team),
                       .who = value,
                       .id = row_text(value, "id"),
                       .actor = room_actor_of(value),
                       .body = body};

    v->func(&visit);
}

void
call_visit(ApiCall *call, const char *room, Json *body, RoomVisitFunc func)
{
    if (call_team(call) == NULL)
        return;
    Visiting *v = g_new(Visiting, 1);

    *v = (Visiting){.call = call, .body = json_incref(body), .func = func};
    http_request_ref(call->request);
    call_admit(call, room, on_admitted, v);
}

bool
room_priority_read(const char *name, RoomPriority *ret_priority, GError **error)
{
    return name == NULL || room_priority_parse(name, ret_priority) ||
           err_set(error, ERR_INVALID, "'priority' must be one of low, normal, high, urgent");
}

bool
room_message_read(Json *body, RoomMessage *ret_message, GError **error)
{
    const char *priority = NULL;
    RoomMessage m = {.priority = ROOM_NORMAL};
    const JsonField fields[] = {
        {"text", JSON_KIND_STRING, &m.text, true, 1, ROOM_TEXT_MAX},
        {"kind", JSON_KIND_STRING, &m.kind, false, 1, WORD_MAX},
        {"priority", JSON_KIND_STRING, &priority, false, 1, WORD_MAX},
        {"recipient", JSON_KIND_STRING, &m.recipient, false, 0, NAME_MAX_BYTES},
        {"data", JSON_KIND_OBJECT, &m.data},
        {NULL},
    };

    if (!json_read(body, fields, error) || !room_priority_read(priority, &m.priority, error))
        return false;
    *ret_message = m;
    return true;
}

bool
room_query_read(const ApiCall *call, RoomQuery *ret_query, GError **error)
{
    static const char *const names[] = {"after", "priority", "all", "limit", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *priority = NULL;
    gint64 all = call->caller.kind != CALLER_BOX;
    RoomQuery q = {.after = -1};

    if (!url_query_only(query, names, error) ||
        !url_query_get_int(query, "after", 0, G_MAXINT64, &q.after, error) ||
        !url_query_get_int(query, "limit", 1, LIMIT_MAX, &q.limit, error) ||
        !url_query_get_int(query, "all", 0, 1, &all, error) ||
        !url_query_get(query, "priority", &priority, error) ||
        !room_priority_read(priority, &q.at_least, error))
        return false;
    q.all = all != 0;
    *ret_query = q;
    return true;
}

RoomFilter
room_query_filter(const RoomQuery *query, const RoomActor *who)
{
    return (RoomFilter){.after = query->after,
                        .at_least = query->at_least,
                        .for_name = query->all ? NULL : who->name,
                        .limit = (guint)query->limit};
}
