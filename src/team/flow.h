/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/row.h"
#include "team/crew.h"
#include "team/task.h"

/* What happens next with a task.
 *
 * flow_wake() reads a task's rows and does the one thing that they ask for; whatever that is, its end is
 * rows and another wake.  Each action looks first whether it was done already: after a kill -9 anywhere
 * nothing is done twice.  One action of a task is under way at a time, but for its agents, which work side by
 * side.
 *
 *   queued     a place is free (tasks_at_once)                          -> planning
 *   planning   plan_make(), or the person's                             -> approving | preparing
 *   preparing  room, branch, commit with the plan, draft pull request   -> working
 *   working    steps whose dependencies are done get an agent; one whose checks Coop saw pass is joined
 *              into the task's branch; a conflict goes back to an agent  -> reviewing
 *   reviewing  ready; tester and reviewer, each in a clean box; changes asked for -> a step that fixes them,
 *              another round                                             -> landing
 *   landing    Coop's checks; merge queue; what they find is such a step too -> done
 *
 * What has no repository is done when its steps are; a squad may end at an earlier rung.
 *
 * Failpoints: flow-planned, flow-branch, flow-commit, flow-pull, flow-agent, flow-proved, flow-joining,
 * flow-joined, flow-check, flow-round, flow-reviewed, flow-ready, flow-merge, flow-done, flow-stop. */
typedef struct Flow Flow;

Flow *flow_new(Team *team);
void flow_start(Flow *flow); /* every task that has not ended is woken */
void flow_free(Flow *flow);

void flow_wake(Flow *flow, const char *task_id);
void flow_admit(Flow *flow); /* a place may be free: a task has ended, or waits for a person */
/* Asked by task.h; `done` when its boxes are gone and the row says so. */
void flow_stop(Flow *flow, const char *task_id, const char *state /* cancelled, failed */, const char *reason,
               const char *actor, DbDone done, void *data);
/* Inside the transaction that answers a question or retries: a task that is blocked or has failed goes on
 * from where it was; one that is neither stays as it is.  The caller wakes it when that is on the disk. */
bool flow_unblock(DbTx *tx, const char *task_id, const char *actor, GError **error);
/* The same for what flow_stop() does first. */
bool flow_ending(DbTx *tx, const char *task_id, const char *state, const char *reason, const char *actor,
                 GError **error);
/* A budget as an answer wants it to be: "raise", "usd 5", "tokens 100000, calls 50".  ERR_INVALID: it says
 * nothing of that kind, or no more than there was. */
Json *flow_raised(const Json *budget, const char *answer, GError **error);
bool flow_raise(RowJob *job, const Json *task, const char *answer, GError **error);
