/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts at GitHub, and what is done there. */
#include "github/github.h"
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"

static Github *
github_of(ApiCall *call)
{
    if (call->api->github == NULL)
        respond_error(call->request, 503, "this server has no forge, so nothing goes to GitHub");
    return call->api->github;
}

static void
list_accounts(ApiCall *call)
{
    Github *github = github_of(call);

    if (github != NULL)
        call_respond_json(call, 200,
                          json_pack("{s:o}", "accounts", github_accounts_json(github_accounts(github))));
}

static void
list_work(ApiCall *call)
{
    Github *github = github_of(call);

    if (github == NULL)
        return;
    http_request_ref(call->request);
    upstream_list(github_upstream(github), call_on_json, call);
}

/* ---- changing ---- */

static void
put_account(ApiCall *call, Json *body, bool rotate)
{
    GithubLogin login = {.actor = call->caller.actor, .rotate = rotate};
    const JsonField fields[] = {
        {"base_url", JSON_KIND_STRING, &login.base_url, false, 1, GITHUB_BASE_MAX},
        {"token", JSON_KIND_STRING, &login.token, true, 1, GITHUB_TOKEN_MAX},
        {"webhook_secret", JSON_KIND_STRING, &login.webhook_secret, false, 0, GITHUB_HOOK_SECRET_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    github_account_put(github_accounts(call->api->github), &login, call_on_json, call);
}

static void
login_with(ApiCall *call, Json *body, void *data)
{
    put_account(call, body, false);
}

static void
rotate_to(ApiCall *call, Json *body, void *data)
{
    put_account(call, body, true);
}

static void
check_it(ApiCall *call, Json *body, void *data)
{
    const char *base_url = NULL, *webhook_secret = NULL;
    const JsonField fields[] = {
        {"base_url", JSON_KIND_STRING, &base_url, false, 1, GITHUB_BASE_MAX},
        {"webhook_secret", JSON_KIND_STRING, &webhook_secret, false, 0, GITHUB_HOOK_SECRET_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    github_account_put(
        github_accounts(call->api->github),
        &(GithubLogin){.actor = call->caller.actor, .base_url = base_url, .webhook_secret = webhook_secret},
        call_on_json, call);
}

static void
post_login(ApiCall *call)
{
    if (github_of(call) != NULL)
        call_read_json(call, login_with, NULL);
}

static void
post_rotate(ApiCall *call)
{
    if (github_of(call) != NULL)
        call_read_json(call, rotate_to, NULL);
}

static void
post_check(ApiCall *call)
{
    if (github_of(call) != NULL)
        call_read_json(call, check_it, NULL);
}

static void
delete_account(ApiCall *call)
{
    static const char *const names[] = {"base_url", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *given = NULL, *base_url = NULL;
    g_autoptr(GError) error = NULL;

    if (github_of(call) == NULL)
        return;
    if (url_query_only(query, names, &error) && url_query_get(query, "base_url", &given, &error))
        base_url = github_base_url(given != NULL ? given : github_base_default, &error);
    if (base_url == NULL) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    github_account_remove(github_accounts(call->api->github), base_url, call->caller.actor, call_on_done,
                          call);
}

const ApiRoute github_routes[] = {
    {"GET", "/api/v1/github", SCOPE_ADMIN, 0, list_accounts},
    {"DELETE", "/api/v1/github", SCOPE_ADMIN, 0, delete_account},
    {"POST", "/api/v1/github/login", SCOPE_ADMIN, 0, post_login},
    {"POST", "/api/v1/github/rotate", SCOPE_ADMIN, 0, post_rotate},
    {"POST", "/api/v1/github/check", SCOPE_ADMIN, 0, post_check},
    {"GET", "/api/v1/github/work", SCOPE_READ, 0, list_work},
    {NULL},
};
