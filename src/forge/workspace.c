/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/workspace.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/push.h"
#include "forge/workspace-private.h"

enum {
    SWEEP_MS = 2000, /* a box that is being ended takes a moment */
    NAMED_MAX = 10,
};

struct Workspaces {
    LoopTimer sweep; /* first: the loop hands back its address */
    Forge *forge;
    GHashTable *by_box; /* box id -> GPtrArray of Workspace* */
    GHashTable *busy;   /* box ids: something goes on there */
    EventCursor *ends;
    GBytes *helper; /* NULL: none */
};

void
workspace_free(Workspace *w)
{
    if (w == NULL)
        return;
    g_free(w->box_id);
    g_free(w->repository_id);
    g_free(w->generation_id);
    g_free(w->identity_id);
    g_free(w->branch);
    g_free(w->path);
    g_free(w);
}

Workspace *
workspace_dup(const Workspace *from)
{
    Workspace *w = g_new0(Workspace, 1);

    *w = (Workspace){.box_id = g_strdup(from->box_id),
                     .repository_id = g_strdup(from->repository_id),
                     .generation_id = g_strdup(from->generation_id),
                     .identity_id = g_strdup(from->identity_id),
                     .branch = g_strdup(from->branch),
                     .path = g_strdup(from->path),
                     .may_force = from->may_force,
                     .may_advance = from->may_advance,
                     .cloning = from->cloning,
                     .created_us = from->created_us};
    return w;
}

/* ---- the table ---- */

static GPtrArray *
list_of(Workspaces *all, const char *box_id)
{
    GPtrArray *list = g_hash_table_lookup(all->by_box, box_id);

    if (list == NULL) {
        list = g_ptr_array_new_with_free_func((GDestroyNotify)workspace_free);
        g_hash_table_insert(all->by_box, g_strdup(box_id), list);
    }
    return list;
}

/* NULL: it has none. */
static const GPtrArray *
peek_list(const Forge *forge, const char *box_id)
{
    return forge->workspaces != NULL ? g_hash_table_lookup(forge->workspaces->by_box, box_id) : NULL;
}

static Workspace *
find(Forge *forge, const char *box_id, const char *repository_id)
{
    const GPtrArray *list = peek_list(forge, box_id);

    for (guint i = 0; list != NULL && i < list->len; i++) {
        Workspace *w = g_ptr_array_index(list, i);

        if (repository_id == NULL || strcmp(w->repository_id, repository_id) == 0)
            return w;
    }
    return NULL;
}

const Workspace *
workspace_find(Forge *forge, const char *box_id, const Repo *repo)
{
    RepoInfo info = {0};

    if (repo != NULL)
        repo_info(repo, &info);
    return find(forge, box_id, info.id);
}

const Workspace *
workspace_only(Forge *forge, const char *box_id)
{
    const GPtrArray *list = peek_list(forge, box_id);

    return list != NULL && list->len == 1 ? g_ptr_array_index(list, 0) : NULL;
}

static char *
dup_names(Forge *forge, const GPtrArray *list)
{
    GString *names = g_string_new(NULL);

    for (guint i = 0; i < list->len; i++) {
        const Workspace *w = g_ptr_array_index(list, i);
        const Repo *repo = forge_find_id(forge, w->repository_id);
        RepoInfo info = {0};

        if (repo == NULL)
            continue;
        repo_info(repo, &info);
        g_string_append_printf(names, "%s%s/%s", names->len > 0 ? ", " : "", info.owner, info.name);
    }
    return g_string_free(names, FALSE);
}

const Workspace *
workspace_pick(Forge *forge, const char *box_id, const Repo *repo, GError **error)
{
    const GPtrArray *list = peek_list(forge, box_id);
    const Workspace *w = workspace_find(forge, box_id, repo);

    if (w == NULL) {
        err_set(error, ERR_NOT_FOUND, "the sandbox has no work tree of that repository: clone it first");
        return NULL;
    }
    if (repo == NULL && list->len > 1) {
        g_autofree char *names = dup_names(forge, list);

        err_set(error, ERR_INVALID, "the sandbox has work trees of %s: say which 'repository'", names);
        return NULL;
    }
    if (w->cloning && !g_hash_table_contains(forge->workspaces->busy, box_id)) {
        err_set(error, ERR_CONFLICT, "the clone into the sandbox was cut short: clone it again");
        return NULL;
    }
    return w;
}

void
workspace_each(Forge *forge, const char *box_id, void (*func)(const Workspace *, void *), void *data)
{
    const GPtrArray *list = g_hash_table_lookup(forge->workspaces->by_box, box_id);

    for (guint i = 0; list != NULL && i < list->len; i++)
        func(g_ptr_array_index(list, i), data);
}

static void
forget(Forge *forge, const char *box_id, const char *repository_id)
{
    GPtrArray *list = g_hash_table_lookup(forge->workspaces->by_box, box_id);

    for (guint i = 0; list != NULL && i < list->len; i++) {
        const Workspace *w = g_ptr_array_index(list, i);

        if (strcmp(w->repository_id, repository_id) != 0)
            continue;
        if (w->generation_id != NULL)
            generation_release(forge, w->generation_id);
        g_ptr_array_remove_index(list, i);
        break;
    }
    if (list != NULL && list->len == 0)
        g_hash_table_remove(forge->workspaces->by_box, box_id);
}

bool
workspace_begin(Forge *forge, const char *box_id, GError **error)
{
    return g_hash_table_add(forge->workspaces->busy, g_strdup(box_id)) ||
           err_set(error, ERR_CONFLICT, "another git operation goes on in this sandbox");
}

void
workspace_end(Forge *forge, const char *box_id)
{
    if (forge->workspaces != NULL)
        g_hash_table_remove(forge->workspaces->busy, box_id);
}

GBytes *
workspace_helper(Forge *forge)
{
    return forge->workspaces->helper;
}

void
workspace_put(Forge *forge, const Workspace *workspace, const WorkspaceEvent *event, DbDone done, void *data)
{
    Workspace *old = find(forge, workspace->box_id, workspace->repository_id);

    if (old != NULL) {
        GPtrArray *list = list_of(forge->workspaces, workspace->box_id);
        guint at;

        g_assert(g_ptr_array_find(list, old, &at));
        list->pdata[at] = workspace_dup(workspace);
        workspace_free(old);
    } else {
        g_ptr_array_add(list_of(forge->workspaces, workspace->box_id), workspace_dup(workspace));
    }
    workspace_row_put(forge, workspace, event, done, data);
}

void
workspace_drop(Forge *forge, const char *box_id, const char *repository_id)
{
    const Workspace *w = find(forge, box_id, repository_id);

    if (w == NULL)
        return;
    workspace_row_delete(forge, w);
    forget(forge, box_id, repository_id);
}

void
workspace_branch_made(Forge *forge, Repo *repo, const BranchMade *made)
{
    g_autofree char *ref = g_strconcat("refs/heads/", made->branch, NULL);
    ForgePush push = {
        .actor = made->actor, .box_id = made->box_id, .ref = ref, .old = git_oid_zero, .new = made->oid};

    forge_pushed(forge, repo, &push);
}

bool
workspace_require_none(Forge *forge, const Repo *repo, GError **error)
{
    g_autoptr(GString) boxes = g_string_new(NULL);
    guint n = 0;
    GHashTableIter iter;
    gpointer box_id;

    g_hash_table_iter_init(&iter, forge->workspaces->by_box);
    while (g_hash_table_iter_next(&iter, &box_id, NULL)) {
        if (workspace_find(forge, box_id, repo) == NULL)
            continue;
        if (n++ < NAMED_MAX)
            g_string_append_printf(boxes, "%s%s", n > 1 ? ", " : "", (const char *)box_id);
    }
    if (n > NAMED_MAX)
        g_string_append_printf(boxes, " and %u more", n - NAMED_MAX);
    return n == 0 || err_set(error, ERR_CONFLICT,
                             "sandboxes have work trees of it, which could not push any more: %s. End them, "
                             "or remove it with 'force'",
                             boxes->str);
}

void
workspace_repo_gone(Forge *forge, const char *repository_id)
{
    g_autoptr(GList) ids = forge->workspaces != NULL ? g_hash_table_get_keys(forge->workspaces->by_box)
                                                     : NULL;

    for (const GList *at = ids; at != NULL; at = at->next) {
        g_autofree char *box_id = g_strdup(at->data);

        forget(forge, box_id, repository_id);
    }
}

/* ---- ends of boxes ---- */

static void
drop_box(Forge *forge, const char *box_id)
{
    for (const Workspace *w; (w = find(forge, box_id, NULL)) != NULL;) {
        g_autofree char *repository_id = g_strdup(w->repository_id);

        workspace_drop(forge, box_id, repository_id);
    }
}

static void
on_sweep(LoopTimer *timer)
{
    Workspaces *all = (Workspaces *)timer;
    Forge *forge = all->forge;
    g_autoptr(GList) ids = g_hash_table_get_keys(all->by_box);
    bool again = false;

    for (const GList *at = ids; at != NULL; at = at->next) {
        BoxInfo info;
        const Box *box = box_host_find(forge->spec.boxes, at->data, NULL);

        if (box == NULL) {
            g_autofree char *id = g_strdup(at->data);

            drop_box(forge, id);
            continue;
        }
        box_info(box, &info);
        again |= info.state == BOX_STOPPING;
    }
    if (again)
        loop_timer_set(forge->spec.loop, &all->sweep, SWEEP_MS);
}

static void
on_end(void *data)
{
    Workspaces *all = data;
    Event *event;
    EventStep step;
    bool any = false;

    while ((step = event_cursor_next(all->ends, &event)) == EVENT_READY) {
        any = true;
        event_unref(event);
    }
    if (any || step == EVENT_RESYNC)
        loop_timer_set(all->forge->spec.loop, &all->sweep, SWEEP_MS);
}

static void
follow_ends(Workspaces *all)
{
    static const char *const kinds[] = {"box.killed", "box.expired", "box.failed", NULL};
    EventFilter filter = {.kinds = kinds};

    if (all->forge->spec.boxes == NULL || all->ends != NULL)
        return;
    all->ends = event_cursor_new(all->forge->spec.events, &filter, -1, on_end, all);
    event_cursor_is_own(all->ends);
    on_end(all);
}

/* ---- life ---- */

/* It lies beside coop-git. */
static GBytes *
read_helper(const char *git)
{
    g_autofree char *folder = g_path_get_dirname(git);
    g_autofree char *path = g_build_filename(folder, "coop-git-helper", NULL);
    g_autoptr(GError) error = NULL;
    char *bytes;
    gsize n;

    if (!g_file_get_contents(path, &bytes, &n, &error)) {
        log_warn("forge", "commits in sandboxes will not be signed", log_gerror(error));
        return NULL;
    }
    return g_bytes_new_take(bytes, n);
}

Workspaces *
workspaces_new(Forge *forge, const ForgeSpec *spec)
{
    Workspaces *all = g_new0(Workspaces, 1);

    *all = (Workspaces){
        .sweep = {.expired = on_sweep},
        .forge = forge,
        .by_box = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_ptr_array_unref),
        .busy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .helper = spec->git != NULL ? read_helper(spec->git) : NULL};
    return all;
}

void
workspaces_free(Workspaces *all)
{
    if (all == NULL)
        return;
    loop_timer_cancel(all->forge->spec.loop, &all->sweep);
    event_cursor_free(all->ends);
    g_hash_table_unref(all->by_box);
    g_hash_table_unref(all->busy);
    g_clear_pointer(&all->helper, g_bytes_unref);
    g_free(all);
}

typedef struct Load {
    Workspaces *all;
    GPtrArray *found; /* Workspace* */
    DbDone done;
    void *data;
} Load;

static bool
load_rows(DbTx *tx, void *data, GError **error)
{
    const Load *load = data;

    return workspace_rows_load(tx, load->found, error);
}

static void
on_loaded(void *data, const GError *error)
{
    Load *load = data;
    Forge *forge = load->all->forge;

    if (error == NULL)
        g_hash_table_remove_all(load->all->by_box);
    for (guint i = 0; error == NULL && i < load->found->len; i++) {
        Workspace *w = g_ptr_array_index(load->found, i);

        if (w->generation_id != NULL && generation_retake(forge, w->generation_id) == NULL)
            g_clear_pointer(&w->generation_id, g_free);
        g_ptr_array_add(list_of(load->all, w->box_id), workspace_dup(w));
    }
    if (error == NULL) {
        generation_settle(forge);
        follow_ends(load->all);
    }
    load->done(load->data, error);
}

static void
load_free(gpointer data)
{
    Load *load = data;

    g_ptr_array_unref(load->found);
    g_free(load);
}

void
workspaces_load(Workspaces *all, DbDone done, void *data)
{
    Load *load = g_new0(Load, 1);

    *load = (Load){.all = all,
                   .found = g_ptr_array_new_with_free_func((GDestroyNotify)workspace_free),
                   .done = done,
                   .data = data};
    db_write(all->forge->spec.db, load_rows, on_loaded, load, load_free);
}
