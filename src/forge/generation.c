/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/generation.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "base/log.h"
#include "base/path.h"
#include "forge/forge-private.h"
#include "forge/generation-private.h"
#include "forge/push.h"

typedef struct Waiter {
    GenerationFunc done;
    void *data;
} Waiter;

/* The generations of one repository. */
typedef struct Line {
    LoopTimer quiet; /* first: the loop hands back its address */
    Generations *all;
    char *repository_id;
    GPtrArray *generations; /* Generation*, owned; the last is the newest */
    GArray *waiters;        /* Waiter: nothing is there yet */
    bool making;
    gint64 moved_us; /* the first move of refs that no generation has; 0: none */
} Line;

struct Generations {
    Forge *forge;
    GHashTable *lines; /* repository id -> Line */
    GHashTable *by_id; /* id -> Generation*, borrowed from its line */
};

void
generation_free(Generation *g)
{
    if (g == NULL)
        return;
    g_free(g->id);
    g_free(g->repository_id);
    g_clear_pointer(&g->tips, g_hash_table_unref);
    g_free(g);
}

char *
generation_dup_folder(const char *home)
{
    return g_build_filename(home, "generations", NULL);
}

/* ---- lines ---- */

static void
tell(Line *line, Generation *g, const GError *error)
{
    g_autoptr(GArray) waiters = line->waiters;

    line->waiters = g_array_new(FALSE, FALSE, sizeof(Waiter));
    for (guint i = 0; i < waiters->len; i++) {
        const Waiter *waiter = &g_array_index(waiters, Waiter, i);

        if (g != NULL)
            g->leases++;
        waiter->done(g, error, waiter->data);
    }
}

static void
line_free(gpointer data)
{
    Line *line = data;
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the repository is gone");

    loop_timer_cancel(line->all->forge->spec.loop, &line->quiet);
    tell(line, NULL, error);
    for (guint i = 0; i < line->generations->len; i++)
        g_hash_table_remove(line->all->by_id, ((Generation *)g_ptr_array_index(line->generations, i))->id);
    g_ptr_array_unref(line->generations);
    g_array_unref(line->waiters);
    g_free(line->repository_id);
    g_free(line);
}

static void make(Line *line);

static void
on_quiet(LoopTimer *timer)
{
    make((Line *)timer);
}

static Line *
line_of(Generations *all, const char *repository_id)
{
    Line *line = g_hash_table_lookup(all->lines, repository_id);

    if (line != NULL)
        return line;
    line = g_new0(Line, 1);
    *line = (Line){.quiet = {.expired = on_quiet},
                   .all = all,
                   .repository_id = g_strdup(repository_id),
                   .generations = g_ptr_array_new_with_free_func((GDestroyNotify)generation_free),
                   .waiters = g_array_new(FALSE, FALSE, sizeof(Waiter))};
    g_hash_table_insert(all->lines, line->repository_id, line);
    return line;
}

static Generation *
newest(const Line *line)
{
    guint n = line->generations->len;

    return n > 0 ? g_ptr_array_index(line->generations, n - 1) : NULL;
}

static void
add(Line *line, Generation *g)
{
    g_ptr_array_add(line->generations, g);
    g_hash_table_insert(line->all->by_id, g->id, g);
}

/* Whatever no box has, but for the newest. */
static void
drop_old(Line *line)
{
    for (guint i = line->generations->len; i > 1; i--) {
        const Generation *g = g_ptr_array_index(line->generations, i - 2);

        if (g->leases > 0)
            continue;
        generation_row_remove(line->all->forge, g->id);
        g_hash_table_remove(line->all->by_id, g->id);
        g_ptr_array_remove_index(line->generations, i - 2);
    }
}

/* ---- making one ---- */

typedef struct Making {
    Forge *forge;
    Generation *generation;
    char *folder;
    GError *error;
} Making;

static void
making_free(gpointer data)
{
    Making *m = data;

    generation_free(m->generation);
    forge_unref(m->forge);
    g_free(m->folder);
    g_clear_error(&m->error);
    g_free(m);
}

static void
made(Making *m, const GError *error)
{
    Generations *all = m->forge->generations;
    Line *line = all != NULL ? g_hash_table_lookup(all->lines, m->generation->repository_id) : NULL;

    if (error != NULL && err_kind(error) != ERR_CANCELLED)
        log_warn("forge", "no generation was made", log_str("repository", m->generation->repository_id),
                 log_gerror(error));
    if (error != NULL || line == NULL)
        generation_row_remove(m->forge, m->generation->id);
    if (line != NULL) {
        line->making = false;
        if (error == NULL)
            add(line, g_steal_pointer(&m->generation));
        tell(line, error == NULL ? newest(line) : NULL, error);
        drop_old(line);
        if (line->moved_us != 0)
            loop_timer_set(all->forge->spec.loop, &line->quiet, GENERATION_QUIET_MS);
    }
    making_free(m);
}

static void
on_row_ready(void *data, const GError *error)
{
    made(data, error);
}

static bool
make_folder(GitRepo *git, void *data, GError **error)
{
    Making *m = data;

    g_hash_table_remove_all(m->generation->tips);
    m->generation->bytes = 0;
    return generation_make(git, m->folder, m->generation, error);
}

static void
on_folder(void *data, const GError *error)
{
    Making *m = data;

    FAILPOINT("generation-made");
    if (error != NULL)
        made(m, error);
    else
        generation_row_ready(m->forge, m->generation, on_row_ready, m);
}

static void
on_row(void *data, const GError *error)
{
    Making *m = data;
    Repo *repo = forge_find_id(m->forge, m->generation->repository_id);

    FAILPOINT("generation-row");
    if (error != NULL || repo == NULL || m->forge->generations == NULL) {
        g_autoptr(GError) gone = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the repository is gone");

        made(m, error != NULL ? error : gone);
        return;
    }
    forge_write(m->forge, repo, "pack for sandboxes", make_folder, on_folder, m, NULL);
}

static void
make(Line *line)
{
    Forge *forge = line->all->forge;
    char id[GENERATION_ID_LEN + 1];

    if (line->making)
        return;
    id_random_hex(id, GENERATION_ID_LEN / 2);
    loop_timer_cancel(forge->spec.loop, &line->quiet);
    line->making = true;
    line->moved_us = 0;
    Making *m = g_new0(Making, 1);
    Generation *g = g_new0(Generation, 1);

    *g = (Generation){.id = g_strdup(id),
                      .repository_id = g_strdup(line->repository_id),
                      .tips = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
                      .created_us = clock_wall_us()};
    *m = (Making){
        .forge = forge_ref(forge), .generation = g, .folder = generation_dup_folder(forge->spec.home)};
    generation_row_add(forge, g, on_row, m);
}

/* ---- for others ---- */

void
generation_refs_moved(Forge *forge, Repo *repo)
{
    RepoInfo info;
    gint64 now = clock_mono_us();

    if (forge->generations == NULL)
        return;
    repo_info(repo, &info);
    Line *line = line_of(forge->generations, info.id);
    bool waited = line->moved_us != 0 &&
                  now - line->moved_us > (gint64)GENERATION_DELAY_MS * 1000 - GENERATION_QUIET_MS * 1000;

    if (line->moved_us == 0)
        line->moved_us = now;
    if (!line->making && !waited)
        loop_timer_set(forge->spec.loop, &line->quiet, GENERATION_QUIET_MS);
}

void
generation_take(Forge *forge, Repo *repo, GenerationFunc done, void *data)
{
    RepoInfo info;

    repo_info(repo, &info);
    Line *line = line_of(forge->generations, info.id);
    Generation *g = newest(line);

    if (g != NULL) {
        g->leases++;
        done(g, NULL, data);
        return;
    }
    Waiter waiter = {done, data};

    g_array_append_val(line->waiters, waiter);
    make(line);
}

const Generation *
generation_retake(Forge *forge, const char *id)
{
    Generation *g = g_hash_table_lookup(forge->generations->by_id, id);

    if (g != NULL)
        g->leases++;
    return g;
}

void
generation_release(Forge *forge, const char *id)
{
    Generation *g = forge->generations != NULL ? g_hash_table_lookup(forge->generations->by_id, id) : NULL;

    if (g == NULL)
        return;
    g_assert(g->leases > 0);
    g->leases--;
    drop_old(g_hash_table_lookup(forge->generations->lines, g->repository_id));
}

void
generation_repo_gone(Forge *forge, const char *repository_id)
{
    Line *line = forge->generations != NULL ? g_hash_table_lookup(forge->generations->lines, repository_id)
                                            : NULL;

    if (line == NULL)
        return;
    for (guint i = 0; i < line->generations->len; i++)
        generation_row_remove(forge, ((Generation *)g_ptr_array_index(line->generations, i))->id);
    g_hash_table_remove(forge->generations->lines, repository_id);
}

static void
settle_line(gpointer key, gpointer line, gpointer data)
{
    drop_old(line);
}

void
generation_settle(Forge *forge)
{
    g_hash_table_foreach(forge->generations->lines, settle_line, NULL);
}

/* ---- life ---- */

static void
on_push(Repo *repo, const ForgePush *push, void *ctx)
{
    const Generations *all = ctx;

    generation_refs_moved(all->forge, repo);
}

Generations *
generations_new(Forge *forge, const ForgeSpec *spec)
{
    Generations *all = g_new0(Generations, 1);
    ForgePushListener listener = {.pushed = on_push, .ctx = all};

    *all = (Generations){.forge = forge,
                         .lines = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, line_free),
                         .by_id = g_hash_table_new(g_str_hash, g_str_equal)};
    forge_on_push(forge, &listener);
    return all;
}

typedef struct Loading {
    Generations *all;
    DbDone done;
    void *data;
} Loading;

static void
on_loaded(GPtrArray *found, const GError *error, void *data)
{
    g_autofree Loading *loading = data;

    for (guint i = 0; error == NULL && i < found->len; i++) {
        Generation *g = g_ptr_array_index(found, i);

        add(line_of(loading->all, g->repository_id), g);
    }
    if (error == NULL)
        g_free(g_ptr_array_steal(found, NULL));
    loading->done(loading->data, error);
}

void
generations_load(Generations *all, DbDone done, void *data)
{
    g_autofree char *folder = generation_dup_folder(all->forge->spec.home);
    g_autoptr(GError) error = NULL;
    Loading *loading = g_new0(Loading, 1);

    if (!path_make_private_dir(folder, 0700, &error))
        log_warn("forge", "there will be no generations", log_gerror(error));
    *loading = (Loading){all, done, data};
    generation_rows_load(all->forge, on_loaded, loading);
}

void
generations_free(Generations *all)
{
    if (all == NULL)
        return;
    g_hash_table_unref(all->lines);
    g_hash_table_unref(all->by_id);
    g_free(all);
}
