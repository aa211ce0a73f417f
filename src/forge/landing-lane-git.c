/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane has git do, and what it makes of that: candidates are built, branches are moved. */
#include "base/err.h"
#include "base/failpoint.h"
#include "forge/forge-private.h"
#include "forge/landing-lane.h"

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

        lane_end_entry(lane, "failed", LANDING_RULES, rule, NULL);
    } else if (b->bundle != NULL) {
        g_autofree char *problem = g_strdup_printf("it conflicts with '%s'", lane->target);

        lane_end_entry(lane, "conflict", LANDING_CONFLICT, problem, b->bundle);
    } else if (b->nothing) {
        lane_end_entry(lane, "failed", LANDING_NOTHING, "the target has all of it already", NULL);
    } else {
        const LandingCheck *check = &lane->all->check;

        lane->target_oid = g_strdup(b->target_oid);
        lane->candidate = g_strdup(b->candidate);
        lane->busy = true;
        check->add(check->ctx, lane->repo, b->target_oid, b->candidate, lane->number, lane->actor,
                   lane_on_suite, lane);
    }
}

static void
on_built(void *data, const GError *error)
{
    g_autofree Building *building = data;
    LandingBuild *b = building->build;
    Lane *lane = building->lane;

    if (!lane_comes_back(lane))
        ;
    else if (error != NULL && err_kind(error) == ERR_CANCELLED)
        lane_rest(lane, error);
    else if (error != NULL)
        lane_end_entry(lane, "failed", LANDING_FAILED, error->message, NULL);
    else
        judge_build(lane, b);
    landing_build_free(b);
}

static bool
build_work(GitRepo *git, void *data, GError **error)
{
    return landing_build_work(git, ((Building *)data)->build, error);
}

void
lane_build(Lane *lane, const Json *taken)
{
    g_autofree char *what = g_strdup_printf("merge #%" G_GINT64_FORMAT, lane->number);
    g_autofree char *ref = landing_ref(lane->id);
    Building *b = g_new0(Building, 1);

    FAILPOINT("landing-building");
    *b = (Building){.lane = lane, .build = landing_build_new(taken, ref)};
    lane->busy = true;
    forge_read(lane->all->forge, lane->repo, what, build_work, on_built, b, NULL);
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
    if (!lane_comes_back(lane))
        return;
    if (error != NULL) {
        lane_rest(lane, error);
        return;
    }
    FAILPOINT("landing-landed");
    if (written)
        landings_note_ended(lane->all, lane->repo, entry);
    lane_take(lane);
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
    if (!lane_comes_back(lane))
        return;
    if (error != NULL && err_kind(error) == ERR_CANCELLED)
        lane_rest(lane, error);
    else if (error != NULL)
        lane_end_entry(lane, "failed", LANDING_FAILED, error->message, NULL);
    else if (landed)
        write_landed(lane, leftover);
    else
        lane_step(lane, &landing_requeue, lane_on_stepped);
}

static bool
move_work(GitRepo *git, void *data, GError **error)
{
    return landing_move_work(git, ((Moving *)data)->move, error);
}

/* Beside other work on the repository, as pushes are: git itself compares and locks. */
void
lane_move(Lane *lane)
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
