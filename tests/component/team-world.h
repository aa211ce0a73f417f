/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "fake-checks.h"
#include "forge/row.h"
#include "team/flow-private.h"

/* The workflow over a real repository, with a crew that the test plays: an agent that is started waits
 * until the test says what became of it. */
typedef struct TeamWorld {
    ForgeWorld *w;
    FakeChecks *checks;
    Landings *landings;
    Team *team;
    TeamLimits limits;
    GQueue started;    /* ids of executions, in their order */
    GString *calls;    /* "stop ID" and "release LEASE KEEP", a line each */
    guint plans_asked; /* of the planner, which never answers */
} TeamWorld;

TeamWorld *team_world_new(const TeamLimits *limits /* NULL: as usual */);
void team_world_free(TeamWorld *world);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TeamWorld, team_world_free)
/* As a server that ends, and the next one. */
void team_world_restart(TeamWorld *world);

/* With this plan, by a person, and this policy (JSON; NULL: {}).  Its id. */
char *team_world_task(TeamWorld *world, const char *plan, const char *policy);
char *team_world_task_bare(TeamWorld *world, const char *plan, const char *policy); /* no repository */

/* Runs the loop until an agent is started; its row. */
Json *team_world_agent(TeamWorld *world, const char *kind);
/* It has written `file` (NULL: nothing) on its branch, and Coop saw this.  `passed` < 0: nothing to run. */
void team_world_done(TeamWorld *world, const Json *agent, const char *file, const char *text, int passed);
/* Who tests or reviews: "approve", "changes"; `findings` is JSON. */
void team_world_looked(TeamWorld *world, const Json *agent, const char *verdict, const char *findings);
void team_world_lost(TeamWorld *world, const Json *agent);

/* Waits for the agent of that kind, which then is done. */
void team_world_code(TeamWorld *world, const char *kind, const char *file, const char *text, int passed);

/* Of the only task. */
#define TEAM_WORLD_STATE "SELECT state FROM tasks WHERE number = 1"
/* The first column of the first row, once it is that (run the loop until then). */
void team_world_until(TeamWorld *world, const char *sql, const char *value);
char *team_world_text(TeamWorld *world, const char *sql); /* NULL: none */
void team_world_expect(TeamWorld *world, const char *sql, const char *value);
bool team_world_main_has(TeamWorld *world, const char *path);
void team_world_sql(TeamWorld *world, const char *sql);
void team_world_unblock(TeamWorld *world, const char *task_id);
/* Coop's checks of the pull request pass. */
void team_world_pass(TeamWorld *world);
