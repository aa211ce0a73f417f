/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of boxes, and what it costs. */
#include "team/kept.h"

#include "api/call-box.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "http/file.h"

/* Files take room; a box that is paused takes what a box costs. */
static void
add_cost(ApiCall *call, Json *row)
{
    const gint64 hour_us = G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC;
    bool is_box = g_strcmp0(row_text(row, "kind"), "box") == 0;
    double hours = (double)MAX(0, clock_wall_us() - row_int(row, "created_us")) / (double)hour_us;

    json_object_set_new(row, "cost_usd", json_real(is_box ? hours * call->api->price_per_hour : 0));
    json_object_del(row, "path");
}

static void
on_list(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;
    size_t i;
    Json *row;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        json_array_foreach(json_object_get(value, "items"), i, row) add_cost(call, row);
        call_respond_json(call, 200,
                          json_pack("{s:o, s:O, s:O, s:O}", "kept",
                                    team_show(json_object_get(value, "items")), "total",
                                    json_object_get(value, "total"), "bytes", json_object_get(value, "bytes"),
                                    "bytes_max", json_object_get(value, "bytes_max")));
    }
    http_request_unref(call->request);
}

static void
list_kept(ApiCall *call)
{
    g_autofree char *task = NULL;
    ForgePage page;

    if (!call_read_task_page(call, &task, &page))
        return;
    http_request_ref(call->request);
    kept_list(call_team(call),
              &(KeptFilter){.owner = caller_owner(&call->caller), .task = task, .page = page}, on_list, call);
}

static void
on_row(Json *row, const GError *error, void *data)
{
    static const HttpFileSpec spec = {
        .type = "application/x-tar", .disposition = "attachment; filename=\"files.tar\"", .whole = true};
    ApiCall *call = data;
    g_autoptr(GError) failed = NULL;
    autofd fd = error == NULL ? kept_open(call->api->team, row, &failed) : -1;

    if (fd < 0) {
        call_respond_error(call, error != NULL ? error : failed);
    } else {
        /* Whatever is in it came out of a box. */
        http_response_header(call->request, "X-Content-Type-Options", "nosniff");
        http_respond_file(call->request, g_steal_fd(&fd), &spec);
    }
    http_request_unref(call->request);
}

static void
get_archive(ApiCall *call)
{
    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    kept_get(call_team(call), call_param(call, "kept"), caller_owner(&call->caller), on_row, call);
}

static void
on_removed(Json *value, const GError *error, void *data)
{
    call_on_done(data, error);
}

static void
delete_kept(ApiCall *call)
{
    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    kept_remove(call_team(call), call_param(call, "kept"), caller_owner(&call->caller), on_removed, call);
}

const ApiRoute kept_routes[] = {
    {"GET", "/api/v1/kept", SCOPE_READ, 0, list_kept},
    {"GET", "/api/v1/kept/{kept}/archive", SCOPE_READ, 0, get_archive},
    {"DELETE", "/api/v1/kept/{kept}", SCOPE_BOX, 0, delete_kept},
    {NULL},
};
