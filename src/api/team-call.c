/* SPDX-License-Identifier: Apache-2.0 */
#include "api/team-call.h"

#include <string.h>

#include "api/call-box.h"
#include "api/repos.h"
#include "api/state.h"
#include "forge/thread.h"
#include "http/url.h"

enum { PAGES_MAX = 1000 * 1000 };

Team *
call_team(ApiCall *call)
{
    if (call->api->team == NULL)
        respond_error(call->request, 503, "this server has no squads");
    return call->api->team;
}

TaskRef
call_task_ref(ApiCall *call)
{
    return (TaskRef){
        .id = call_param(call, "task"), .owner = caller_owner(&call->caller), .actor = call->caller.actor};
}

/* ---- rows ---- */

static bool
is_time(const char *name)
{
    return g_str_has_suffix(name, "_us") && strcmp(name, "duration_us") != 0;
}

static Json *
show_list(const Json *list)
{
    Json *shown = json_array();
    size_t i;
    Json *item;

    json_array_foreach((Json *)(guintptr)list, i, item) json_array_append_new(shown, team_show(item));
    return shown;
}

Json *
team_show(const Json *row)
{
    const char *name;
    Json *value;

    if (json_is_array(row))
        return show_list(row);
    if (!json_is_object(row))
        return json_incref((Json *)(guintptr)row);
    Json *shown = json_object();

    json_object_foreach((Json *)(guintptr)row, name, value)
    {
        if (is_time(name)) {
            g_autofree char *at = g_strdup_printf("%.*s_at", (int)strlen(name) - 3, name);

            json_object_set_new(shown, at, row_time_json(row, name));
        } else {
            json_object_set_new(shown, name, team_show(value));
        }
    }
    return shown;
}

/* ---- answers ---- */

void
call_on_row(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200, team_show(value));
    http_request_unref(call->request);
}

void
call_on_made(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, json_is_false(json_object_get(value, "created")) ? 200 : 201,
                          team_show(value));
    http_request_unref(call->request);
}

void
call_on_rows(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;
    const char *name = strrchr(call->route->pattern, '/') + 1;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200,
                          json_pack("{s:o, s:O, s:I}", name, team_show(json_object_get(value, "items")),
                                    "total", json_object_get(value, "total"), "seq",
                                    (json_int_t)event_log_last_seq(call->api->events)));
    http_request_unref(call->request);
}

bool
call_read_page(ApiCall *call, CallPage *ret_page, GError **error)
{
    const char *query = http_request_query(call->request);

    *ret_page = (CallPage){.page = 1, .per_page = THREAD_PAGE};
    return url_query_get_int(query, "page", 1, PAGES_MAX, &ret_page->page, error) &&
           url_query_get_int(query, "per_page", 1, THREAD_PAGE_MAX, &ret_page->per_page, error);
}

bool
call_read_task_page(ApiCall *call, char **ret_task, ForgePage *ret_page)
{
    static const char *const names[] = {"task", "page", "per_page", NULL};
    const char *query = http_request_query(call->request);
    CallPage page;
    g_autoptr(GError) error = NULL;

    if (call_team(call) == NULL)
        return false;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "task", ret_task, &error) ||
        !call_read_page(call, &page, &error)) {
        call_respond_error(call, error);
        return false;
    }
    *ret_page = (ForgePage){(guint)page.page, (guint)page.per_page};
    return true;
}
