/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "forge/review.h"

static const char resource[] = "PullRequestReview";

/* ---- reading ---- */

static void
list_reviews(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_review);

    if (ask == NULL)
        return;
    ReviewFilter filter = {.actor = call->caller.actor, .number = ask->number, .page = ask->page};

    review_list(call->api->forge, ask->repo, &filter, v3_ask_on_list, ask);
}

static void
get_review(ApiCall *call)
{
    ReviewFilter filter = {.actor = call->caller.actor};
    V3Ask *ask;

    if (!v3_param_int(call, "review", &filter.id) ||
        (ask = v3_ask_new(call, resource, 200, v3_review)) == NULL)
        return;
    filter.number = ask->number;
    review_list(call->api->forge, ask->repo, &filter, v3_ask_on_row, ask);
}

static void
list_comments(ApiCall *call)
{
    LineFilter filter = {.actor = call->caller.actor};
    V3Ask *ask;

    if (!v3_param_int(call, "review", &filter.review_id) ||
        (ask = v3_ask_new(call, resource, 200, v3_line_comment)) == NULL)
        return;
    filter.number = ask->number;
    filter.page = ask->page;
    line_comment_list(call->api->forge, ask->repo, &filter, v3_ask_on_list, ask);
}

/* ---- what a body says ---- */

/* Nothing is a review that waits to be submitted. */
static bool
read_event(ApiCall *call, const char *event, ReviewVerdict *ret_verdict)
{
    static const struct {
        const char *event;
        ReviewVerdict verdict;
    } events[] = {
        {"APPROVE", REVIEW_APPROVE},
        {"REQUEST_CHANGES", REVIEW_REFUSE},
        {"COMMENT", REVIEW_COMMENT},
        {"PENDING", REVIEW_PENDING},
    };

    *ret_verdict = REVIEW_PENDING;
    if (event == NULL)
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(events); i++) {
        if (strcmp(events[i].event, event) == 0) {
            *ret_verdict = events[i].verdict;
            return true;
        }
    }
    v3_respond_invalid(call, &(V3Invalid){resource, "event", "invalid", NULL});
    return false;
}

static bool
read_line(ApiCall *call, Json *given, Json *lines)
{
    const char *path = NULL, *body = NULL, *side = "RIGHT", *start_side = NULL;
    gint64 line = 0, start_line = 0, position = 0;
    const JsonField fields[] = {
        {"path", JSON_KIND_STRING, &path, true, 1, REVIEW_PATH_MAX},
        {"body", JSON_KIND_STRING, &body, true, 1, G_MAXINT32},
        {"line", JSON_KIND_INT, &line, false, 1, REVIEW_LINE_MAX},
        {"side", JSON_KIND_STRING, &side, false, 1, REVIEW_PATH_MAX},
        {"start_line", JSON_KIND_INT, &start_line, false, 1, REVIEW_LINE_MAX},
        {"start_side", JSON_KIND_STRING, &start_side, false, 1, REVIEW_PATH_MAX},
        {"position", JSON_KIND_INT, &position, false, 1, REVIEW_LINE_MAX},
        {NULL},
    };

    if (!v3_read_fields(call, given, fields, resource))
        return false;
    /* A place counted in a diff is only good for the diff that the caller looked at. */
    if (line == 0) {
        v3_respond_invalid(call, &(V3Invalid){resource, "line", "missing_field",
                                              "lines are named by line and side, not by position"});
        return false;
    }
    Json *row = json_pack("{s:s, s:s, s:I, s:s}", "path", path, "body", body, "line", (json_int_t)line,
                          "side", side);

    if (start_line > 0)
        json_object_set_new(row, "start_line", json_integer(start_line));
    json_array_append_new(lines, row);
    return true;
}

static bool
read_lines(ApiCall *call, const Json *comments, Json *lines)
{
    size_t i;
    Json *comment;

    json_array_foreach(comments, i, comment)
    {
        if (!read_line(call, comment, lines))
            return false;
    }
    return true;
}

/* ---- changing ---- */

static void
create(ApiCall *call, Json *body, void *data)
{
    ReviewSpec spec = {.actor = call->caller.actor};
    const char *event = NULL;
    Json *comments = NULL;
    const JsonField fields[] = {
        {"event", JSON_KIND_STRING, &event, false, 0, THREAD_TITLE_MAX},
        {"body", JSON_KIND_STRING, &spec.body, false, 0, G_MAXINT32},
        {"commit_id", JSON_KIND_STRING, &spec.commit_oid, false, 1, THREAD_TITLE_MAX},
        {"comments", JSON_KIND_ARRAY, &comments, false, 0, REVIEW_LINES_MAX},
        {NULL},
    };
    g_autoptr(Json) lines = json_array();
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) || !read_event(call, event, &spec.verdict) ||
        !read_lines(call, comments, lines) || (ask = v3_ask_new(call, resource, 200, v3_review)) == NULL)
        return;
    spec.number = ask->number;
    spec.lines = lines;
    review_create(call->api->forge, ask->repo, &spec, v3_ask_on_row, ask);
}

/* The rest of what is done to one that is there. */
typedef struct Act {
    ReviewAct act;
    const char *text; /* the member that has the text */
    bool has_event;
} Act;

static void
apply(ApiCall *call, Json *body, void *data)
{
    const Act *act = data;
    ReviewChange change = {.actor = call->caller.actor, .act = act->act, .is_admin = call_is_admin(call)};
    const char *event = NULL;
    const JsonField fields[] = {
        {act->text, JSON_KIND_STRING, &change.body, act->act != REVIEW_ACT_SUBMIT, 0, G_MAXINT32},
        {act->has_event ? "event" : NULL, JSON_KIND_STRING, &event, act->act == REVIEW_ACT_SUBMIT, 1,
         THREAD_TITLE_MAX},
        {NULL},
    };
    V3Ask *ask;

    if (!v3_param_int(call, "review", &change.id) || !v3_read_fields(call, body, fields, resource) ||
        (act->act == REVIEW_ACT_SUBMIT && !read_event(call, event, &change.verdict)) ||
        (ask = v3_ask_new(call, resource, 200, v3_review)) == NULL)
        return;
    change.number = ask->number;
    review_change(call->api->forge, ask->repo, &change, v3_ask_on_row, ask);
}

static void
post_review(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
put_review(ApiCall *call)
{
    static const Act edit = {REVIEW_ACT_EDIT, "body", false};

    call_read_json(call, apply, (void *)(guintptr)&edit);
}

static void
post_event(ApiCall *call)
{
    static const Act submit = {REVIEW_ACT_SUBMIT, "body", true};

    call_read_json(call, apply, (void *)(guintptr)&submit);
}

static void
put_dismissal(ApiCall *call)
{
    static const Act dismiss = {REVIEW_ACT_DISMISS, "message", true};

    call_read_json(call, apply, (void *)(guintptr)&dismiss);
}

static void
delete_review(ApiCall *call)
{
    ReviewChange change = {.actor = call->caller.actor, .act = REVIEW_ACT_DELETE};
    V3Ask *ask;

    if (!v3_param_int(call, "review", &change.id) ||
        (ask = v3_ask_new(call, resource, 200, v3_review)) == NULL)
        return;
    change.number = ask->number;
    review_change(call->api->forge, ask->repo, &change, v3_ask_on_row, ask);
}

#define REVIEWS V3_REPO "/pulls/{number}/reviews"

const ApiRoute v3_reviews_routes[] = {
    {"GET", REVIEWS, SCOPE_READ, ROUTE_BASIC, list_reviews},
    {"POST", REVIEWS, SCOPE_BOX, ROUTE_BASIC, post_review},
    {"GET", REVIEWS "/{review}", SCOPE_READ, ROUTE_BASIC, get_review},
    {"PUT", REVIEWS "/{review}", SCOPE_BOX, ROUTE_BASIC, put_review},
    {"DELETE", REVIEWS "/{review}", SCOPE_BOX, ROUTE_BASIC, delete_review},
    {"GET", REVIEWS "/{review}/comments", SCOPE_READ, ROUTE_BASIC, list_comments},
    {"POST", REVIEWS "/{review}/events", SCOPE_BOX, ROUTE_BASIC, post_event},
    {"PUT", REVIEWS "/{review}/dismissals", SCOPE_BOX, ROUTE_BASIC, put_dismissal},
    {NULL},
};
