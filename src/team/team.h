/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "box/host.h"
#include "forge/checks.h"
#include "forge/forge.h"
#include "forge/landing.h"
#include "store/db.h"
#include "store/events.h"
#include "team/mind.h"
#include "team/purse.h"
#include "json/json.h"

/* Squads of agents, and the tasks they work on.
 *
 *   squad.h  squads and members          task.h  tasks as others see them
 *   plan.h   what is to be done          room.h  what a task's agents and people share
 *   crew.h   one agent in its box        flow.h  what happens next
 *
 * Rows are the truth; events are written in the transaction that changes them.  What waits is in no call
 * stack: flow.h reads the rows of a task and decides. */
typedef struct Team Team;

typedef struct TeamLimits {
    guint tasks_at_once;   /* 0: 3 */
    guint agents_per_task; /* 0: 5 */
    guint tries;           /* of a step; 0: 3 */
    guint rounds;          /* of reviews; 0: 3 */
    guint agent_s;         /* of one agent's work; 0: 1800 */
    guint turns;           /* questions to the model in it; 0: 100 */
    guint keep_s;          /* what failed; 0: a day */
    gint64 kept_max;       /* bytes of all that is kept; 0: 10 GiB */
    guint retry_ms;        /* before the second try of what is broken, doubled; 0: 1000 */
} TeamLimits;

typedef struct TeamSpec {
    Loop *loop; /* borrowed, as are all */
    Db *db;
    EventLog *events;
    BoxHost *boxes;                               /* NULL: nothing can be worked on */
    Forge *forge;                                 /* NULL: tasks without repositories only */
    Checks *checks;                               /* NULL with forge */
    Landings *landings;                           /* NULL with forge */
    Mind mind;                                    /* ask NULL: plans come from people only */
    Purse purse;                                  /* bind NULL: budgets of tasks bind nobody */
    const char *home;                             /* what is kept of boxes is below HOME/kept */
    const char *address;                          /* of the server, as a URL */
    const char *roles_dir;                        /* definitions: ROLES_DIR/NAME.yaml */
    const char *agents_dir;                       /* adapters: AGENTS_DIR/NAME.yaml */
    const char *tools_dir;                        /* with coop-agent, for boxes */
    const char *default_provider, *default_model; /* of members that name none; NULL: as the rows say */
    /* Of members that name none, in place of the role's; NULL: the role's. */
    const char *template_coder, *template_reviewer, *template_tester;
    TeamLimits limits;
    /* A repository may ask for this template; NULL: for each. */
    bool (*is_open_template)(void *ctx, const char *template);
    void *template_ctx;
} TeamSpec;

Team *team_new(const TeamSpec *spec, GError **error);
/* Reads what has to be known at once; the default squad is made where there is none.  Also after a
 * restore. */
void team_load(Team *team, DbDone done, void *data);
/* After checks_start() and landings_start(): tasks go on. */
void team_start(Team *team);
void team_free(Team *team); /* before landings, checks, forge and boxes; agents go on in their boxes */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Team, team_free)

typedef struct TeamStats {
    guint tasks_queued, tasks_running, tasks_blocked;
    guint64 completed, failed, cancelled; /* since the start */
} TeamStats;
void team_stats(Team *team, TeamStats *ret_stats);

/* What the functions of this folder answer with, as ForgeJsonFunc: borrowed, NULL with an error. */
typedef ForgeJsonFunc TeamJsonFunc;
