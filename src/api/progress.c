/* SPDX-License-Identifier: Apache-2.0 */
/* A comment that is written anew in its place: how far the work on a pull request is. */
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "forge/comment.h"

static void
put(ApiCall *call, Json *body, void *data)
{
    CommentSpec spec = {.actor = call->caller.actor, .marker = call_param(call, "marker")};
    const JsonField fields[] = {
        {"body", JSON_KIND_STRING, &spec.body, true, 1, THREAD_BODY_MAX},
        {NULL},
    };
    Repo *repo = call_repo(call);
    guint64 number;
    g_autoptr(GError) error = NULL;

    if (repo == NULL)
        return;
    if (!g_ascii_string_to_unsigned(call_param(call, "number"), 10, 1, G_MAXINT64, &number, NULL)) {
        respond_error(call->request, 404, "there is no such issue or pull request");
        return;
    }
    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    spec.number = (gint64)number;
    http_request_ref(call->request);
    comment_put(call->api->forge, repo, &spec, call_on_json, call);
}

static void
put_progress(ApiCall *call)
{
    if (call_repo(call) != NULL)
        call_read_json(call, put, NULL);
}

const ApiRoute progress_routes[] = {
    {"PUT", "/api/v1/repos/{owner}/{repo}/issues/{number}/comments/{marker}", SCOPE_BOX, 0, put_progress},
    {NULL},
};
