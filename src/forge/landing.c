/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/landing.h"

#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/landing-private.h"

/* ---- life ---- */

Landings *
landings_ref(Landings *all)
{
    all->refs++;
    return all;
}

void
landings_unref(Landings *all)
{
    if (--all->refs > 0)
        return;
    g_hash_table_unref(all->lanes);
    g_hash_table_unref(all->queued);
    g_hash_table_unref(all->waiters);
    g_free(all);
}

static GPtrArray *
list_lanes(const Landings *all)
{
    GPtrArray *lanes = g_ptr_array_new();
    GHashTableIter iter;
    gpointer lane;

    g_hash_table_iter_init(&iter, all->lanes);
    while (g_hash_table_iter_next(&iter, NULL, &lane))
        g_ptr_array_add(lanes, lane);
    return lanes;
}

static void
on_push(Repo *repo, const ForgePush *push, void *ctx)
{
    static const char heads[] = "refs/heads/";
    Landings *all = repo->forge->landings;

    if (all == NULL || !g_str_has_prefix(push->ref, heads))
        return;
    g_autoptr(GPtrArray) lanes = list_lanes(all);

    for (guint i = 0; i < lanes->len; i++) {
        if (lane_is_of(lanes->pdata[i], repo->id))
            lane_branch_moved(lanes->pdata[i], push->ref + strlen(heads), push->new);
    }
}

Landings *
landings_new(const LandingsSpec *spec)
{
    Landings *all = g_new0(Landings, 1);

    *all = (Landings){.refs = 1, .forge = spec->forge, .check = spec->check};
    all->lanes = g_hash_table_new(g_str_hash, g_str_equal);
    all->queued = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    all->waiters = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                         (GDestroyNotify)g_ptr_array_unref);
    forge_on_push(spec->forge, &(ForgePushListener){.pushed = on_push});
    spec->forge->landings = all;
    return all;
}

static void
drop_lanes(Landings *all)
{
    g_autoptr(GPtrArray) lanes = list_lanes(all);

    for (guint i = 0; i < lanes->len; i++)
        lane_drop(lanes->pdata[i]);
}

void
landings_free(Landings *all)
{
    if (all == NULL)
        return;
    all->forge->landings = NULL;
    drop_lanes(all);
    landing_waiters_end(all);
    all->forge = NULL;
    landings_unref(all);
}

void
landings_repo_gone(Landings *all, const char *repository_id)
{
    g_autoptr(GPtrArray) lanes = list_lanes(all);
    GHashTableIter iter;
    gpointer of;

    for (guint i = 0; i < lanes->len; i++) {
        if (lane_is_of(lanes->pdata[i], repository_id))
            lane_drop(lanes->pdata[i]);
    }
    landing_waiters_repo_gone(all, repository_id);
    g_hash_table_iter_init(&iter, all->queued);
    while (g_hash_table_iter_next(&iter, NULL, &of)) {
        if (strcmp(of, repository_id) == 0)
            g_hash_table_iter_remove(&iter);
    }
}

/* ---- what happens ---- */

void
landings_note_queued(Landings *all, Repo *repo, gint64 id)
{
    g_hash_table_replace(all->queued, g_memdup2(&id, sizeof id), g_strdup(repo->id));
}

void
landings_note_ended(Landings *all, Repo *repo, const Json *entry)
{
    const char *state = row_text(entry, "state");
    gint64 id = row_int(entry, "id");
    const struct {
        const char *state;
        guint64 *count;
    } counts[] = {{"landed", &all->stats.landed},
                  {"failed", &all->stats.failed},
                  {"conflict", &all->stats.conflicts},
                  {"cancelled", &all->stats.cancelled}};

    for (size_t i = 0; i < G_N_ELEMENTS(counts); i++)
        *counts[i].count += strcmp(state, counts[i].state) == 0;
    g_hash_table_remove(all->queued, &id);
    landing_tell(all, id);
    if (row_int(entry, "leftover") != 0)
        landing_tidy(all, repo, entry);
}

void
landings_suite_ended(Landings *all, Repo *repo, const char *suite_id, const char *state)
{
    g_autoptr(GPtrArray) lanes = list_lanes(all);

    for (guint i = 0; i < lanes->len; i++) {
        if (lane_is_of(lanes->pdata[i], repo->id))
            lane_suite_ended(lanes->pdata[i], suite_id);
    }
}

void
landing_stats(Landings *all, LandingStats *ret_stats)
{
    g_autoptr(GPtrArray) lanes = list_lanes(all);

    *ret_stats = all->stats;
    ret_stats->waiting = g_hash_table_size(all->queued);
    for (guint i = 0; i < lanes->len; i++)
        ret_stats->running += lane_is_busy(lanes->pdata[i]);
}

/* ---- the start ---- */

typedef struct Start {
    Landings *all;
    Json *rows;
} Start;

static void
start_free(gpointer data)
{
    Start *s = data;

    landings_unref(s->all);
    json_decref(s->rows);
    g_free(s);
}

static bool
read_rows(DbTx *tx, void *data, GError **error)
{
    Start *s = data;
    g_autofree char *sql = g_strdup_printf(
        "SELECT m.id, m.repository_id, m.target, m.state, m.leftover, m.actor, m.head_oid, t.head, "
        "m.ended_us FROM merges m JOIN threads t ON t.repository_id = m.repository_id AND "
        "t.number = m.number WHERE m.state IN %s OR m.leftover <> 0 ORDER BY m.id",
        landing_active_sql);
    g_autoptr(DbRows) rows = db_query(tx, sql, DB_NO_ARGS, error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return false;
        if (more)
            json_array_append_new(
                s->rows, json_pack("{s:I, s:s, s:s, s:s, s:I, s:s, s:s, s:s?, s:b}", "id",
                                   (json_int_t)db_rows_int(rows, 0), "repository_id", db_rows_text(rows, 1),
                                   "target", db_rows_text(rows, 2), "state", db_rows_text(rows, 3),
                                   "leftover", (json_int_t)db_rows_int(rows, 4), "by", db_rows_text(rows, 5),
                                   "head_oid", db_rows_text(rows, 6), "head", db_rows_text(rows, 7), "ended",
                                   db_rows_int(rows, 8) != 0));
    }
    return rows != NULL;
}

static void
on_rows(void *data, const GError *error)
{
    Start *s = data;
    size_t i;
    Json *row;

    if (error != NULL)
        log_warn("forge", "the merge queue was not read", log_gerror(error));
    if (error != NULL || s->all->forge == NULL)
        return;
    json_array_foreach(s->rows, i, row)
    {
        Repo *repo = forge_find_id(s->all->forge, row_text(row, "repository_id"));

        if (repo == NULL || !repo_is_ready(repo))
            continue;
        if (row_is(row, "ended")) {
            landing_tidy(s->all, repo, row);
            continue;
        }
        if (strcmp(row_text(row, "state"), "queued") == 0)
            landings_note_queued(s->all, repo, row_int(row, "id"));
        lane_wake(s->all, repo, row_text(row, "target"));
    }
}

void
landings_start(Landings *all)
{
    Start *s = g_new0(Start, 1);

    drop_lanes(all);
    g_hash_table_remove_all(all->queued);
    *s = (Start){.all = landings_ref(all), .rows = json_array()};
    db_read(all->forge->spec.db, read_rows, on_rows, s, start_free);
}
