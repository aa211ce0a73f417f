/* SPDX-License-Identifier: Apache-2.0 */
/* What a start finds: rows of imports and removals that were under way, folders without a row, locks
 * of gits that died with the server. */
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
    GHashTable *known; /* ids */
    GitHostSpec host;
    guint removed, leftovers;
    GError *error;
} Sweep;

/* In a thread. */
static void
sweep_entry(Sweep *s, DIR *dir, const char *name)
{
    if (!id_is_uuid(name))
        return;
    if (!g_hash_table_contains(s->known, name)) {
        s->removed += tree_remove(dirfd(dir), name, NULL); /* else by the next start */
        return;
    }
    g_autofree char *path = g_build_filename(s->folder, name, NULL);
    g_autoptr(GitRepo) git = git_repo_new(&s->host, name, path);
    guint removed = 0;

    /* A git that outlives its server has its locks; whoever meets them later looks again. */
    if (git_clear_stale(git, 0, &removed, NULL))
        s->leftovers += removed;
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

static void
resume(Repo *repo, void *data)
{
    if (repo->state == REPO_REMOVING)
        repo_remove_row(repo, "coop", NULL, NULL);
    else if (repo->state == REPO_IMPORTING && repo->source == NULL)
        repo_make(repo, NULL, NULL);
    else if (repo->state == REPO_IMPORTING)
        repo_import(repo, NULL);
}

static void
loaded(Forge *f, const GError *error)
{
    DbDone done = f->loaded;

    f->loaded = NULL;
    done(f->loaded_data, error);
}

static void
on_swept(void *data)
{
    Sweep *s = data;
    Forge *f = s->forge;

    if (s->removed > 0)
        log_info("forge", "folders without a repository were removed", log_int("count", s->removed));
    if (s->leftovers > 0)
        log_info("forge", "what a killed git left was removed", log_int("files", s->leftovers));
    if (s->error == NULL) {
        forge_each(f, resume, NULL);
        repo_upkeep_begin(f);
        forge_settle_all(f);
        pulls_start(f->pulls);
    }
    loaded(f, s->error);
    g_clear_error(&s->error);
    g_hash_table_unref(s->known);
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
    Forge *f = data;

    if (error != NULL) {
        loaded(f, error);
        return;
    }
    Sweep *s = g_new0(Sweep, 1);

    *s = (Sweep){.forge = f,
                 .folder = g_strdup(f->repos),
                 .host = {.launcher = f->spec.git},
                 .known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    forge_each(f, note_id, s->known);
    loop_offload(f->spec.loop, sweep, on_swept, s);
}

void
forge_load(Forge *forge, DbDone done, void *data)
{
    forge->loaded = done;
    forge->loaded_data = data;
    repo_rows_load(forge, on_rows, forge);
}
