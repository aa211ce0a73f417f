/* SPDX-License-Identifier: Apache-2.0 */
/* What a start finds: rows of imports and removals that were under way, folders of removed
 * repositories, locks of gits that died with the server. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "base/path.h"
#include "base/tree.h"
#include "forge/forge-private.h"
#include "forge/push-private.h"

typedef struct Sweep {
    Forge *forge;
    char *folder;
    GHashTable *known; /* ids; what is left of them in the end has no folder */
    GitHostSpec host;
    guint removed, unknown, leftovers;
    GError *error;
} Sweep;

/* ---- in a thread ---- */

static void
look_at_repo(Sweep *s, const char *id)
{
    g_autofree char *path = g_build_filename(s->folder, id, NULL);
    g_autoptr(GitRepo) git = git_repo_new(&s->host, id, path);
    guint removed = 0;

    /* A git that outlives its server has its locks; whoever meets them later looks again. */
    if (git_clear_stale(git, 0, &removed, NULL))
        s->leftovers += removed;
}

static void
sweep_entry(Sweep *s, DIR *dir, const char *name)
{
    if (g_str_has_suffix(name, repo_removed_suffix))
        s->removed += tree_remove(dirfd(dir), name, NULL); /* else by the next start */
    else if (g_hash_table_remove(s->known, name))
        look_at_repo(s, name);
    else if (id_is_uuid(name))
        s->unknown++;
}

static void
sweep(void *data)
{
    Sweep *s = data;
    const struct dirent *entry;

    if (!path_make_private_dir(s->folder, 0700, &s->error))
        return;
    DIR *dir = opendir(s->folder);

    if (dir == NULL) {
        err_errno(&s->error, "read folder '%s'", s->folder);
        return;
    }
    while ((entry = readdir(dir)) != NULL)
        sweep_entry(s, dir, entry->d_name);
    closedir(dir);
}

/* ---- on the loop ---- */

/* Only in memory: whoever brings the folder back finds the repository whole at the next start. */
static void
miss_folder(Repo *repo)
{
    g_autoptr(GError) error = NULL;

    err_set(&error, ERR_NOT_FOUND, "its folder repos/%s is not in the data folder", repo->id);
    log_warn("forge", "a repository has no folder", log_str("repository", repo->folded));
    repo_set_state(repo, REPO_FAILED, error);
}

static void
resume(Repo *repo, void *data)
{
    const Sweep *s = data;

    if (repo->state == REPO_READY && g_hash_table_contains(s->known, repo->id))
        miss_folder(repo);
    else if (repo->state == REPO_REMOVING)
        repo_remove_marked(repo, "coop", NULL, NULL);
    else if (repo->state == REPO_IMPORTING && repo->source == NULL)
        repo_make(repo, NULL, NULL);
    else if (repo->state == REPO_IMPORTING)
        repo_import(repo, NULL);
}

void
forge_loaded(Forge *f, const GError *error)
{
    DbDone done = f->loaded;

    f->loaded = NULL;
    if (done != NULL)
        done(f->loaded_data, error);
}

/* Each of the three holds the forge, which may be freed before it answers. */
static void
on_workspaces(void *data, const GError *error)
{
    g_autoptr(ForgeRef) f = data;

    forge_loaded(f, error);
}

static void
on_identities(void *data, const GError *error)
{
    g_autoptr(ForgeRef) f = data;

    if (error != NULL || f->work == NULL)
        forge_loaded(f, error);
    else
        workspaces_load(f->workspaces, on_workspaces, forge_ref(f));
}

static void
on_generations(void *data, const GError *error)
{
    g_autoptr(ForgeRef) f = data;

    if (error != NULL || f->work == NULL)
        forge_loaded(f, error);
    else
        identities_load(f->identities, on_identities, forge_ref(f));
}

static void
on_swept(void *data)
{
    Sweep *s = data;
    Forge *f = s->forge;

    if (s->removed > 0)
        log_info("forge", "folders of removed repositories went", log_int("count", s->removed));
    if (s->unknown > 0)
        log_warn("forge", "folders without a repository are kept", log_int("count", s->unknown));
    if (s->leftovers > 0)
        log_info("forge", "what a killed git left was removed", log_int("files", s->leftovers));
    if (s->error == NULL && f->work != NULL) {
        forge_each(f, resume, s);
        if (f->upkeep_source == 0)
            repo_upkeep_begin(f);
        forge_settle_all(f);
        pulls_start(f->pulls);
    }
    if (s->error == NULL && f->work != NULL)
        generations_load(f->generations, on_generations, forge_ref(f));
    else
        forge_loaded(f, s->error);
    g_clear_error(&s->error);
    g_hash_table_unref(s->known);
    forge_unref(s->forge);
    g_free(s->folder);
    g_free(s);
}

static void
note_id(Repo *repo, void *data)
{
    g_hash_table_add(data, g_strdup(repo->id));
}

static void
on_rows(void *data, const GError *error)
{
    g_autoptr(ForgeRef) f = data;

    if (error != NULL || f->work == NULL) {
        forge_loaded(f, error);
        return;
    }
    Sweep *s = g_new0(Sweep, 1);

    *s = (Sweep){.forge = forge_ref(f),
                 .folder = g_strdup(f->repos),
                 .host = {.launcher = f->spec.git},
                 .known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    forge_each(f, note_id, s->known);
    loop_offload(f->spec.loop, sweep, on_swept, s);
}

static void
let_go(Repo *repo, void *data)
{
    g_atomic_int_set(&repo->cancel, 1);
    forge_drop_repo(repo->forge, repo);
}

/* Also after the rows were exchanged for those of a backup. */
void
forge_load(Forge *forge, DbDone done, void *data)
{
    forge_each(forge, let_go, NULL);
    forge->loaded = done;
    forge->loaded_data = data;
    repo_rows_load(forge, on_rows, forge_ref(forge));
}
