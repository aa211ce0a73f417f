/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"
#include "forge/forge-private.h"

/* HEAD of the repository is what clones begin with; the row is what counts.  HEAD is set first: who finds it
 * at a branch that the row does not name has lost nothing, and sets it again. */
typedef struct Edit {
    Repo *repo;                         /* a reference, for the loop only */
    char *actor, *description, *branch; /* NULL: as it is; what was before, once it is exchanged */
    DbDone done;
    void *data;
} Edit;

static void
edit_free(Edit *e)
{
    g_free(e->actor);
    g_free(e->description);
    g_free(e->branch);
    repo_unref(e->repo);
    g_free(e);
}

static void
edit_end(Edit *e, const GError *error)
{
    e->done(e->data, error);
    edit_free(e);
}

static bool
point_head(GitRepo *git, void *data, GError **error)
{
    const Edit *e = data;
    g_autoptr(GError) problem = NULL;
    g_autofree char *oid = git_branch_oid(git, e->branch, &problem);
    g_autofree char *ref = g_strconcat("refs/heads/", e->branch, NULL);

    if (oid == NULL && err_kind(problem) == ERR_NOT_FOUND)
        return err_set(error, ERR_INVALID, "there is no branch '%s'", e->branch);
    if (oid == NULL) {
        g_propagate_error(error, g_steal_pointer(&problem));
        return false;
    }
    const GitCall call = {.access = GIT_WRITE, .args = GIT_ARGS("symbolic-ref", "HEAD", ref)};

    return git_run(git, &call, NULL, error);
}

/* Again gives back what was. */
static void
exchange(Edit *e)
{
    if (e->description != NULL) {
        char *old = e->repo->description;

        e->repo->description = e->description;
        e->description = old;
    }
    if (e->branch != NULL) {
        char *old = e->repo->default_branch;

        e->repo->default_branch = e->branch;
        e->branch = old;
    }
}

static void
on_written(void *data, const GError *error)
{
    Edit *e = data;

    if (error != NULL)
        exchange(e);
    edit_end(e, error);
}

static void
write_down(Edit *e)
{
    exchange(e);
    const RepoEvent event = {
        .kind = "repo.changed",
        .actor = e->actor,
        .data = json_pack("{s:s, s:s}", "description", e->repo->description, "default_branch",
                          e->repo->default_branch),
    };

    repo_rows_update(e->repo, &event, on_written, e);
}

static void
on_pointed(void *data, const GError *error)
{
    Edit *e = data;

    if (error != NULL)
        edit_end(e, error);
    else
        write_down(e);
}

void
repo_edit(Repo *repo, const RepoEdit *edit, DbDone done, void *data)
{
    Edit *e = g_new0(Edit, 1);
    g_autoptr(GError) error = NULL;

    *e = (Edit){.repo = repo_ref(repo),
                .actor = g_strdup(edit->actor),
                .description = g_strdup(edit->description),
                .branch = g_strdup(edit->default_branch),
                .done = done,
                .data = data};
    if (!repo_require_ready(repo, &error))
        edit_end(e, error);
    else if (e->branch != NULL)
        forge_write(repo->forge, repo, "set the default branch", point_head, on_pointed, e, NULL);
    else
        write_down(e);
}
