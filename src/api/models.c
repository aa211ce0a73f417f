/* SPDX-License-Identifier: Apache-2.0 */
/* Providers of models, and budgets. */
#include <string.h>

#include "api/call-box.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "brain/provider.h"
#include "door/service.h"
#include "wire/door.h"

static DoorModels *
models_of(ApiCall *call)
{
    if (call->api->door == NULL) {
        respond_error(call->request, 503, "this server has no door");
        return NULL;
    }
    return door_service_models(call->api->door);
}

/* ---- providers ---- */

/* Those whose keys were in the environment that Coop was started with. */
static void
add_own(Json *list, const DoorModels *models, Json *own)
{
    Json *name;
    size_t i;

    json_array_foreach(own, i, name)
    {
        const char *text = json_string_value(name);

        if (text != NULL && !door_models_has_provider(models, text))
            json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "name", text, "kind", text, "key",
                                                  1, "actor", "environment"));
    }
}

static Json *
show_providers(ApiCall *call)
{
    DoorModels *models = door_service_models(call->api->door);
    DoorLink *link = door_service_link(call->api->door);
    Json *list = door_models_providers(models);

    add_own(list, models, link != NULL ? door_link_own_providers(link) : NULL);
    return json_pack("{s:o, s:s?}", "providers", list, "public_key",
                     link != NULL ? door_link_public_key(link) : NULL);
}

static void
list_providers(ApiCall *call)
{
    if (models_of(call) != NULL)
        call_respond_json(call, 200, show_providers(call));
}

/* A provider that is being put; what the strings are of lives as long. */
typedef struct ProviderPut {
    ApiCall *call; /* its request is referenced */
    Json *body, *provider;
    DoorProviderSpec spec;
    bool tried; /* the door would take it */
} ProviderPut;

static void
put_free(ProviderPut *put)
{
    http_request_unref(put->call->request);
    json_decref(put->body);
    json_decref(put->provider);
    g_free(put);
}

static void
respond_put(const ProviderPut *put)
{
    Json *shown = show_providers(put->call);
    bool in_force = put->tried && door_link_is_up(door_service_link(put->call->api->door));

    if (!in_force)
        json_object_set_new(shown, "note", json_string("it is kept, and in force when the door is back"));
    call_respond_json(put->call, in_force ? 200 : 202, shown);
}

static void
on_put(void *data, const GError *error)
{
    ProviderPut *put = data;

    if (error != NULL)
        call_respond_error(put->call, error);
    else if (models_of(put->call) != NULL)
        respond_put(put);
    put_free(put);
}

/* What the door would refuse is not kept.  One that is away is told later. */
static void
on_tried(Json *result, const GError *error, void *data)
{
    ProviderPut *put = data;

    if (error != NULL && error->code != ERR_UNAVAILABLE) {
        call_respond_error(put->call, error);
        put_free(put);
        return;
    }
    put->tried = error == NULL;
    door_models_put_provider(door_service_models(put->call->api->door), &put->spec, on_put, put);
}

static const char *
text_or_none(Json *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));

    return text != NULL ? text : "";
}

static void
begin_put(ApiCall *call, Json *body)
{
    ProviderPut *put = g_new0(ProviderPut, 1);
    g_autoptr(GError) error = NULL;

    *put = (ProviderPut){.call = call, .body = json_incref(body), .provider = json_copy(body)};
    put->spec = (DoorProviderSpec){.provider = put->provider,
                                   .sealed = text_or_none(body, "sealed_key"),
                                   .script = text_or_none(body, "script"),
                                   .actor = call->caller.actor};
    json_object_del(put->provider, "sealed_key");
    json_object_del(put->provider, "script");
    json_object_set_new(put->provider, "name", json_string(call_param(call, "name")));
    http_request_ref(call->request);
    if (!door_models_check_provider(door_service_models(call->api->door), &put->spec, &error)) {
        call_respond_error(call, error);
        put_free(put);
        return;
    }
    door_link_try_provider(door_service_link(call->api->door), put->provider,
                           *put->spec.sealed != '\0' ? put->spec.sealed : NULL,
                           *put->spec.script != '\0' ? put->spec.script : NULL, on_tried, put);
}

/* The name is the path's; what is not the provider's own goes out of the object. */
static void
put_it(ApiCall *call, Json *body, void *data)
{
    Json *sealed = json_object_get(body, "sealed_key"), *script = json_object_get(body, "script");

    if ((sealed != NULL && !json_is_string(sealed)) || (script != NULL && !json_is_string(script)))
        respond_error(call->request, 400, "'sealed_key' and 'script' must be strings");
    else if (json_object_get(body, "key") != NULL || json_object_get(body, "api_key") != NULL)
        respond_error(call->request, 400,
                      "a key is given sealed to the door's public key ('sealed_key'), so that nobody else "
                      "sees it: 'coop provider add' does that");
    else if (door_service_link(call->api->door) == NULL)
        respond_error(call->request, 503, "the door is not there yet");
    else
        begin_put(call, body);
}

static void
put_provider(ApiCall *call)
{
    if (models_of(call) != NULL)
        call_read_json(call, put_it, NULL);
}

static void
delete_provider(ApiCall *call)
{
    DoorModels *models = models_of(call);

    if (models == NULL)
        return;
    http_request_ref(call->request);
    door_models_remove_provider(models, call_param(call, "name"), call_on_done, call);
}

static void
on_tested(Json *result, const GError *error, void *data)
{
    ApiCall *call = data;

    call_respond_json(call, 200,
                      json_pack("{s:b, s:s?, s:O?}", "ok", error == NULL, "error",
                                error != NULL ? error->message : NULL, "result", result));
    http_request_unref(call->request);
}

static void
test_provider(ApiCall *call)
{
    DoorLink *link = models_of(call) != NULL ? door_service_link(call->api->door) : NULL;

    if (call->api->door == NULL)
        return;
    if (link == NULL) {
        respond_error(call->request, 503, "the door is not there yet");
        return;
    }
    http_request_ref(call->request);
    door_link_test_provider(link, call_param(call, "name"), on_tested, call);
}

/* ---- budgets ---- */

static void
list_budgets(ApiCall *call)
{
    DoorModels *models = models_of(call);

    if (models != NULL)
        call_respond_json(call, 200, json_pack("{s:o}", "budgets", door_models_budgets(models)));
}

static void
on_budget(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        list_budgets(call);
    http_request_unref(call->request);
}

/* A box may be named in every way in which it can be asked for. */
static char *
dup_scope(const ApiCall *call)
{
    const char *scope = call_param(call, "scope");
    bool is_box = g_str_has_prefix(scope, "box:");
    Box *box = is_box ? box_host_find(call->api->boxes, scope + strlen("box:"), caller_owner(&call->caller))
                      : NULL;
    BoxInfo info;

    if (box == NULL)
        return g_strdup(scope);
    box_info(box, &info);
    return g_strconcat("box:", info.id, NULL);
}

static void
put_bounds(ApiCall *call, Json *body, void *data)
{
    g_autofree char *scope = dup_scope(call);

    http_request_ref(call->request);
    door_models_put_budget(door_service_models(call->api->door), scope, body, call->caller.actor, on_budget,
                           call);
}

static void
put_budget(ApiCall *call)
{
    if (models_of(call) != NULL)
        call_read_json(call, put_bounds, NULL);
}

static void
delete_budget(ApiCall *call)
{
    DoorModels *models = models_of(call);

    if (models == NULL)
        return;
    g_autofree char *scope = dup_scope(call);

    http_request_ref(call->request);
    door_models_remove_budget(models, scope, call_on_done, call);
}

const ApiRoute models_routes[] = {
    {"GET", "/api/v1/providers", SCOPE_ADMIN, 0, list_providers},
    {"PUT", "/api/v1/providers/{name}", SCOPE_ADMIN, 0, put_provider},
    {"DELETE", "/api/v1/providers/{name}", SCOPE_ADMIN, 0, delete_provider},
    {"POST", "/api/v1/providers/{name}/test", SCOPE_ADMIN, 0, test_provider},
    {"GET", "/api/v1/budgets", SCOPE_ADMIN, 0, list_budgets},
    {"PUT", "/api/v1/budgets/{scope}", SCOPE_ADMIN, 0, put_budget},
    {"DELETE", "/api/v1/budgets/{scope}", SCOPE_ADMIN, 0, delete_budget},
    {NULL},
};
