/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "api/v3/pull-git.h"
#include "forge/pull.h"

static const char resource[] = "PullRequest";

/* "owner:branch" or "branch"; NULL: the owner is somebody else, whose branches are not here. */
static const char *
branch_of(const Repo *repo, const char *text)
{
    const char *colon = strchr(text, ':');
    RepoInfo info;

    if (colon == NULL)
        return text;
    repo_info(repo, &info);
    return strlen(info.owner) == (size_t)(colon - text) &&
                   g_ascii_strncasecmp(info.owner, text, (gsize)(colon - text)) == 0
               ? colon + 1
               : NULL;
}

/* ---- reading ---- */

/* What GitHub sorts by is not all kept here: the nearest is taken. */
static const char *const sorts[] = {"created", "updated", "popularity", "long-running", NULL};
static const ThreadSort sort_of[] = {THREAD_BY_CREATED, THREAD_BY_UPDATED, THREAD_BY_COMMENTS,
                                     THREAD_BY_CREATED};

static void
list_pulls(ApiCall *call)
{
    static const char *const states[] = {"open", "closed", "all", NULL};
    g_autofree char *head = NULL;
    g_autofree char *base = NULL;
    ThreadFilter filter = {.kind = "pull"};
    guint state = 0, sort = 0;
    V3Ask *ask = v3_ask_new(call, resource, 200, v3_pull);

    if (ask == NULL)
        return;
    if (!v3_query_word(call, resource, "state", states, &state) ||
        !v3_query_sort(call, resource, sorts, &sort, &filter.ascending) || !v3_query(call, "head", &head) ||
        !v3_query(call, "base", &base)) {
        v3_ask_free(ask);
        return;
    }
    if (head != NULL && (filter.head = branch_of(ask->repo, head)) == NULL) {
        v3_respond(call, 200, json_array());
        v3_ask_free(ask);
        return;
    }
    filter.state = strcmp(states[state], "all") != 0 ? states[state] : NULL;
    filter.sort = sort_of[sort];
    filter.base = base;
    filter.page = ask->page;
    thread_list(call->api->forge, ask->repo, &filter, v3_ask_on_list, ask);
}

/* "7", or "7.diff" and "7.patch" as diff_url and patch_url have them. */
static bool
read_number(ApiCall *call, gint64 *ret_number, V3Media *ret_media)
{
    const char *text = call_param(call, "number"), *dot = strchr(text, '.');
    g_autofree char *digits = g_strndup(text, dot != NULL ? (size_t)(dot - text) : strlen(text));
    guint64 number;

    *ret_media = dot == NULL                  ? v3_media(call)
                 : strcmp(dot, ".diff") == 0  ? V3_DIFF
                 : strcmp(dot, ".patch") == 0 ? V3_PATCH
                                              : V3_RAW;
    if ((dot != NULL && *ret_media == V3_RAW) ||
        !g_ascii_string_to_unsigned(digits, 10, 1, G_MAXINT64, &number, NULL)) {
        respond_error(call->request, 404, "there is no such number");
        return false;
    }
    *ret_number = (gint64)number;
    return true;
}

static void
get_pull(ApiCall *call)
{
    V3Media media;
    gint64 number;
    V3Ask *ask;

    if (!read_number(call, &number, &media))
        return;
    if (media == V3_DIFF || media == V3_PATCH)
        v3_pull_patches(call, number, media);
    else if ((ask = v3_ask_of(call, number, resource, 200, v3_pull_whole)) != NULL)
        pull_get(call->api->forge, ask->repo, number, v3_ask_on_row, ask);
}

/* ---- changing ---- */

/* Behind a change: the whole of it, as it is now. */
static void
on_changed(Json *pull, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (error != NULL)
        v3_ask_fail(ask, error);
    else
        pull_get(ask->call->api->forge, ask->repo, row_int(pull, "number"), v3_ask_on_row, ask);
}

static void
create(ApiCall *call, Json *body, void *data)
{
    PullSpec spec = {.actor = call->caller.actor};
    gint64 issue = 0;
    const JsonField fields[] = {
        {"title", JSON_KIND_STRING, &spec.title, true, 1, THREAD_BODY_MAX},
        {"head", JSON_KIND_STRING, &spec.head, true, 1, THREAD_BODY_MAX},
        {"base", JSON_KIND_STRING, &spec.base, true, 1, THREAD_BODY_MAX},
        {"body", JSON_KIND_STRING, &spec.body, false, 0, G_MAXINT32},
        {"draft", JSON_KIND_BOOL, &spec.draft},
        {"issue", JSON_KIND_INT, &issue, false, 0, 0}, /* to make an issue one is not offered */
        {NULL},
    };
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (ask = v3_ask_new(call, resource, 201, v3_pull_whole)) == NULL)
        return;
    spec.head = branch_of(ask->repo, spec.head);
    if (spec.head == NULL) {
        v3_respond_invalid(
            call, &(V3Invalid){resource, "head", "invalid", "branches of other repositories are not taken"});
        v3_ask_free(ask);
        return;
    }
    pull_open(call->api->forge, ask->repo, &spec, on_changed, ask);
}

static void
change(ApiCall *call, Json *body, void *data)
{
    ThreadEdit edit = {.actor = call->caller.actor, .kind = "pull"};
    bool draft = false;
    const JsonField fields[] = {
        {"title", JSON_KIND_STRING, &edit.title, false, 1, THREAD_BODY_MAX},
        {"body", JSON_KIND_STRING, &edit.body, false, 0, G_MAXINT32},
        {"state", JSON_KIND_STRING, &edit.state, false, 1, THREAD_BODY_MAX},
        {"base", JSON_KIND_STRING, &edit.base, false, 1, THREAD_BODY_MAX},
        {"draft", JSON_KIND_BOOL, &draft},
        {NULL},
    };
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (ask = v3_ask_new(call, resource, 200, v3_pull_whole)) == NULL)
        return;
    edit.number = ask->number;
    if (json_is_boolean(json_object_get(body, "draft")))
        edit.draft = draft ? DRAFT_SET : DRAFT_READY;
    thread_edit(call->api->forge, ask->repo, &edit, on_changed, ask);
}

static void
post_pull(ApiCall *call)
{
    call_read_json(call, create, NULL);
}

static void
patch_pull(ApiCall *call)
{
    call_read_json(call, change, NULL);
}

/* ---- who is asked to review ---- */

static Json *
reviewers_of(const V3Scene *scene, const Json *thread)
{
    g_autoptr(Json) pull = v3_pull(scene, thread);

    return json_pack("{s:O, s:[]}", "users", json_object_get(pull, "requested_reviewers"), "teams");
}

static void
get_reviewers(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 200, reviewers_of);

    if (ask != NULL)
        thread_get(call->api->forge, ask->repo, ask->number, "pull", v3_ask_on_row, ask);
}

typedef struct ReviewersChange {
    ListChange how;
    int status;
} ReviewersChange;
static const ReviewersChange asking = {LIST_ADD, 201}, unasking = {LIST_REMOVE, 200};

static void
change_reviewers(ApiCall *call, Json *body, void *data)
{
    const ReviewersChange *how = data;
    Json *reviewers = NULL;
    const JsonField fields[] = {{"reviewers", JSON_KIND_ARRAY, &reviewers, true, 0, THREAD_REVIEWERS_MAX},
                                {NULL}};
    g_autofree const char **names = NULL;
    V3Ask *ask;

    if (!v3_read_fields(call, body, fields, resource) ||
        (names = v3_read_names(call, reviewers, resource, "reviewers")) == NULL ||
        (ask = v3_ask_new(call, resource, how->status, v3_pull)) == NULL)
        return;
    pull_reviewers(call->api->forge, ask->repo,
                   &(ThreadNames){call->caller.actor, ask->number, how->how, names}, v3_ask_on_row, ask);
}

static void
post_reviewers(ApiCall *call)
{
    call_read_json(call, change_reviewers, (void *)(guintptr)&asking);
}

static void
delete_reviewers(ApiCall *call)
{
    call_read_json(call, change_reviewers, (void *)(guintptr)&unasking);
}

const ApiRoute v3_pulls_routes[] = {
    {"GET", V3_REPO "/pulls", SCOPE_READ, ROUTE_BASIC, list_pulls},
    {"POST", V3_REPO "/pulls", SCOPE_BOX, ROUTE_BASIC, post_pull},
    {"GET", V3_REPO "/pulls/{number}", SCOPE_READ, ROUTE_BASIC, get_pull},
    {"PATCH", V3_REPO "/pulls/{number}", SCOPE_BOX, ROUTE_BASIC, patch_pull},
    {"GET", V3_REPO "/pulls/{number}/requested_reviewers", SCOPE_READ, ROUTE_BASIC, get_reviewers},
    {"POST", V3_REPO "/pulls/{number}/requested_reviewers", SCOPE_BOX, ROUTE_BASIC, post_reviewers},
    {"DELETE", V3_REPO "/pulls/{number}/requested_reviewers", SCOPE_BOX, ROUTE_BASIC, delete_reviewers},
    {NULL},
};
