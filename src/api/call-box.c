/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call-box.h"

#include "api/state.h"
#include "base/err.h"
#include "box/host.h"

const char *
caller_owner(const Caller *caller)
{
    return caller->kind == CALLER_LOCAL || (caller->scopes & SCOPE_ADMIN) != 0 ? NULL : caller->key_id;
}

bool
call_has_boxes(ApiCall *call)
{
    if (call->api->boxes == NULL)
        respond_error(call->request, 503, "this server runs without boxes");
    return call->api->boxes != NULL;
}

Box *
call_find_box(ApiCall *call)
{
    if (call->api->boxes == NULL)
        return NULL;
    return box_host_find(call->api->boxes, call_param(call, "id"), caller_owner(&call->caller));
}

Box *
call_box(ApiCall *call)
{
    Box *box = call_find_box(call);

    if (box == NULL && call_has_boxes(call))
        respond_error(call->request, 404, "there is no such sandbox, or it has ended");
    return box;
}

typedef struct RowSearch {
    ApiCall *call; /* with a reference to its request */
    BoxRowFunc func;
    void *data;
} RowSearch;

static void
on_row(Json *rows, const GError *error, void *data)
{
    g_autofree RowSearch *s = data;
    ApiCall *call = s->call;

    if (error != NULL)
        call_respond_error(call, error);
    else if (json_array_size(rows) == 0)
        respond_error(call->request, 404, "there is no such sandbox");
    s->func(call, error == NULL ? json_array_get(rows, 0) : NULL, s->data);
    http_request_unref(call->request);
}

void
call_box_row(ApiCall *call, BoxRowFunc func, void *data)
{
    if (!call_has_boxes(call)) {
        func(call, NULL, data);
        return;
    }
    RowSearch *s = g_new(RowSearch, 1);
    *s = (RowSearch){.call = call, .func = func, .data = data};
    http_request_ref(call->request);
    box_host_row(call->api->boxes, call_param(call, "id"), caller_owner(&call->caller), on_row, s);
}
