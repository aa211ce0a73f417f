/* SPDX-License-Identifier: Apache-2.0 */
/* The plan provider's text, for people and for agents. */
#include "api/room-visit.h"
#include "api/routes.h"
#include "forge/row.h"
#include "http/url.h"

static void
on_text(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    http_response_header(call->request, "Cache-Control", "no-store");
    if (error != NULL)
        call_respond_error(call, error);
    else
        http_respond_text(call->request, 200, "text/plain; charset=utf-8", row_text(value, "text"));
    http_request_unref(call->request);
}

static void
show(RoomVisit *visit)
{
    room_plan_text(visit->rooms, row_text(visit->who, "task_id"), on_text, visit->call);
}

static void
get_of_task(ApiCall *call)
{
    call_visit(call, call_param(call, "task"), NULL, show);
}

/* An agent's is that of its own task, which it need not name. */
static void
get_own(ApiCall *call)
{
    static const char *const names[] = {"task", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *task = NULL;
    g_autoptr(GError) error = NULL;

    if (!url_query_only(query, names, &error) || !url_query_get(query, "task", &task, &error))
        call_respond_error(call, error);
    else if (call->caller.kind != CALLER_BOX && task == NULL)
        respond_error(call->request, 400, "'task' says whose plan is meant");
    else
        call_visit(call, task, NULL, show);
}

const ApiRoute plan_text_routes[] = {
    {"GET", "/api/v1/tasks/{task}/plan.txt", SCOPE_READ, 0, get_of_task},
    {"GET", "/agent/v1/plan", SCOPE_READ, ROUTE_BOX, get_own},
    {NULL},
};
