/* SPDX-License-Identifier: Apache-2.0 */
/* Moves are told in the order in which their tellers end, which need not be the order in which they
 * happened.  So a row is only moved on from where a push says that it started; where they differ,
 * refs and rows are compared again (push-settle.c), and the refs are right. */
#include "forge/push.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/push-private.h"
#include "forge/repo.h"

typedef struct Move {
    ForgePush push; /* its strings are ours */
    bool told;      /* by this job */
} Move;

typedef struct PushJob {
    Forge *forge;
    Repo *repo; /* a reference, for the loop */
    char *repository_id, *full_name;
    Move *moves;
    size_t n;
    bool differs; /* from what the rows say */
    PushFirst first;
    DbDone done;
    void *data;
} PushJob;

static void
push_clear(ForgePush *push)
{
    g_free((char *)(guintptr)push->actor);
    g_free((char *)(guintptr)push->box_id);
    g_free((char *)(guintptr)push->ref);
    g_free((char *)(guintptr)push->old);
    g_free((char *)(guintptr)push->new);
}

static void
job_free(gpointer data)
{
    PushJob *job = data;

    for (size_t i = 0; i < job->n; i++)
        push_clear(&job->moves[i].push);
    g_free(job->moves);
    g_free(job->repository_id);
    g_free(job->full_name);
    repo_unref(job->repo);
    g_free(job);
}

/* ---- in the writer's thread ---- */

static bool
is_zero(const char *oid)
{
    return strcmp(oid, git_oid_zero) == 0;
}

/* "": there is no row. */
static bool
read_row(DbTx *tx, const PushJob *job, const char *ref, char ret_oid[GIT_OID_LEN + 1], GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT oid FROM repository_refs WHERE repository_id = ? AND name = ?",
                        DB_ARGS(db_text(job->repository_id), db_text(ref)), error);
    bool row = false;

    ret_oid[0] = '\0';
    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    if (row)
        g_strlcpy(ret_oid, db_rows_text(rows, 0), GIT_OID_LEN + 1);
    return true;
}

static bool
write_row(DbTx *tx, const PushJob *job, const ForgePush *p, GError **error)
{
    if (is_zero(p->new))
        return db_exec(tx, "DELETE FROM repository_refs WHERE repository_id = ? AND name = ?",
                       DB_ARGS(db_text(job->repository_id), db_text(p->ref)), error);
    return db_exec(
        tx,
        "INSERT INTO repository_refs (repository_id, name, oid, moved_us, actor) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (repository_id, name) DO UPDATE SET oid = excluded.oid, moved_us = excluded.moved_us, "
        "actor = excluded.actor",
        DB_ARGS(db_text(job->repository_id), db_text(p->ref), db_text(p->new), db_int(clock_wall_us()),
                db_text(p->actor)),
        error);
}

static const char *
kind_of(const ForgePush *p)
{
    bool is_branch = g_str_has_prefix(p->ref, "refs/heads/");

    if (is_branch && is_zero(p->old))
        return "branch.created";
    return is_branch && is_zero(p->new) ? "branch.removed" : "commit.pushed";
}

static bool
write_event(DbTx *tx, const PushJob *job, const ForgePush *p, GError **error)
{
    const char *name = strchr(p->ref + strlen("refs/"), '/');
    g_autoptr(Json) data = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "repository", job->full_name,
                                     "repository_id", job->repository_id, "ref", p->ref, "name",
                                     name != NULL ? name + 1 : p->ref, "before", p->old, "after", p->new);
    g_autofree char *text = json_encode(data);
    EventSpec event = {
        .kind = kind_of(p), .actor = p->actor, .box_id = p->box_id, .data = text, .owner = EVENT_FOR_ALL};

    return event_append(tx, &event, NULL, error);
}

static bool
tell_listeners(DbTx *tx, const PushJob *job, const ForgePush *p, GError **error)
{
    const GArray *all = job->forge->push_listeners;

    for (guint i = 0; i < all->len; i++) {
        const ForgePushListener *l = &g_array_index(all, ForgePushListener, i);

        if (l->write != NULL && !l->write(tx, job->repository_id, p, l->ctx, error))
            return false;
    }
    return true;
}

static bool
write_move(DbTx *tx, PushJob *job, Move *move, GError **error)
{
    const ForgePush *p = &move->push;
    char row[GIT_OID_LEN + 1];

    if (!read_row(tx, job, p->ref, row, error))
        return false;
    bool known = row[0] != '\0';

    if (known ? strcmp(row, p->new) == 0 : is_zero(p->new))
        return true;
    if (known && strcmp(row, p->old) != 0) {
        job->differs = true;
        return true;
    }
    move->told = true;
    return write_row(tx, job, p, error) && write_event(tx, job, p, error) &&
           tell_listeners(tx, job, p, error);
}

static bool
write_moves(DbTx *tx, void *data, GError **error)
{
    PushJob *job = data;

    if (job->first.write != NULL && !job->first.write(tx, job->first.ctx, error))
        return false;
    for (size_t i = 0; i < job->n; i++) {
        if (!write_move(tx, job, &job->moves[i], error))
            return false;
    }
    FAILPOINT("push-writing");
    return true;
}

/* ---- on the loop ---- */

static void
hear(const PushJob *job, const ForgePush *p)
{
    const GArray *all = job->forge->push_listeners;

    for (guint i = 0; i < all->len; i++) {
        const ForgePushListener *l = &g_array_index(all, ForgePushListener, i);

        if (l->pushed != NULL)
            l->pushed(job->repo, p, l->ctx);
    }
}

static void
on_written(void *data, const GError *error)
{
    PushJob *job = data;
    /* Whoever listened went with the forge. */
    bool any = false, is_heard = job->forge->work != NULL;

    if (error != NULL)
        log_warn("forge", "a push was not written down; the next start will", log_gerror(error));
    for (size_t i = 0; i < job->n && error == NULL && is_heard; i++) {
        any = any || job->moves[i].told;
        if (job->moves[i].told)
            hear(job, &job->moves[i].push);
    }
    if (any)
        repo_pushed(job->repo);
    if (job->differs && error == NULL && is_heard)
        forge_settle_refs(job->forge, job->repo, job->moves[0].push.actor, job->done, job->data);
    else if (job->done != NULL)
        job->done(job->data, error);
}

void
forge_push_with(Forge *forge, Repo *repo, const ForgePush *pushes, size_t n, PushFirst first, DbDone done,
                void *data)
{
    PushJob *job = g_new0(PushJob, 1);
    RepoInfo info;

    repo_info(repo, &info);
    *job = (PushJob){.forge = forge,
                     .repo = repo_ref(repo),
                     .repository_id = g_strdup(info.id),
                     .full_name = g_strdup_printf("%s/%s", info.owner, info.name),
                     .moves = g_new0(Move, n),
                     .n = n,
                     .first = first,
                     .done = done,
                     .data = data};
    for (size_t i = 0; i < n; i++)
        job->moves[i].push = (ForgePush){.actor = g_strdup(pushes[i].actor),
                                         .box_id = g_strdup(pushes[i].box_id),
                                         .ref = g_strdup(pushes[i].ref),
                                         .old = g_strdup(pushes[i].old),
                                         .new = g_strdup(pushes[i].new)};
    db_write(forge->spec.db, write_moves, on_written, job, job_free);
}

void
forge_push_all(Forge *forge, Repo *repo, const ForgePush *pushes, size_t n, DbDone done, void *data)
{
    forge_push_with(forge, repo, pushes, n, (PushFirst){0}, done, data);
}

void
forge_pushed(Forge *forge, Repo *repo, const ForgePush *push)
{
    forge_push_all(forge, repo, push, 1, NULL, NULL);
}

void
forge_pushed_then(Forge *forge, Repo *repo, const ForgePush *push, DbDone done, void *data)
{
    forge_push_all(forge, repo, push, 1, done, data);
}

void
forge_on_push(Forge *forge, const ForgePushListener *listener)
{
    g_assert(forge->push_listeners->len < PUSH_LISTENERS_MAX);
    g_array_append_val(forge->push_listeners, *listener);
}
