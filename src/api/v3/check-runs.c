/* SPDX-License-Identifier: Apache-2.0 */
/* Check runs that somebody reports are shown as claimed; those of Coop's own checks stand beside them, and
 * nobody can change one. */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/commit-rows.h"
#include "api/v3/render.h"
#include "forge/check-row.h"

/* ---- what is reported ---- */

/* NULL: none.  False: answered. */
static bool
read_time(ApiCall *call, const char *name, const char *text, gint64 *ret_us)
{
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = text != NULL ? g_date_time_new_from_iso8601(text, utc) : NULL;

    if (text == NULL)
        return true;
    if (time == NULL || g_date_time_to_unix(time) <= 0) {
        v3_respond_invalid(call, &(V3Invalid){"CheckRun", name, "invalid", "this is no time since 1970"});
        return false;
    }
    *ret_us = g_date_time_to_unix(time) * G_USEC_PER_SEC;
    return true;
}

static bool
read_output(ApiCall *call, Json *output, CheckRunSpec *ret_spec)
{
    const JsonField fields[] = {
        {"title", JSON_KIND_STRING, &ret_spec->title, false, 0, CHECK_TITLE_MAX},
        {"summary", JSON_KIND_STRING, &ret_spec->summary, false, 0, CHECK_TEXT_MAX},
        {"text", JSON_KIND_STRING, &ret_spec->output, false, 0, CHECK_TEXT_MAX},
        {NULL},
    };

    return output == NULL || v3_read_fields(call, output, fields, "CheckRun");
}

/* `is_new`: a name and a commit are needed. */
static bool
read_spec(ApiCall *call, Json *body, bool is_new, CheckRunSpec *ret_spec)
{
    const char *started = NULL, *completed = NULL;
    Json *output = NULL;
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &ret_spec->name, is_new, 1, CHECK_NAME_MAX},
        {"head_sha", JSON_KIND_STRING, &ret_spec->head_oid, is_new, 1, GIT_OID_LEN},
        {"status", JSON_KIND_STRING, &ret_spec->status, false, 1, CHECK_NAME_MAX},
        {"conclusion", JSON_KIND_STRING, &ret_spec->conclusion, false, 1, CHECK_NAME_MAX},
        {"external_id", JSON_KIND_STRING, &ret_spec->external_id, false, 0, CHECK_NAME_MAX},
        {"details_url", JSON_KIND_STRING, &ret_spec->details_url, false, 0, CHECK_URL_MAX},
        {"started_at", JSON_KIND_STRING, &started, false, 1, CHECK_NAME_MAX},
        {"completed_at", JSON_KIND_STRING, &completed, false, 1, CHECK_NAME_MAX},
        {"output", JSON_KIND_OBJECT, &output},
        {NULL},
    };

    return v3_read_fields(call, body, fields, "CheckRun") && read_output(call, output, ret_spec) &&
           read_time(call, "started_at", started, &ret_spec->started_us) &&
           read_time(call, "completed_at", completed, &ret_spec->completed_us);
}

/* ---- making ---- */

typedef struct RunWork {
    V3OnCommit on;
    CheckRunSpec spec;
} RunWork;

static Json *
render_one(const V3Place *place, const V3OnCommit *on, const Json *value)
{
    return v3_check_run(place, value);
}

static void
ask_create(V3OnCommit *on)
{
    RunWork *w = (RunWork *)(void *)on;

    w->spec.head_oid = on->oid;
    check_run_put(on->work.call->api->forge, on->work.repo, &w->spec, v3_on_commit_rows, on);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    CheckRunSpec spec = {.actor = call->caller.actor};

    if (!read_spec(call, body, true, &spec))
        return;
    RunWork *w = V3_WORK_NEW(RunWork, call);

    if (w == NULL)
        return;
    w->spec = spec;
    w->on.ref = spec.head_oid;
    w->on.ask = ask_create;
    w->on.render = render_one;
    v3_on_commit_report(&w->on, body);
}

static void
post_run(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

/* ---- one ---- */

/* A ForgeJsonFunc for calls that hold their request. */
static void
on_run(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;
    Repo *repo = error == NULL ? call_repo(call) : NULL;
    g_auto(V3Place) place = {0};

    if (error != NULL) {
        call_respond_error(call, error);
    } else if (repo != NULL) {
        v3_place_init(&place, call->api, repo);
        v3_respond(call, 200, v3_check_run(&place, value));
    }
    http_request_unref(call->request);
}

static void
update(ApiCall *call, Json *body, void *data)
{
    CheckRunSpec spec = {.actor = call->caller.actor};

    if (!v3_param_int(call, "id", &spec.id) || !read_spec(call, body, false, &spec))
        return;
    Repo *repo = call_repo(call);

    if (repo == NULL)
        return;
    http_request_ref(call->request);
    check_run_put(call->api->forge, repo, &spec, on_run, call);
}

static void
patch_run(ApiCall *call)
{
    call_read_json(call, update, NULL);
}

static void
get_run(ApiCall *call)
{
    CheckRunFilter filter = {0};
    Repo *repo = call_repo(call);

    if (repo == NULL || !v3_param_int(call, "id", &filter.id))
        return;
    http_request_ref(call->request);
    check_run_list(call->api->forge, repo, &filter, on_run, call);
}

/* ---- all of a commit ---- */

typedef struct RunsWork {
    V3OnCommit on;
    CheckRunFilter filter;
} RunsWork;

static Json *
render_list(const V3Place *place, const V3OnCommit *on, const Json *value)
{
    Json *total = json_object_get(value, "total"), *items = json_object_get(value, "items"), *item;
    Json *list = json_array();
    size_t i;

    json_array_foreach(items, i, item)
    {
        json_array_append_new(list, v3_check_run(place, item));
    }
    v3_link(on->work.call, &on->work.page, json_integer_value(total));
    return json_pack("{s:O, s:o}", "total_count", total, "check_runs", list);
}

static void
ask_list(V3OnCommit *on)
{
    RunsWork *w = (RunsWork *)(void *)on;

    w->filter.oid = on->oid;
    w->filter.page = on->work.page;
    check_run_list(on->work.call->api->forge, on->work.repo, &w->filter, v3_on_commit_rows, on);
}

static void
list_runs(ApiCall *call)
{
    g_autofree char *name = NULL, *status = NULL, *filter = NULL;

    if (!v3_query(call, "check_name", &name) || !v3_query(call, "status", &status) ||
        !v3_query(call, "filter", &filter))
        return;
    RunsWork *w = V3_WORK_NEW(RunsWork, call);

    if (w == NULL)
        return;
    w->filter = (CheckRunFilter){.name = v3_work_text(&w->on.work, name),
                                 .status = v3_work_text(&w->on.work, status),
                                 .all = g_strcmp0(filter, "all") == 0};
    w->on.ref = call_param(call, "ref");
    w->on.ask = ask_list;
    w->on.render = render_list;
    v3_read_page(call, &w->on.work.page);
    v3_on_commit_begin(&w->on);
}

const ApiRoute v3_check_runs_routes[] = {
    {"POST", V3_REPO "/check-runs", SCOPE_BOX, ROUTE_BASIC, post_run},
    {"GET", V3_REPO "/check-runs/{id}", SCOPE_READ, ROUTE_BASIC, get_run},
    {"PATCH", V3_REPO "/check-runs/{id}", SCOPE_BOX, ROUTE_BASIC, patch_run},
    {"GET", V3_REPO "/commits/{ref}/check-runs", SCOPE_READ, ROUTE_BASIC, list_runs},
    {NULL},
};
