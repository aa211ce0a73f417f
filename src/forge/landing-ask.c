/* SPDX-License-Identifier: Apache-2.0 */
/* What callers ask of the queue. */
#include <string.h>

#include "base/err.h"
#include "forge/forge-private.h"
#include "forge/landing-private.h"

typedef struct Asking {
    Landings *all; /* a reference */
    Repo *repo;    /* a reference */
    ForgeJsonFunc done;
    void *data;
} Asking;

static Asking *
asking_new(Landings *all, Repo *repo, ForgeJsonFunc done, void *data)
{
    Asking *a = g_new0(Asking, 1);

    *a = (Asking){landings_ref(all), repo_ref(repo), done, data};
    return a;
}

static void
asking_end(Asking *a, Json *value, const GError *error)
{
    if (a->done != NULL)
        a->done(value, error, a->data);
    landings_unref(a->all);
    repo_unref(a->repo);
    g_free(a);
}

/* ---- adding ---- */

static void
on_added(Json *value, const GError *error, void *data)
{
    Asking *a = data;

    if (error == NULL && a->all->forge != NULL) {
        landings_note_queued(a->all, a->repo, row_int(value, "id"));
        lane_wake(a->all, a->repo, row_text(value, "target"));
    }
    asking_end(a, value, error);
}

void
landing_add(Landings *all, Repo *repo, const LandingSpec *spec, ForgeJsonFunc done, void *data)
{
    row_run(all->forge, repo, &landing_add_op, spec, on_added, asking_new(all, repo, done, data));
}

/* ---- taking out ---- */

static bool
run_remove(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LandingEnd *end = data;
    g_autoptr(Json) entry = landing_row_get(job, LANDING_INSIDE, end->id, error);

    if (entry == NULL)
        return false;
    if (row_int(entry, "ended_us") != 0)
        return err_set(error, ERR_CONFLICT, "it has ended: it is %s", row_text(entry, "state"));
    if (strcmp(row_text(entry, "state"), "landing") == 0)
        return err_set(error, ERR_CONFLICT, "its branch is being moved");
    if (!landing_row_end(job, entry, end, error))
        return false;
    *ret_value = landing_row_get(job, LANDING_INSIDE, end->id, error);
    return *ret_value != NULL;
}

static void
on_removed(Json *value, const GError *error, void *data)
{
    Asking *a = data;
    g_autoptr(Json) entry = error == NULL ? json_copy(value) : NULL;

    if (error == NULL && a->all->forge != NULL) {
        if (lane_removed(a->all, a->repo, row_text(value, "target"), row_int(value, "id")))
            json_object_set_new(entry, "leftover", json_integer(0));
        landings_note_ended(a->all, a->repo, entry);
    }
    asking_end(a, value, error);
}

void
landing_remove(Landings *all, Repo *repo, const char *actor, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_WRITES, sizeof(LandingEnd), landing_end_members, run_remove};
    const LandingEnd end = {.id = id,
                            .state = "cancelled",
                            .reason = LANDING_REMOVED,
                            .problem = "it was taken out of the queue",
                            .actor = actor};

    row_run(all->forge, repo, &op, &end, on_removed, asking_new(all, repo, done, data));
}

/* ---- reading ---- */

static bool
run_get(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    *ret_value = landing_row_get(job, LANDING_WHOLE, *(const gint64 *)data, error);
    return *ret_value != NULL;
}

void
landing_get(Landings *all, Repo *repo, gint64 id, ForgeJsonFunc done, void *data)
{
    static const RowOp op = {ROW_READS, sizeof(gint64), NULL, run_get};

    row_run(all->forge, repo, &op, &id, done, data);
}

static bool
run_list(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    const LandingFilter *filter = data;
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autofree char *states = g_strdup_printf("m.state %s %s", filter->ended ? "NOT IN" : "IN",
                                              landing_active_sql);

    row_where_add(&where, "m.repository_id = ?", DB_ARGS(db_text(job->repository_id)));
    row_where_add(&where, states, DB_NO_ARGS);
    if (filter->target != NULL)
        row_where_add(&where, "m.target = ?", DB_ARGS(db_text(filter->target)));
    if (filter->number > 0)
        row_where_add(&where, "m.number = ?", DB_ARGS(db_int(filter->number)));
    *ret_value = landing_row_list(job, &where, filter->ended ? "m.ended_us DESC, m.id DESC" : "m.id",
                                  filter->page, error);
    return *ret_value != NULL;
}

void
landing_list(Landings *all, Repo *repo, const LandingFilter *filter, ForgeJsonFunc done, void *data)
{
    static const RowMember members[] = {ROW_AT_TEXT(LandingFilter, target), ROW_AT_END};
    static const RowOp op = {ROW_READS, sizeof(LandingFilter), members, run_list};

    row_run(all->forge, repo, &op, filter, done, data);
}

typedef struct ListAll {
    Json *value;
    ForgeJsonFunc done;
    void *data;
} ListAll;

static bool
read_all(DbTx *tx, void *data, GError **error)
{
    ListAll *l = data;
    g_auto(RowJob) job = {0};
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autofree char *states = g_strdup_printf("m.state IN %s", landing_active_sql);

    row_job_init(&job, tx, "");
    row_where_add(&where, states, DB_NO_ARGS);
    l->value = landing_row_list(&job, &where, "m.id", (ForgePage){.per_page = THREAD_PAGE_MAX}, error);
    return l->value != NULL;
}

static void
on_all(void *data, const GError *error)
{
    ListAll *l = data;

    l->done(l->value, error, l->data);
    json_decref(l->value);
}

void
landing_list_all(Landings *all, ForgeJsonFunc done, void *data)
{
    ListAll *l = g_new0(ListAll, 1);

    *l = (ListAll){.done = done, .data = data};
    db_read(all->forge->spec.db, read_all, on_all, l, g_free);
}
