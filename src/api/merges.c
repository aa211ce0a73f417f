/* SPDX-License-Identifier: Apache-2.0 */
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/landing.h"
#include "http/url.h"

enum { PAGES_MAX = 100000 };

/* Answers itself when there is none. */
static Landings *
call_landings(ApiCall *call)
{
    if (call->api->landings == NULL)
        respond_error(call->request, 503, "this server has no merge queue");
    return call->api->landings;
}

static Json *
dup_shown(const Json *row)
{
    static const char *const same[] = {"id",       "number",     "target",        "method",      "title",
                                       "message",  "actor",      "state",         "reason",      "problem",
                                       "head_oid", "target_oid", "candidate_oid", "landing_oid", "suite_id",
                                       "tries",    "conflict",   "repository",    NULL};
    Json *shown = json_object();

    for (const char *const *name = same; *name != NULL; name++)
        json_object_set(shown, *name, json_object_get(row, *name));
    json_object_set_new(shown, "created_at", row_time_json(row, "created_us"));
    json_object_set_new(shown, "ended_at", row_time_json(row, "ended_us"));
    return shown;
}

Json *
merges_json(const Json *list)
{
    Json *shown = json_array(), *row;
    size_t i;

    json_array_foreach(json_object_get(list, "items"), i, row) json_array_append_new(shown, dup_shown(row));
    return shown;
}

static void
answer(ApiCall *call, int status, const Json *value, const GError *error)
{
    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, status, dup_shown(value));
    http_request_unref(call->request);
}

static void
on_entry(Json *value, const GError *error, void *data)
{
    answer(data, 200, value, error);
}

static void
on_added(Json *value, const GError *error, void *data)
{
    g_autoptr(GError) said = error != NULL ? g_error_copy(error) : NULL;

    if (said != NULL && err_kind(said) == ERR_DENIED)
        g_prefix_error(&said, "it cannot be merged: ");
    answer(data, 202, value, said);
}

/* ---- reading ---- */

static bool
read_id(ApiCall *call, gint64 *ret_id)
{
    guint64 id;

    if (!g_ascii_string_to_unsigned(call_param(call, "merge"), 10, 1, G_MAXINT64, &id, NULL)) {
        respond_error(call->request, 404, "there is no such merge");
        return false;
    }
    *ret_id = (gint64)id;
    return true;
}

static void
show_merge(ApiCall *call)
{
    static const char *const names[] = {"wait_ms", NULL};
    const char *query = http_request_query(call->request);
    Repo *repo = call_repo(call);
    gint64 id, wait_ms = 0;
    g_autoptr(GError) error = NULL;

    if (repo == NULL || call_landings(call) == NULL || !read_id(call, &id))
        return;
    if (!url_query_only(query, names, &error) ||
        !url_query_get_int(query, "wait_ms", 0, LANDING_WAIT_MAX_MS, &wait_ms, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    if (wait_ms > 0)
        landing_wait(call->api->landings, repo, id, (guint)wait_ms, on_entry, call);
    else
        landing_get(call->api->landings, repo, id, on_entry, call);
}

static void
on_list(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(
            call, 200,
            json_pack("{s:o, s:O}", "merges", merges_json(value), "total", json_object_get(value, "total")));
    http_request_unref(call->request);
}

static void
list_merges(ApiCall *call)
{
    static const char *const names[] = {"target", "number", "ended", "page", "per_page", NULL};
    const char *query = http_request_query(call->request);
    Repo *repo = call_repo(call);
    g_autofree char *target = NULL;
    gint64 number = 0, ended = 0, page = 1, per_page = THREAD_PAGE;
    g_autoptr(GError) error = NULL;

    if (repo == NULL || call_landings(call) == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "target", &target, &error) ||
        !url_query_get_int(query, "number", 1, G_MAXINT64, &number, &error) ||
        !url_query_get_int(query, "ended", 0, 1, &ended, &error) ||
        !url_query_get_int(query, "page", 1, PAGES_MAX, &page, &error) ||
        !url_query_get_int(query, "per_page", 1, THREAD_PAGE_MAX, &per_page, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    landing_list(
        call->api->landings, repo,
        &(LandingFilter){
            .target = target, .number = number, .ended = ended != 0, .page = {(guint)page, (guint)per_page}},
        on_list, call);
}

/* ---- changing ---- */

static void
add(ApiCall *call, Json *body, void *data)
{
    LandingSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"number", JSON_KIND_INT, &spec.number, true, 1, G_MAXINT64},
        {"method", JSON_KIND_STRING, &spec.method, false, 1, LANDING_METHOD_MAX},
        {"title", JSON_KIND_STRING, &spec.title, false, 0, THREAD_TITLE_MAX},
        {"message", JSON_KIND_STRING, &spec.message, false, 0, LANDING_MESSAGE_MAX},
        {"head_oid", JSON_KIND_STRING, &spec.head_oid, false, GIT_OID_LEN, GIT_OID_LEN},
        {NULL},
    };
    Repo *repo = call_repo(call);
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!json_read(body, fields, &error) || !repo_require_ready(repo, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    landing_add(call->api->landings, repo, &spec, on_added, call);
}

static void
post_merge(ApiCall *call)
{
    if (call_repo(call) != NULL && call_landings(call) != NULL)
        call_read_json(call, add, NULL);
}

static void
delete_merge(ApiCall *call)
{
    Repo *repo = call_repo(call);
    gint64 id;

    if (repo == NULL || call_landings(call) == NULL || !read_id(call, &id))
        return;
    http_request_ref(call->request);
    landing_remove(call->api->landings, repo, call->caller.actor, id, on_entry, call);
}

const ApiRoute merges_routes[] = {
    {"GET", "/api/v1/repos/{owner}/{repo}/merges", SCOPE_READ, 0, list_merges},
    {"POST", "/api/v1/repos/{owner}/{repo}/merges", SCOPE_BOX, 0, post_merge},
    {"GET", "/api/v1/repos/{owner}/{repo}/merges/{merge}", SCOPE_READ, 0, show_merge},
    {"DELETE", "/api/v1/repos/{owner}/{repo}/merges/{merge}", SCOPE_BOX, 0, delete_merge},
    {NULL},
};
