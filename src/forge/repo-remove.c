/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that has no row is not removed for that alone: a backup that is older than the repository
 * may have been restored.  So the row says `removing`, then the folder gets a name that says so, then
 * the row goes, and with it the right to what is in the folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/tree.h"
#include "forge/forge-private.h"

const char repo_removed_suffix[] = ".removed";

/* ---- the folder ---- */

typedef struct Folder {
    char *parent, *name;
} Folder;

static void
remove_folder(void *data)
{
    const Folder *f = data;
    autofd fd = open(f->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        (void)tree_remove(fd, f->name, NULL); /* what stays is found by the next start */
}

static void
on_folder_removed(void *data)
{
    Folder *f = data;

    g_free(f->parent);
    g_free(f->name);
    g_free(f);
}

static void
begin_removing_folder(Forge *forge, const char *id)
{
    Folder *f = g_new0(Folder, 1);

    *f = (Folder){g_strdup(forge->repos), g_strconcat(id, repo_removed_suffix, NULL)};
    loop_offload(forge->spec.loop, remove_folder, on_folder_removed, f);
}

/* ---- the row ---- */

typedef struct Removal {
    Repo *repo;
    char *actor;
    DbDone done; /* NULL: nobody waits */
    void *data;
} Removal;

static void
removal_end(Removal *r, const GError *error)
{
    if (r->done != NULL)
        r->done(r->data, error);
    else if (error != NULL)
        log_error("forge", "a repository was not removed", log_str("repository", r->repo->folded),
                  log_gerror(error));
    repo_unref(r->repo);
    g_free(r->actor);
    g_free(r);
}

static void
on_row_deleted(void *data, const GError *error)
{
    Removal *r = data;
    Forge *forge = r->repo->forge;

    if (error == NULL) {
        FAILPOINT("repo-row-deleted");
        forge_drop_repo(forge, r->repo);
        begin_removing_folder(forge, r->repo->id);
    }
    removal_end(r, error);
}

static bool
rename_work(GitRepo *git, void *data, GError **error)
{
    g_autofree char *to = g_strconcat(git_repo_path(git), repo_removed_suffix, NULL);

    return rename(git_repo_path(git), to) == 0 || errno == ENOENT ||
           err_errno(error, "rename the repository's folder");
}

/* Every write that came before has ended. */
static void
on_renamed(void *data, const GError *error)
{
    Removal *r = data;
    RepoEvent event = {.kind = "repo.removed", .actor = r->actor};

    if (error != NULL) {
        removal_end(r, error);
        return;
    }
    FAILPOINT("repo-renamed");
    repo_rows_delete(r->repo, &event, on_row_deleted, r);
}

static void
begin(Removal *r)
{
    forge_write(r->repo->forge, r->repo, "remove", rename_work, on_renamed, r, NULL);
}

void
repo_remove_marked(Repo *repo, const char *actor, DbDone done, void *data)
{
    Removal *r = g_new0(Removal, 1);

    *r = (Removal){repo_ref(repo), g_strdup(actor), done, data};
    begin(r);
}

/* ---- asked for ---- */

static void
on_marked(void *data, const GError *error)
{
    Removal *r = data;

    if (error != NULL) {
        removal_end(r, error);
        return;
    }
    FAILPOINT("repo-removing");
    begin(r);
}

void
repo_remove(Repo *repo, const char *actor, DbDone done, void *data)
{
    g_autoptr(GError) error = NULL;

    if (repo->state == REPO_REMOVING) {
        repo_require_ready(repo, &error);
        done(data, error);
        return;
    }
    Removal *r = g_new0(Removal, 1);

    *r = (Removal){repo_ref(repo), g_strdup(actor), done, data};
    repo_set_state(repo, REPO_REMOVING, NULL);
    g_atomic_int_set(&repo->cancel, 1);
    repo_rows_update(repo, NULL, on_marked, r);
}
