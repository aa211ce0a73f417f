/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/render.h"
#include "base/err.h"
#include "forge/workspace.h"

/* ---- one ---- */

typedef struct RepoShow {
    ApiCall *call;
    Repo *repo;
    char *id;
    int status;
    RepoSettings *settings;
    gint64 open_threads;
} RepoShow;

static bool
read_more(DbTx *tx, void *data, GError **error)
{
    RepoShow *show = data;
    bool found;

    show->settings = repo_settings_load(tx, show->id, error);
    if (show->settings == NULL)
        return false;
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT COUNT(*) FROM threads WHERE repository_id = ? AND state = 'open'",
                        DB_ARGS(db_text(show->id)), error);

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    show->open_threads = found ? db_rows_int(rows, 0) : 0;
    return true;
}

static void
on_read(void *data, const GError *error)
{
    RepoShow *show = data;
    g_auto(V3Place) place = {0};
    RepoInfo info;

    if (error != NULL) {
        call_respond_error(show->call, error);
        return;
    }
    v3_place_init(&place, show->call->api, show->repo);
    repo_info(show->repo, &info);
    Json *repository = v3_repository(&place, &info);

    v3_repository_add(repository, &(V3RepositoryMore){.scopes = show->call->caller.scopes,
                                                      .settings = show->settings,
                                                      .open_threads = show->open_threads});
    v3_respond(show->call, show->status, repository);
}

static void
show_free(gpointer data)
{
    RepoShow *show = data;

    repo_settings_free(show->settings);
    g_free(show->id);
    repo_unref(show->repo);
    http_request_unref(show->call->request);
    g_free(show);
}

static void
respond_repo(ApiCall *call, Repo *repo, int status)
{
    RepoShow *show = g_new0(RepoShow, 1);
    RepoInfo info;

    repo_info(repo, &info);
    *show = (RepoShow){.call = call, .repo = repo_ref(repo), .id = g_strdup(info.id), .status = status};
    http_request_ref(call->request);
    db_read(call->api->db, read_more, on_read, show, show_free);
}

static void
get_repo(ApiCall *call)
{
    Repo *repo = call_repo(call);

    if (repo != NULL)
        respond_repo(call, repo, 200);
}

/* ---- making ---- */

static void
on_created(Repo *repo, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL && err_kind(error) == ERR_CONFLICT)
        v3_respond_invalid(
            call, &(V3Invalid){"Repository", "name", "custom", "name already exists on this account"});
    else if (error != NULL)
        call_respond_error(call, error);
    else
        respond_repo(call, repo, 201);
    http_request_unref(call->request);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    RepoSpec spec = {.actor = call->caller.actor, .owner = call_param(call, "username")};
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &spec.name, true, 1, REPO_NAME_MAX},
        {"description", JSON_KIND_STRING, &spec.description, false, 0, REPO_DESCRIPTION_MAX},
        {"default_branch", JSON_KIND_STRING, &spec.default_branch, false, 1, REPO_BRANCH_NAME_MAX},
        {"auto_init", JSON_KIND_BOOL, &spec.first_commit},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, "Repository"))
        return;
    http_request_ref(call->request);
    repo_create(call->api->forge, &spec, on_created, call);
}

static void
post_repo(ApiCall *call)
{
    if (call_forge(call) != NULL)
        call_read_json(call, create, NULL);
}

/* ---- changing ---- */

static const struct {
    const char *name;
    MergeMethod method;
} method_members[] = {
    {"allow_merge_commit", MERGE_COMMIT},
    {"allow_squash_merge", MERGE_SQUASH},
    {"allow_rebase_merge", MERGE_REBASE},
};

typedef struct RepoChange {
    ApiCall *call;
    Repo *repo;
    Json *body;
    RepoEdit edit; /* borrows from `body` */
} RepoChange;

static void
change_end(RepoChange *change, const GError *error)
{
    if (error != NULL)
        call_respond_error(change->call, error);
    else
        respond_repo(change->call, change->repo, 200);
    repo_unref(change->repo);
    json_decref(change->body);
    http_request_unref(change->call->request);
    g_free(change);
}

static void
on_edited(void *data, const GError *error)
{
    change_end(data, error);
}

static void
on_set(Json *value, const GError *error, void *data)
{
    RepoChange *change = data;

    if (error == NULL && (change->edit.description != NULL || change->edit.default_branch != NULL))
        repo_edit(change->repo, &change->edit, on_edited, change);
    else
        change_end(change, error);
}

/* GitHub has a switch for each; here it is one list. */
static void
on_settings(Json *value, const GError *error, void *data)
{
    RepoChange *change = data;
    g_autoptr(Json) changes = json_object();
    Json *methods = json_array();
    bool named = false;

    for (size_t i = 0; i < G_N_ELEMENTS(method_members) && error == NULL; i++) {
        const char *name = merge_method_name(method_members[i].method);
        Json *wish = json_object_get(change->body, method_members[i].name);

        named = named || json_is_boolean(wish);
        if (json_is_boolean(wish) ? json_is_true(wish)
                                  : row_list_has(json_object_get(value, "merge_methods"), name))
            json_array_append_new(methods, json_string(name));
    }
    json_object_set_new(changes, "merge_methods", methods);
    if (error != NULL || !named)
        on_set(value, error, change);
    else
        repo_settings_put(change->call->api->forge, change->repo,
                          &(RepoSettingsPut){change->call->caller.actor, changes}, on_set, change);
}

static void
change_repo(ApiCall *call, Json *body, void *data)
{
    Repo *repo = call_repo(call);
    RepoEdit edit = {.actor = call->caller.actor};
    const char *name = NULL;
    const JsonField fields[] = {
        {"name", JSON_KIND_STRING, &name, false, 1, REPO_NAME_MAX},
        {"description", JSON_KIND_STRING, &edit.description, false, 0, REPO_DESCRIPTION_MAX},
        {"default_branch", JSON_KIND_STRING, &edit.default_branch, false, 1, REPO_BRANCH_NAME_MAX},
        {NULL},
    };

    if (repo == NULL || !v3_read_fields(call, body, fields, "Repository"))
        return;
    if (name != NULL && g_ascii_strcasecmp(name, call_param(call, "repo")) != 0) {
        v3_respond_invalid(
            call, &(V3Invalid){"Repository", "name", "unprocessable", "a repository keeps its name"});
        return;
    }
    RepoChange *change = g_new0(RepoChange, 1);

    *change = (RepoChange){.call = call, .repo = repo_ref(repo), .body = json_incref(body), .edit = edit};
    http_request_ref(call->request);
    repo_settings_get(call->api->forge, repo, on_settings, change);
}

static void
patch_repo(ApiCall *call)
{
    call_read_json(call, change_repo, NULL);
}

static void
delete_repo(ApiCall *call)
{
    Repo *repo = call_repo(call);
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!workspace_require_none(call->api->forge, repo, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    repo_remove(repo, call->caller.actor, v3_on_done, call);
}

const ApiRoute v3_repos_routes[] = {
    {"POST", V3 "/user/repos", SCOPE_BOX, ROUTE_BASIC, post_repo},
    {"POST", V3 "/orgs/{username}/repos", SCOPE_BOX, ROUTE_BASIC, post_repo},
    {"GET", V3_REPO, SCOPE_READ, ROUTE_BASIC, get_repo},
    {"PATCH", V3_REPO, SCOPE_ADMIN, ROUTE_BASIC, patch_repo},
    {"DELETE", V3_REPO, SCOPE_ADMIN, ROUTE_BASIC, delete_repo},
    {NULL},
};
