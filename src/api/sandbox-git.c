/* SPDX-License-Identifier: Apache-2.0 */
/* Git in a sandbox, asked for from outside. */
#include "api/sandbox-git.h"

#include "api/call-box.h"
#include "api/call-claim.h"
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/message-core.h"
#include "forge/workspace.h"

enum { PATHS_MAX = 1000 };

bool
call_find_repo(ApiCall *call, const char *name, Repo **ret_repo)
{
    g_autofree char *owner = NULL;
    g_autofree char *short_name = NULL;
    g_autoptr(GError) error = NULL;

    *ret_repo = NULL;
    if (name == NULL)
        return true;
    if (repo_name_split(name, &owner, &short_name, &error)) {
        *ret_repo = forge_find(call->api->forge, owner, short_name);
        if (*ret_repo != NULL)
            return true;
        err_set(&error, ERR_NOT_FOUND, "there is no repository '%s'", name);
    }
    call_respond_error(call, error);
    return false;
}

static bool
has_boxes(ApiCall *call, Box **ret_box)
{
    if (call_forge(call) == NULL)
        return false;
    *ret_box = call_box(call);
    return *ret_box != NULL;
}

/* The box may have ended while the body came. */
static void
begin(ApiCall *call, Json *body, void *data)
{
    GitFunc func = *(GitFunc *)data;
    Box *box;

    if (has_boxes(call, &box))
        func(call, box, body);
}

static void
on_body(ApiCall *call, Json *body, void *data)
{
    call_check_claim(call, body, begin, data);
}

void
call_begin_git(ApiCall *call, const GitFunc *func)
{
    Box *box;

    if (has_boxes(call, &box))
        call_read_json(call, on_body, (void *)(guintptr)func);
}

/* ---- clone and branch ---- */

typedef struct CloneForm {
    CloneSpec spec;
    const char *repository;
    BranchName task;
    char *slug;
} CloneForm;

/* {"id", "role"?, "n"?, "title"?, "pattern"?} */
static bool
read_task(Json *object, CloneForm *form, GError **error)
{
    const char *title = NULL;
    gint64 n = 1;
    BranchName *task = &form->task;
    const JsonField fields[] = {
        {"id", JSON_KIND_STRING, &task->id, true, 1, GIT_FORM_WORD_MAX},
        {"role", JSON_KIND_STRING, &task->role, false, 1, GIT_FORM_WORD_MAX},
        {"n", JSON_KIND_INT, &n, false, 1, G_MAXINT32},
        {"title", JSON_KIND_STRING, &title, false, 1, GIT_FORM_WORD_MAX},
        {"pattern", JSON_KIND_STRING, &task->pattern, false, 1, WORKSPACE_PATTERN_MAX},
        {NULL},
    };

    if (!json_read(object, fields, error)) {
        g_prefix_error(error, "task: ");
        return false;
    }
    form->slug = title != NULL ? workspace_slug(title) : NULL;
    task->slug = form->slug;
    task->n = (guint)n;
    form->spec.task = task;
    return true;
}

static bool
read_clone(ApiCall *call, Json *body, CloneForm *form)
{
    Json *task = NULL;
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &form->repository, false, 1, GIT_FORM_NAME_MAX},
        {"branch", JSON_KIND_STRING, &form->spec.branch, false, 1, REPO_BRANCH_NAME_MAX},
        {"base", JSON_KIND_STRING, &form->spec.base, false, 1, REPO_BRANCH_NAME_MAX},
        {"path", JSON_KIND_STRING, &form->spec.path, false, 1, WORKSPACE_PATH_MAX},
        {"identity", JSON_KIND_STRING, &form->spec.identity, false, 1, GIT_FORM_WORD_MAX},
        {"force", JSON_KIND_BOOL, &form->spec.may_force},
        {"task", JSON_KIND_OBJECT, &task},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    form->spec.actor = call->caller.actor;
    form->spec.is_admin = call_is_admin(call);
    if (!json_read(body, fields, &error) || (task != NULL && !read_task(task, form, &error))) {
        call_respond_error(call, error);
        return false;
    }
    if (task != NULL && form->spec.branch != NULL) {
        respond_error(call->request, 400, "'branch' and 'task' both name the branch: leave one away");
        return false;
    }
    return call_find_repo(call, form->repository, &form->spec.repo);
}

static void
clone_repo(ApiCall *call, Box *box, Json *body)
{
    CloneForm form = {0};

    if (read_clone(call, body, &form)) {
        if (form.spec.repo == NULL) {
            respond_error(call->request, 400, "'repository' is missing");
        } else {
            http_request_ref(call->request);
            workspace_clone(call->api->forge, box, &form.spec, call_on_json, call);
        }
    }
    g_free(form.slug);
}

static void
change_branch(ApiCall *call, Box *box, Json *body)
{
    CloneForm form = {0};

    if (read_clone(call, body, &form)) {
        http_request_ref(call->request);
        workspace_branch(call->api->forge, box, &form.spec, call_on_json, call);
    }
    g_free(form.slug);
}

/* ---- commit and push ---- */

static bool
read_paths(Json *array, GPtrArray *into, GError **error)
{
    size_t i;
    Json *path;

    json_array_foreach(array, i, path)
    {
        const char *text = json_string_value(path);

        if (text == NULL || *text == '\0')
            return err_set(error, ERR_INVALID, "'paths' has something that is no path");
        g_ptr_array_add(into, (gpointer)(guintptr)text);
    }
    g_ptr_array_add(into, NULL);
    return true;
}

static void
commit(ApiCall *call, Box *box, Json *body)
{
    const char *repository = NULL;
    Json *paths = NULL;
    CommitSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &repository, false, 1, GIT_FORM_NAME_MAX},
        {"message", JSON_KIND_STRING, &spec.message, false, 1, MESSAGE_MAX},
        {"paths", JSON_KIND_ARRAY, &paths, false, 1, PATHS_MAX},
        {NULL},
    };
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || (paths != NULL && !read_paths(paths, list, &error))) {
        call_respond_error(call, error);
        return;
    }
    if (!call_find_repo(call, repository, &spec.repo))
        return;
    spec.paths = paths != NULL ? (const char *const *)list->pdata : NULL;
    http_request_ref(call->request);
    workspace_commit(call->api->forge, box, &spec, call_on_json, call);
}

static void
push(ApiCall *call, Box *box, Json *body)
{
    const char *repository = NULL;
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &repository, false, 1, GIT_FORM_NAME_MAX},
        {NULL},
    };
    g_autoptr(GError) error = NULL;
    Repo *repo;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (!call_find_repo(call, repository, &repo))
        return;
    http_request_ref(call->request);
    workspace_push(call->api->forge, box, repo, call->caller.actor, call_on_json, call);
}

static void
post_clone(ApiCall *call)
{
    static const GitFunc func = clone_repo;

    call_begin_git(call, &func);
}

static void
post_branch(ApiCall *call)
{
    static const GitFunc func = change_branch;

    call_begin_git(call, &func);
}

static void
post_commit(ApiCall *call)
{
    static const GitFunc func = commit;

    call_begin_git(call, &func);
}

static void
post_push(ApiCall *call)
{
    static const GitFunc func = push;

    call_begin_git(call, &func);
}

const ApiRoute sandbox_git_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/git/clone", SCOPE_BOX, 0, post_clone},
    {"POST", "/api/v1/sandboxes/{id}/git/branch", SCOPE_BOX, 0, post_branch},
    {"POST", "/api/v1/sandboxes/{id}/git/commit", SCOPE_BOX, 0, post_commit},
    {"POST", "/api/v1/sandboxes/{id}/git/push", SCOPE_BOX, 0, post_push},
    {NULL},
};
