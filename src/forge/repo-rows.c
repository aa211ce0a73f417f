/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "forge/forge-private.h"

/* ---- writing ---- */

typedef enum RowChange { ROW_ADD, ROW_UPDATE, ROW_DELETE, ROW_KEEP } RowChange;

/* A copy for the writer's thread. */
typedef struct RowJob {
    RowChange change;
    Repo *repo; /* for the loop only */
    char *id, *owner, *name, *folded, *description, *default_branch, *source, *upstream, *problem, *actor;
    const char *state;
    gint64 number, bytes, created_us, updated_us, pushed_us, fetched_us, packed_us;
    bool insecure;
    const char *event_kind;
    char *event_actor, *event_data;
    DbDone done;
    void *data;
} RowJob;

static void
row_job_free(gpointer data)
{
    RowJob *j = data;

    repo_unref(j->repo);
    g_free(j->id);
    g_free(j->owner);
    g_free(j->name);
    g_free(j->folded);
    g_free(j->description);
    g_free(j->default_branch);
    g_free(j->source);
    g_free(j->upstream);
    g_free(j->problem);
    g_free(j->actor);
    g_free(j->event_actor);
    g_free(j->event_data);
    g_free(j);
}

static bool
add_row(DbTx *tx, const RowJob *j, GError **error)
{
    return db_exec(
        tx,
        "INSERT INTO repositories (id, number, owner, name, folded, description, default_branch, source, "
        "upstream, insecure, state, problem, settings, next_number, bytes, actor, created_us, updated_us, "
        "pushed_us, fetched_us, packed_us) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '{}', 1, ?, ?, ?, ?, ?, ?, ?)",
        DB_ARGS(db_text(j->id), db_int(j->number), db_text(j->owner), db_text(j->name), db_text(j->folded),
                db_text(j->description), db_text(j->default_branch), db_text(j->source), db_text(j->upstream),
                db_int(j->insecure), db_text(j->state), db_text(j->problem), db_int(j->bytes),
                db_text(j->actor), db_int(j->created_us), db_int(j->updated_us), db_int(j->pushed_us),
                db_int(j->fetched_us), db_int(j->packed_us)),
        error);
}

static bool
update_row(DbTx *tx, const RowJob *j, GError **error)
{
    return db_exec(tx,
                   "UPDATE repositories SET description = ?, default_branch = ?, upstream = ?, state = ?, "
                   "problem = ?, bytes = ?, updated_us = ?, pushed_us = ?, fetched_us = ?, packed_us = ? "
                   "WHERE id = ?",
                   DB_ARGS(db_text(j->description), db_text(j->default_branch), db_text(j->upstream),
                           db_text(j->state), db_text(j->problem), db_int(j->bytes), db_int(j->updated_us),
                           db_int(j->pushed_us), db_int(j->fetched_us), db_int(j->packed_us), db_text(j->id)),
                   error);
}

static bool
change_row(DbTx *tx, const RowJob *j, GError **error)
{
    switch (j->change) {
    case ROW_ADD:
        return add_row(tx, j, error);
    case ROW_UPDATE:
        return update_row(tx, j, error);
    case ROW_DELETE:
        return db_exec(tx, "DELETE FROM repositories WHERE id = ?", DB_ARGS(db_text(j->id)), error);
    case ROW_KEEP:
        break;
    }
    return true;
}

static bool
write_row(DbTx *tx, void *data, GError **error)
{
    const RowJob *j = data;
    EventSpec event = {
        .kind = j->event_kind, .actor = j->event_actor, .data = j->event_data, .owner = EVENT_FOR_ALL};

    return change_row(tx, j, error) && (j->event_kind == NULL || event_append(tx, &event, NULL, error));
}

static void
on_written(void *data, const GError *error)
{
    RowJob *j = data;

    if (j->done != NULL)
        j->done(j->data, error);
    else if (error != NULL)
        log_error("forge", "a repository's row was not written", log_str("repository", j->folded),
                  log_gerror(error));
}

static void
set_event(RowJob *j, const RepoEvent *event)
{
    g_autoptr(Json) object = event->data != NULL ? event->data : json_object();
    g_autofree char *name = g_strdup_printf("%s/%s", j->owner, j->name);

    json_object_set_new(object, "repository_id", json_string(j->id));
    json_object_set_new(object, "repository", json_string(name));
    j->event_kind = event->kind;
    j->event_actor = g_strdup(event->actor != NULL ? event->actor : "coop");
    j->event_data = json_encode(object);
}

static void
write_repo(Repo *r, RowChange change, const RepoEvent *event, DbDone done, void *data)
{
    RowJob *j = g_new0(RowJob, 1);

    *j = (RowJob){.change = change,
                  .repo = repo_ref(r),
                  .id = g_strdup(r->id),
                  .owner = g_strdup(r->owner),
                  .name = g_strdup(r->name),
                  .folded = g_strdup(r->folded),
                  .description = g_strdup(r->description),
                  .default_branch = g_strdup(r->default_branch),
                  .source = g_strdup(r->source),
                  .upstream = g_strdup(r->upstream),
                  .problem = g_strdup(r->problem),
                  .actor = g_strdup(r->actor),
                  .state = repo_state_name(r->arriving && r->state == REPO_IMPORTING ? REPO_READY : r->state),
                  .number = r->number,
                  .bytes = (gint64)r->bytes,
                  .created_us = r->created_us,
                  .updated_us = clock_wall_us(),
                  .pushed_us = r->pushed_us,
                  .fetched_us = r->fetched_us,
                  .packed_us = r->packed_us,
                  .insecure = r->insecure,
                  .done = done,
                  .data = data};
    if (event != NULL && event->kind != NULL)
        set_event(j, event);
    db_write(r->forge->spec.db, write_row, on_written, j, row_job_free);
}

void
repo_rows_add(Repo *repo, const RepoEvent *event, DbDone done, void *data)
{
    write_repo(repo, ROW_ADD, event, done, data);
}

void
repo_rows_update(Repo *repo, const RepoEvent *event, DbDone done, void *data)
{
    write_repo(repo, ROW_UPDATE, event, done, data);
}

typedef struct Arrival {
    Repo *repo;
    DbDone done;
    void *data;
} Arrival;

static void
on_arrived(void *data, const GError *error)
{
    g_autofree Arrival *a = data;
    g_autoptr(Repo) repo = a->repo;

    repo->arriving = false;
    if (repo->state == REPO_IMPORTING)
        repo_set_state(repo, error == NULL ? REPO_READY : REPO_FAILED, error);
    a->done(a->data, error);
}

void
repo_rows_arrive(Repo *repo, const RepoEvent *event, DbDone done, void *data)
{
    Arrival *a = g_new(Arrival, 1);

    *a = (Arrival){repo_ref(repo), done, data};
    repo->arriving = true;
    write_repo(repo, ROW_UPDATE, event, on_arrived, a);
}

void
repo_rows_delete(Repo *repo, const RepoEvent *event, DbDone done, void *data)
{
    write_repo(repo, ROW_DELETE, event, done, data);
}

void
repo_tell(Repo *repo, const RepoEvent *event)
{
    write_repo(repo, ROW_KEEP, event, NULL, NULL);
}

/* ---- reading ---- */

typedef struct LoadJob {
    Forge *forge;
    GPtrArray *repos; /* Repo*, made in the reader's thread, which has them to itself */
    DbDone done;
    void *data;
} LoadJob;

static void
load_job_free(gpointer data)
{
    LoadJob *j = data;

    g_ptr_array_unref(j->repos);
    g_free(j);
}

static Repo *
read_repo(Forge *forge, DbRows *rows)
{
    Repo *r = repo_new(forge, db_rows_text(rows, 0), db_rows_text(rows, 2), db_rows_text(rows, 3));

    r->number = db_rows_int(rows, 1);
    r->description = g_strdup(db_rows_text(rows, 4));
    r->default_branch = g_strdup(db_rows_text(rows, 5));
    r->source = g_strdup(db_rows_text(rows, 6));
    r->upstream = g_strdup(db_rows_text(rows, 7));
    r->insecure = db_rows_int(rows, 8) != 0;
    r->state = repo_state_parse(db_rows_text(rows, 9));
    r->problem = g_strdup(db_rows_text(rows, 10));
    r->bytes = (guint64)db_rows_int(rows, 11);
    r->actor = g_strdup(db_rows_text(rows, 12));
    r->created_us = db_rows_int(rows, 13);
    r->pushed_us = db_rows_int(rows, 14);
    r->fetched_us = db_rows_int(rows, 15);
    r->packed_us = db_rows_int(rows, 16);
    return r;
}

static bool
read_rows(DbTx *tx, void *data, GError **error)
{
    LoadJob *j = data;
    bool more;
    g_autoptr(DbRows) rows = db_query(
        tx,
        "SELECT id, number, owner, name, description, default_branch, source, upstream, insecure, state, "
        "problem, bytes, actor, created_us, pushed_us, fetched_us, packed_us FROM repositories "
        "ORDER BY number",
        DB_NO_ARGS, error);

    if (rows == NULL)
        return false;
    while (db_rows_next(rows, &more, error)) {
        if (!more)
            return true;
        g_ptr_array_add(j->repos, read_repo(j->forge, rows));
    }
    return false;
}

static void
on_read(void *data, const GError *error)
{
    LoadJob *j = data;

    for (guint i = 0; error == NULL && j->forge->work != NULL && i < j->repos->len; i++)
        forge_add_repo(j->forge, repo_ref(j->repos->pdata[i]));
    j->done(j->data, error);
}

void
repo_rows_load(Forge *forge, DbDone done, void *data)
{
    LoadJob *j = g_new0(LoadJob, 1);

    *j = (LoadJob){forge, g_ptr_array_new_with_free_func((GDestroyNotify)repo_unref), done, data};
    db_read(forge->spec.db, read_rows, on_read, j, load_job_free);
}
