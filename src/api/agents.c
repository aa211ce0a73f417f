/* SPDX-License-Identifier: Apache-2.0 */
/* Agents by hand, and how those of tasks fare. */
#include "api/call-box.h"
#include "api/routes.h"
#include "api/team-call.h"
#include "base/err.h"
#include "team/crew.h"

enum { WORD_MAX = 200, REPOSITORY_MAX = 210, REQUIREMENTS_MAX = 50 };

static char **
dup_texts(Json *list, GError **error)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    size_t i;
    Json *one;

    json_array_foreach(list, i, one)
    {
        if (!json_is_string(one)) {
            g_set_error_literal(error, ERR_DOMAIN, ERR_INVALID, "'requirements' is a list of texts");
            return NULL;
        }
        g_ptr_array_add(texts, g_strdup(json_string_value(one)));
    }
    g_ptr_array_add(texts, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&texts), FALSE);
}

static void
spawn(ApiCall *call, Json *body, void *data)
{
    AgentSpec spec = {
        .actor = call->caller.actor, .owner = call->caller.key_id, .sees = caller_owner(&call->caller)};
    Json *requirements = NULL;
    const JsonField fields[] = {
        {"role", JSON_KIND_STRING, &spec.role, true, 1, WORD_MAX},
        {"taskId", JSON_KIND_STRING, &spec.task, false, 1, WORD_MAX},
        {"requirements", JSON_KIND_ARRAY, &requirements, true, 1, REQUIREMENTS_MAX},
        {"gitCredentials", JSON_KIND_OBJECT, &spec.git},
        {"squad", JSON_KIND_STRING, &spec.squad, false, 1, WORD_MAX},
        {"repository", JSON_KIND_STRING, &spec.repository, false, 0, REPOSITORY_MAX},
        {"adapter", JSON_KIND_STRING, &spec.adapter, false, 1, WORD_MAX},
        {"provider", JSON_KIND_STRING, &spec.provider, false, 1, WORD_MAX},
        {"model", JSON_KIND_STRING, &spec.model, false, 1, WORD_MAX},
        {"template", JSON_KIND_STRING, &spec.template, false, 1, WORD_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) texts = json_read(body, fields, &error) ? dup_texts(requirements, &error) : NULL;

    if (texts == NULL) {
        call_respond_error(call, error);
        return;
    }
    spec.requirements = (const char *const *)texts;
    http_request_ref(call->request);
    agent_spawn(call_team(call), &spec, call_on_made, call);
}

static void
post_agent(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, spawn, NULL);
}

static void
list_agents(ApiCall *call)
{
    g_autofree char *task = NULL;
    ForgePage page;

    if (!call_read_task_page(call, &task, &page))
        return;
    http_request_ref(call->request);
    agent_list(call_team(call),
               &(AgentFilter){.owner = caller_owner(&call->caller), .task = task, .page = page}, call_on_rows,
               call);
}

static void
show_agent(ApiCall *call)
{
    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    agent_get(call_team(call), call_param(call, "agent"), caller_owner(&call->caller), call_on_row, call);
}

static void
delete_agent(ApiCall *call)
{
    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    agent_stop(call_team(call), call_param(call, "agent"), caller_owner(&call->caller), call->caller.actor,
               call_on_row, call);
}

const ApiRoute agents_routes[] = {
    {"GET", "/api/v1/agents", SCOPE_READ, 0, list_agents},
    {"POST", "/api/v1/agents", SCOPE_BOX, 0, post_agent},
    {"GET", "/api/v1/agents/{agent}", SCOPE_READ, 0, show_agent},
    {"DELETE", "/api/v1/agents/{agent}", SCOPE_BOX, 0, delete_agent},
    {NULL},
};
