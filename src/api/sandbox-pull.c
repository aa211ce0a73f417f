/* SPDX-License-Identifier: Apache-2.0 */
/* A pull request of the branch that a sandbox has. */
#include <string.h>

#include "api/repos.h"
#include "api/routes.h"
#include "api/sandbox-git.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/identity.h"
#include "forge/pull.h"
#include "forge/workspace.h"

enum { SUMMARY_MAX = 4000, STEPS_MAX = 50, STEP_MAX = 1000, URL_MAX = 2000 };

typedef struct PullForm {
    PullSpec spec;
    PullBody text; /* of the body, where none is given */
    const char *repository;
    Json *plan; /* NULL: none */
} PullForm;

static bool
check_url(const char *url, GError **error)
{
    return url == NULL || g_str_has_prefix(url, "https://") || g_str_has_prefix(url, "http://") ||
           err_set(error, ERR_INVALID, "'task_url' begins with https:// or http://");
}

static bool
check_plan(const Json *plan, GError **error)
{
    size_t i;
    Json *step;

    json_array_foreach(plan, i, step)
    {
        if (!json_is_string(step) || json_string_length(step) > STEP_MAX)
            return err_set(error, ERR_INVALID, "'plan' is texts of at most %d bytes", STEP_MAX);
    }
    return true;
}

static bool
read_form(Json *body, PullForm *form, GError **error)
{
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &form->repository, false, 1, GIT_FORM_NAME_MAX},
        {"title", JSON_KIND_STRING, &form->spec.title, false, 1, THREAD_TITLE_MAX},
        {"body", JSON_KIND_STRING, &form->spec.body, false, 0, THREAD_BODY_MAX},
        {"base", JSON_KIND_STRING, &form->spec.base, false, 1, REPO_BRANCH_NAME_MAX},
        {"task_id", JSON_KIND_STRING, &form->spec.task_id, false, 1, GIT_FORM_WORD_MAX},
        {"draft", JSON_KIND_BOOL, &form->spec.draft},
        {"summary", JSON_KIND_STRING, &form->text.summary, false, 1, SUMMARY_MAX},
        {"task_name", JSON_KIND_STRING, &form->text.task_name, false, 1, GIT_FORM_WORD_MAX},
        {"task_url", JSON_KIND_STRING, &form->text.task_url, false, 1, URL_MAX},
        {"role", JSON_KIND_STRING, &form->text.role, false, 1, GIT_FORM_WORD_MAX},
        {"plan", JSON_KIND_ARRAY, &form->plan, false, 0, STEPS_MAX},
        {NULL},
    };

    if (!json_read(body, fields, error) || !check_url(form->text.task_url, error) ||
        !check_plan(form->plan, error))
        return false;
    return form->spec.title != NULL || form->text.summary != NULL ||
           err_set(error, ERR_INVALID, "'title' is missing, or a 'summary' to make it of");
}

static char *
write_body(const ApiCall *call, const PullForm *form, const RepoInfo *repo, const Workspace *w)
{
    g_autoptr(GPtrArray) plan = g_ptr_array_new();
    const Identity *who = w->identity_id != NULL ? identity_find(call->api->forge, w->identity_id) : NULL;
    g_autofree char *url = pull_checks_url(call->api->address, repo, w->branch);
    PullBody text = form->text;
    size_t i;
    Json *step;

    json_array_foreach(form->plan, i, step)
        g_ptr_array_add(plan, (gpointer)(guintptr)json_string_value(step));
    g_ptr_array_add(plan, NULL);
    text.task_id = form->spec.task_id;
    text.plan = (const char *const *)plan->pdata;
    text.checks_url = url;
    text.agent = who != NULL ? who->name : NULL;
    return pull_body_format(&text);
}

/* To the default branch unless told otherwise; of the task that the box is for. */
static void
open_from(ApiCall *call, const BoxInfo *box, PullForm *form, const Workspace *w)
{
    Repo *repo = forge_find_id(call->api->forge, w->repository_id);
    RepoInfo info;

    if (repo == NULL) {
        respond_error(call->request, 404, "the repository was removed");
        return;
    }
    repo_info(repo, &info);
    form->spec.actor = call->caller.actor;
    form->spec.head = w->branch;
    if (form->spec.base == NULL)
        form->spec.base = info.default_branch;
    if (form->spec.task_id == NULL)
        form->spec.task_id = box->task_id;
    g_autofree char *title = form->spec.title == NULL
                                 ? pull_title_format(form->text.summary, form->spec.draft)
                                 : NULL;
    g_autofree char *body = form->spec.body == NULL ? write_body(call, form, &info, w) : NULL;

    if (title != NULL)
        form->spec.title = title;
    if (body != NULL)
        form->spec.body = body;
    http_request_ref(call->request);
    pull_open(call->api->forge, repo, &form->spec, call_on_json, call);
}

static void
open_pull(ApiCall *call, Box *box, Json *body)
{
    PullForm form = {0};
    g_autoptr(GError) error = NULL;
    Repo *repo;
    BoxInfo of;

    if (!read_form(body, &form, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (!call_find_repo(call, form.repository, &repo))
        return;
    box_info(box, &of);
    const Workspace *w = workspace_pick(call->api->forge, of.id, repo, &error);

    if (w != NULL)
        open_from(call, &of, &form, w);
    else
        call_respond_error(call, error);
}

static void
post_pull(ApiCall *call)
{
    static const GitFunc func = open_pull;

    call_begin_git(call, &func);
}

const ApiRoute sandbox_pull_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/git/pr", SCOPE_BOX, 0, post_pull},
    {NULL},
};
