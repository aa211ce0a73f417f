/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes for curl and jq: few words, flat answers. */
#include <string.h>

#include "api/box-create.h"
#include "api/box-json.h"
#include "api/call-box.h"
#include "api/form.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"

/* ---- making ---- */

static void
answer_created(ApiCall *call, Box *box, bool is_new)
{
    g_autoptr(Json) sandbox = box_describe(call->api, box);

    call_respond_json(call, is_new ? 201 : 200, box_describe_service(sandbox, false));
}

static void
create(ApiCall *call, Json *body, void *data)
{
    BoxSpec spec = {0};
    gint64 timeout_s = 0;
    Json *env_object = NULL;
    g_auto(GStrv) env = NULL;
    g_autoptr(GError) error = NULL;
    const JsonField fields[] = {
        {"environment", JSON_KIND_STRING, &spec.template, false, 1, TEMPLATE_NAME_MAX},
        {"timeout", JSON_KIND_INT, &timeout_s, false, 1, BOX_LIFE_MAX_MS / 1000},
        {"env", JSON_KIND_OBJECT, &env_object},
        {"lease", JSON_KIND_STRING, &spec.lease, false, 1, LEASE_MAX},
        {"name", JSON_KIND_STRING, &spec.name, false, 1, BOX_NAME_MAX},
        {NULL},
    };

    if (!json_read(body, fields, &error) || !form_read_env(env_object, &env, &error)) {
        call_respond_error(call, error);
        return;
    }
    spec.env = (const char *const *)env;
    spec.lifetime_ms = timeout_s * 1000;
    call_create_box(call, &spec, NULL, answer_created);
}

static void
post_create(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

/* ---- looking ---- */

static void
show(ApiCall *call, Json *sandbox)
{
    call_respond_json(call, 200, box_describe_service(sandbox, false));
    json_decref(sandbox);
}

static void
show_row(ApiCall *call, Json *row, void *data)
{
    if (row != NULL)
        show(call, box_describe_row(call->api, row));
}

static void
get_status(ApiCall *call)
{
    Box *box = call_find_box(call);

    if (box != NULL)
        show(call, box_describe(call->api, box));
    else
        call_box_row(call, show_row, NULL);
}

typedef struct Listing {
    const Api *api;
    Json *list;
} Listing;

static void
add_to_list(Box *box, void *data)
{
    Listing *l = data;
    g_autoptr(Json) sandbox = box_describe(l->api, box);

    json_array_append_new(l->list, box_describe_service(sandbox, true));
}

static void
get_list(ApiCall *call)
{
    if (!call_has_boxes(call))
        return;
    Listing l = {.api = call->api, .list = json_array()};
    box_host_each(call->api->boxes, caller_owner(&call->caller), add_to_list, &l);
    call_respond_json(call, 200, json_pack("{s:o}", "sandboxes", l.list));
}

/* ---- ending ---- */

static void
on_killed(Box *box, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        BoxInfo info;

        box_info(box, &info);
        g_autofree char *id = g_strconcat("sb-", info.id, NULL);
        call_respond_json(call, 200, json_pack("{s:s, s:s}", "sandbox_id", id, "status", "terminated"));
    }
    http_request_unref(call->request);
}

static void
delete_sandbox(ApiCall *call)
{
    Box *box = call_box(call);

    if (box == NULL)
        return;
    http_request_ref(call->request);
    box_kill(box, "killed", call->caller.actor, on_killed, call);
}

const ApiRoute service_routes[] = {
    {"POST", "/sandbox/create", SCOPE_BOX, 0, post_create},
    {"GET", "/sandbox/{id}/status", SCOPE_READ, 0, get_status},
    {"DELETE", "/sandbox/{id}", SCOPE_BOX, 0, delete_sandbox},
    {"GET", "/sandboxes", SCOPE_READ, 0, get_list},
    {NULL},
};
