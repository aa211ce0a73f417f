/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call-claim.h"

#include "api/call-box.h"
#include "api/state.h"
#include "team/claim.h"

typedef struct Claiming {
    ApiCall *call; /* with a reference to its request */
    Json *body;    /* a reference */
    CallBodyFunc func;
    void *data;
} Claiming;

static void
on_checked(Json *value, const GError *error, void *data)
{
    g_autofree Claiming *c = data;
    g_autoptr(Json) body = c->body;
    HttpRequest *request = c->call->request;

    if (error != NULL)
        call_respond_error(c->call, error);
    else
        c->func(c->call, body, c->data);
    http_request_unref(request);
}

void
call_check_claim(ApiCall *call, Json *body, CallBodyFunc func, void *data)
{
    const Claim claim = {.owner = caller_owner(&call->caller),
                         .task_id = json_string_value(json_object_get(body, "task_id")),
                         .agent_id = json_string_value(json_object_get(body, "agent_id"))};

    if (claim.owner == NULL || call->api->team == NULL || (claim.task_id == NULL && claim.agent_id == NULL)) {
        func(call, body, data);
        return;
    }
    Claiming *c = g_new(Claiming, 1);

    *c = (Claiming){.call = call, .body = json_incref(body), .func = func, .data = data};
    http_request_ref(call->request);
    claim_check(call->api->team, &claim, on_checked, c);
}
