/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "forge/comment.h"

static const char resource[] = "IssueComment";

/* ---- reading ---- */

/* GitHub sorts those of one thread in one way only, the oldest first. */
static void
list_comments(ApiCall *call)
{
    static const char *const sorts[] = {"created", "updated", NULL};
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_issue_comment);
    CommentFilter filter = {0};
    guint sort = 0;
    bool ascending = true;

    if (ask == NULL)
        return;
    if (!v3_query_time(call, resource, "since", &filter.since_us) ||
        (ask->number == 0 && !v3_query_sort(call, resource, sorts, &sort, &ascending))) {
        v3_ask_free(ask);
        return;
    }
    filter.number = ask->number;
    filter.by_updated = sort == 1;
    filter.descending = !ascending;
    filter.page = ask->page;
    comment_list(call->api->forge, ask->repo, &filter, v3_ask_on_list, ask);
}

static void
get_comment(ApiCall *call)
{
    gint64 id;
    V3Ask *ask;

    if (v3_param_int(call, "comment", &id) &&
        (ask = v3_ask_new(call, resource, 200, v3_issue_comment)) != NULL)
        comment_get(call->api->forge, ask->repo, id, v3_ask_on_row, ask);
}

/* ---- changing ---- */

static void
create(ApiCall *call, Json *body, void *data)
{
    CommentSpec spec = {.actor = call->caller.actor};
    V3Ask *ask;

    if (!v3_read_body(call, body, resource, &spec.body) ||
        (ask = v3_ask_new(call, resource, 201, v3_issue_comment)) == NULL)
        return;
    spec.number = ask->number;
    comment_put(call->api->forge, ask->repo, &spec, v3_ask_on_row, ask);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    CommentEdit edit = {.actor = call->caller.actor, .is_admin = call_is_admin(call)};
    V3Ask *ask;

    if (!v3_param_int(call, "comment", &edit.id) || !v3_read_body(call, body, resource, &edit.body) ||
        (ask = v3_ask_new(call, resource, 200, v3_issue_comment)) == NULL)
        return;
    comment_edit(call->api->forge, ask->repo, &edit, v3_ask_on_row, ask);
}

static void
post_comment(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
patch_comment(ApiCall *call)
{
    call_read_json(call, change, NULL);
}

static void
delete_comment(ApiCall *call)
{
    CommentEdit edit = {.actor = call->caller.actor, .is_admin = call_is_admin(call)};
    V3Ask *ask;

    if (v3_param_int(call, "comment", &edit.id) && (ask = v3_ask_new(call, resource, 204, NULL)) != NULL)
        comment_edit(call->api->forge, ask->repo, &edit, v3_ask_on_gone, ask);
}

const ApiRoute v3_issue_comments_routes[] = {
    {"GET", V3_REPO "/issues/comments", SCOPE_READ, ROUTE_BASIC, list_comments},
    {"GET", V3_REPO "/issues/comments/{comment}", SCOPE_READ, ROUTE_BASIC, get_comment},
    {"PATCH", V3_REPO "/issues/comments/{comment}", SCOPE_BOX, ROUTE_BASIC, patch_comment},
    {"DELETE", V3_REPO "/issues/comments/{comment}", SCOPE_BOX, ROUTE_BASIC, delete_comment},
    {"GET", V3_REPO "/issues/{number}/comments", SCOPE_READ, ROUTE_BASIC, list_comments},
    {"POST", V3_REPO "/issues/{number}/comments", SCOPE_BOX, ROUTE_BASIC, post_comment},
    {NULL},
};
