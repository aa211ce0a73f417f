/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"

static const char resource[] = "Issue";

/* ---- reading ---- */

/* Nothing here has an assignee or a milestone, or knows who was mentioned. */
static bool
asks_for_nothing(ApiCall *call, bool *ret_nothing)
{
    static const char *const names[] = {"assignee", "milestone", "mentioned"};

    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *value = NULL;

        if (!v3_query(call, names[i], &value))
            return false;
        *ret_nothing = *ret_nothing || (value != NULL && strcmp(value, "none") != 0);
    }
    return true;
}

static void
list_issues(ApiCall *call)
{
    static const char *const states[] = {"open", "closed", "all", NULL};
    static const char *const sorts[] = {"created", "updated", "comments", NULL}; /* ThreadSort */
    g_autofree char *labels = NULL;
    g_autofree char *creator = NULL;
    ThreadFilter filter = {0};
    guint state = 0, sort = 0;
    bool nothing = false;
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_issue);

    if (ask == NULL)
        return;
    if (!v3_query_word(call, resource, "state", states, &state) ||
        !v3_query_sort(call, resource, sorts, &sort, &filter.ascending) ||
        !v3_query_time(call, resource, "since", &filter.since_us) || !v3_query(call, "labels", &labels) ||
        !v3_query(call, "creator", &creator) || !asks_for_nothing(call, &nothing)) {
        v3_ask_free(ask);
        return;
    }
    if (nothing) {
        v3_respond(call, 200, json_array());
        v3_ask_free(ask);
        return;
    }
    g_auto(GStrv) names = labels != NULL ? g_strsplit(labels, ",", -1) : NULL;

    filter.state = strcmp(states[state], "all") != 0 ? states[state] : NULL;
    filter.sort = (ThreadSort)sort;
    filter.author = creator;
    filter.labels = (const char *const *)names;
    filter.page = ask->page;
    thread_list(call->api->forge, ask->repo, &filter, v3_ask_on_list, ask);
}

static void
get_issue(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_issue);

    if (ask != NULL)
        thread_get(call->api->forge, ask->repo, ask->number, NULL, v3_ask_on_row, ask);
}

/* ---- changing ---- */

static void
create(ApiCall *call, Json *body, void *data)
{
    IssueSpec spec = {.actor = call->caller.actor};
    Json *labels = NULL;
    const JsonField fields[] = {
        {"title", JSON_KIND_STRING, &spec.title, true, 1, THREAD_BODY_MAX},
        {"body", JSON_KIND_STRING, &spec.body, false, 0, G_MAXINT32},
        {"labels", JSON_KIND_ARRAY, &labels, false, 0, THREAD_LABELS_MAX},
        {NULL},
    };
    g_autofree const char **names = NULL;
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (names = v3_read_names(call, labels, resource, "labels")) == NULL ||
        (ask = v3_ask_new(call, resource, 201, v3_issue)) == NULL)
        return;
    spec.labels = names;
    issue_open(call->api->forge, ask->repo, &spec, v3_ask_on_row, ask);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    ThreadEdit edit = {.actor = call->caller.actor};
    Json *labels = NULL;
    const JsonField fields[] = {
        {"title", JSON_KIND_STRING, &edit.title, false, 1, THREAD_BODY_MAX},
        {"body", JSON_KIND_STRING, &edit.body, false, 0, G_MAXINT32},
        {"state", JSON_KIND_STRING, &edit.state, false, 1, G_MAXINT32},
        {"state_reason", JSON_KIND_STRING, &edit.state_reason, false, 1, G_MAXINT32},
        {"labels", JSON_KIND_ARRAY, &labels, false, 0, THREAD_LABELS_MAX},
        {NULL},
    };
    g_autofree const char **names = NULL;
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (labels != NULL && (names = v3_read_names(call, labels, resource, "labels")) == NULL) ||
        (ask = v3_ask_new(call, resource, 200, v3_issue)) == NULL)
        return;
    edit.number = ask->number;
    edit.labels = names;
    thread_edit(call->api->forge, ask->repo, &edit, v3_ask_on_row, ask);
}

static void
post_issue(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
patch_issue(ApiCall *call)
{
    call_read_json(call, change, NULL);
}

const ApiRoute v3_issues_routes[] = {
    {"GET", V3_REPO "/issues", SCOPE_READ, ROUTE_BASIC, list_issues},
    {"POST", V3_REPO "/issues", SCOPE_BOX, ROUTE_BASIC, post_issue},
    {"GET", V3_REPO "/issues/{number}", SCOPE_READ, ROUTE_BASIC, get_issue},
    {"PATCH", V3_REPO "/issues/{number}", SCOPE_BOX, ROUTE_BASIC, patch_issue},
    {NULL},
};
