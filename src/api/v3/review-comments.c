/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "forge/review.h"

static const char resource[] = "PullRequestReviewComment";

/* ---- reading ---- */

static void
list_comments(ApiCall *call)
{
    static const char *const sorts[] = {"created", "updated", NULL};
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_line_comment);
    LineFilter filter = {.actor = call->caller.actor};
    guint sort = 0;
    bool ascending = true;

    if (ask == NULL)
        return;
    if (!v3_query_time(call, resource, "since", &filter.since_us) ||
        !v3_query_sort(call, resource, sorts, &sort, &ascending)) {
        v3_ask_free(ask);
        return;
    }
    filter.number = ask->number;
    filter.by_updated = sort == 1;
    filter.descending = !ascending;
    filter.page = ask->page;
    line_comment_list(call->api->forge, ask->repo, &filter, v3_ask_on_list, ask);
}

static void
get_comment(ApiCall *call)
{
    LineFilter filter = {.actor = call->caller.actor};
    V3Ask *ask;

    if (v3_param_int(call, "comment", &filter.id) &&
        (ask = v3_ask_new(call, resource, 200, v3_line_comment)) != NULL)
        line_comment_list(call->api->forge, ask->repo, &filter, v3_ask_on_row, ask);
}

/* ---- changing ---- */

static void
add(ApiCall *call, const LineSpec *given)
{
    V3Ask *ask = v3_ask_new(call, resource, 201, v3_line_comment);
    LineSpec spec = *given;

    if (ask == NULL)
        return;
    spec.number = ask->number;
    line_comment_add(call->api->forge, ask->repo, &spec, v3_ask_on_row, ask);
}

static bool
lacks(ApiCall *call, const char *field, bool is_there)
{
    if (!is_there)
        v3_respond_invalid(call, &(V3Invalid){resource, field, "missing_field", NULL});
    return !is_there;
}

static void
create(ApiCall *call, Json *body, void *data)
{
    LineSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"body", JSON_KIND_STRING, &spec.body, true, 1, G_MAXINT32},
        {"path", JSON_KIND_STRING, &spec.path, false, 1, REVIEW_PATH_MAX},
        {"commit_id", JSON_KIND_STRING, &spec.commit_oid, false, 1, THREAD_TITLE_MAX},
        {"side", JSON_KIND_STRING, &spec.side, false, 1, THREAD_TITLE_MAX},
        {"line", JSON_KIND_INT, &spec.line, false, 1, REVIEW_LINE_MAX},
        {"start_line", JSON_KIND_INT, &spec.start_line, false, 1, REVIEW_LINE_MAX},
        {"in_reply_to", JSON_KIND_INT, &spec.in_reply_to, false, 1, G_MAXINT64},
        {NULL},
    };

    if (!v3_read_fields(call, body, fields, resource) ||
        (spec.in_reply_to == 0 &&
         (lacks(call, "path", spec.path != NULL) || lacks(call, "line", spec.line > 0))))
        return;
    add(call, &spec);
}

static void
reply(ApiCall *call, Json *body, void *data)
{
    LineSpec spec = {.actor = call->caller.actor};

    if (v3_param_int(call, "comment", &spec.in_reply_to) && v3_read_body(call, body, resource, &spec.body))
        add(call, &spec);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    LineChange change = {.actor = call->caller.actor, .is_admin = call_is_admin(call), .act = LINE_EDIT};
    V3Ask *ask;

    if (v3_param_int(call, "comment", &change.id) && v3_read_body(call, body, resource, &change.body) &&
        (ask = v3_ask_new(call, resource, 200, v3_line_comment)) != NULL)
        line_comment_change(call->api->forge, ask->repo, &change, v3_ask_on_row, ask);
}

static void
post_comment(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
post_reply(ApiCall *call)
{
    call_read_json(call, reply, NULL);
}

static void
patch_comment(ApiCall *call)
{
    call_read_json(call, change, NULL);
}

static void
delete_comment(ApiCall *call)
{
    LineChange change = {.actor = call->caller.actor, .is_admin = call_is_admin(call), .act = LINE_DELETE};
    V3Ask *ask;

    if (v3_param_int(call, "comment", &change.id) && (ask = v3_ask_new(call, resource, 204, NULL)) != NULL)
        line_comment_change(call->api->forge, ask->repo, &change, v3_ask_on_gone, ask);
}

const ApiRoute v3_review_comments_routes[] = {
    {"GET", V3_REPO "/pulls/comments", SCOPE_READ, ROUTE_BASIC, list_comments},
    {"GET", V3_REPO "/pulls/comments/{comment}", SCOPE_READ, ROUTE_BASIC, get_comment},
    {"PATCH", V3_REPO "/pulls/comments/{comment}", SCOPE_BOX, ROUTE_BASIC, patch_comment},
    {"DELETE", V3_REPO "/pulls/comments/{comment}", SCOPE_BOX, ROUTE_BASIC, delete_comment},
    {"GET", V3_REPO "/pulls/{number}/comments", SCOPE_READ, ROUTE_BASIC, list_comments},
    {"POST", V3_REPO "/pulls/{number}/comments", SCOPE_BOX, ROUTE_BASIC, post_comment},
    {"POST", V3_REPO "/pulls/{number}/comments/{comment}/replies", SCOPE_BOX, ROUTE_BASIC, post_reply},
    {NULL},
};
