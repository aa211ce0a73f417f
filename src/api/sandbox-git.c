/* SPDX-License-Identifier: Apache-2.0 */
/* Git in a sandbox, asked for from outside. */
#include <string.h>

#include "api/call-box.h"
#include "api/repos.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "forge/message-core.h"
#include "forge/pull.h"
#include "forge/workspace.h"

enum { NAME_MAX_BYTES = 2 * REPO_NAME_MAX + 1, WORD_MAX = 100, PATHS_MAX = 1000 };

typedef void (*GitFunc)(ApiCall *call, Box *box, Json *body);

/* `name` NULL: the one that the sandbox has.  False: answered. */
static bool
find_repo(ApiCall *call, const char *name, Repo **ret_repo)
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
on_body(ApiCall *call, Json *body, void *data)
{
    GitFunc func = *(GitFunc *)data;
    Box *box;

    if (has_boxes(call, &box))
        func(call, box, body);
}

static void
begin(ApiCall *call, const GitFunc *func)
{
    Box *box;

    if (has_boxes(call, &box))
        call_read_json(call, on_body, (void *)(guintptr)func);
}

/* ---- clone and branch ---- */

/* {"id", "role"?, "n"?, "title"?, "pattern"?} */
static bool
read_task(Json *object, char **ret_branch, GError **error)
{
    const char *title = NULL;
    gint64 n = 1;
    BranchName name = {0};
    const JsonField fields[] = {
        {"id", JSON_KIND_STRING, &name.id, true, 1, WORD_MAX},
        {"role", JSON_KIND_STRING, &name.role, false, 1, WORD_MAX},
        {"n", JSON_KIND_INT, &n, false, 1, G_MAXINT32},
        {"title", JSON_KIND_STRING, &title, false, 1, WORD_MAX},
        {"pattern", JSON_KIND_STRING, &name.pattern, false, 1, WORKSPACE_PATTERN_MAX},
        {NULL},
    };

    if (!json_read(object, fields, error)) {
        g_prefix_error(error, "task: ");
        return false;
    }
    g_autofree char *slug = title != NULL ? workspace_slug(title) : NULL;

    name.slug = slug;
    name.n = (guint)n;
    *ret_branch = workspace_branch_name(&name, error);
    return *ret_branch != NULL;
}

typedef struct CloneForm {
    CloneSpec spec;
    const char *repository;
    char *made_branch;
} CloneForm;

static bool
read_clone(ApiCall *call, Json *body, CloneForm *form)
{
    Json *task = NULL;
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &form->repository, false, 1, NAME_MAX_BYTES},
        {"branch", JSON_KIND_STRING, &form->spec.branch, false, 1, REPO_BRANCH_NAME_MAX},
        {"base", JSON_KIND_STRING, &form->spec.base, false, 1, REPO_BRANCH_NAME_MAX},
        {"path", JSON_KIND_STRING, &form->spec.path, false, 1, WORKSPACE_PATH_MAX},
        {"identity", JSON_KIND_STRING, &form->spec.identity, false, 1, WORD_MAX},
        {"force", JSON_KIND_BOOL, &form->spec.may_force},
        {"task", JSON_KIND_OBJECT, &task},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    form->spec.actor = call->caller.actor;
    form->spec.is_admin = (call->caller.scopes & SCOPE_ADMIN) != 0;
    if (!json_read(body, fields, &error) || (task != NULL && !read_task(task, &form->made_branch, &error))) {
        call_respond_error(call, error);
        return false;
    }
    if (form->made_branch != NULL)
        form->spec.branch = form->made_branch;
    return find_repo(call, form->repository, &form->spec.repo);
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
    g_free(form.made_branch);
}

static void
change_branch(ApiCall *call, Box *box, Json *body)
{
    CloneForm form = {0};

    if (read_clone(call, body, &form)) {
        http_request_ref(call->request);
        workspace_branch(call->api->forge, box, &form.spec, call_on_json, call);
    }
    g_free(form.made_branch);
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
        {"repository", JSON_KIND_STRING, &repository, false, 1, NAME_MAX_BYTES},
        {"message", JSON_KIND_STRING, &spec.message, true, 1, MESSAGE_MAX},
        {"paths", JSON_KIND_ARRAY, &paths, false, 1, PATHS_MAX},
        {NULL},
    };
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || (paths != NULL && !read_paths(paths, list, &error))) {
        call_respond_error(call, error);
        return;
    }
    if (!find_repo(call, repository, &spec.repo))
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
        {"repository", JSON_KIND_STRING, &repository, false, 1, NAME_MAX_BYTES},
        {NULL},
    };
    g_autoptr(GError) error = NULL;
    Repo *repo;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (!find_repo(call, repository, &repo))
        return;
    http_request_ref(call->request);
    workspace_push(call->api->forge, box, repo, call->caller.actor, call_on_json, call);
}

/* Of the branch that the sandbox has, to the default one unless told otherwise. */
static void
open_pull(ApiCall *call, Box *box, Json *body)
{
    const char *repository = NULL;
    PullSpec spec = {.actor = call->caller.actor};
    const JsonField fields[] = {
        {"repository", JSON_KIND_STRING, &repository, false, 1, NAME_MAX_BYTES},
        {"title", JSON_KIND_STRING, &spec.title, true, 1, THREAD_TITLE_MAX},
        {"body", JSON_KIND_STRING, &spec.body, false, 0, MESSAGE_MAX},
        {"base", JSON_KIND_STRING, &spec.base, false, 1, REPO_BRANCH_NAME_MAX},
        {"task_id", JSON_KIND_STRING, &spec.task_id, false, 1, WORD_MAX},
        {"draft", JSON_KIND_BOOL, &spec.draft},
        {NULL},
    };
    g_autoptr(GError) error = NULL;
    Repo *repo;
    RepoInfo info;
    BoxInfo of;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    if (!find_repo(call, repository, &repo))
        return;
    box_info(box, &of);
    const Workspace *w = workspace_pick(call->api->forge, of.id, repo, &error);
    Repo *own = w != NULL ? forge_find_id(call->api->forge, w->repository_id) : NULL;

    if (w != NULL && own == NULL)
        err_set(&error, ERR_NOT_FOUND, "the repository was removed");
    if (own == NULL) {
        call_respond_error(call, error);
        return;
    }
    repo_info(own, &info);
    spec.head = w->branch;
    spec.base = spec.base != NULL ? spec.base : info.default_branch;
    http_request_ref(call->request);
    pull_open(call->api->forge, own, &spec, call_on_json, call);
}

static void
post_clone(ApiCall *call)
{
    static const GitFunc func = clone_repo;

    begin(call, &func);
}

static void
post_branch(ApiCall *call)
{
    static const GitFunc func = change_branch;

    begin(call, &func);
}

static void
post_commit(ApiCall *call)
{
    static const GitFunc func = commit;

    begin(call, &func);
}

static void
post_push(ApiCall *call)
{
    static const GitFunc func = push;

    begin(call, &func);
}

static void
post_pull(ApiCall *call)
{
    static const GitFunc func = open_pull;

    begin(call, &func);
}

const ApiRoute sandbox_git_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/git/clone", SCOPE_BOX, 0, post_clone},
    {"POST", "/api/v1/sandboxes/{id}/git/branch", SCOPE_BOX, 0, post_branch},
    {"POST", "/api/v1/sandboxes/{id}/git/commit", SCOPE_BOX, 0, post_commit},
    {"POST", "/api/v1/sandboxes/{id}/git/push", SCOPE_BOX, 0, post_push},
    {"POST", "/api/v1/sandboxes/{id}/git/pr", SCOPE_BOX, 0, post_pull},
    {NULL},
};
