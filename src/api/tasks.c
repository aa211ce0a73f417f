/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call-box.h"
#include "api/routes.h"
#include "api/team-call.h"
#include "base/err.h"
#include "forge/row.h"
#include "http/url.h"
#include "team/squad.h"
#include "team/task.h"

enum {
    REPOSITORY_MAX = 210,
    BRANCH_MAX = 200,
    WORD_MAX = 20,
    DEDUPE_MAX = 200,
    REF_MAX = 60,
    REASON_MAX = 2000
};

/* ---- making ---- */

/* Everybody's intake: commands, programs, chats. */
static const char *const sources[] = {"cli", "api", "chat", "slack", "n8n", "demo", NULL};

static void
create(ApiCall *call, Json *body, void *data)
{
    TaskSpec spec = {.actor = call->caller.actor, .owner = call->caller.key_id, .source = "api"};
    const JsonField fields[] = {
        {"request", JSON_KIND_STRING, &spec.request, true, 1, TASK_REQUEST_MAX},
        {"title", JSON_KIND_STRING, &spec.title, false, 1, TASK_TITLE_MAX * 4},
        {"squad", JSON_KIND_STRING, &spec.squad, false, 1, SQUAD_NAME_MAX * 4},
        {"repository", JSON_KIND_STRING, &spec.repository, false, 0, REPOSITORY_MAX},
        {"base", JSON_KIND_STRING, &spec.base, false, 1, BRANCH_MAX},
        {"source", JSON_KIND_STRING, &spec.source, false, 1, WORD_MAX},
        {"dedupe", JSON_KIND_STRING, &spec.dedupe, false, 1, DEDUPE_MAX},
        {"policy", JSON_KIND_OBJECT, &spec.policy},
        {"plan", JSON_KIND_OBJECT, &spec.plan},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || !row_check_word("'source'", spec.source, sources, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    task_create(call_team(call), &spec, call_on_made, call);
}

static void
post_task(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, create, NULL);
}

/* ---- looking ---- */

static void
list_tasks(ApiCall *call)
{
    static const char *const names[] = {"squad", "state", "open", "page", "per_page", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *squad = NULL, *state = NULL;
    gint64 open = 0;
    CallPage page;
    g_autoptr(GError) error = NULL;

    if (call_team(call) == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "squad", &squad, &error) ||
        !url_query_get(query, "state", &state, &error) ||
        !url_query_get_int(query, "open", 0, 1, &open, &error) || !call_read_page(call, &page, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    task_list(call_team(call),
              &(TaskFilter){.owner = caller_owner(&call->caller),
                            .squad = squad,
                            .state = state,
                            .open = open != 0,
                            .page = {(guint)page.page, (guint)page.per_page}},
              call_on_rows, call);
}

static void
show_task(ApiCall *call)
{
    TaskRef ref = call_task_ref(call);

    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    task_get(call_team(call), &ref, call_on_row, call);
}

/* ---- acting ---- */

static void
stop(ApiCall *call, Json *body, void *data)
{
    TaskRef ref = call_task_ref(call);
    const char *reason = NULL;
    const JsonField fields[] = {
        {"reason", JSON_KIND_STRING, &reason, false, 0, REASON_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    task_stop(call_team(call), &ref, reason, call_on_row, call);
}

static void
retry(ApiCall *call, Json *body, void *data)
{
    TaskRef ref = call_task_ref(call);
    const JsonField none[] = {{NULL}};
    g_autoptr(GError) error = NULL;

    if (!json_read(body, none, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    task_retry(call_team(call), &ref, call_on_row, call);
}

static void
answer(ApiCall *call, Json *body, void *data)
{
    TaskRef ref = call_task_ref(call);
    const char *question = NULL, *text = NULL;
    const JsonField fields[] = {
        {"question", JSON_KIND_STRING, &question, false, 1, REF_MAX},
        {"answer", JSON_KIND_STRING, &text, true, 1, TASK_ANSWER_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    task_answer(call_team(call), &ref, question, text, call_on_row, call);
}

static void
post_stop(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, stop, NULL);
}

static void
post_retry(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, retry, NULL);
}

static void
post_answer(ApiCall *call)
{
    if (call_team(call) != NULL)
        call_read_json(call, answer, NULL);
}

const ApiRoute tasks_routes[] = {
    {"GET", "/api/v1/tasks", SCOPE_READ, 0, list_tasks},
    {"POST", "/api/v1/tasks", SCOPE_BOX, 0, post_task},
    {"GET", "/api/v1/tasks/{task}", SCOPE_READ, 0, show_task},
    {"POST", "/api/v1/tasks/{task}/stop", SCOPE_BOX, 0, post_stop},
    {"POST", "/api/v1/tasks/{task}/retry", SCOPE_BOX, 0, post_retry},
    {"POST", "/api/v1/tasks/{task}/answer", SCOPE_BOX, 0, post_answer},
    {NULL},
};
