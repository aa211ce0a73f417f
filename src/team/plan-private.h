/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/council.h"
#include "team/task-private.h"

/* What the files of plans share.
 *
 *   plan-check.c plan-find.c plan-format.c   a plan by itself
 *   council.c voice.c plan-words.c           what is asked next, what is read of an answer, what is said
 *   plan-rows.c                              the rows of it, inside a job of the database
 *   plan-look.c                              what planners are told of the repository
 *   plan-make.c                              asks, writes the answer down, looks at the rows again
 *   plan.c                                   plans as people see them */

extern const RowTable plan_table;  /* "plans p" */
extern const RowTable voice_table; /* "plan_voices v" */

/* The newest of a task; NULL without an error: there is none. */
bool plan_newest(RowJob *job, const char *task_id, Json **ret_plan, GError **error);
Json *plan_voices(RowJob *job, const char *plan_id, GError **error);

/* Takes the place of what the task has.  `body` (checked) and `council` may be NULL. */
typedef struct PlanInsert {
    const char *task_id, *producer, *state, *actor;
    const Json *body, *council;
} PlanInsert;
bool plan_insert(RowJob *job, const PlanInsert *spec, GError **error);

/* ---- making one: each answers with {task, members, brain, plan, voices, microusd} ---- */

typedef struct PlanBegin {
    const char *task_id;
    const char *provider, *model; /* where no member says them */
    bool can_ask;                 /* there is a mind */
    bool is_second;               /* one is under way already */
} PlanBegin;
/* ERR_CONFLICT: the task is not to be planned, or is being planned; ERR_UNAVAILABLE: nobody can be asked. */
extern const RowOp plan_begin_op;

typedef struct PlanVoice {
    PlanBegin of;
    const char *plan_id, *phase;
    gint64 seat;
    const char *model;
    Json *voice; /* {state, text, body, problem} */
    gint64 input_tokens, output_tokens, duration_us;
} PlanVoice;
extern const RowOp plan_voice_op;

typedef struct PlanEnd {
    PlanBegin of;
    const char *plan_id;
    const char *state, *producer; /* what it becomes */
    Json *body;                   /* NULL: none */
    Json *outcome;                /* of the council; NULL: there was none, or it has ended */
    const char *problem;          /* NULL: none */
} PlanEnd;
extern const RowOp plan_end_op;

/* ---- plan-look.c ---- */

/* What there is in the repository, as words; NULL: there is no repository.  Where nothing has to be looked
 * at, `done` runs inside the call. */
typedef void (*PlanLookFunc)(const char *material, const GError *error, void *data);
void plan_look(Team *team, const char *repository_id, const char *branch, PlanLookFunc done, void *data);

/* ---- plan-make.c ---- */

/* At the end of the team: what is under way is cancelled, and told so. */
void plan_end_all(Team *team);
