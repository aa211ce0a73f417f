/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/repo-settings.h"

#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"

static void
show_settings(ApiCall *call)
{
    Repo *repo = call_repo(call);

    if (repo == NULL)
        return;
    http_request_ref(call->request);
    repo_settings_get(call->api->forge, repo, call_on_json, call);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    Repo *repo = call_repo(call);

    if (repo == NULL)
        return;
    http_request_ref(call->request);
    repo_settings_put(call->api->forge, repo, &(RepoSettingsPut){call->caller.actor, body}, call_on_json,
                      call);
}

static void
patch_settings(ApiCall *call)
{
    if (call_repo(call) != NULL)
        call_read_json(call, change, NULL);
}

const ApiRoute repo_settings_routes[] = {
    {"GET", "/api/v1/repos/{owner}/{repo}/settings", SCOPE_READ, 0, show_settings},
    {"PATCH", "/api/v1/repos/{owner}/{repo}/settings", SCOPE_ADMIN, 0, patch_settings},
    {NULL},
};
