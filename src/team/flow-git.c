/* SPDX-License-Identifier: Apache-2.0 */
#include "team/flow-git.h"

#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "forge/contents.h"
#include "forge/object-write.h"
#include "forge/push.h"
#include "forge/tree-edit.h"

enum { MODE_FILE = 0100644 };

static const char heads[] = "refs/heads/";

FlowGit *
flow_git_new(FlowTask *t, void (*then)(FlowGit *git), GError **error)
{
    Repo *repo = flow_repo(t, error);

    if (repo == NULL)
        return NULL;
    const Json *task = flow_row(t);
    FlowGit *git = g_new0(FlowGit, 1);

    *git = (FlowGit){
        .t = t,
        .repo = repo_ref(repo),
        .branch = g_strdup(row_text(task, "branch")),
        .path = g_strdup_printf(".coop/plans/task-%" G_GINT64_FORMAT ".md", row_int(task, "number")),
        .time_s = row_int(task, "created_us") / G_USEC_PER_SEC,
        .then = then};
    return git;
}

void
flow_git_free(FlowGit *git)
{
    char **texts[] = {&git->branch, &git->base, &git->message, &git->path, &git->text};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(*texts[i]);
    json_decref(git->conflict);
    repo_unref(git->repo);
    g_free(git);
}

static void
on_told(void *data, const GError *error)
{
    FlowGit *git = data;

    if (flow_goes_on(git->t, error))
        git->then(git);
    else
        flow_git_free(git);
}

static void
on_worked(void *data, const GError *error)
{
    FlowGit *git = data;

    if (!flow_goes_on(git->t, error)) {
        flow_git_free(git);
    } else if (strcmp(git->old, git->new) == 0) {
        git->then(git);
    } else {
        g_autofree char *ref = g_strconcat(heads, git->branch, NULL);
        const ForgePush push = {.actor = "coop", .ref = ref, .old = git->old, .new = git->new};

        forge_pushed_then(git->t->flow->team->spec.forge, git->repo, &push, on_told, git);
    }
}

void
flow_git_run(FlowGit *git, const char *what, ForgeWork work)
{
    g_autofree char *text = g_strdup_printf("%s of task %" G_GINT64_FORMAT, what,
                                            row_int(flow_row(git->t), "number"));

    forge_write(git->t->flow->team->spec.forge, git->repo, text, work, on_worked, git, NULL);
}

/* ---- in threads ---- */

static MergePerson
coop_at(gint64 time_s)
{
    return (MergePerson){.name = "Coop", .email = "coop@localhost", .time_s = time_s};
}

/* `*ret_oid` NULL: there is no such branch. */
static bool
find_branch(GitRepo *repo, const char *branch, char **ret_oid, GError **error)
{
    g_autoptr(GError) failed = NULL;

    *ret_oid = git_branch_oid(repo, branch, &failed);
    if (*ret_oid != NULL || g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND))
        return true;
    g_propagate_error(error, g_steal_pointer(&failed));
    return false;
}

static void
answer(FlowGit *git, const char *old, const char *new)
{
    g_strlcpy(git->old, old, sizeof git->old);
    g_strlcpy(git->new, new, sizeof git->new);
}

/* The commit upon `parent` that has the plan, or has it no more. */
static bool
make_commit(GitRepo *repo, const FlowGit *git, const char *parent, GPtrArray *objects,
            char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    g_autoptr(TreeEditor) editor = tree_editor_new(repo, parent);
    const MergePerson coop = coop_at(git->time_s);
    const char *const parents[] = {parent, NULL};
    char tree[GIT_OID_LEN + 1];

    if (git->text != NULL) {
        NewObject *blob = new_object_make(OBJECT_BLOB, g_string_new(git->text));

        g_ptr_array_add(objects, blob);
        if (!tree_editor_put(editor, git->path, MODE_FILE, blob->oid, error))
            return false;
    } else if (!tree_editor_remove(editor, git->path, error)) {
        return false;
    }
    if (!tree_editor_end(editor, objects, tree, error))
        return false;
    NewObject *commit = new_object_make(OBJECT_COMMIT,
                                        commit_text_new(tree, parents, &coop, &coop, git->message));

    g_ptr_array_add(objects, commit);
    g_strlcpy(ret_oid, commit->oid, GIT_OID_LEN + 1);
    return true;
}

static bool
write_commit(GitRepo *repo, FlowGit *git, const char *parent, const char *old, GError **error)
{
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func((GDestroyNotify)new_object_free);
    char oid[GIT_OID_LEN + 1];

    if (!make_commit(repo, git, parent, objects, oid, error) || !objects_write(repo, objects, error))
        return false;
    FAILPOINT("flow-commit");
    if (!git_branch_move(repo, git->branch, old, oid, git->message, error))
        return false;
    answer(git, old, oid);
    return true;
}

/* ---- the base ---- */

static bool
has_branches(GitRepo *repo, bool *ret, GError **error)
{
    g_autofree char *text = git_text(
        repo, GIT_READ, GIT_ARGS("for-each-ref", "--count=1", "--format=%(refname)", heads), error);

    *ret = text != NULL && text[0] != '\0';
    return text != NULL;
}

/* A pull request needs something to be merged into. */
static bool
begin_repository(GitRepo *repo, FlowGit *git, GError **error)
{
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func((GDestroyNotify)new_object_free);
    const MergePerson coop = coop_at(git->time_s);
    NewObject *tree = new_object_make(OBJECT_TREE, g_string_new(NULL));
    const char *const none[] = {NULL};

    g_ptr_array_add(objects, tree);
    NewObject *commit = new_object_make(
        OBJECT_COMMIT, commit_text_new(tree->oid, none, &coop, &coop, "chore: begin the repository\n"));

    g_ptr_array_add(objects, commit);
    if (!objects_write(repo, objects, error) ||
        !git_branch_move(repo, git->branch, git_oid_zero, commit->oid, "begin the repository", error))
        return false;
    answer(git, git_oid_zero, commit->oid);
    return true;
}

bool
flow_git_base(GitRepo *repo, void *data, GError **error)
{
    FlowGit *git = data;
    g_autofree char *oid = NULL;
    bool has = false;

    if (!find_branch(repo, git->branch, &oid, error) || (oid == NULL && !has_branches(repo, &has, error)))
        return false;
    if (oid == NULL)
        return has || !git->may_begin ? err_set(error, ERR_NOT_FOUND, "there is no branch '%s'", git->branch)
                                      : begin_repository(repo, git, error);
    answer(git, oid, oid);
    return true;
}

/* ---- the plan ---- */

/* A branch of that name is ours when the plan's commit is in it. */
static bool
find_plan(GitRepo *repo, FlowGit *git, const char *tip, GError **error)
{
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func((GDestroyNotify)new_object_free);
    char oid[GIT_OID_LEN + 1];
    bool is = false;

    if (!make_commit(repo, git, git->base, objects, oid, error))
        return false;
    g_autoptr(GError) failed = NULL;

    /* Where git has no such commit, it cannot be an ancestor of anything. */
    if (!commit_is_ancestor(repo, oid, tip, &is, &failed))
        is = false;
    git->foreign = !is;
    answer(git, tip, tip);
    return true;
}

bool
flow_git_plan(GitRepo *repo, void *data, GError **error)
{
    FlowGit *git = data;
    g_autofree char *tip = NULL;

    if (!find_branch(repo, git->branch, &tip, error))
        return false;
    bool ok = tip != NULL ? find_plan(repo, git, tip, error)
                          : write_commit(repo, git, git->base, git_oid_zero, error);

    if (ok)
        FAILPOINT("flow-branch");
    return ok;
}

bool
flow_git_unplan(GitRepo *repo, void *data, GError **error)
{
    FlowGit *git = data;
    g_autofree char *tip = git_branch_oid(repo, git->branch, error);
    g_autoptr(GError) failed = NULL;

    if (tip == NULL)
        return false;
    g_autoptr(TreeEntry) entry = contents_entry(repo, tip, git->path, &failed);

    if (entry != NULL)
        return write_commit(repo, git, tip, tip, error);
    if (!g_error_matches(failed, ERR_DOMAIN, ERR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return false;
    }
    answer(git, tip, tip);
    return true;
}

/* ---- joining ---- */

static bool
keep_conflict(GitRepo *repo, FlowGit *git, const char *tip, const MergeDone *done, GError **error)
{
    const MergeIntent ours = {git->branch, tip, "The task's branch", ""};
    const MergeIntent theirs = {git->path, git->base, git->message, ""};

    git->conflict = merge_bundle(repo, done->conflict, &ours, &theirs, error);
    answer(git, tip, tip);
    return git->conflict != NULL;
}

static bool
merge(GitRepo *repo, FlowGit *git, const char *tip, char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    const MergePerson coop = coop_at(git->time_s);
    g_auto(MergeDone) done = {0};
    const MergeSpec spec = {.method = MERGE_COMMIT,
                            .base = tip,
                            .head = git->base,
                            .author = coop,
                            .committer = coop,
                            .message = git->message};

    if (!merge_make(repo, &spec, &done, error))
        return false;
    g_strlcpy(ret_oid, done.oid, GIT_OID_LEN + 1);
    return done.conflict == NULL || keep_conflict(repo, git, tip, &done, error);
}

bool
flow_git_join(GitRepo *repo, void *data, GError **error)
{
    FlowGit *git = data;
    g_autofree char *tip = git_branch_oid(repo, git->branch, error);
    char oid[GIT_OID_LEN + 1] = "";
    bool is_in = false, is_ahead = false;

    g_clear_pointer(&git->conflict, json_decref);
    if (tip == NULL || !commit_is_ancestor(repo, git->base, tip, &is_in, error) ||
        !commit_is_ancestor(repo, tip, git->base, &is_ahead, error))
        return false;
    answer(git, tip, tip);
    if (is_in)
        return true;
    if (is_ahead)
        g_strlcpy(oid, git->base, sizeof oid);
    else if (!merge(repo, git, tip, oid, error))
        return false;
    if (git->conflict != NULL)
        return true;
    FAILPOINT("flow-joining");
    if (!git_branch_move(repo, git->branch, tip, oid, git->message, error))
        return false;
    answer(git, tip, oid);
    FAILPOINT("flow-joined");
    return true;
}
