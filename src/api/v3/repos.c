/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/render.h"

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

const ApiRoute v3_repos_routes[] = {
    {"GET", V3_REPO, SCOPE_READ, ROUTE_BASIC, get_repo},
    {NULL},
};
