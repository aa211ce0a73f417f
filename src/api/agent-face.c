/* SPDX-License-Identifier: Apache-2.0 */
/* What agents in boxes ask of the server, through the door.  Who asks is the box; nothing in a request says
 * it. */
#include "api/repos.h"
#include "api/routes.h"
#include "api/team-call.h"
#include "http/url.h"
#include "team/crew.h"

enum { WAIT_MAX_MS = 60 * 1000 };

/* NULL: answered. */
static Crew *
crew_of(ApiCall *call)
{
    Team *team = call_team(call);

    if (team == NULL)
        return NULL;
    if (call->caller.kind == CALLER_BOX)
        return team_crew(team);
    respond_error(call->request, 404, "only agents in sandboxes ask here");
    return NULL;
}

static void
get_brief(ApiCall *call)
{
    Crew *crew = crew_of(call);

    if (crew == NULL)
        return;
    http_request_ref(call->request);
    crew_brief(crew, call->caller.box_id, call_on_json, call);
}

typedef void (*CrewPost)(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data);

static void
on_body(ApiCall *call, Json *body, void *data)
{
    Crew *crew = crew_of(call);
    const CrewPost *post = data;

    if (crew == NULL)
        return;
    http_request_ref(call->request);
    (*post)(crew, call->caller.box_id, body, call_on_json, call);
}

static void
read_post(ApiCall *call, const CrewPost *post)
{
    if (crew_of(call) != NULL)
        call_read_json(call, on_body, (void *)(guintptr)post);
}

static void
post_report(ApiCall *call)
{
    static const CrewPost post = crew_report;

    read_post(call, &post);
}

static void
post_ask(ApiCall *call)
{
    static const CrewPost post = crew_ask;

    read_post(call, &post);
}

static void
post_done(ApiCall *call)
{
    static const CrewPost post = crew_done;

    read_post(call, &post);
}

static void
get_answer(ApiCall *call)
{
    static const char *const names[] = {"wait_ms", NULL};
    const char *query = http_request_query(call->request);
    g_autoptr(GError) error = NULL;
    Crew *crew = crew_of(call);
    gint64 wait_ms = 0;

    if (crew == NULL)
        return;
    if (!url_query_only(query, names, &error) ||
        !url_query_get_int(query, "wait_ms", 0, WAIT_MAX_MS, &wait_ms, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    crew_answer(crew, call->caller.box_id, call_param(call, "question"), (guint)wait_ms, call_on_json, call);
}

const ApiRoute agent_face_routes[] = {
    {"GET", "/agent/v1/brief", SCOPE_BOX, ROUTE_BOX, get_brief},
    {"POST", "/agent/v1/report", SCOPE_BOX, ROUTE_BOX, post_report},
    {"POST", "/agent/v1/ask", SCOPE_BOX, ROUTE_BOX, post_ask},
    {"GET", "/agent/v1/ask/{question}", SCOPE_BOX, ROUTE_BOX, get_answer},
    {"POST", "/agent/v1/done", SCOPE_BOX, ROUTE_BOX, post_done},
    {NULL},
};
