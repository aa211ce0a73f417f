/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/team-call.h"
#include "team/plan.h"

static void
show_plan(ApiCall *call)
{
    TaskRef ref = call_task_ref(call);

    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    plan_get(call_team(call), &ref, call_on_row, call);
}

static void
put(ApiCall *call, Json *body, void *data)
{
    TaskRef ref = call_task_ref(call);

    http_request_ref(call->request);
    plan_put(call_team(call), &ref, body, call_on_row, call);
}

static void
put_plan(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, put, NULL);
}

static void
approve_plan(ApiCall *call)
{
    TaskRef ref = call_task_ref(call);

    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    plan_approve(call_team(call), &ref, call_on_row, call);
}

const ApiRoute plans_routes[] = {
    {"GET", "/api/v1/tasks/{task}/plan", SCOPE_READ, 0, show_plan},
    {"PUT", "/api/v1/tasks/{task}/plan", SCOPE_BOX, 0, put_plan},
    {"POST", "/api/v1/tasks/{task}/plan/approve", SCOPE_BOX, 0, approve_plan},
    {NULL},
};
