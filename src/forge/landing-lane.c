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
#include "forge/landing-private.h"

struct Lane {
    LoopTimer rest; /* first: the loop hands back its address */
    Landings *all;  /* a reference */
    Loop *loop;
    Repo *repo; /* a reference */
    char *key, *target;
    bool busy;  /* an operation is under way, and will come back */
    bool gone;  /* the queue has let go of it */
    bool again; /* something was added while it looked */
    /* the entry; 0: none */
    gint64 id, number;
    char *actor, *head, *head_oid, *target_oid, *candidate, *suite_id;
    bool suite_news; /* it has ended, and was not looked at since */
    bool suite_over;
    bool stale; /* a branch moved meanwhile */
};

static void take(Lane *lane);
static void decide(Lane *lane);
static void move(Lane *lane);

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
static bool
comes_back(Lane *lane)
{
    bool gone = lane->gone;

    lane->busy = false;
    if (gone)
        lane_free(lane);
    return !gone;
}

/* A row could not be read or written: it says where to go on. */
static void
rest(Lane *lane, const GError *error)
{
    log_warn("forge", "the merge queue rests", log_str("repository", lane->repo->folded),
             log_str("target", lane->target), log_gerror(error));
    forget_entry(lane);
    loop_timer_set(lane->loop, &lane->rest, LANDING_REST_MS);
}

static void
on_rested(LoopTimer *timer)
{
    take((Lane *)timer);
}

static void
step(Lane *lane, const RowOp *op, ForgeJsonFunc done)
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
    take(lane);
}

/* Somebody took it out while git was making its ref. */
static void
tidy_lost(Lane *lane)
{
    g_autoptr(Json) entry = json_pack("{s:I, s:i}", "id", (json_int_t)lane->id, "leftover", LEFT_REF);

    landing_tidy(lane->all, lane->repo, entry);
}

/* What a step came to: the entry is over, or goes on from its row. */
static void
on_stepped(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    if (!comes_back(lane))
        return;
    if (error != NULL) {
        rest(lane, error);
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

static void
end_entry(Lane *lane, const char *state, LandingReason reason, const char *problem, const char *conflict)
{
    const LandingEnd end = {
        .id = lane->id, .state = state, .reason = reason, .problem = problem, .conflict = conflict};

    lane->busy = true;
    row_run(lane->all->forge, lane->repo, &landing_finish, &end, on_stepped, lane);
}

/* ---- landing ---- */

typedef struct Final {
    Lane *lane;
    LandingLanded landed;
} Final;

static void
on_landed(void *data, const GError *error)
{
    Final *f = data;
    Lane *lane = f->lane;
    g_autoptr(Json) entry = json_pack("{s:I, s:s, s:s?, s:s?, s:s?, s:I}", "id", (json_int_t)f->landed.id,
                                      "state", "landed", "head", lane->head, "head_oid", lane->head_oid, "by",
                                      lane->actor, "leftover", (json_int_t)f->landed.leftover);

    bool written = f->landed.written;

    g_free(f->landed.repository_id);
    g_free(f);
    if (!comes_back(lane))
        return;
    if (error != NULL) {
        rest(lane, error);
        return;
    }
    FAILPOINT("landing-landed");
    if (written)
        landings_note_ended(lane->all, lane->repo, entry);
    take(lane);
}

static void
write_landed(Lane *lane, gint64 leftover)
{
    g_autofree char *ref = g_strconcat("refs/heads/", lane->target, NULL);
    const ForgePush push = {
        .actor = lane->actor, .ref = ref, .old = lane->target_oid, .new = lane->candidate};
    Final *f = g_new0(Final, 1);

    *f = (Final){.lane = lane,
                 .landed = {.repository_id = g_strdup(lane->repo->id), .id = lane->id, .leftover = leftover}};
    lane->busy = true;
    forge_push_with(lane->all->forge, lane->repo, &push, 1, (PushFirst){landing_write_landed, &f->landed},
                    on_landed, f);
}

typedef struct Moving {
    Lane *lane;
    LandingMove *move;
} Moving;

static void
on_moved(void *data, const GError *error)
{
    Moving *m = data;
    Lane *lane = m->lane;
    bool landed = m->move->landed;
    gint64 leftover = m->move->ref_left ? LEFT_REF : 0;

    landing_move_free(m->move);
    g_free(m);
    if (!comes_back(lane))
        return;
    if (error != NULL && err_kind(error) == ERR_CANCELLED)
        rest(lane, error);
    else if (error != NULL)
        end_entry(lane, "failed", LANDING_FAILED, error->message, NULL);
    else if (landed)
        write_landed(lane, leftover);
    else
        step(lane, &landing_requeue, on_stepped);
}

static bool
move_work(GitRepo *git, void *data, GError **error)
{
    return landing_move_work(git, ((Moving *)data)->move, error);
}

/* Beside other work on the repository, as pushes are: git itself compares and locks. */
static void
move(Lane *lane)
{
    g_autofree char *what = g_strdup_printf("land #%" G_GINT64_FORMAT, lane->number);
    Moving *m = g_new0(Moving, 1);

    *m = (Moving){.lane = lane, .move = g_new0(LandingMove, 1)};
    *m->move = (LandingMove){.target = g_strdup(lane->target),
                             .ref = landing_ref(lane->id),
                             .target_oid = g_strdup(lane->target_oid),
                             .landing_oid = g_strdup(lane->candidate),
                             .why = g_strdup(what)};
    lane->busy = true;
    forge_read(lane->all->forge, lane->repo, what, move_work, on_moved, m, NULL);
}

/* ---- checking ---- */

static void
go_on_waiting(Lane *lane)
{
    if (lane->stale)
        step(lane, &landing_requeue, on_stepped);
    else if (lane->suite_news)
        decide(lane);
}

static void
on_decided(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    lane->suite_over = lane->suite_over || (error == NULL && !landing_outcome_is(value, "wait"));
    if (error == NULL && !lane->gone && landing_outcome_is(value, "land")) {
        comes_back(lane);
        FAILPOINT("landing-decided");
        move(lane);
    } else if (error == NULL && !lane->gone && landing_outcome_is(value, "wait")) {
        comes_back(lane);
        go_on_waiting(lane);
    } else {
        on_stepped(value, error, lane);
    }
}

static void
decide(Lane *lane)
{
    lane->suite_news = false;
    FAILPOINT("landing-checked");
    step(lane, &landing_decide, on_decided);
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
        comes_back(lane);
        go_on_waiting(lane);
    } else {
        on_stepped(value, error, lane);
    }
}

static void
on_suite(Json *value, const GError *error, void *data)
{
    Lane *lane = data;

    if (!comes_back(lane))
        return;
    if (error != NULL && (err_kind(error) == ERR_LIMIT || err_kind(error) == ERR_CANCELLED)) {
        rest(lane, error);
        return;
    }
    if (error != NULL) {
        end_entry(lane, "failed", LANDING_FAILED, error->message, NULL);
        return;
    }
    lane->suite_id = g_strdup(row_text(value, "id"));
    FAILPOINT("landing-checking");
    step(lane, &landing_checking, on_checking);
}

/* ---- building ---- */

typedef struct Building {
    Lane *lane;
    LandingBuild *build;
} Building;

static void
judge_build(Lane *lane, const LandingBuild *b)
{
    if (b->behind) {
        g_autofree char *rule = pull_blocks_format(1u << PULL_BLOCK_BEHIND);

        end_entry(lane, "failed", LANDING_RULES, rule, NULL);
    } else if (b->bundle != NULL) {
        g_autofree char *problem = g_strdup_printf("it conflicts with '%s'", lane->target);

        end_entry(lane, "conflict", LANDING_CONFLICT, problem, b->bundle);
    } else if (b->nothing) {
        end_entry(lane, "failed", LANDING_NOTHING, "the target has all of it already", NULL);
    } else {
        const LandingCheck *check = &lane->all->check;

        lane->target_oid = g_strdup(b->target_oid);
        lane->candidate = g_strdup(b->candidate);
        lane->busy = true;
        check->add(check->ctx, lane->repo, b->target_oid, b->candidate, lane->number, lane->actor, on_suite,
                   lane);
    }
}

static void
on_built(void *data, const GError *error)
{
    g_autofree Building *building = data;
    LandingBuild *b = building->build;
    Lane *lane = building->lane;

    if (!comes_back(lane))
        ;
    else if (error != NULL && err_kind(error) == ERR_CANCELLED)
        rest(lane, error);
    else if (error != NULL)
        end_entry(lane, "failed", LANDING_FAILED, error->message, NULL);
    else
        judge_build(lane, b);
    landing_build_free(b);
}

static bool
build_work(GitRepo *git, void *data, GError **error)
{
    return landing_build_work(git, ((Building *)data)->build, error);
}

static void
build(Lane *lane, const Json *taken)
{
    g_autofree char *what = g_strdup_printf("merge #%" G_GINT64_FORMAT, lane->number);
    g_autofree char *ref = landing_ref(lane->id);
    Building *b = g_new0(Building, 1);

    FAILPOINT("landing-building");
    *b = (Building){.lane = lane, .build = landing_build_new(taken, ref)};
    lane->busy = true;
    forge_read(lane->all->forge, lane->repo, what, build_work, on_built, b, NULL);
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

    if (!comes_back(lane))
        return;
    if (error != NULL) {
        rest(lane, error);
        return;
    }
    if (landing_outcome_is(value, "none")) {
        if (lane->again)
            take(lane);
        else
            lane_drop(lane);
        return;
    }
    set_entry(lane, json_object_get(value, "entry"));
    if (landing_outcome_is(value, "ended")) {
        landings_note_ended(lane->all, lane->repo, json_object_get(value, "entry"));
        take(lane);
    } else if (landing_outcome_is(value, "build")) {
        build(lane, value);
    } else if (landing_outcome_is(value, "check")) {
        decide(lane);
    } else {
        move(lane);
    }
}

static void
take(Lane *lane)
{
    forget_entry(lane);
    lane->again = false;
    step(lane, &landing_take, on_taken);
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
    take(lane);
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
