/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/checks.h"

#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"

enum { US_PER_MS = 1000, PAGES_MAX = 100000 };

/* Answers itself when there is none. */
static Checks *
call_checks(ApiCall *call)
{
    if (call->api->checks == NULL)
        respond_error(call->request, 503, "this server has no checks");
    return call->api->checks;
}

/* ---- showing ---- */

static Json *
run_json(const Json *row)
{
    static const char *const same[] = {"id",        "name",   "command",      "status",        "conclusion",
                                       "exit_code", "reason", "output_bytes", "output_sha256", "tests",
                                       NULL};
    gint64 began_us = json_integer_value(json_object_get(row, "started_us"));
    gint64 ended_us = json_integer_value(json_object_get(row, "completed_us"));
    Json *shown = json_object();

    for (const char *const *name = same; *name != NULL; name++)
        json_object_set(shown, *name, json_object_get(row, *name));
    json_object_set_new(shown, "duration_ms",
                        ended_us != 0 ? json_integer((ended_us - began_us) / US_PER_MS) : json_null());
    json_object_set_new(shown, "started_at", row_time_json(row, "started_us"));
    json_object_set_new(shown, "completed_at", row_time_json(row, "completed_us"));
    return shown;
}

static Json *
suite_json(const Json *row)
{
    static const char *const same[] = {"id",     "number",   "base_oid", "head_oid", "tree_oid", "state",
                                       "source", "template", "box_id",   "tries",    "problem",  NULL};
    const Json *runs = json_object_get(row, "checks");
    const char *receipt = json_string_value(json_object_get(row, "receipt"));
    Json *shown = json_object(), *run;
    size_t i;

    for (const char *const *name = same; *name != NULL; name++)
        json_object_set(shown, *name, json_object_get(row, *name));
    json_object_set_new(shown, "created_at", row_time_json(row, "created_us"));
    json_object_set_new(shown, "began_at", row_time_json(row, "began_us"));
    json_object_set_new(shown, "ended_at", row_time_json(row, "ended_us"));
    if (runs == NULL)
        return shown;
    Json *list = json_array();

    json_array_foreach(runs, i, run) json_array_append_new(list, run_json(run));
    json_object_set_new(shown, "checks", list);
    json_object_set_new(shown, "receipt",
                        receipt != NULL ? json_decode(receipt, strlen(receipt), NULL) : json_null());
    return shown;
}

static void
on_suite(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200, suite_json(value));
    http_request_unref(call->request);
}

static void
find_suite(ApiCall *call, ForgeJsonFunc answer)
{
    Repo *repo = call_repo(call);

    if (repo == NULL || call_checks(call) == NULL)
        return;
    http_request_ref(call->request);
    checks_get(call->api->checks, repo, call_param(call, "suite"), answer, call);
}

static void
show_suite(ApiCall *call)
{
    find_suite(call, on_suite);
}

/* ---- lists ---- */

static void
on_list(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;
    Json *suites = json_array(), *row;
    size_t i;

    json_array_foreach(json_object_get(value, "items"), i, row)
        json_array_append_new(suites, suite_json(row));
    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(
            call, 200, json_pack("{s:O, s:O}", "suites", suites, "total", json_object_get(value, "total")));
    json_decref(suites);
    http_request_unref(call->request);
}

static void
list_suites(ApiCall *call)
{
    static const char *const names[] = {"number", "head", "page", "per_page", NULL};
    const char *query = http_request_query(call->request);
    Repo *repo = call_repo(call);
    g_autofree char *head = NULL;
    gint64 number = 0, page = 1, per_page = THREAD_PAGE;
    g_autoptr(GError) error = NULL;

    if (repo == NULL || call_checks(call) == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "head", &head, &error) ||
        !url_query_get_int(query, "number", 1, G_MAXINT64, &number, &error) ||
        !url_query_get_int(query, "page", 1, PAGES_MAX, &page, &error) ||
        !url_query_get_int(query, "per_page", 1, THREAD_PAGE_MAX, &per_page, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    checks_list(call->api->checks, repo,
                &(SuiteFilter){.number = number, .head_oid = head, .page = {(guint)page, (guint)per_page}},
                on_list, call);
}

/* ---- receipt and log ---- */

static void
on_receipt(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;
    const char *receipt = json_string_value(json_object_get(value, "receipt"));

    if (error != NULL)
        call_respond_error(call, error);
    else if (receipt == NULL)
        respond_error(call->request, 404, "there is no receipt: the suite has not come to a result");
    else
        call_respond_text(call, 200, receipt);
    http_request_unref(call->request);
}

static void
show_receipt(ApiCall *call)
{
    find_suite(call, on_receipt);
}

static void
on_log(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;
    const char *output = NULL;
    Json *run;
    size_t i;

    json_array_foreach(json_object_get(value, "checks"), i, run)
    {
        g_autofree char *id = g_strdup_printf("%" JSON_INTEGER_FORMAT,
                                              json_integer_value(json_object_get(run, "id")));

        if (strcmp(id, call_param(call, "check")) == 0)
            output = json_string_value(json_object_get(run, "output"));
    }
    if (error != NULL)
        call_respond_error(call, error);
    else if (output == NULL)
        respond_error(call->request, 404, "there is no output of such a check");
    else
        http_respond_text(call->request, 200, "text/plain; charset=utf-8", output);
    http_request_unref(call->request);
}

static void
show_log(ApiCall *call)
{
    find_suite(call, on_log);
}

static void
show_key(ApiCall *call)
{
    const char *hex = call_checks(call) != NULL ? checks_key_hex(call->api->checks) : NULL;

    if (hex != NULL)
        call_respond_json(call, 200, json_pack("{s:s, s:s}", "algorithm", "ed25519", "key", hex));
    else if (call->api->checks != NULL)
        respond_error(call->request, 503, "this server has no key for receipts");
}

/* ---- changing ---- */

static void
on_added(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 202, suite_json(value));
    http_request_unref(call->request);
}

static void
ask(ApiCall *call, Json *body, void *data)
{
    SuiteAsk spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"number", JSON_KIND_INT, &spec.number, false, 1, G_MAXINT64},
        {"branch", JSON_KIND_STRING, &spec.branch, false, 1, REPO_BRANCH_NAME_MAX},
        {NULL},
    };
    Repo *repo = call_repo(call);
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!json_read(body, fields, &error) || !repo_require_ready(repo, &error) ||
        ((spec.number == 0) == (spec.branch == NULL) &&
         !err_set(&error, ERR_INVALID, "name either a pull request's 'number' or a 'branch'"))) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    checks_ask(call->api->checks, repo, &spec, on_added, call);
}

static void
post_suite(ApiCall *call)
{
    if (call_repo(call) != NULL && call_checks(call) != NULL)
        call_read_json(call, ask, NULL);
}

static void
delete_suite(ApiCall *call)
{
    Repo *repo = call_repo(call);

    if (repo == NULL || call_checks(call) == NULL)
        return;
    http_request_ref(call->request);
    checks_cancel(call->api->checks, repo, call_param(call, "suite"), call->caller.actor, on_suite, call);
}

const ApiRoute checks_routes[] = {
    {"GET", "/api/v1/receipts/key", SCOPE_READ, 0, show_key},
    {"GET", "/api/v1/repos/{owner}/{repo}/checks", SCOPE_READ, 0, list_suites},
    {"POST", "/api/v1/repos/{owner}/{repo}/checks", SCOPE_BOX, 0, post_suite},
    {"GET", "/api/v1/repos/{owner}/{repo}/checks/{suite}", SCOPE_READ, 0, show_suite},
    {"DELETE", "/api/v1/repos/{owner}/{repo}/checks/{suite}", SCOPE_BOX, 0, delete_suite},
    {"GET", "/api/v1/repos/{owner}/{repo}/checks/{suite}/receipt", SCOPE_READ, 0, show_receipt},
    {"GET", "/api/v1/repos/{owner}/{repo}/checks/{suite}/log/{check}", SCOPE_READ, 0, show_log},
    {NULL},
};
