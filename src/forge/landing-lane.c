/* SPDX-License-Identifier: Apache-2.0 */
/* One target branch of one repository: at most one of its entries is under way.
 *
 * A lane has one operation under way, or waits for a suite, or rests.  What it does next is always found
 * in the rows (landing_take), after a start, after a step that could not be written down, and after the
 * end of an entry alike. */
#include <string.h>

#include "base/err.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "forge/forge-private.h"
#include "forge/landing-lane.h"

static void decide(Lane *lane);

/* ---- life ---- */

static void
forget_entry(Lane *lane)
{
    char **texts[] = {&lane->actor,      &lane->head,      &lane->head_oid,
                      &lane->target_oid, &lane->candidate, &lane->suite_id};

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
        g_clear_pointer(texts[i], g_free);
    lane->id = lane->number = 0;
    lane->suite_news = lane->suite_over = lane->stale = false;
}

void
lane_free(Lane *lane)
{
    forget_entry(lane);
    repo_unref(lane->repo);
    landings_unref(lane->all);
    g_free(lane->key);
    g_free(lane->target);
    g_free(lane);
}

void
lane_drop(Lane *lane)
{
    loop_timer_cancel(lane->loop, &lane->rest);
    g_hash_table_remove(lane->all->lanes, lane->key);
    lane->gone = true;
    if (!lane->busy)
        lane_free(lane);
}

bool
lane_is_of(const Lane *lane, const char *repository_id)
{
    return strcmp(lane->repo->id, repository_id) == 0;
}

bool
lane_is_busy(const Lane *lane)
{
    return lane->id != 0;
}

/* Every operation comes back through this: false, and nothing is left to be done. */
bool
lane_comes_back(Lane *lane)
{
    bool gone = lane->gone;

    lane->busy = false;
    if (gone)
        lane_free(lane);
    return !gone;
}

/* A row could not be read or written: it says where to go on. */
void
lane_rest(Lane *lane, const GError *error)
{
    log_warn("forge", "the merge queue rests", log_str("repository", lane->repo->folded),
             log_str("target", lane->target), log_gerror(error));
    forget_entry(lane);
    loop_timer_set(lane->loop, &lane->rest, LANDING_REST_MS);
}

static void
on_rested(LoopTimer *timer)
{
    lane_take((Lane *)timer);
}

void
lane_step(Lane *lane, const RowOp *op, ForgeJsonFunc done)
{
    const LandingStep spec = {.target = lane->target,
                              .id = lane->id,
                              .target_oid = lane->target_oid,
                              .candidate_oid = lane->candidate,
                              .suite_id = lane->suite_id};

    lane->busy = true;
    row_run(lane->all->forge, lane->repo, op, &spec, done, lane);
}

/* ---- ends ---- */

static void
cancel_suite(Lane *lane)
{
    if (lane->suite_id != NULL && !lane->suite_over)
        lane->all->check.cancel(lane->all->check.ctx, lane->repo, lane->suite_id);
}

static void
give_up(Lane *lane)
{
    cancel_suite(lane);
    lane_take(lane);
}

/* Somebody took it out while git was making its ref. */
static void
tidy_lost(Lane *lane)
{
    g_autoptr(Json) entry = json_pack("{s:I, s:i}", "id", (json_int_t)lane->id, "leftover", LEFT_REF);

    landing_tidy(lane->all, lane->repo, entry);
}

/* What a step came to: the entry is over, or goes on from its row. */
void
lane_on_stepped(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    if (!lane_comes_back(lane))
        return;
    if (error != NULL) {
        lane_rest(lane, error);
        return;
    }
    if (landing_outcome_is(value, "ended"))
        landings_note_ended(lane->all, lane->repo, json_object_get(value, "entry"));
    if (landing_outcome_is(value, "lost"))
        tidy_lost(lane);
    if (landing_outcome_is(value, "requeued")) {
        landings_note_queued(lane->all, lane->repo, lane->id);
        lane->all->stats.rebuilt++;
    }
    give_up(lane);
}

void
lane_end_entry(Lane *lane, const char *state, LandingReason reason, const char *problem, const char *conflict)
{
    const LandingEnd end = {
        .id = lane->id, .state = state, .reason = reason, .problem = problem, .conflict = conflict};

    lane->busy = true;
    row_run(lane->all->forge, lane->repo, &landing_finish, &end, lane_on_stepped, lane);
}

/* ---- checking ---- */

static void
go_on_waiting(Lane *lane)
{
    if (lane->stale)
        lane_step(lane, &landing_requeue, lane_on_stepped);
    else if (lane->suite_news)
        decide(lane);
}

static void
on_decided(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    lane->suite_over = lane->suite_over || (error == NULL && !landing_outcome_is(value, "wait"));
    if (error == NULL && !lane->gone && landing_outcome_is(value, "land")) {
        lane_comes_back(lane);
        FAILPOINT("landing-decided");
        lane_move(lane);
    } else if (error == NULL && !lane->gone && landing_outcome_is(value, "wait")) {
        lane_comes_back(lane);
        go_on_waiting(lane);
    } else {
        lane_on_stepped(value, error, lane);
    }
}

static void
decide(Lane *lane)
{
    lane->suite_news = false;
    FAILPOINT("landing-checked");
    lane_step(lane, &landing_decide, on_decided);
}

void
lane_suite_ended(Lane *lane, const char *suite_id)
{
    if (g_strcmp0(lane->suite_id, suite_id) != 0)
        return;
    lane->suite_news = lane->suite_over = true;
    if (!lane->busy)
        go_on_waiting(lane);
}

void
lane_branch_moved(Lane *lane, const char *branch, const char *oid)
{
    bool target = strcmp(branch, lane->target) == 0;
    const char *from = target ? lane->target_oid : lane->head_oid;

    if ((!target && g_strcmp0(branch, lane->head) != 0) || from == NULL || strcmp(from, oid) == 0)
        return;
    lane->stale = true;
    if (!lane->busy)
        go_on_waiting(lane);
}

static void
on_checking(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    if (error == NULL && !lane->gone && landing_outcome_is(value, "ok")) {
        lane_comes_back(lane);
        go_on_waiting(lane);
    } else {
        lane_on_stepped(value, error, lane);
    }
}

void
lane_on_suite(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    if (!lane_comes_back(lane))
        return;
    if (error != NULL && (err_kind(error) == ERR_LIMIT || err_kind(error) == ERR_CANCELLED)) {
        lane_rest(lane, error);
        return;
    }
    if (error != NULL) {
        lane_end_entry(lane, "failed", LANDING_FAILED, error->message, NULL);
        return;
    }
    lane->suite_id = g_strdup(row_text(value, "id"));
    FAILPOINT("landing-checking");
    lane_step(lane, &landing_checking, on_checking);
}

/* ---- taking ---- */

static void
set_entry(Lane *lane, const Json *entry)
{
    lane->id = row_int(entry, "id");
    lane->number = row_int(entry, "number");
    lane->actor = g_strdup(row_actor(entry, "actor"));
    lane->head = g_strdup(row_text(entry, "head"));
    lane->head_oid = g_strdup(row_text(entry, "head_oid"));
    lane->target_oid = g_strdup(row_text(entry, "target_oid"));
    lane->candidate = g_strdup(row_text(entry, "candidate_oid"));
    lane->suite_id = g_strdup(row_text(entry, "suite_id"));
    g_hash_table_remove(lane->all->queued, &lane->id);
}

static void
on_taken(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    if (!lane_comes_back(lane))
        return;
    if (error != NULL) {
        lane_rest(lane, error);
        return;
    }
    if (landing_outcome_is(value, "none")) {
        if (lane->again)
            lane_take(lane);
        else
            lane_drop(lane);
        return;
    }
    set_entry(lane, json_object_get(value, "entry"));
    if (landing_outcome_is(value, "ended")) {
        landings_note_ended(lane->all, lane->repo, json_object_get(value, "entry"));
        lane_take(lane);
    } else if (landing_outcome_is(value, "build")) {
        lane_build(lane, value);
    } else if (landing_outcome_is(value, "check")) {
        decide(lane);
    } else {
        lane_move(lane);
    }
}

void
lane_take(Lane *lane)
{
    forget_entry(lane);
    lane->again = false;
    lane_step(lane, &landing_take, on_taken);
}

void
lane_wake(Landings *all, Repo *repo, const char *target)
{
    g_autofree char *key = g_strconcat(repo->id, " ", target, NULL);
    Lane *lane = g_hash_table_lookup(all->lanes, key);

    if (lane != NULL) {
        lane->again = true;
        return;
    }
    lane = g_new0(Lane, 1);
    *lane = (Lane){.rest = {.expired = on_rested},
                   .all = landings_ref(all),
                   .loop = all->forge->spec.loop,
                   .repo = repo_ref(repo),
                   .key = g_steal_pointer(&key),
                   .target = g_strdup(target)};
    g_hash_table_insert(all->lanes, lane->key, lane);
    lane_take(lane);
}

bool
lane_removed(Landings *all, Repo *repo, const char *target, gint64 id)
{
    g_autofree char *key = g_strconcat(repo->id, " ", target, NULL);
    Lane *lane = g_hash_table_lookup(all->lanes, key);

    if (lane == NULL || lane->id != id)
        return false;
    bool busy = lane->busy;

    if (!busy)
        give_up(lane);
    return busy;
}
