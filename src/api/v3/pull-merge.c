/* SPDX-License-Identifier: Apache-2.0 */
/* Merging is the queue's: a request puts the pull request in and waits for it.  A client that lost the
 * answer and asks again finds the entry that it made. */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "base/err.h"
#include "forge/landing.h"
#include "forge/pull.h"
#include "http/url.h"

static const char resource[] = "PullRequest";

enum {
    WAIT_MS = 60 * 1000, /* at most, and if nothing else is asked for */
    SHA_MAX = 64,
    NOT_ALLOWED = 405,
    CONFLICT = 409,
};

/* ---- was it merged ---- */

static void
on_asked(Json *pull, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    if (row_is(pull, "merged"))
        v3_respond_empty(ask->call);
    else
        respond_error(ask->call->request, 404, "it was not merged");
    v3_ask_free(ask);
}

static void
get_merge(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 204, NULL);

    if (ask != NULL)
        thread_get(call->api->forge, ask->repo, ask->number, "pull", on_asked, ask);
}

/* ---- how an entry has ended ---- */

static Json *
entry_json(const V3Scene *scene, const Json *entry)
{
    gint64 id = row_int(entry, "id");

    return json_pack("{s:I, s:O, s:O, s:O, s:o}", "id", (json_int_t)id, "state",
                     json_object_get(entry, "state"), "reason", json_object_get(entry, "reason"), "problem",
                     json_object_get(entry, "problem"), "url",
                     v3_format("%s/api/v1/repos/%s/%s/merges/%" G_GINT64_FORMAT, scene->place->server,
                               scene->info->owner, scene->info->name, id));
}

static Json *
landed_json(const V3Scene *scene, const Json *entry)
{
    return json_pack("{s:O, s:b, s:s, s:o}", "sha", json_object_get(entry, "landing_oid"), "merged", true,
                     "message", "Pull Request successfully merged", "queue", entry_json(scene, entry));
}

static Json *
waiting_json(const V3Scene *scene, const Json *entry)
{
    return json_pack("{s:n, s:b, s:s, s:o}", "sha", "merged", false, "message",
                     "Pull Request is in the merge queue", "queue", entry_json(scene, entry));
}

/* What the caller can mend by looking again is 409, what a rule says is 405. */
static int
status_of(const Json *entry)
{
    static const LandingReason conflicts[] = {LANDING_HEAD_MOVED, LANDING_TARGET_MOVED, LANDING_CONFLICT,
                                              LANDING_REMOVED};
    const char *reason = row_text(entry, "reason");

    for (size_t i = 0; i < G_N_ELEMENTS(conflicts); i++) {
        if (g_strcmp0(reason, landing_reason_name(conflicts[i])) == 0)
            return CONFLICT;
    }
    return g_strcmp0(reason, landing_reason_name(LANDING_FAILED)) == 0 ? 500 : NOT_ALLOWED;
}

static void
respond_failed(const V3Ask *ask, const Json *entry)
{
    const char *problem = row_text(entry, "problem");
    int status = status_of(entry);
    Json *body = v3_error_json(ask->call->request, status, problem != NULL ? problem : "it was not merged");

    /* Where it conflicts: the bundle is behind this address. */
    json_object_set_new(body, "queue", v3_ask_render(ask, entry_json, entry));
    v3_respond(ask->call, status, body);
}

static void
on_ended(Json *entry, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    if (strcmp(row_text(entry, "state"), "landed") == 0)
        v3_respond(ask->call, 200, v3_ask_render(ask, landed_json, entry));
    else if (row_int(entry, "ended_us") == 0)
        v3_respond(ask->call, 202, v3_ask_render(ask, waiting_json, entry));
    else
        respond_failed(ask, entry);
    v3_ask_free(ask);
}

/* ---- putting one in ---- */

typedef struct MergeAsk {
    V3Ask *ask;
    guint wait_ms;
    char *sha, *method; /* as asked for; NULL: any */
} MergeAsk;

static V3Ask *
merge_ask_end(MergeAsk *m)
{
    V3Ask *ask = m->ask;

    g_free(m->sha);
    g_free(m->method);
    g_free(m);
    return ask;
}

static void
wait_for(MergeAsk *m, const Json *entry)
{
    guint wait_ms = m->wait_ms;
    V3Ask *ask = merge_ask_end(m);

    landing_wait(ask->call->api->landings, ask->repo, row_int(entry, "id"), wait_ms, on_ended, ask);
}

static bool
is_asked_for(const MergeAsk *m, const Json *entry)
{
    return (m->sha == NULL || g_strcmp0(m->sha, row_text(entry, "head_oid")) == 0) &&
           (m->method == NULL || g_strcmp0(m->method, row_text(entry, "method")) == 0);
}

/* What is asked for was in the queue before; or something else is; or the head has moved. */
static void
on_listed(Json *list, const GError *error, void *data)
{
    MergeAsk *m = data;
    const Json *entry = json_array_get(json_object_get(list, "items"), 0);
    bool same = entry != NULL && is_asked_for(m, entry);
    bool moved = entry == NULL || (m->sha != NULL && g_strcmp0(m->sha, row_text(entry, "head_oid")) != 0);

    if (error == NULL && same) {
        wait_for(m, entry);
        return;
    }
    V3Ask *ask = merge_ask_end(m);

    if (error != NULL) {
        v3_ask_fail(ask, error);
    } else {
        respond_error(ask->call->request, CONFLICT,
                      moved ? "Head branch was modified. Review and try the merge again."
                            : "It is in the merge queue already, to be merged another way.");
        v3_ask_free(ask);
    }
}

/* Its words are what clients look for. */
static void
respond_not_mergeable(V3Ask *ask, const char *why)
{
    g_autofree char *text = g_strdup_printf("Pull Request is not mergeable: %s", why);

    respond_error(ask->call->request, NOT_ALLOWED, text);
    v3_ask_free(ask);
}

static void
on_added(Json *entry, const GError *error, void *data)
{
    MergeAsk *m = data;

    if (error != NULL && err_kind(error) == ERR_CONFLICT) {
        landing_list(m->ask->call->api->landings, m->ask->repo, &(LandingFilter){.number = m->ask->number},
                     on_listed, m);
        return;
    }
    if (error == NULL) {
        wait_for(m, entry);
        return;
    }
    V3Ask *ask = merge_ask_end(m);

    if (err_kind(error) == ERR_DENIED)
        respond_not_mergeable(ask, error->message);
    else
        v3_ask_fail(ask, error);
}

/* How long the answer may take is the client's to say; GitHub has no such thing. */
static bool
read_wait(ApiCall *call, gint64 *ret_ms)
{
    g_autoptr(GError) error = NULL;

    *ret_ms = WAIT_MS;
    if (url_query_get_int(http_request_query(call->request), "wait_ms", 0, WAIT_MS, ret_ms, &error))
        return true;
    respond_error(call->request, 422, error->message);
    return false;
}

static void
merge(ApiCall *call, Json *body, void *data)
{
    LandingSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"commit_title", JSON_KIND_STRING, &spec.title, false, 0, THREAD_BODY_MAX},
        {"commit_message", JSON_KIND_STRING, &spec.message, false, 0, THREAD_BODY_MAX},
        {"merge_method", JSON_KIND_STRING, &spec.method, false, 1, SHA_MAX},
        {"sha", JSON_KIND_STRING, &spec.head_oid, false, 1, SHA_MAX},
        {NULL},
    };
    gint64 wait_ms;
    V3Ask *ask;

    if (!read_wait(call, &wait_ms) || !v3_read_fields(call, body, fields, resource) ||
        (ask = v3_ask_new(call, resource, 200, NULL)) == NULL)
        return;
    if (call->api->landings == NULL) {
        respond_error(call->request, 503, "this server has no merge queue");
        v3_ask_free(ask);
        return;
    }
    spec.number = ask->number;
    if (spec.title != NULL && spec.title[0] == '\0')
        spec.title = NULL;
    MergeAsk *m = g_new0(MergeAsk, 1);

    *m = (MergeAsk){.ask = ask,
                    .wait_ms = (guint)wait_ms,
                    .sha = g_strdup(spec.head_oid),
                    .method = g_strdup(spec.method)};
    landing_add(call->api->landings, ask->repo, &spec, on_added, m);
}

static void
put_merge(ApiCall *call)
{
    call_read_json(call, merge, NULL);
}

const ApiRoute v3_pull_merge_routes[] = {
    {"GET", V3_REPO "/pulls/{number}/merge", SCOPE_READ, ROUTE_BASIC, get_merge},
    {"PUT", V3_REPO "/pulls/{number}/merge", SCOPE_BOX, ROUTE_BASIC, put_merge},
    {NULL},
};
