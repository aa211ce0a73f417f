/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/forge.h"

#include "base/err.h"
#include "base/landlock.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/git-hold.h"
#include "forge/landing-private.h"
#include "forge/push.h"

/* ---- life ---- */

static void
spec_copy(ForgeSpec *to, const ForgeSpec *from)
{
    *to = *from;
    to->home = g_strdup(from->home);
    to->address = g_strdup(from->address);
    to->git = g_strdup(from->git);
    to->hooks = g_strdup(from->hooks);
    to->agent_prefix = g_strdup(from->agent_prefix);
}

static void
spec_clear(ForgeSpec *spec)
{
    g_free((gpointer)(guintptr)spec->home);
    g_free((gpointer)(guintptr)spec->address);
    g_free((gpointer)(guintptr)spec->git);
    g_free((gpointer)(guintptr)spec->hooks);
    g_free((gpointer)(guintptr)spec->agent_prefix);
}

Forge *
forge_new(const ForgeSpec *spec)
{
    Forge *f = g_new0(Forge, 1);

    g_atomic_ref_count_init(&f->refs);
    spec_copy(&f->spec, spec);
    f->repos = g_build_filename(spec->home, "repos", NULL);
    if (landlock_abi() < LANDLOCK_ABI_REFER)
        log_warn("forge",
                 "this kernel has no Landlock: git is kept to a repository by the user's rights alone");
    f->by_id = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)repo_unref);
    f->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    f->work = work_queue_new(spec->loop);
    f->smart = smart_new(f, spec->loop);
    f->push_listeners = g_array_new(FALSE, FALSE, sizeof(ForgePushListener));
    f->pulls = pulls_new(f);
    f->holder = spec->boxes != NULL ? git_holder_new(spec->boxes) : NULL;
    f->generations = generations_new(f, spec);
    f->identities = identities_new(f, spec);
    f->workspaces = workspaces_new(f, spec);
    return f;
}

Forge *
forge_ref(Forge *forge)
{
    g_atomic_ref_count_inc(&forge->refs);
    return forge;
}

void
forge_unref(Forge *forge)
{
    if (!g_atomic_ref_count_dec(&forge->refs))
        return;
    git_holder_unref(forge->holder);
    g_hash_table_unref(forge->by_name);
    g_hash_table_unref(forge->by_id);
    g_array_unref(forge->push_listeners);
    spec_clear(&forge->spec);
    g_free(forge->repos);
    g_free(forge);
}

/* Rows that are being written still name repositories, and those name us. */
void
forge_free(Forge *forge)
{
    g_autoptr(GError) ends = NULL;

    if (forge == NULL)
        return;
    err_set(&ends, ERR_CANCELLED, "the server is stopping");
    forge_loaded(forge, ends);
    repo_upkeep_end(forge);
    g_clear_pointer(&forge->smart, smart_free);
    pulls_free(forge->pulls);
    g_clear_pointer(&forge->workspaces, workspaces_free);
    g_clear_pointer(&forge->work, work_queue_free);
    if (forge->holder != NULL)
        git_holder_close(forge->holder);
    g_clear_pointer(&forge->generations, generations_free);
    g_clear_pointer(&forge->identities, identities_free);
    g_hash_table_remove_all(forge->by_name);
    g_hash_table_remove_all(forge->by_id);
    forge_unref(forge);
}

/* ---- repositories ---- */

void
forge_add_repo(Forge *forge, Repo *repo)
{
    forge->last_number = MAX(forge->last_number, repo->number);
    g_hash_table_insert(forge->by_name, repo->folded, repo);
    g_hash_table_insert(forge->by_id, repo->id, repo);
}

void
forge_drop_repo(Forge *forge, Repo *repo)
{
    loop_timer_cancel(forge->spec.loop, &repo->upkeep);
    workspace_repo_gone(forge, repo->id);
    generation_repo_gone(forge, repo->id);
    if (forge->landings != NULL)
        landings_repo_gone(forge->landings, repo->id);
    g_hash_table_remove(forge->by_name, repo->folded);
    g_hash_table_remove(forge->by_id, repo->id);
}

Repo *
forge_find(Forge *forge, const char *owner, const char *name)
{
    g_autofree char *folded = repo_fold(owner, name);

    return g_hash_table_lookup(forge->by_name, folded);
}

Repo *
forge_find_id(Forge *forge, const char *id)
{
    return g_hash_table_lookup(forge->by_id, id);
}

static gint
by_number(gconstpointer a, gconstpointer b)
{
    const Repo *const *x = a, *const *y = b;

    return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

/* `func` may remove what it is called with. */
void
forge_each(Forge *forge, void (*func)(Repo *repo, void *data), void *data)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)repo_unref);
    GHashTableIter iter;
    gpointer repo;

    g_hash_table_iter_init(&iter, forge->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &repo))
        g_ptr_array_add(all, repo_ref(repo));
    g_ptr_array_sort(all, by_number);
    for (guint i = 0; i < all->len; i++)
        func(all->pdata[i], data);
}

/* ---- work ---- */

/* Of a forge that is freed already, on behalf of a row that was still under way. */
static void
refuse(const WorkSpec *spec)
{
    g_autoptr(GError) error = NULL;

    err_set(&error, ERR_CANCELLED, "the server is stopping");
    if (spec->done != NULL)
        spec->done(spec->data, error);
    if (spec->destroy != NULL)
        spec->destroy(spec->data);
}

static void
add_work(Forge *forge, Repo *repo, unsigned flags, WorkSpec *spec)
{
    if (forge->work == NULL) {
        refuse(spec);
        return;
    }
    g_autofree char *name = g_strdup_printf("%s/%s", repo->owner, repo->name);

    spec->git = repo->git;
    spec->name = name;
    spec->flags = flags;
    work_queue_add(forge->work, spec);
}

#define WORK_SPEC                                                                                            \
    &(WorkSpec)                                                                                              \
    {                                                                                                        \
        .what = what, .work = work, .done = done, .data = data, .destroy = destroy                           \
    }

void
forge_read(Forge *forge, Repo *repo, const char *what, ForgeWork work, DbDone done, void *data,
           GDestroyNotify destroy)
{
    add_work(forge, repo, 0, WORK_SPEC);
}

void
forge_write(Forge *forge, Repo *repo, const char *what, ForgeWork work, DbDone done, void *data,
            GDestroyNotify destroy)
{
    add_work(forge, repo, WORK_WRITES, WORK_SPEC);
}

void
forge_write_slow(Forge *forge, Repo *repo, const char *what, ForgeWork work, DbDone done, void *data,
                 GDestroyNotify destroy)
{
    add_work(forge, repo, WORK_WRITES | WORK_SLOW, WORK_SPEC);
}

void
repo_enter(Repo *repo)
{
    work_queue_enter(repo->forge->work, repo->id);
}

void
repo_leave(Repo *repo)
{
    if (repo->forge->work != NULL)
        work_queue_leave(repo->forge->work, repo->id);
}

const gint *
forge_cancel(Forge *forge)
{
    return work_queue_cancel(forge->work);
}

Json *
forge_queue_json(Forge *forge)
{
    return work_queue_json(forge->work);
}

void
forge_stats(Forge *forge, ForgeStats *ret_stats)
{
    WorkStats work;

    work_queue_stats(forge->work, &work);
    *ret_stats = (ForgeStats){.repositories = g_hash_table_size(forge->by_id),
                              .waiting = work.waiting,
                              .running = work.running,
                              .done = work.done,
                              .failed = work.failed,
                              .tried_again = work.tried_again};
}

void
forge_set_credentials(Forge *forge, ForgeCredentials find, void *ctx)
{
    forge->credentials = find;
    forge->credentials_ctx = ctx;
}
