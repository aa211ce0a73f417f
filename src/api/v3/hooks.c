/* SPDX-License-Identifier: Apache-2.0 */
/* A hook sends what happens in a repository elsewhere: making and seeing them is for admins. */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "forge/hook.h"

static const char resource[] = "Hook";

/* NULL: answered. */
static V3Ask *
ask_hooks(ApiCall *call, int status, V3Render render)
{
    if (call->api->hooks == NULL) {
        respond_error(call->request, 503, "this server has no webhooks");
        return NULL;
    }
    return v3_ask_new(call, resource, status, render);
}

static HookOwner
owner_of(const V3Ask *ask)
{
    RepoInfo info;

    repo_info(ask->repo, &info);
    return (HookOwner){HOOK_OF_REPOSITORY, info.id};
}

/* ---- reading ---- */

static void
list_hooks(ApiCall *call)
{
    V3Ask *ask = ask_hooks(call, 200, v3_hook);

    if (ask != NULL)
        hook_list(call->api->hooks, owner_of(ask), ask->page, v3_ask_on_list, ask);
}

static void
get_hook(ApiCall *call)
{
    gint64 id;
    V3Ask *ask;

    if (v3_param_int(call, "hook", &id) && (ask = ask_hooks(call, 200, v3_hook)) != NULL)
        hook_get(call->api->hooks, owner_of(ask), id, v3_ask_on_row, ask);
}

/* ---- changing ---- */

static bool
refuse(ApiCall *call, const char *field, const char *message)
{
    v3_respond_invalid(call, &(V3Invalid){resource, field, "invalid", message});
    return false;
}

/* "0" and 0 are the same to GitHub. */
static bool
is_set(const Json *value)
{
    const char *text = json_string_value(value);

    return value != NULL && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_integer(value) && json_integer_value(value) == 0) &&
           !(text != NULL && strcmp(text, "0") == 0);
}

static bool
read_config(ApiCall *call, Json *config, HookSpec *spec)
{
    const char *type = "json";
    const JsonField fields[] = {
        {"url", JSON_KIND_STRING, &spec->url, spec->id == 0, 1, HOOK_URL_MAX},
        {"content_type", JSON_KIND_STRING, &type, false, 1, HOOK_URL_MAX},
        {"secret", JSON_KIND_STRING, &spec->secret, false, 0, HOOK_SECRET_MAX},
        {NULL},
    };

    if (!v3_read_fields(call, config, fields, resource))
        return false;
    if (strcmp(type, "json") != 0)
        return refuse(call, "content_type", "bodies are sent as json only");
    if (is_set(json_object_get(config, "insecure_ssl")))
        return refuse(call, "insecure_ssl", "certificates are always checked");
    return true;
}

static void
put(ApiCall *call, Json *body, gint64 id)
{
    HookSpec spec = {.actor = call->caller.actor, .id = id, .active = -1};
    const char *name = "web";
    Json *config = NULL, *events = NULL, *added = NULL, *removed = NULL;
    bool active = true;
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &name, false, 0, REPO_NAME_MAX},
        {"config", JSON_KIND_OBJECT, &config, id == 0},
        {"events", JSON_KIND_ARRAY, &events, false, 0, REPO_NAME_MAX},
        {"add_events", JSON_KIND_ARRAY, &added},
        {"remove_events", JSON_KIND_ARRAY, &removed},
        {"active", JSON_KIND_BOOL, &active},
        {NULL},
    };
    g_autofree const char **names = NULL;
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (config != NULL && !read_config(call, config, &spec)) ||
        (strcmp(name, "web") != 0 && !refuse(call, "name", NULL)) ||
        (added != NULL && !refuse(call, "add_events", "give the whole list")) ||
        (removed != NULL && !refuse(call, "remove_events", "give the whole list")) ||
        (events != NULL && (names = v3_read_names(call, events, resource, "events")) == NULL) ||
        (ask = ask_hooks(call, id == 0 ? 201 : 200, v3_hook)) == NULL)
        return;
    spec.events = names;
    if (json_is_boolean(json_object_get(body, "active")))
        spec.active = active;
    hook_put(call->api->hooks, owner_of(ask), &spec, v3_ask_on_row, ask);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    put(call, body, 0);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    gint64 id;

    if (v3_param_int(call, "hook", &id))
        put(call, body, id);
}

static void
post_hook(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
patch_hook(ApiCall *call)
{
    call_read_json(call, change, NULL);
}

static void
delete_hook(ApiCall *call)
{
    gint64 id;
    V3Ask *ask;

    if (v3_param_int(call, "hook", &id) && (ask = ask_hooks(call, 204, NULL)) != NULL)
        hook_remove(call->api->hooks, owner_of(ask), call->caller.actor, id, v3_ask_on_gone, ask);
}

static void
post_ping(ApiCall *call)
{
    gint64 id;
    V3Ask *ask;

    if (v3_param_int(call, "hook", &id) && (ask = ask_hooks(call, 204, NULL)) != NULL)
        hook_ping(call->api->hooks, owner_of(ask), call->caller.actor, id, v3_ask_on_gone, ask);
}

/* ---- deliveries ---- */

static void
list_deliveries(ApiCall *call)
{
    gint64 hook;
    V3Ask *ask;

    if (v3_param_int(call, "hook", &hook) && (ask = ask_hooks(call, 200, v3_delivery)) != NULL)
        delivery_list(call->api->hooks, owner_of(ask), hook, 0, ask->page, v3_ask_on_list, ask);
}

static void
get_delivery(ApiCall *call)
{
    gint64 hook, id;
    V3Ask *ask;

    if (v3_param_int(call, "hook", &hook) && v3_param_int(call, "delivery", &id) &&
        (ask = ask_hooks(call, 200, v3_delivery_whole)) != NULL)
        delivery_list(call->api->hooks, owner_of(ask), hook, id, ask->page, v3_ask_on_row, ask);
}

static Json *
nothing(const V3Scene *scene, const Json *row)
{
    return json_object();
}

static void
post_attempt(ApiCall *call)
{
    gint64 hook, id;
    V3Ask *ask;

    if (v3_param_int(call, "hook", &hook) && v3_param_int(call, "delivery", &id) &&
        (ask = ask_hooks(call, 202, nothing)) != NULL)
        delivery_again(call->api->hooks, owner_of(ask), call->caller.actor, hook, id, v3_ask_on_row, ask);
}

#define HOOK V3_REPO "/hooks/{hook}"

const ApiRoute v3_hooks_routes[] = {
    {"GET", V3_REPO "/hooks", SCOPE_ADMIN, ROUTE_BASIC, list_hooks},
    {"POST", V3_REPO "/hooks", SCOPE_ADMIN, ROUTE_BASIC, post_hook},
    {"GET", HOOK, SCOPE_ADMIN, ROUTE_BASIC, get_hook},
    {"PATCH", HOOK, SCOPE_ADMIN, ROUTE_BASIC, patch_hook},
    {"DELETE", HOOK, SCOPE_ADMIN, ROUTE_BASIC, delete_hook},
    {"POST", HOOK "/pings", SCOPE_ADMIN, ROUTE_BASIC, post_ping},
    {"GET", HOOK "/deliveries", SCOPE_ADMIN, ROUTE_BASIC, list_deliveries},
    {"GET", HOOK "/deliveries/{delivery}", SCOPE_ADMIN, ROUTE_BASIC, get_delivery},
    {"POST", HOOK "/deliveries/{delivery}/attempts", SCOPE_ADMIN, ROUTE_BASIC, post_attempt},
    {NULL},
};
