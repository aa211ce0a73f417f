/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/box-create.h"
#include "api/box-json.h"
#include "api/call-box.h"
#include "api/call-claim.h"
#include "api/command-form.h"
#include "api/form.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"

#define MIB (G_GINT64_CONSTANT(1024) * 1024)

enum { ENDED_DEFAULT = 100, ENDED_MAX = 1000 };

/* ---- making ---- */

static void
answer_created(ApiCall *call, Box *box, bool is_new)
{
    call_respond_json(call, is_new ? 201 : 200, box_describe(call->api, box));
}

/* The maxima are the server's to tell; here are those of the record that carries them. */
static bool
read_limits(Json *object, KeeperLimits *ret_limits, GError **error)
{
    double cpu = 0;
    gint64 memory_mb = 0, disk_mb = 0, inodes = 0, processes = 0;
    const JsonField fields[] = {
        {"cpu", JSON_KIND_NUMBER, &cpu, false, 0, KEEPER_CPU_MAX / 1000},
        {"memory_mb", JSON_KIND_INT, &memory_mb, false, 1, KEEPER_MEMORY_MAX / MIB},
        {"disk_mb", JSON_KIND_INT, &disk_mb, false, 1, KEEPER_DISK_MAX / MIB},
        {"inodes", JSON_KIND_INT, &inodes, false, KEEPER_INODES_MIN, KEEPER_INODES_MAX},
        {"processes", JSON_KIND_INT, &processes, false, KEEPER_PIDS_MIN, KEEPER_PIDS_MAX},
        {NULL},
    };

    if (object == NULL)
        return true;
    if (!json_read(object, fields, error)) {
        g_prefix_error(error, "limits: ");
        return false;
    }
    if (json_object_get(object, "cpu") != NULL && cpu * 1000 < KEEPER_CPU_MIN)
        return err_set(error, ERR_INVALID, "limits: 'cpu' must be at least %g", KEEPER_CPU_MIN / 1000.0);
    *ret_limits = (KeeperLimits){
        .memory_bytes = (guint64)(memory_mb * MIB),
        .disk_bytes = (guint64)(disk_mb * MIB),
        .inodes = (guint32)inodes,
        .pids = (guint32)processes,
        .cpu_milli = (guint32)(cpu * 1000 + 0.5),
    };
    return true;
}

static bool
read_metadata(Json *object, char **ret_text, GError **error)
{
    if (object == NULL)
        return true;
    *ret_text = json_encode(object);
    if (strlen(*ret_text) > BOX_METADATA_MAX)
        return err_set(error, ERR_INVALID, "'metadata' is longer than %d bytes", BOX_METADATA_MAX);
    return true;
}

static bool
read_first(Json *object, CommandForm **ret_form, GError **error)
{
    if (object == NULL)
        return true;
    *ret_form = command_form_read(object, error);
    if (*ret_form == NULL)
        g_prefix_error(error, "command: ");
    return *ret_form != NULL;
}

static void
create(ApiCall *call, Json *body, void *data)
{
    BoxSpec spec = {0};
    gint64 timeout_s = 0, idle_s = 0;
    Json *env_object = NULL, *limits = NULL, *metadata_object = NULL, *command = NULL;
    g_auto(GStrv) env = NULL;
    g_autofree char *metadata = NULL;
    g_autoptr(CommandForm) first = NULL;
    g_autoptr(GError) error = NULL;
    const JsonField fields[] = {
        {"template", JSON_KIND_STRING, &spec.template, false, 1, TEMPLATE_NAME_MAX},
        {"lease", JSON_KIND_STRING, &spec.lease, false, 1, LEASE_MAX},
        {"name", JSON_KIND_STRING, &spec.name, false, 1, BOX_NAME_MAX},
        {"agent_id", JSON_KIND_STRING, &spec.agent_id, false, 1, REFERENCE_MAX},
        {"task_id", JSON_KIND_STRING, &spec.task_id, false, 1, REFERENCE_MAX},
        {"squad_id", JSON_KIND_STRING, &spec.squad_id, false, 1, REFERENCE_MAX},
        {"repo_url", JSON_KIND_STRING, &spec.repo_url, false, 1, URL_TEXT_MAX},
        {"env", JSON_KIND_OBJECT, &env_object},
        {"metadata", JSON_KIND_OBJECT, &metadata_object},
        {"limits", JSON_KIND_OBJECT, &limits},
        {"timeout", JSON_KIND_INT, &timeout_s, false, 1, BOX_LIFE_MAX_MS / 1000},
        {"idle_timeout", JSON_KIND_INT, &idle_s, false, 1, BOX_LIFE_MAX_MS / 1000},
        {"keep", JSON_KIND_BOOL, &spec.keep},
        {"command", JSON_KIND_OBJECT, &command},
        {NULL},
    };

    if (!json_read(body, fields, &error) || !form_read_env(env_object, &env, &error) ||
        !read_limits(limits, &spec.limits, &error) || !read_metadata(metadata_object, &metadata, &error) ||
        !read_first(command, &first, &error)) {
        call_respond_error(call, error);
        return;
    }
    spec.env = (const char *const *)env;
    spec.metadata = metadata;
    spec.lifetime_ms = timeout_s * 1000;
    spec.idle_ms = idle_s * 1000;
    call_create_box(call, &spec, g_steal_pointer(&first), answer_created);
}

static void
check_create(ApiCall *call, Json *body, void *data)
{
    call_check_claim(call, body, create, data);
}

static void
post_sandbox(ApiCall *call)
{
    call_read_json(call, check_create, NULL);
}

/* ---- looking ---- */

typedef struct Listing {
    const Api *api;
    Json *list;
} Listing;

static void
add_to_list(Box *box, void *data)
{
    Listing *l = data;

    json_array_append_new(l->list, box_describe(l->api, box));
}

static Json *
describe_list(ApiCall *call, Json *list)
{
    return json_pack("{s:o, s:I}", "sandboxes", list, "seq",
                     (json_int_t)event_log_last_seq(call->api->events));
}

static void
on_ended_rows(Json *rows, const GError *error, void *data)
{
    ApiCall *call = data;
    size_t i;
    Json *row;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        Json *list = json_array();

        json_array_foreach(rows, i, row) json_array_append_new(list, box_describe_row(call->api, row));
        call_respond_json(call, 200, describe_list(call, list));
    }
    http_request_unref(call->request);
}

static bool
read_list_query(ApiCall *call, gint64 *ret_ended, gint64 *ret_limit, GError **error)
{
    static const char *const names[] = {"ended", "limit", NULL};
    const char *query = http_request_query(call->request);

    return url_query_only(query, names, error) && url_query_get_int(query, "ended", 0, 1, ret_ended, error) &&
           url_query_get_int(query, "limit", 1, ENDED_MAX, ret_limit, error);
}

static void
list_sandboxes(ApiCall *call)
{
    gint64 ended = 0, limit = ENDED_DEFAULT;
    const char *owner = caller_owner(&call->caller);
    g_autoptr(GError) error = NULL;

    if (!call_has_boxes(call))
        return;
    if (!read_list_query(call, &ended, &limit, &error)) {
        call_respond_error(call, error);
    } else if (ended != 0) {
        http_request_ref(call->request);
        box_host_ended(call->api->boxes, owner, (guint)limit, on_ended_rows, call);
    } else {
        Listing l = {.api = call->api, .list = json_array()};

        box_host_each(call->api->boxes, owner, add_to_list, &l);
        call_respond_json(call, 200, describe_list(call, l.list));
    }
}

static void
show_row(ApiCall *call, Json *row, void *data)
{
    if (row != NULL)
        call_respond_json(call, 200, box_describe_row(call->api, row));
}

static void
get_sandbox(ApiCall *call)
{
    Box *box = call_find_box(call);

    if (box != NULL)
        call_respond_json(call, 200, box_describe(call->api, box));
    else
        call_box_row(call, show_row, NULL);
}

static void
on_use(Box *box, const BoxUse *use, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(
            call, 200,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpu_ms", (json_int_t)(use->cpu_us / 1000),
                      "memory_bytes", (json_int_t)use->memory_bytes, "memory_peak_bytes",
                      (json_int_t)use->memory_peak_bytes, "disk_bytes", (json_int_t)use->disk_bytes, "inodes",
                      (json_int_t)use->inodes, "processes", (json_int_t)use->pids, "oom_kills",
                      (json_int_t)use->oom_kills));
    http_request_unref(call->request);
}

static void
get_stats(ApiCall *call)
{
    Box *box = call_box(call);

    if (box == NULL)
        return;
    http_request_ref(call->request);
    box_use(box, on_use, call);
}

/* ---- changing ---- */

static void
on_changed(Box *box, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200, box_describe(call->api, box));
    http_request_unref(call->request);
}

static void
post_pause(ApiCall *call)
{
    Box *box = call_box(call);

    if (box == NULL)
        return;
    http_request_ref(call->request);
    box_pause(box, call->caller.actor, on_changed, call);
}

static void
post_resume(ApiCall *call)
{
    Box *box = call_box(call);

    if (box == NULL)
        return;
    http_request_ref(call->request);
    box_resume(box, call->caller.actor, on_changed, call);
}

static void
renew(ApiCall *call, Json *body, void *data)
{
    Box *box = call_box(call);
    gint64 timeout_s = 0;
    g_autoptr(GError) error = NULL;
    const JsonField fields[] = {
        {"timeout", JSON_KIND_INT, &timeout_s, true, 1, BOX_LIFE_MAX_MS / 1000},
        {NULL},
    };

    if (box == NULL)
        return;
    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    box_renew(box, timeout_s * 1000, call->caller.actor, on_changed, call);
}

static void
post_renew(ApiCall *call)
{
    call_read_json(call, renew, NULL);
}

static void
on_killed(Box *box, const GError *error, void *data)
{
    call_on_done(data, error);
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

const ApiRoute sandboxes_routes[] = {
    {"GET", "/api/v1/sandboxes", SCOPE_READ, 0, list_sandboxes},
    {"POST", "/api/v1/sandboxes", SCOPE_BOX, ROUTE_STREAM, post_sandbox},
    {"GET", "/api/v1/sandboxes/{id}", SCOPE_READ, 0, get_sandbox},
    {"DELETE", "/api/v1/sandboxes/{id}", SCOPE_BOX, 0, delete_sandbox},
    {"GET", "/api/v1/sandboxes/{id}/stats", SCOPE_READ, 0, get_stats},
    {"POST", "/api/v1/sandboxes/{id}/pause", SCOPE_BOX, 0, post_pause},
    {"POST", "/api/v1/sandboxes/{id}/resume", SCOPE_BOX, 0, post_resume},
    {"POST", "/api/v1/sandboxes/{id}/renew", SCOPE_BOX, 0, post_renew},
    {NULL},
};
