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

Box *
call_box(ApiCall *call)
{
    if (call->api->boxes == NULL) {
        respond_error(call->request, 503, "this server runs without boxes");
        return NULL;
    }
    Box *box = box_host_find(call->api->boxes, call_param(call, "id"), caller_owner(&call->caller));
    if (box == NULL)
        respond_error(call->request, 404, "there is no such sandbox, or it has ended");
    return box;
}
