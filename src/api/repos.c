/* SPDX-License-Identifier: Apache-2.0 */
#include "api/repos.h"

#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "forge/workspace.h"
#include "http/url.h"

enum { PAGE = 100, PAGE_MAX = 1000 };

Forge *
call_forge(ApiCall *call)
{
    if (call->api->forge == NULL)
        respond_error(call->request, 503, "this server has no forge");
    return call->api->forge;
}

Repo *
call_repo(ApiCall *call)
{
    Forge *forge = call_forge(call);

    if (forge == NULL)
        return NULL;
    Repo *repo = forge_find(forge, call_param(call, "owner"), call_param(call, "repo"));

    if (repo == NULL)
        respond_error(call->request, 404, "there is no such repository");
    return repo;
}

Json *
row_time_json(const Json *row, const char *member)
{
    gint64 us = json_integer_value(json_object_get(row, member));
    char text[CLOCK_ISO_LEN + 1];

    if (us == 0)
        return json_null();
    clock_format_iso(us, text);
    return json_string(text);
}

/* ---- reading ---- */

typedef struct Page {
    gint64 after, limit, next;
    Json *list;
} Page;

static void
add_to_page(Repo *repo, void *data)
{
    Page *p = data;
    RepoInfo info;

    repo_info(repo, &info);
    if (info.number <= p->after || p->next != 0)
        return;
    if ((gint64)json_array_size(p->list) == p->limit) {
        p->next = p->after;
        return;
    }
    p->after = info.number;
    json_array_append_new(p->list, repo_json(repo));
}

static void
list_repos(ApiCall *call)
{
    static const char *const names[] = {"after", "limit", NULL};
    const char *query = http_request_query(call->request);
    Page p = {.limit = PAGE};
    g_autoptr(GError) error = NULL;

    if (call_forge(call) == NULL)
        return;
    if (!url_query_only(query, names, &error) ||
        !url_query_get_int(query, "after", 0, G_MAXINT64, &p.after, &error) ||
        !url_query_get_int(query, "limit", 1, PAGE_MAX, &p.limit, &error)) {
        call_respond_error(call, error);
        return;
    }
    p.list = json_array();
    forge_each(call->api->forge, add_to_page, &p);
    call_respond_json(call, 200,
                      json_pack("{s:o, s:o}", "repositories", p.list, "next",
                                p.next != 0 ? json_integer(p.next) : json_null()));
}

static void
show_repo(ApiCall *call)
{
    Repo *repo = call_repo(call);

    if (repo != NULL)
        call_respond_json(call, 200, repo_json(repo));
}

/* A ForgeJsonFunc for calls that hold their request. */
void
call_on_json(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200, json_incref(value));
    http_request_unref(call->request);
}

static void
list_branches(ApiCall *call)
{
    static const char *const names[] = {"after", "limit", NULL};
    const char *query = http_request_query(call->request);
    Repo *repo = call_repo(call);
    g_autofree char *after = NULL;
    gint64 limit = PAGE;
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "after", &after, &error) ||
        !url_query_get_int(query, "limit", 1, REPO_BRANCHES_MAX, &limit, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    repo_list_branches(repo, after, (guint)limit, call_on_json, call);
}

static void
respond_queue(ApiCall *call, Json *merges)
{
    Json *checks = call->api->checks != NULL ? checks_queue_json(call->api->checks) : json_array();
    ForgeStats stats;

    forge_stats(call->api->forge, &stats);
    call_respond_json(call, 200,
                      json_pack("{s:i, s:i, s:i, s:I, s:I, s:I, s:o, s:o, s:o}", "depth", (int)stats.waiting,
                                "running", (int)stats.running, "limit", FORGE_QUEUE_MAX, "done",
                                (json_int_t)stats.done, "failed", (json_int_t)stats.failed, "tried_again",
                                (json_int_t)stats.tried_again, "work", forge_queue_json(call->api->forge),
                                "checks", checks, "merges", merges));
}

static void
on_merges(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        respond_queue(call, merges_json(value));
    http_request_unref(call->request);
}

static void
show_queue(ApiCall *call)
{
    if (call_forge(call) == NULL)
        return;
    if (call->api->landings == NULL) {
        respond_queue(call, json_array());
        return;
    }
    http_request_ref(call->request);
    landing_list_all(call->api->landings, on_merges, call);
}

/* ---- changing ---- */

static void
on_created(Repo *repo, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, repo_is_ready(repo) ? 201 : 202, repo_json(repo));
    http_request_unref(call->request);
}

/* What is imported is fetched by this machine, from its files or its network: for admins only. */
static void
create(ApiCall *call, Json *body, void *data)
{
    RepoSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"owner", JSON_KIND_STRING, &spec.owner, false, 1, REPO_NAME_MAX},
        {"name", JSON_KIND_STRING, &spec.name, true, 1, REPO_NAME_MAX},
        {"description", JSON_KIND_STRING, &spec.description, false, 0, REPO_DESCRIPTION_MAX},
        {"default_branch", JSON_KIND_STRING, &spec.default_branch, false, 1, REPO_BRANCH_NAME_MAX},
        {"source", JSON_KIND_STRING, &spec.source, false, 1, REPO_SOURCE_MAX},
        {"mirror", JSON_KIND_BOOL, &spec.mirror},
        {"insecure", JSON_KIND_BOOL, &spec.insecure},
        {"first_commit", JSON_KIND_BOOL, &spec.first_commit},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) ||
        (spec.mirror && spec.source == NULL && !err_set(&error, ERR_INVALID, "a mirror needs a 'source'")) ||
        (spec.source != NULL && spec.first_commit &&
         !err_set(&error, ERR_INVALID, "what is imported has commits: leave 'first_commit' away")) ||
        (spec.source != NULL && !scopes_allow(call->caller.scopes, SCOPE_ADMIN) &&
         !err_set(&error, ERR_DENIED,
                  "an import reads this machine's files or network: it needs the scope "
                  "admin"))) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    repo_create(call->api->forge, &spec, on_created, call);
}

static void
post_repo(ApiCall *call)
{
    if (call_forge(call) != NULL)
        call_read_json(call, create, NULL);
}

/* Events tell how it ends. */
static void
post_fetch(ApiCall *call)
{
    Repo *repo = call_repo(call);
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!repo_fetch(repo, call->caller.actor, &error))
        call_respond_error(call, error);
    else
        call_respond_json(call, 202, repo_json(repo));
}

static void
delete_repo(ApiCall *call)
{
    static const char *const names[] = {"force", NULL};
    const char *query = http_request_query(call->request);
    Repo *repo = call_repo(call);
    gint64 force = 0;
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get_int(query, "force", 0, 1, &force, &error) ||
        (force == 0 && !workspace_require_none(call->api->forge, repo, &error))) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    repo_remove(repo, call->caller.actor, call_on_done, call);
}

const ApiRoute repos_routes[] = {
    {"GET", "/api/v1/repos", SCOPE_READ, 0, list_repos},
    {"POST", "/api/v1/repos", SCOPE_BOX, 0, post_repo},
    {"GET", "/api/v1/repos/{owner}/{repo}", SCOPE_READ, 0, show_repo},
    {"DELETE", "/api/v1/repos/{owner}/{repo}", SCOPE_ADMIN, 0, delete_repo},
    {"GET", "/api/v1/repos/{owner}/{repo}/branches", SCOPE_READ, 0, list_branches},
    {"POST", "/api/v1/repos/{owner}/{repo}/fetch", SCOPE_BOX, 0, post_fetch},
    {"GET", "/api/v1/queue", SCOPE_READ, 0, show_queue},
    {NULL},
};
