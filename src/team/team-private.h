/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/row.h"
#include "team/crew.h"
#include "team/flow.h"
#include "team/room.h"
#include "team/squad.h"
#include "team/team.h"

/* What the files of this folder share. */
struct Team {
    guint refs;
    TeamSpec spec;        /* its strings are ours */
    TeamLimits limits;    /* whole */
    GHashTable *roles;    /* name -> Role */
    GHashTable *aliases;  /* name -> RoleAlias */
    GHashTable *planning; /* task id -> PlanWork */
    Rooms *rooms;
    Crew *crew;
    Flow *flow;
    struct Tally *tally;
    guint64 completed, failed, cancelled;
    guint tasks_queued, tasks_running, tasks_blocked;
};

/* What the database or the forge answers may come after team_free(): who waits for it holds a reference, and
 * finds flow, crew and rooms NULL then. */
Team *team_ref(Team *team);
void team_unref(Team *team);

/* As row_run() of the forge: the spec is copied, `op` runs in one job of the database, and `done` (may be
 * NULL) gets the JSON it made.  RowJob.repository_id is "". */
void team_run(Team *team, const RowOp *op, const void *spec, TeamJsonFunc done, void *data);

/* "owner/name" -> its id, borrowed until the loop turns; NULL for none said, or "".  ERR_NOT_FOUND,
 * ERR_INVALID. */
bool team_find_repository(Team *team, const char *name, const char **ret_id, GError **error);

/* 0: one of them is not known. */
static inline gint64
team_ms_between(gint64 from_us, gint64 to_us)
{
    return from_us > 0 && to_us > from_us ? (to_us - from_us) / 1000 : 0;
}

/* Takes `data`, an object. */
typedef struct TeamEvent {
    const char *kind, *actor;
    const char *task_id, *squad_id, *box_id, *execution_id;
    Json *data;
} TeamEvent;
bool team_event(DbTx *tx, const TeamEvent *event, GError **error);
