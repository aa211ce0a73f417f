/* SPDX-License-Identifier: Apache-2.0 */
/* What goes on in the background: mirrors are fetched, sizes measured, objects packed.
 *
 * Packs are rolled up geometrically: all of their objects, reachable or not, go into the next pack,
 * so nothing is ever lost, and the work is in proportion to what is new. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/tree.h"
#include "forge/forge-private.h"

enum {
    LOOK_MS = 30 * 1000,
    SOON_MS = 5000,
    MIRROR_MS = 10 * 60 * 1000,
    PACKS_MAX = 16,
    LOOSE_MAX = 8,  /* files in one of the 256 folders */
    REFS_MAX = 500, /* loose ones, about */
    PACK_TIMEOUT_MS = 3600 * 1000,
};

/* ---- looking, in a thread ---- */

typedef struct Look {
    Repo *repo; /* threads look at its `cancel` alone */
    guint64 bytes;
    bool packs; /* it is time to */
} Look;

static guint
count_entries(const char *path, const char *suffix)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    guint n = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        n += entry->d_name[0] != '.' && g_str_has_suffix(entry->d_name, suffix);
    if (dir != NULL)
        closedir(dir);
    return n;
}

static bool
look_work(GitRepo *git, void *data, GError **error)
{
    Look *l = data;
    const char *path = git_repo_path(git);
    g_autofree char *packs = g_build_filename(path, "objects", "pack", NULL);
    /* Objects spread evenly, so one of the folders tells of all. */
    g_autofree char *loose = g_build_filename(path, "objects", "17", NULL);
    g_autofree char *heads = g_build_filename(path, "refs", "heads", NULL);
    autofd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(error, "open repository '%s'", git_repo_id(git));
    l->packs = count_entries(packs, ".pack") > PACKS_MAX || count_entries(loose, "") > LOOSE_MAX ||
               count_entries(heads, "") > REFS_MAX;
    return tree_size(fd, ".", &l->bytes, error);
}

/* ---- packing, in a thread ---- */

static bool
pack_work(GitRepo *git, void *data, GError **error)
{
    const Look *l = data;
    static const char *const calls[][8] = {
        {"repack", "-d", "-l", "-q", "--geometric=2", "--write-midx", NULL},
        {"pack-refs", "--all", NULL},
        {"commit-graph", "write", "--reachable", "--split", "--no-progress", NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        GitCall call = {.access = GIT_WRITE,
                        .args = calls[i],
                        .timeout_ms = PACK_TIMEOUT_MS,
                        .cancel = &l->repo->cancel,
                        .heavy = true};

        if (!git_run(git, &call, NULL, error))
            return false;
    }
    return true;
}

/* ---- on the loop ---- */

static void
look_free(Look *l)
{
    repo_unref(l->repo);
    g_free(l);
}

static void
upkeep_end(Look *l, const GError *error)
{
    Repo *r = l->repo;

    r->upkeeping = false;
    if (error != NULL && err_kind(error) != ERR_CANCELLED && r->state == REPO_READY)
        log_warn("forge", "upkeep failed", log_str("repository", r->folded), log_gerror(error));
    if (r->changed && r->state == REPO_READY)
        repo_upkeep_soon(r);
    look_free(l);
}

static void
on_packed(void *data, const GError *error)
{
    Look *l = data;
    Repo *r = l->repo;

    if (error == NULL) {
        r->packed_us = clock_wall_us();
        repo_rows_update(r, NULL, NULL, NULL);
        r->changed = true; /* its size is another */
    }
    upkeep_end(l, error);
}

static void
on_looked(void *data, const GError *error)
{
    Look *l = data;
    Repo *r = l->repo;

    if (error != NULL || r->state != REPO_READY) {
        upkeep_end(l, error);
        return;
    }
    if (r->bytes != l->bytes) {
        r->bytes = l->bytes;
        repo_rows_update(r, NULL, NULL, NULL);
    }
    if (l->packs)
        forge_write_slow(r->forge, r, "repack", pack_work, on_packed, l, NULL);
    else
        upkeep_end(l, NULL);
}

void
repo_on_upkeep(LoopTimer *timer)
{
    Repo *r = (Repo *)timer;
    Look *l = g_new0(Look, 1);

    l->repo = repo_ref(r);
    r->changed = false;
    forge_read(r->forge, r, "measure", look_work, on_looked, l, NULL);
}

/* One at a time; what changes meanwhile is looked at again. */
void
repo_upkeep_soon(Repo *repo)
{
    repo->changed = true;
    if (repo->upkeeping || repo->state != REPO_READY)
        return;
    repo->upkeeping = true;
    loop_timer_set(repo->forge->spec.loop, &repo->upkeep, SOON_MS);
}

void
repo_pushed(Repo *repo)
{
    repo->pushed_us = clock_wall_us();
    repo_rows_update(repo, NULL, NULL, NULL);
    repo_upkeep_soon(repo);
}

/* ---- mirrors ---- */

static gint64
mirror_ms(const Forge *f)
{
    return f->spec.mirror_ms > 0 ? f->spec.mirror_ms : MIRROR_MS;
}

static void
fetch_if_due(Repo *repo, void *data)
{
    const gint64 *now_us = data;

    if (repo->upstream != NULL && repo->state == REPO_READY && !repo->fetching &&
        *now_us - MAX(repo->fetched_us, repo->tried_us) >= mirror_ms(repo->forge) * 1000) {
        repo->tried_us = *now_us;
        (void)repo_fetch(repo, "coop", NULL); /* one that cannot be is asked for again */
    }
}

static gboolean
on_look(gpointer data)
{
    Forge *f = data;
    gint64 now_us = clock_wall_us();

    forge_each(f, fetch_if_due, &now_us);
    return G_SOURCE_CONTINUE;
}

void
repo_upkeep_begin(Forge *forge)
{
    forge->upkeep_source = g_timeout_add((guint)MIN(LOOK_MS, mirror_ms(forge)), on_look, forge);
}

static void
stop(Repo *repo, void *data)
{
    g_atomic_int_set(&repo->cancel, 1);
    loop_timer_cancel(repo->forge->spec.loop, &repo->upkeep);
}

void
repo_upkeep_end(Forge *forge)
{
    g_clear_handle_id(&forge->upkeep_source, g_source_remove);
    forge_each(forge, stop, NULL);
}
