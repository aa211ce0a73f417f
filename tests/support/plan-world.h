/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "base/err.h"
#include "support/store.h"
#include "team/council.h"
#include "team/team-private.h"

/* A team with one squad and one task, and a mind that the test plays. */

#define PLAN(name) "{\"project\": \"P\", \"steps\": [{\"name\": \"" name "\"}]}"
#define TASK "11111111-1111-4111-8111-111111111111"
#define SQUAD "22222222-2222-4222-8222-222222222222"

/* What one who asks hears, in turn; the last one stays. */
typedef struct PlanLine {
    const char *agent; /* "council-1" of "council-1-7" */
    const char *text;  /* NULL: `error` */
    ErrKind error;
} PlanLine;

typedef struct PlanWorld PlanWorld;

typedef struct PlanAsked {
    PlanWorld *world;
    guint id;
    char *agent, *model, *system, *prompt;
    MindFunc done;
    void *data;
    bool answered, cancelled;
} PlanAsked;

struct PlanWorld {
    StoreBench *store;
    Loop *loop;
    Team *team;
    GPtrArray *asked; /* PlanAsked */
    const PlanLine *lines;
    size_t n_lines;
    guint answers_max; /* afterwards nothing is heard any more; 0: no end */
    guint answers;
    bool done;
    GError *error;
    Json *plan;
};

PlanWorld *plan_world_new(const char *policy, const PlanLine *lines, size_t n_lines);
void plan_world_free(PlanWorld *world);
void plan_world_team(PlanWorld *world); /* as a server that comes back */
void plan_world_sql(PlanWorld *world, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* plan_make(), until it is made or nobody says anything any more. */
void plan_world_make(PlanWorld *world);
void plan_world_on_plan(Json *plan, const GError *error, void *world);
/* One of those who wait hears something, the last first: no order can be relied upon. */
bool plan_world_answer(PlanWorld *world);

guint plan_world_asked(const PlanWorld *world, const char *agent);
const char *plan_world_council(const PlanWorld *world, const char *name); /* a text of plans.council */
const char *plan_world_step(const PlanWorld *world);                      /* the name of the first */
gint64 plan_world_events(PlanWorld *world, const char *kind);
