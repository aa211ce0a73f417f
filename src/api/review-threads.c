/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a thread on a line is dealt with.  GitHub says it by GraphQL only, so its dialect has no call. */
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "forge/review.h"

static void
set_resolved(ApiCall *call, LineAct act)
{
    LineChange change = {.actor = call->caller.actor, .is_admin = call_is_admin(call), .act = act};
    Repo *repo = call_repo(call);
    guint64 id;

    if (repo == NULL)
        return;
    if (!g_ascii_string_to_unsigned(call_param(call, "comment"), 10, 1, G_MAXINT64, &id, NULL)) {
        respond_error(call->request, 404, "there is no such comment on a line");
        return;
    }
    change.id = (gint64)id;
    http_request_ref(call->request);
    line_comment_change(call->api->forge, repo, &change, call_on_json, call);
}

static void
resolve(ApiCall *call)
{
    set_resolved(call, LINE_RESOLVE);
}

static void
unresolve(ApiCall *call)
{
    set_resolved(call, LINE_UNRESOLVE);
}

#define RESOLVED "/api/v1/repos/{owner}/{repo}/pulls/comments/{comment}/resolved"

const ApiRoute review_threads_routes[] = {
    {"PUT", RESOLVED, SCOPE_BOX, 0, resolve},
    {"DELETE", RESOLVED, SCOPE_BOX, 0, unresolve},
    {NULL},
};
