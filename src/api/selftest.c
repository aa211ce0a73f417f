/* SPDX-License-Identifier: Apache-2.0 */
#include "box/selftest.h"

#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"

static bool
has_boxes(ApiCall *call)
{
    g_autoptr(GError) error = NULL;

    if (call->api->self_test != NULL)
        return true;
    err_set(&error, ERR_UNAVAILABLE, "this server has no boxes");
    call_respond_error(call, error);
    return false;
}

static void
on_ran(Json *report, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        call_respond_json(call, 200, json_incref(report));
    http_request_unref(call->request);
}

static void
post_self_test(ApiCall *call)
{
    if (!has_boxes(call))
        return;
    http_request_ref(call->request);
    self_test_run(call->api->self_test, call->caller.actor, on_ran, call);
}

static void
get_self_test(ApiCall *call)
{
    g_autoptr(GError) error = NULL;

    if (!has_boxes(call))
        return;
    Json *report = self_test_report(call->api->self_test);

    if (report != NULL) {
        call_respond_json(call, 200, json_incref(report));
        return;
    }
    err_set(&error, ERR_NOT_FOUND, "the self-test has not run yet");
    call_respond_error(call, error);
}

const ApiRoute self_test_routes[] = {
    {"GET", "/api/v1/self-test", SCOPE_READ, 0, get_self_test},
    {"POST", "/api/v1/self-test", SCOPE_ADMIN, 0, post_self_test},
    {NULL},
};
