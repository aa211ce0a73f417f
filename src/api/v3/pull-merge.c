/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "api/v3/ask.h"
#include "base/err.h"
#include "forge/pull.h"

static const char resource[] = "PullRequest";

enum { NOT_ALLOWED = 405 };

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

/* ---- merging ---- */

static char *
reasons_text(const Json *pull)
{
    g_autoptr(GString) text = g_string_new("Pull Request is not mergeable");
    size_t i;
    Json *reason;

    json_array_foreach(json_object_get(json_object_get(pull, "merge"), "reasons"), i, reason)
    {
        g_string_append_printf(text, "%s %s", i == 0 ? ":" : ";", row_text(reason, "text"));
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
on_judged(Json *pull, const GError *error, void *data)
{
    V3Ask *ask = data;

    if (error != NULL) {
        v3_ask_fail(ask, error);
        return;
    }
    g_autofree char *text = reasons_text(pull);

    respond_error(ask->call->request, NOT_ALLOWED, text);
    v3_ask_free(ask);
}

static void
put_merge(ApiCall *call)
{
    V3Ask *ask = v3_ask_new(call, resource, 200, NULL);

    if (ask != NULL)
        pull_get(call->api->forge, ask->repo, ask->number, on_judged, ask);
}

const ApiRoute v3_pull_merge_routes[] = {
    {"GET", V3_REPO "/pulls/{number}/merge", SCOPE_READ, ROUTE_BASIC, get_merge},
    {"PUT", V3_REPO "/pulls/{number}/merge", SCOPE_BOX, ROUTE_BASIC, put_merge},
    {NULL},
};
