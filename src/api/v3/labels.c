/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "base/err.h"
#include "forge/label.h"

static const char resource[] = "Label";

/* ---- of a repository ---- */

/* Of a thread, where the path has one. */
static void
list_labels(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_label);

    if (ask != NULL)
        label_list(call->api->forge, ask->repo, ask->number, ask->page, v3_ask_on_list, ask);
}

static void
get_label(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_label);

    if (ask != NULL)
        label_get(call->api->forge, ask->repo, call_param(call, "name"), v3_ask_on_row, ask);
}

/* One that is there already has a word of its own. */
static void
on_put(Json *row, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (!g_error_matches(error, ERR_DOMAIN, ERR_CONFLICT)) {
        v3_ask_on_row(row, error, ask);
        return;
    }
    v3_respond_invalid(ask->call, &(V3Invalid){resource, "name", "already_exists", error->message});
    v3_ask_free(ask);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    LabelSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &spec.name, true, 1, G_MAXINT32},
        {"color", JSON_KIND_STRING, &spec.color, false, 1, G_MAXINT32},
        {"description", JSON_KIND_STRING, &spec.description, false, 0, G_MAXINT32},
        {NULL},
    };
    V3Ask *ask;

    if (v3_read_fields(call, body, fields, resource) &&
        (ask = v3_ask_new(call, resource, 201, v3_label)) != NULL)
        label_create(call->api->forge, ask->repo, &spec, on_put, ask);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    LabelEdit edit = {.actor = call->caller.actor, .name = call_param(call, "name")};
    const JsonField fields[] = {
        {"new_name", JSON_KIND_STRING, &edit.new_name, false, 1, G_MAXINT32},
        {"color", JSON_KIND_STRING, &edit.color, false, 1, G_MAXINT32},
        {"description", JSON_KIND_STRING, &edit.description, false, 0, G_MAXINT32},
        {NULL},
    };
    V3Ask *ask;

    if (v3_read_fields(call, body, fields, resource) &&
        (ask = v3_ask_new(call, resource, 200, v3_label)) != NULL)
        label_edit(call->api->forge, ask->repo, &edit, on_put, ask);
}

static void
post_label(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
patch_label(ApiCall *call)
{
    call_read_json(call, change, NULL);
}

static void
delete_label(ApiCall *call)
{
    LabelEdit edit = {.actor = call->caller.actor, .name = call_param(call, "name"), .remove = true};
    V3Ask *ask = v3_ask_new(call, resource, 204, NULL);

    if (ask != NULL)
        label_edit(call->api->forge, ask->repo, &edit, v3_ask_on_gone, ask);
}

/* ---- of a thread ---- */

static Json *
labels_of(const V3Scene *scene, const Json *thread)
{
    return v3_each(scene, json_object_get(thread, "labels"), v3_label);
}

typedef struct Change {
    ListChange how;
} Change;
static const Change adding = {LIST_ADD}, setting = {LIST_SET};

static void
change_of_thread(ApiCall *call, Json *body, void *data)
{
    Json *labels = NULL;
    const JsonField fields[] = {{"labels", JSON_KIND_ARRAY, &labels, true, 0, THREAD_LABELS_MAX}, {NULL}};
    g_autofree const char **names = NULL;
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (names = v3_read_names(call, labels, resource, "labels")) == NULL ||
        (ask = v3_ask_new(call, resource, 200, labels_of)) == NULL)
        return;
    ThreadNames change = {call->caller.actor, ask->number, ((const Change *)data)->how, names};

    thread_label(call->api->forge, ask->repo, &change, v3_ask_on_row, ask);
}

static void
post_labels(ApiCall *call)
{
    call_read_json(call, change_of_thread, (void *)(guintptr)&adding);
}

static void
put_labels(ApiCall *call)
{
    call_read_json(call, change_of_thread, (void *)(guintptr)&setting);
}

static void
delete_one(ApiCall *call)
{
    const char *names[] = {call_param(call, "name"), NULL};
    V3Ask *ask = v3_ask_new(call, resource, 200, labels_of);

    if (ask != NULL)
        thread_label(call->api->forge, ask->repo,
                     &(ThreadNames){call->caller.actor, ask->number, LIST_REMOVE, names}, v3_ask_on_row, ask);
}

static void
delete_all(ApiCall *call)
{
    static const char *const none[] = {NULL};
    V3Ask *ask = v3_ask_new(call, resource, 204, NULL);

    if (ask != NULL)
        thread_label(call->api->forge, ask->repo,
                     &(ThreadNames){call->caller.actor, ask->number, LIST_SET, none}, v3_ask_on_gone, ask);
}

const ApiRoute v3_labels_routes[] = {
    {"GET", V3_REPO "/labels", SCOPE_READ, ROUTE_BASIC, list_labels},
    {"POST", V3_REPO "/labels", SCOPE_BOX, ROUTE_BASIC, post_label},
    {"GET", V3_REPO "/labels/{name}", SCOPE_READ, ROUTE_BASIC, get_label},
    {"PATCH", V3_REPO "/labels/{name}", SCOPE_BOX, ROUTE_BASIC, patch_label},
    {"DELETE", V3_REPO "/labels/{name}", SCOPE_BOX, ROUTE_BASIC, delete_label},
    {"GET", V3_REPO "/issues/{number}/labels", SCOPE_READ, ROUTE_BASIC, list_labels},
    {"POST", V3_REPO "/issues/{number}/labels", SCOPE_BOX, ROUTE_BASIC, post_labels},
    {"PUT", V3_REPO "/issues/{number}/labels", SCOPE_BOX, ROUTE_BASIC, put_labels},
    {"DELETE", V3_REPO "/issues/{number}/labels", SCOPE_BOX, ROUTE_BASIC, delete_all},
    {"DELETE", V3_REPO "/issues/{number}/labels/{name}", SCOPE_BOX, ROUTE_BASIC, delete_one},
    {NULL},
};
