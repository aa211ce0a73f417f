/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/box.h"
#include "team/team.h"

/* One agent in its box: an execution.
 *
 *   queued -> starting -> working <-> asking -> proving -> done
 *      any of them -> failed (the agent gave up, or said nothing usable), lost (box, keeper or agent
 *      died), stopped
 *
 * The box is leased under the execution's `lease`, so that a second try of a step is in the box of the
 * first where that lives.  In it: the work tree with its branch (workspace.h), the tools, the variables
 * TASK_ID, AGENT_ROLE, GIT_USERNAME, GIT_EMAIL, ROOM_ID, MAIN_AGENT_ID and CURRENT_TASK_ID, the document
 * .coop/agent.json beside the work tree.  The program (coop-agent, or what the adapter says) is a logged
 * run, so it and its output survive the server.
 *
 * When it has ended, Coop looks for itself (`proving`): what was not committed is committed, everything
 * is pushed, the checks are run by Coop in that box.  `result`, seen by Coop:
 *   {"head_oid", "commits": [{"oid", "title"}], "passed": true | false | null (nothing to run),
 *    "checks": [{"name", "run", "exit_code", "duration_ms", "tests": {total, passed, failed, skipped,
 *    failing} | null, "output": the last lines}], "files": path of what is kept (no repository)}
 * `report`, said by the agent: {"outcome": "done" | "failed", "summary", "verdict": "approve" | "changes",
 *    "findings": [{"path", "line", "severity", "body"}]}. */
typedef struct Crew Crew;
Crew *team_crew(Team *team); /* borrowed */

enum {
    CREW_FINDINGS_MAX = 100,
    CREW_SUMMARY_MAX = 8192,
    CREW_OUTPUT_TAIL = 4096, /* bytes of a check's output that a result has */
};

Crew *crew_new(Team *team);
/* What went on before is taken up; those of tasks that are queued wait for crew_start(). */
void crew_begin(Crew *crew);
void crew_free(Crew *crew); /* agents go on in their boxes */

/* Who hears that an execution has ended: its row is on the disk. */
typedef void (*CrewEnded)(const char *execution_id, const char *task_id, const char *state, void *data);
void crew_listen(Crew *crew, CrewEnded ended, void *data);

/* A row that is `queued` is worked on, or goes on (after a restart: all states but the last).  What it needs
 * is read from the row.  A second call changes nothing. */
void crew_start(Crew *crew, const char *execution_id);
/* The same; `told` once, when it has a box, has to wait for one, or has ended. */
void crew_start_told(Crew *crew, const char *execution_id, void (*told)(void *data), void *data);
/* ERR_INVALID, which names those there are. */
bool crew_has_adapter(Crew *crew, const char *name, GError **error);
/* Ended with its box; `done` when nothing of it is left. */
void crew_stop(Crew *crew, const char *execution_id, const char *reason, DbDone done, void *data);
/* Ended, but its box stays as it is: for crew_release(). */
void crew_halt(Crew *crew, const char *execution_id, const char *reason, DbDone done, void *data);
/* The box of this lease is not needed any more; `keep` (NULL, "files", "box"): what is kept of it. */
void
crew_release(Crew *crew, const char *task_id, const char *lease, const char *keep, DbDone done, void *data);

/* ---- the face of agents: who asks is the box ---- */

/* The execution that lives in this box: everything coop-agent has to know (docs/design/18-team.md).
 * ERR_NOT_FOUND: none does. */
void crew_brief(Crew *crew, const char *box_id, TeamJsonFunc done, void *data);
/* {"events": […]}: thoughts, words, tools, costs. */
void crew_report(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data);
/* {"question", "options"} -> {"id"}; then the answer, or null when the time is over. */
void crew_ask(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data);
void crew_answer(Crew *crew, const char *box_id, const char *question_id, guint wait_ms, TeamJsonFunc done,
                 void *data);
/* The report; the run may end afterwards. */
void crew_done(Crew *crew, const char *box_id, Json *body, TeamJsonFunc done, void *data);

/* ---- agents by hand: /api/v1/agents ---- */

typedef struct AgentSpec {
    const char *actor, *owner;
    const char *sees;                /* whose tasks it may name; NULL: everybody's */
    const char *role;                /* any name */
    const char *task;                /* id or number; NULL: none */
    const char *const *requirements; /* what it shall do */
    const char *squad, *repository, *adapter, *provider, *model, *template; /* NULL: as usual */
    Json *git; /* {username, email} of its commits where its squad has nobody for them; NULL: made */
} AgentSpec;
/* {"sandboxId", "role", "taskId", "agentId", …} */
void agent_spawn(Team *team, const AgentSpec *spec, TeamJsonFunc done, void *data);
typedef struct AgentFilter {
    const char *owner, *task; /* NULL: any */
    ForgePage page;
} AgentFilter;
/* The newest first. */
void agent_list(Team *team, const AgentFilter *filter, TeamJsonFunc done, void *data);
void agent_get(Team *team, const char *id, const char *owner, TeamJsonFunc done, void *data);
void
agent_stop(Team *team, const char *id, const char *owner, const char *actor, TeamJsonFunc done, void *data);
