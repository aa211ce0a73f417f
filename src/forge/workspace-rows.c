/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/workspace-private.h"

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
               "may_force, may_advance, cloning, created_us) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
               "ON CONFLICT (box_id, repository_id) DO UPDATE SET generation_id = excluded.generation_id, "
               "identity_id = excluded.identity_id, branch = excluded.branch, path = excluded.path, "
               "may_force = excluded.may_force, may_advance = excluded.may_advance, cloning = "
               "excluded.cloning",
               DB_ARGS(db_text(w->box_id), db_text(w->repository_id), db_text(w->generation_id),
                       db_text(w->identity_id), db_text(w->branch), db_text(w->path), db_int(w->may_force),
                       db_int(w->may_advance), db_int(w->cloning), db_int(w->created_us)),
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
workspace_row_put(Forge *forge, const Workspace *workspace, const WorkspaceEvent *event, DbDone done,
                  void *data)
{
    RowJob *j = row_job_new(forge, workspace, event);

    j->done = done;
    j->data = data;
    db_write(forge->spec.db, put_row, on_written, j, row_job_free);
}

void
workspace_row_delete(Forge *forge, const Workspace *workspace)
{
    db_write(forge->spec.db, delete_row, on_written, row_job_new(forge, workspace, NULL), row_job_free);
}

void
workspace_tell(Forge *forge, const char *box_id, const char *repository_id, const WorkspaceEvent *event)
{
    g_autoptr(Workspace) w = g_new0(Workspace, 1);

    w->box_id = g_strdup(box_id);
    w->repository_id = g_strdup(repository_id);
    db_write(forge->spec.db, append_event, on_written, row_job_new(forge, w, event), row_job_free);
}

bool
workspace_rows_load(DbTx *tx, GPtrArray *found, GError **error)
{
    bool row;

    if (!db_exec(
            tx,
            "DELETE FROM workspaces WHERE box_id NOT IN (SELECT e2b_id FROM sandboxes WHERE ended_us = 0)",
            DB_NO_ARGS, error))
        return false;
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT box_id, repository_id, generation_id, identity_id, branch, path, "
                        "may_force, may_advance, cloning, created_us FROM workspaces ORDER BY created_us",
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
                       .cloning = db_rows_int(rows, 8) != 0,
                       .created_us = db_rows_int(rows, 9)};

        g_ptr_array_add(found, workspace_dup(&w));
    }
    return false;
}
