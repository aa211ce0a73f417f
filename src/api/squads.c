/* SPDX-License-Identifier: Apache-2.0 */
#include "team/squad.h"

#include "api/call-box.h"
#include "api/routes.h"
#include "api/team-call.h"
#include "http/url.h"

enum { TEXT_BYTES = 4, REPOSITORY_MAX = 210, STATUS_MAX = 20 };

/* ---- looking ---- */

static void
list_squads(ApiCall *call)
{
    static const char *const names[] = {"page", "per_page", NULL};
    CallPage page;
    g_autoptr(GError) error = NULL;

    if (call_team(call) == NULL)
        return;
    if (!url_query_only(http_request_query(call->request), names, &error) ||
        !call_read_page(call, &page, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    squad_list(call_team(call), caller_owner(&call->caller),
               (ForgePage){(guint)page.page, (guint)page.per_page}, call_on_rows, call);
}

static void
show_squad(ApiCall *call)
{
    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    squad_get(call_team(call), call_param(call, "squad"), caller_owner(&call->caller), call_on_row, call);
}

static void
list_roles(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_respond_json(call, 200, json_pack("{s:o}", "roles", team_roles_json(call_team(call))));
}

/* ---- making and changing ---- */

static bool
read_squad(Json *body, SquadSpec *spec, bool is_new, GError **error)
{
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &spec->name, is_new, 1, SQUAD_NAME_MAX * TEXT_BYTES},
        {"description", JSON_KIND_STRING, &spec->description, false, 0, SQUAD_TEXT_MAX},
        {"status", JSON_KIND_STRING, &spec->status, false, 1, STATUS_MAX},
        {"org_id", JSON_KIND_STRING, &spec->org_id, false, 0, SQUAD_NAME_MAX},
        {"repository", JSON_KIND_STRING, &spec->repository, false, 0, REPOSITORY_MAX},
        {"config", JSON_KIND_OBJECT, &spec->config},
        /* Members of a squad that is there have routes of their own. */
        {is_new ? "members" : NULL, JSON_KIND_ARRAY, &spec->members, false, 0, SQUAD_MEMBERS_MAX},
        {NULL},
    };

    return json_read(body, fields, error);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    SquadSpec spec = {.actor = call->caller.actor, .owner = call->caller.key_id};
    g_autoptr(GError) error = NULL;

    if (!read_squad(body, &spec, true, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    squad_create(call_team(call), &spec, call_on_made, call);
}

static void
post_squad(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, create, NULL);
}

static SquadSpec
spec_of(ApiCall *call)
{
    return (SquadSpec){
        .actor = call->caller.actor, .owner = caller_owner(&call->caller), .id = call_param(call, "squad")};
}

static void
edit(ApiCall *call, Json *body, void *data)
{
    SquadSpec spec = spec_of(call);
    g_autoptr(GError) error = NULL;

    if (!read_squad(body, &spec, false, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    squad_edit(call_team(call), &spec, call_on_row, call);
}

static void
patch_squad(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, edit, NULL);
}

static void
on_removed(Json *value, const GError *error, void *data)
{
    call_on_done(data, error);
}

static void
delete_squad(ApiCall *call)
{
    SquadSpec spec = spec_of(call);

    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    squad_remove(call_team(call), &spec, on_removed, call);
}

/* ---- members ---- */

static void
put(ApiCall *call, Json *body, void *data)
{
    const char *member = call_param(call, "member");
    const MemberSpec spec = {.actor = call->caller.actor,
                             .owner = caller_owner(&call->caller),
                             .squad_id = call_param(call, "squad"),
                             .member_id = member,
                             .fields = body};

    http_request_ref(call->request);
    member_put(call_team(call), &spec, member != NULL ? call_on_row : call_on_made, call);
}

static void
write_member(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, put, NULL);
}

static void
delete_member(ApiCall *call)
{
    const MemberSpec spec = {.actor = call->caller.actor,
                             .owner = caller_owner(&call->caller),
                             .squad_id = call_param(call, "squad"),
                             .member_id = call_param(call, "member")};

    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    member_put(call_team(call), &spec, on_removed, call);
}

const ApiRoute squads_routes[] = {
    {"GET", "/api/v1/roles", SCOPE_READ, 0, list_roles},
    {"GET", "/api/v1/squads", SCOPE_READ, 0, list_squads},
    {"POST", "/api/v1/squads", SCOPE_BOX, 0, post_squad},
    {"GET", "/api/v1/squads/{squad}", SCOPE_READ, 0, show_squad},
    {"PATCH", "/api/v1/squads/{squad}", SCOPE_BOX, 0, patch_squad},
    {"DELETE", "/api/v1/squads/{squad}", SCOPE_BOX, 0, delete_squad},
    {"POST", "/api/v1/squads/{squad}/members", SCOPE_BOX, 0, write_member},
    {"PATCH", "/api/v1/squads/{squad}/members/{member}", SCOPE_BOX, 0, write_member},
    {"DELETE", "/api/v1/squads/{squad}/members/{member}", SCOPE_BOX, 0, delete_member},
    {NULL},
};
