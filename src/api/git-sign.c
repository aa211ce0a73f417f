/* SPDX-License-Identifier: Apache-2.0 */
/* Commits of boxes are signed here: the box sends the commit, the key stays. */
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/workspace.h"
#include "http/request.h"

enum { COMMIT_MAX = 1 << 20 };

static void
on_commit(HttpRequest *request, const guint8 *body, size_t n, const GError *error, void *data)
{
    ApiCall *call = data;
    g_autoptr(GError) refused = NULL;
    g_autofree char *signature =
        error == NULL ? workspace_sign(call->api->forge, call->caller.box_id, body, n, &refused) : NULL;

    if (signature != NULL)
        http_respond_text(request, 200, "text/plain; charset=utf-8", signature);
    else
        call_respond_error(call, error != NULL ? error : refused);
}

static void
post_commit(ApiCall *call)
{
    if (call_forge(call) == NULL)
        return;
    if (call->caller.kind != CALLER_BOX)
        respond_error(call->request, 404, "only commits of sandboxes are signed");
    else
        http_request_read_all(call->request, COMMIT_MAX, on_commit, call);
}

const ApiRoute git_sign_routes[] = {
    {"POST", "/git/sign", SCOPE_BOX, ROUTE_BOX, post_commit},
    {NULL},
};
