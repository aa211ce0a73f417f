/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "team/plan.h"
#include "team/team-private.h"

/* What the files of the workflow share.  flow.c turns the wheel: rows are read (flow-rows.c), what they ask
 * for is found without any side effect (flow-decide.c), and is done by the one function of the table that
 * belongs to it; that ends with flow_next() or flow_problem(). */

enum {
    FLOW_TRIES = 5,       /* of what is broken: git, boxes, models; then it is blocked */
    FLOW_LOST_MAX = 4,    /* agents of one step that were lost one after the other */
    FLOW_WORDS_MAX = 600, /* bytes of a problem in a row or a question */
    FLOW_COUNTS = 2,
};

/* What the workflow asks of others, so that tests can play them. */
typedef struct FlowHands {
    void (*start)(Crew *crew, const char *execution_id);
    void (*stop)(Crew *crew, const char *execution_id, const char *reason, DbDone done, void *data);
    void (*release)(Crew *crew, const char *task_id, const char *lease, const char *keep, DbDone done,
                    void *data);
    void (*plan)(Team *team, const char *task_id, TeamJsonFunc done, void *data);
    void (*plan_cancel)(Team *team, const char *task_id);
} FlowHands;

struct Flow {
    Team *team; /* not to be touched once `closed` */
    guint refs;
    bool closed;
    FlowHands hands;
    GHashTable *tasks; /* id -> FlowTask: those that have not ended */
    bool opened;       /* the tasks that have not ended are known */
    LoopTimer again;   /* what could not be read or written */
    bool admitting, admit_again;
    EventCursor *news; /* of budgets; NULL: nobody listens */
    gint64 heard;      /* the last of them, where it is listened for anew; < 0: from now on */
};

typedef struct FlowTask {
    LoopTimer timer; /* first: the loop hands back its address */
    Flow *flow;      /* a reference */
    guint refs;
    char *id;
    bool busy;           /* an action is under way */
    bool again;          /* somebody woke it meanwhile */
    bool planning;       /* plan_make() is */
    bool waiting;        /* landing_wait() is */
    bool released;       /* of a blocked one: its boxes are gone */
    Json *rows;          /* as they were read last */
    GHashTable *started; /* ids of executions that were handed to the crew */
    char *told;          /* what the comment of progress says */
    char *bound;         /* its budget, as the purse was told; NULL: not yet */
    GPtrArray *enders;   /* FlowEnder: who waits for its end */
} FlowTask;

/* ---- flow-rows.c ---- */

/* {task, steps, agents, plan (the newest that can be worked on, or null), members} */
extern const RowOp flow_look_op;
typedef struct FlowId {
    const char *task_id;
} FlowId;
extern const RowMember flow_id_members[];
typedef struct FlowStepId {
    const char *task_id, *step_id;
} FlowStepId;
Json *flow_task_get(RowJob *job, const char *task_id, GError **error);
/* The same five, inside a transaction. */
Json *flow_rows_get(RowJob *job, const char *task_id, GError **error);
const Json *flow_step_of(const Json *rows, const char *id);
const Json *flow_row_of(const Json *list, const char *id);
const Json *flow_agent_of(const Json *rows, const char *id);
const Json *flow_last_agent(const Json *rows, const char *step_id);
bool flow_agent_ended(const Json *agent);
/* Somebody's own: it and what it made are none of the workflow's. */
bool flow_agent_by_hand(const Json *agent);
bool flow_task_ended(const Json *task);
/* A number of the task's policy. */
guint flow_policy_int(const Json *task, const char *name, guint usual);
const char *flow_policy_text(const Json *task, const char *name);
bool flow_is(const Json *row, const char *name, const char *value);

/* ---- flow-decide.c ---- */

typedef enum FlowDo {
    FLOW_REST,    /* nothing, until somebody wakes it or `wake_us` */
    FLOW_BIND,    /* to its budget */
    FLOW_READ,    /* what the repository asks of the team */
    FLOW_ADMIT,   /* queued */
    FLOW_MAKE,    /* a plan */
    FLOW_AWAIT,   /* a person's plan or approval */
    FLOW_ADOPT,   /* the plan becomes steps */
    FLOW_BASE,    /* which commit it starts from */
    FLOW_PREPARE, /* branch, commit, pull request */
    FLOW_BEGIN,   /* a try of `step` */
    FLOW_JUDGE,   /* what `agent` did for `step` */
    FLOW_JOIN,    /* `step` into the task's branch */
    FLOW_CHECK,   /* all steps together */
    FLOW_CHECKED, /* what `agent` saw of that */
    FLOW_WORKED,  /* all steps are done */
    FLOW_READY,   /* the pull request */
    FLOW_ROUND,   /* who tests and who reviews */
    FLOW_AGAIN,   /* in the place of `agent`, which was lost */
    FLOW_REVIEW,  /* what `agent` says, on the pull request */
    FLOW_VERDICT, /* of the round */
    FLOW_QUEUE,   /* into the merge queue */
    FLOW_LAND,    /* how far it is there */
    FLOW_FINISH,
    FLOW_RELEASE, /* boxes of one that is blocked */
    FLOW_STOP,
    FLOW_DO_MAX,
} FlowDo;

typedef struct FlowChoice {
    FlowDo what;
    const Json *step, *agent; /* borrowed from the rows; NULL: none */
    gint64 wake_us;           /* of FLOW_REST; 0: none */
} FlowChoice;

typedef struct FlowView {
    const Json *rows;
    const TeamLimits *limits;
    gint64 now_us;
    bool released;
    const char *bound; /* FlowTask.bound; "": there is no purse */
} FlowView;
FlowChoice flow_decide(const FlowView *view);

/* ---- flow.c ---- */

Flow *flow_ref(Flow *flow);
void flow_unref(Flow *flow);
FlowTask *flow_task_of(Flow *flow, const char *task_id); /* made where there is none; borrowed */
FlowTask *flow_task_ref(FlowTask *t);
void flow_task_unref(FlowTask *t);
/* The action is over: look again. */
void flow_next(FlowTask *t);
/* It is over, and somebody else will wake the task. */
void flow_rest(FlowTask *t);
/* It is over without having come to its end: later, or a question. */
void flow_problem(FlowTask *t, const GError *error);
/* At the beginning of what comes back from elsewhere.  False: there is nothing to go on with. */
bool flow_goes_on(FlowTask *t, const GError *error);
/* One transaction, and then flow_next() or flow_problem(). */
void flow_write(FlowTask *t, const RowOp *op, const void *spec);
static inline const Json *
flow_row(const FlowTask *t)
{
    return json_object_get(t->rows, "task");
}
/* The task's repository; NULL with an error when it is gone. */
Repo *flow_repo(FlowTask *t, GError **error);

/* Soon: what concerns no task alone and could not be done. */
void flow_try_again(Flow *flow);

/* ---- flow-budget.c ---- */

void flow_budget_listen(Flow *flow);
/* {"tokens", "microusd", "calls"} of the task's policy, encoded; NULL: it has no budget. */
char *flow_bounds(const Json *task);
/* What binds it is the policy's budget, which an answer raises. */
bool flow_budget_is_own(const FlowTask *t);
/* Nothing binds it any more. */
void flow_unbind(FlowTask *t, void (*then)(FlowTask *t));
/* When somebody answered the last question of Coop's; 0: never. */
bool flow_last_answer(RowJob *job, const Json *task, gint64 *ret_us, GError **error);
/* The model of `agent` was refused for a budget, and nobody has answered since: `*ret_over`, and the task is
 * blocked with a question.  `own`: flow_budget_is_own(). */
bool flow_over(RowJob *job, const Json *task, const Json *agent, bool own, bool *ret_over, GError **error);
extern const char *const flow_counts[FLOW_COUNTS]; /* of a budget: what is no money */
/* A plan cannot be made for a budget. */
void flow_plan_over(FlowTask *t, const char *message);

/* ---- flow-file.c ---- */

/* What the repository says of who does `step` (NULL: none) as `member`: repo-file.h; NULL: nothing. */
const Json *flow_file_role(const Json *task, const Json *step, const Json *member);
/* Of a role that the repository has; NULL: it has none of that name. */
const char *flow_file_archetype(const Json *task, const char *role);

/* ---- flow-move.c: pieces of transactions ---- */

/* task.moved */
bool
flow_moved(DbTx *tx, const Json *task, const char *to, const char *actor, const char *reason, GError **error);
/* From the state that `task` has, unless it was moved or is being stopped: `*ret_moved`.  `rung` NULL: as
 * it is. */
bool
flow_move(RowJob *job, const Json *task, const char *to, const char *rung, bool *ret_moved, GError **error);

typedef struct FlowBlock {
    const char *problem;  /* why, in a sentence */
    const char *question; /* NULL: made of the problem */
    const char *step_id;  /* NULL: of none */
    const char *first;    /* of what can be answered, besides "stop"; NULL: "retry" */
} FlowBlock;
bool flow_block(RowJob *job, const Json *task, const FlowBlock *block, GError **error);

/* {task_id, to, rung}: the move alone. */
typedef struct FlowMove {
    const char *task_id, *from, *to, *rung;
} FlowMove;
extern const RowOp flow_move_op;

typedef struct FlowFail {
    const char *task_id, *from, *problem;
    bool hopeless; /* trying again is of no use */
    gint64 retry_us;
} FlowFail;
extern const RowOp flow_fail_op;

/* ---- flow-step.c, flow-agent.c ---- */

/* Which step gets which agent to do what. */
typedef struct FlowAgent {
    const Json *rows;
    const Json *step;      /* NULL: none */
    const char *kind;      /* work, fix, resolve, check, test, review */
    const char *archetype; /* of the member */
    const Json *member;    /* NULL: one is chosen */
    const char *lease, *branch, *base;
    gint64 try;
    Json *brief; /* taken */
} FlowAgent;
/* The box of a step; without a repository all have the same. */
char *flow_lease(const Json *task, const Json *step);
/* Of somebody who looks at the whole: a box and a branch that no step has, whatever a plan calls it. */
void flow_look_names(const Json *rows, const char *archetype, char **ret_lease, char **ret_branch);
/* Inserts the row; ERR_NOT_FOUND: the squad has nobody for it. */
bool flow_agent_insert(RowJob *job, const FlowAgent *agent, GError **error);
char *flow_tip(RowJob *job, const Json *task, const char *branch, GError **error);

/* ---- flow-words.c ---- */

char *flow_cut(const char *text, size_t max); /* valid UTF-8 of at most so many bytes */
/* What Coop saw of a try, for the next: NULL when nothing is wrong with it. */
char *flow_feedback(const Json *agent);
/* Its model refused as no other try can change: nobody has it, or its key is not accepted. */
bool flow_has_no_model(const Json *agent);
#define FLOW_NO_MODEL_REQUEST "Say `retry` when that is changed, or `stop`."
/* In a line. */
char *flow_summary_of(const Json *agent);
char *flow_findings(const Json *agents, gint64 round);

/* ---- flow-round.c ---- */

/* It does not approve, or Coop saw its checks fail. */
bool flow_agent_refuses(const Json *agent);
/* Those of all steps. */
Json *flow_all_checks(const Json *rows);
/* A step behind the others, that fixes what was found, or brings both sides of a conflict together; where
 * there were enough rounds, a question before it. */
bool flow_fix(RowJob *job, const Json *rows, const char *what, guint rounds, GError **error);
bool flow_resolve(RowJob *job, const Json *rows, Json *conflict, guint rounds, GError **error);

/* ---- flow-lines.c ---- */

/* Findings on lines that the patch shows, as ReviewSpec.lines wants them; the others are appended to
 * `rest`.  `files` is DiffFile. */
Json *flow_lines(const Json *findings, const GPtrArray *files, GString *rest);
/* The same, behind those, for what scanners found before `agent` began, but for what the reviews of others of
 * `agents` have said already. */
void
flow_lines_scanned(Json *lines, const Json *agents, const Json *agent, const GPtrArray *files, GString *rest);

/* ---- flow-pull.c ---- */

/* The one of the task, opened where there is none; a failure is flow_problem(). */
typedef void (*FlowPullFunc)(FlowTask *t, Repo *repo, gint64 number, const char *url);
void flow_pull_find(FlowTask *t, bool draft, FlowPullFunc then);
char *flow_pull_url(FlowTask *t, gint64 number);

/* ---- flow-fit.c ---- */

/* Why it is not fit for production; none: it is. */
Json *flow_fit(RowJob *job, const Json *rows, GError **error);

/* ---- flow-spent.c ---- */

/* {"calls", "failed_calls", "input_tokens", "output_tokens", "cached_tokens", "microusd"} */
Json *spent_new(void);
void spent_add(Json *sum, const Json *more);
/* What one agent asked of models: `usage`, and in `models` (an array) each with `provider` and `model`. */
bool spent_of_agent(RowJob *job, const char *execution_id, Json *usage, Json *models, GError **error);
/* The same of the whole task, with who planned it. */
bool spent_of_task(RowJob *job, const char *task_id, Json *usage, Json *models, GError **error);
/* Of who planned: of all that are no agents in boxes. */
bool spent_on_plan(RowJob *job, const char *task_id, Json *usage, GError **error);

/* ---- flow-report.c ---- */

/* tasks.report, as of now:
 *   {"state", "rung", "production_ready", "reasons", "rounds", "steps", "tries", "repository_id",
 *    "pull_number", "duration_ms", "usage", "planning" (usage of who planned), "models", "tests" (of all
 * agents together), "final_tests" (of the last try of each step), "checks", "scans", "coverage" (of the last
 * who tested; null: nothing tells it), "agents"} */
Json *flow_report(RowJob *job, const Json *rows, const char *state, GError **error);
Json *flow_report_event(Json *report); /* what the event has of it */

/* ---- flow-branches.c ---- */

/* Those of its steps and of who looked at it; not its own. */
void flow_branches_remove(FlowTask *t, void (*then)(FlowTask *t));

/* ---- what is done ---- */

typedef void (*FlowAct)(FlowTask *t, const FlowChoice *choice);
void flow_do_read(FlowTask *t, const FlowChoice *choice);
void flow_do_bind(FlowTask *t, const FlowChoice *choice);
void flow_do_make(FlowTask *t, const FlowChoice *choice);
void flow_do_await(FlowTask *t, const FlowChoice *choice);
void flow_do_adopt(FlowTask *t, const FlowChoice *choice);
void flow_do_base(FlowTask *t, const FlowChoice *choice);
void flow_do_prepare(FlowTask *t, const FlowChoice *choice);
void flow_do_begin(FlowTask *t, const FlowChoice *choice);
void flow_do_judge(FlowTask *t, const FlowChoice *choice);
void flow_do_join(FlowTask *t, const FlowChoice *choice);
void flow_do_check(FlowTask *t, const FlowChoice *choice);
void flow_do_checked(FlowTask *t, const FlowChoice *choice);
void flow_do_worked(FlowTask *t, const FlowChoice *choice);
void flow_do_ready(FlowTask *t, const FlowChoice *choice);
void flow_do_round(FlowTask *t, const FlowChoice *choice);
void flow_do_again(FlowTask *t, const FlowChoice *choice);
void flow_do_review(FlowTask *t, const FlowChoice *choice);
void flow_do_verdict(FlowTask *t, const FlowChoice *choice);
void flow_do_queue(FlowTask *t, const FlowChoice *choice);
void flow_do_land(FlowTask *t, const FlowChoice *choice);
void flow_do_finish(FlowTask *t, const FlowChoice *choice);
void flow_do_release(FlowTask *t, const FlowChoice *choice);
void flow_do_stop(FlowTask *t, const FlowChoice *choice);

typedef struct FlowEnder {
    DbDone done;
    void *data;
} FlowEnder;
void flow_enders_tell(FlowTask *t, const GError *error);

/* Progress for people: the room, the pull request.  Nothing waits for it. */
void flow_tell(FlowTask *t);
