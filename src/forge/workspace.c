/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/workspace.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/push.h"
#include "forge/workspace-private.h"

enum { SWEEP_MS = 2000 }; /* a box that is being ended takes a moment */

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

/* ---- rows ---- */

typedef struct RowJob {
    Forge *forge;
    Workspace *workspace;
    const char *kind; /* NULL: no event */
    char *actor, *event;
    DbDone done;
    void *data;
} RowJob;

static void
row_job_free(gpointer data)
{
    RowJob *j = data;

    workspace_free(j->workspace);
    forge_unref(j->forge);
    g_free(j->actor);
    g_free(j->event);
    g_free(j);
}

static RowJob *
row_job_new(Forge *forge, const Workspace *w, const WorkspaceEvent *event)
{
    RowJob *j = g_new0(RowJob, 1);

    *j = (RowJob){.forge = forge_ref(forge), .workspace = workspace_dup(w)};
    if (event != NULL) {
        const Repo *repo = forge_find_id(forge, w->repository_id);
        g_autoptr(Json) object = event->data != NULL ? event->data : json_object();

        json_object_set_new(object, "repository_id", json_string(w->repository_id));
        if (repo != NULL) {
            RepoInfo info;

            repo_info(repo, &info);
            json_object_set_new(object, "repository", json_sprintf("%s/%s", info.owner, info.name));
        }
        j->kind = event->kind;
        j->actor = g_strdup(event->actor != NULL ? event->actor : "coop");
        j->event = json_encode(object);
    }
    return j;
}

static bool
append_event(DbTx *tx, void *data, GError **error)
{
    const RowJob *j = data;
    EventSpec event = {.kind = j->kind, .actor = j->actor, .box_id = j->workspace->box_id, .data = j->event};

    return j->kind == NULL || event_append(tx, &event, NULL, error);
}

static bool
put_row(DbTx *tx, void *data, GError **error)
{
    const Workspace *w = ((const RowJob *)data)->workspace;

    return db_exec(
               tx,
               "INSERT INTO workspaces (box_id, repository_id, generation_id, identity_id, branch, path, "
               "may_force, may_advance, created_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
               "ON CONFLICT (box_id, repository_id) DO UPDATE SET generation_id = excluded.generation_id, "
               "identity_id = excluded.identity_id, branch = excluded.branch, path = excluded.path, "
               "may_force = excluded.may_force, may_advance = excluded.may_advance",
               DB_ARGS(db_text(w->box_id), db_text(w->repository_id), db_text(w->generation_id),
                       db_text(w->identity_id), db_text(w->branch), db_text(w->path), db_int(w->may_force),
                       db_int(w->may_advance), db_int(w->created_us)),
               error) &&
           append_event(tx, data, error);
}

static bool
delete_row(DbTx *tx, void *data, GError **error)
{
    const Workspace *w = ((const RowJob *)data)->workspace;

    return db_exec(tx, "DELETE FROM workspaces WHERE box_id = ? AND repository_id = ?",
                   DB_ARGS(db_text(w->box_id), db_text(w->repository_id)), error);
}

static void
on_written(void *data, const GError *error)
{
    RowJob *j = data;

    if (j->done != NULL)
        j->done(j->data, error);
    else if (error != NULL)
        log_error("forge", "a workspace's row was not written", log_str("box", j->workspace->box_id),
                  log_gerror(error));
}

void
workspace_put(Forge *forge, const Workspace *workspace, const WorkspaceEvent *event, DbDone done, void *data)
{
    RowJob *j = row_job_new(forge, workspace, event);
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
    j->done = done;
    j->data = data;
    db_write(forge->spec.db, put_row, on_written, j, row_job_free);
}

void
workspace_drop(Forge *forge, const char *box_id, const char *repository_id)
{
    const Workspace *w = find(forge, box_id, repository_id);

    if (w == NULL)
        return;
    db_write(forge->spec.db, delete_row, on_written, row_job_new(forge, w, NULL), row_job_free);
    forget(forge, box_id, repository_id);
}

void
workspace_tell(Forge *forge, const char *box_id, const char *repository_id, const WorkspaceEvent *event)
{
    g_autoptr(Workspace) w = g_new0(Workspace, 1);

    w->box_id = g_strdup(box_id);
    w->repository_id = g_strdup(repository_id);
    db_write(forge->spec.db, append_event, on_written, row_job_new(forge, w, event), row_job_free);
}

void
workspace_branch_made(Forge *forge, Repo *repo, const BranchMade *made)
{
    g_autofree char *ref = g_strconcat("refs/heads/", made->branch, NULL);
    ForgePush push = {
        .actor = made->actor, .box_id = made->box_id, .ref = ref, .old = git_oid_zero, .new = made->oid};

    forge_pushed(forge, repo, &push);
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

/* Of boxes that have ended nothing is left. */
static bool
load_rows(DbTx *tx, void *data, GError **error)
{
    Load *load = data;
    bool row;

    if (!db_exec(
            tx,
            "DELETE FROM workspaces WHERE box_id NOT IN (SELECT e2b_id FROM sandboxes WHERE ended_us = 0)",
            DB_NO_ARGS, error))
        return false;
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT box_id, repository_id, generation_id, identity_id, branch, path, "
                        "may_force, may_advance, created_us FROM workspaces ORDER BY created_us",
                        DB_NO_ARGS, error);

    if (rows == NULL)
        return false;
    while (db_rows_next(rows, &row, error)) {
        if (!row)
            return true;
        Workspace w = {.box_id = (char *)(guintptr)db_rows_text(rows, 0),
                       .repository_id = (char *)(guintptr)db_rows_text(rows, 1),
                       .generation_id = (char *)(guintptr)db_rows_text(rows, 2),
                       .identity_id = (char *)(guintptr)db_rows_text(rows, 3),
                       .branch = (char *)(guintptr)db_rows_text(rows, 4),
                       .path = (char *)(guintptr)db_rows_text(rows, 5),
                       .may_force = db_rows_int(rows, 6) != 0,
                       .may_advance = db_rows_int(rows, 7) != 0,
                       .created_us = db_rows_int(rows, 8)};

        g_ptr_array_add(load->found, workspace_dup(&w));
    }
    return false;
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
