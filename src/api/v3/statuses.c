/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/commit-rows.h"
#include "api/v3/render.h"
#include "forge/check-row.h"

/* ---- making ---- */

typedef struct StatusWork {
    V3OnCommit on;
    StatusSpec spec;
} StatusWork;

static Json *
render_one(const V3Place *place, const V3OnCommit *on, const Json *value)
{
    return v3_status(place, value);
}

static void
ask_create(V3OnCommit *on)
{
    StatusWork *w = (StatusWork *)(void *)on;

    w->spec.oid = on->oid;
    status_create(on->work.call->api->forge, on->work.repo, &w->spec, v3_on_commit_rows, on);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    StatusSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"state", JSON_KIND_STRING, &spec.state, true, 1, CHECK_NAME_MAX},
        {"context", JSON_KIND_STRING, &spec.context, false, 1, CHECK_NAME_MAX},
        {"description", JSON_KIND_STRING, &spec.description, false, 0, STATUS_DESCRIPTION_MAX},
        {"target_url", JSON_KIND_STRING, &spec.target_url, false, 0, CHECK_URL_MAX},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, "Status"))
        return;
    StatusWork *w = V3_WORK_NEW(StatusWork, call);

    if (w == NULL)
        return;
    w->spec = spec;
    w->on.ref = call_param(call, "sha");
    w->on.ask = ask_create;
    w->on.render = render_one;
    v3_on_commit_report(&w->on, body);
}

static void
post_status(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

/* ---- reading ---- */

static Json *
statuses_json(const V3Place *place, const Json *items)
{
    Json *list = json_array();
    size_t i;
    Json *item;

    json_array_foreach(items, i, item)
    {
        json_array_append_new(list, v3_status(place, item));
    }
    return list;
}

static Json *
render_list(const V3Place *place, const V3OnCommit *on, const Json *value)
{
    v3_link(on->work.call, &on->work.page, json_integer_value(json_object_get(value, "total")));
    return statuses_json(place, json_object_get(value, "items"));
}

static Json *
render_combined(const V3Place *place, const V3OnCommit *on, const Json *value)
{
    g_autofree char *commit = g_strdup_printf("%s/commits/%s", place->api, on->oid);
    g_autofree char *url = g_strconcat(commit, "/status", NULL);
    RepoInfo info;

    repo_info(on->work.repo, &info);
    return json_pack("{s:O, s:o, s:s, s:O, s:o, s:s, s:s}", "state", json_object_get(value, "state"),
                     "statuses", statuses_json(place, json_object_get(value, "items")), "sha", on->oid,
                     "total_count", json_object_get(value, "total"), "repository",
                     v3_repository(place, &info), "commit_url", commit, "url", url);
}

static void
ask_list(V3OnCommit *on)
{
    status_list(on->work.call->api->forge, on->work.repo, on->oid, on->work.page, v3_on_commit_rows, on);
}

static void
ask_combined(V3OnCommit *on)
{
    status_combined(on->work.call->api->forge, on->work.repo, on->oid, v3_on_commit_rows, on);
}

static V3OnCommit *
reading_new(ApiCall *call)
{
    V3OnCommit *on = V3_WORK_NEW(V3OnCommit, call);

    if (on == NULL)
        return NULL;
    on->ref = call_param(call, "ref");
    v3_read_page(call, &on->work.page);
    return on;
}

static void
list_statuses(ApiCall *call)
{
    V3OnCommit *on = reading_new(call);

    if (on == NULL)
        return;
    on->ask = ask_list;
    on->render = render_list;
    v3_on_commit_begin(on);
}

static void
get_combined(ApiCall *call)
{
    V3OnCommit *on = reading_new(call);

    if (on == NULL)
        return;
    on->ask = ask_combined;
    on->render = render_combined;
    v3_on_commit_begin(on);
}

const ApiRoute v3_statuses_routes[] = {
    {"POST", V3_REPO "/statuses/{sha}", SCOPE_BOX, ROUTE_BASIC, post_status},
    {"GET", V3_REPO "/commits/{ref}/statuses", SCOPE_READ, ROUTE_BASIC, list_statuses},
    {"GET", V3_REPO "/commits/{ref}/status", SCOPE_READ, ROUTE_BASIC, get_combined},
    {NULL},
};
