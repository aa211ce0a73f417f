/* SPDX-License-Identifier: Apache-2.0 */
/* What a task's rows ask for.  Nothing here has a side effect. */
#include <string.h>

#include "team/flow-private.h"

static const FlowChoice rest = {.what = FLOW_REST};

/* ---- the ladder ---- */

static guint
rung_of(const char *name, guint none)
{
    static const char *const rungs[] = {"tested", "ready", "reviewed", "merged"};

    for (guint i = 0; name != NULL && i < G_N_ELEMENTS(rungs); i++) {
        if (strcmp(name, rungs[i]) == 0)
            return i + 1;
    }
    return none;
}

static bool
has_reached(const Json *task, const char *rung)
{
    return rung_of(row_text(task, "rung"), 0) >= rung_of(rung, 0);
}

static guint
wanted_rung(const Json *task)
{
    return row_text(task, "repository_id") == NULL
               ? rung_of("tested", 0)
               : rung_of(flow_policy_text(task, "until"), rung_of("merged", 0));
}

/* The squad wants no more than what it has reached. */
static bool
is_enough(const Json *task)
{
    return rung_of(row_text(task, "rung"), 0) >= wanted_rung(task);
}

/* A pause that is longer than the longest there is was begun before the clock was set back. */
static bool
is_due(const FlowView *v, gint64 wake_us)
{
    return wake_us <= v->now_us || wake_us - v->now_us > (gint64)v->limits->retry_ms * 1000 << FLOW_TRIES;
}

/* Who was lost while it looked is asked for again after a pause: it counts from the end, so that it is
 * the same one after a restart.  0: now. */
static gint64
again_us(const FlowView *v, const Json *task, const Json *agent)
{
    guint tries = (guint)CLAMP(row_int(task, "tries"), 0, FLOW_TRIES);
    gint64 due_us = row_int(agent, "ended_us") + ((gint64)v->limits->retry_ms * 1000 << tries);

    return is_due(v, due_us) ? 0 : due_us;
}

/* ---- planning ---- */

static FlowChoice
decide_planning(const FlowView *v, const Json *task)
{
    const Json *plan = json_object_get(v->rows, "plan");

    if (row_text(task, "repository_id") != NULL && !json_is_object(json_object_get(task, "file")))
        return (FlowChoice){.what = FLOW_READ};
    if (json_is_null(plan))
        return (FlowChoice){.what = g_strcmp0(flow_policy_text(task, "planner"), "person") == 0 ? FLOW_AWAIT
                                                                                                : FLOW_MAKE};
    if (flow_is(plan, "state", "draft") && row_is(json_object_get(task, "policy"), "approve"))
        return (FlowChoice){.what = FLOW_AWAIT};
    return (FlowChoice){.what = FLOW_ADOPT};
}

static FlowChoice
decide_approving(const FlowView *v, const Json *task)
{
    return flow_is(json_object_get(v->rows, "plan"), "state", "approved") ? (FlowChoice){.what = FLOW_ADOPT}
                                                                          : rest;
}

static FlowChoice
decide_preparing(const FlowView *v, const Json *task)
{
    bool needs_base = row_text(task, "repository_id") != NULL && row_text(task, "base_oid") == NULL;

    return (FlowChoice){.what = needs_base ? FLOW_BASE : FLOW_PREPARE};
}

/* ---- steps ---- */

static bool
is_done(const Json *steps, const char *name)
{
    size_t i;
    const Json *step;

    json_array_foreach(steps, i, step)
    {
        if (flow_is(step, "name", name))
            return flow_is(step, "state", "done");
    }
    return true;
}

static bool
may_begin(const Json *steps, const Json *step)
{
    size_t i;
    const Json *name;

    json_array_foreach(json_object_get(step, "depends"), i, name)
    {
        if (!is_done(steps, json_string_value(name)))
            return false;
    }
    return true;
}

static guint
count_agents(const Json *rows)
{
    guint n = 0;
    size_t i;
    const Json *agent;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        if (!flow_agent_ended(agent))
            n++;
    }
    return n;
}

/* What an agent left to be looked at goes before new agents. */
static FlowChoice
decide_begun(const FlowView *v, const Json *steps)
{
    size_t i;
    const Json *step;

    json_array_foreach(steps, i, step)
    {
        const Json *agent = flow_last_agent(v->rows, row_text(step, "id"));

        if (flow_is(step, "state", "joining"))
            return (FlowChoice){.what = FLOW_JOIN, .step = step, .agent = agent};
        if (flow_is(step, "state", "working") && (agent == NULL || flow_agent_ended(agent)))
            return (FlowChoice){.what = FLOW_JUDGE, .step = step, .agent = agent};
    }
    return rest;
}

static FlowChoice
decide_waiting(const FlowView *v, const Json *task, const Json *steps)
{
    /* Without a repository all work in the same box, one after the other. */
    guint at_once = row_text(task, "repository_id") == NULL
                        ? 1
                        : flow_policy_int(task, "agents_per_task", v->limits->agents_per_task);
    bool room = count_agents(v->rows) < at_once;
    gint64 wake_us = 0;
    size_t i;
    const Json *step;

    json_array_foreach(steps, i, step)
    {
        gint64 due_us = row_int(step, "wake_us");

        if (!flow_is(step, "state", "waiting") || !may_begin(steps, step))
            continue;
        if (is_due(v, due_us) && room)
            return (FlowChoice){.what = FLOW_BEGIN, .step = step};
        if (!is_due(v, due_us) && (wake_us == 0 || due_us < wake_us))
            wake_us = due_us;
    }
    return (FlowChoice){.what = FLOW_REST, .wake_us = wake_us};
}

/* Nobody else would look at the steps together. */
static bool
ends_unseen(const Json *rows, const Json *task, const Json *steps)
{
    g_autoptr(Json) checks = row_text(task, "repository_id") == NULL ? flow_all_checks(rows) : NULL;

    /* Only a repository has checks that no plan names. */
    return (checks == NULL || json_array_size(checks) > 0) && json_array_size(steps) > 1 &&
           wanted_rung(task) < rung_of("reviewed", 0);
}

/* The last look at the steps together; NULL: a step was worked on since. */
static const Json *
last_check(const Json *rows)
{
    const Json *check = NULL, *agent;
    size_t i;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        if (flow_is(agent, "kind", "check"))
            check = agent;
        else if (row_text(agent, "step_id") != NULL)
            check = NULL;
    }
    return check;
}

static FlowChoice
decide_worked(const FlowView *v, const Json *task, const Json *steps)
{
    const Json *check = last_check(v->rows);

    if (!ends_unseen(v->rows, task, steps))
        return (FlowChoice){.what = FLOW_WORKED};
    if (check == NULL)
        return (FlowChoice){.what = FLOW_CHECK};
    if (!flow_agent_ended(check))
        return rest;
    bool done = flow_is(check, "state", "done");
    gint64 wake_us = done ? 0 : again_us(v, task, check);

    if (done && !json_is_false(json_object_get(json_object_get(check, "result"), "passed")))
        return (FlowChoice){.what = FLOW_WORKED};
    if (wake_us > 0)
        return (FlowChoice){.what = FLOW_REST, .wake_us = wake_us};
    return (FlowChoice){.what = FLOW_CHECKED, .agent = check};
}

static FlowChoice
decide_working(const FlowView *v, const Json *task)
{
    const Json *steps = json_object_get(v->rows, "steps");
    FlowChoice choice = decide_begun(v, steps);
    bool all_done = true;
    size_t i;
    const Json *step;

    if (choice.what != FLOW_REST)
        return choice;
    json_array_foreach(steps, i, step) all_done = all_done && flow_is(step, "state", "done");
    if (all_done)
        return decide_worked(v, task, steps);
    return decide_waiting(v, task, steps);
}

/* ---- reviews ---- */

/* The last agent of this round with that kind. */
static const Json *
agent_of_round(const Json *rows, gint64 round, const char *kind)
{
    const Json *last = NULL;
    size_t i;
    const Json *agent;

    json_array_foreach(json_object_get(rows, "agents"), i, agent)
    {
        if (flow_is(agent, "kind", kind) && row_int(agent, "try") == round)
            last = agent;
    }
    return last;
}

static FlowChoice
decide_round(const FlowView *v, const Json *task)
{
    static const char *const kinds[] = {"test", "review"};
    const Json *agents[G_N_ELEMENTS(kinds)];
    FlowChoice choice = {.what = FLOW_ROUND};
    gint64 wake_us = 0;
    bool ended = true;

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        agents[i] = agent_of_round(v->rows, row_int(task, "round"), kinds[i]);
        if (agents[i] == NULL)
            continue;
        choice.what = FLOW_VERDICT;
        ended = ended && flow_agent_ended(agents[i]);
        if (!flow_agent_ended(agents[i]) || flow_is(agents[i], "state", "done"))
            continue;
        gint64 due_us = flow_has_no_model(agents[i]) ? 0 : again_us(v, task, agents[i]);

        if (due_us == 0)
            return (FlowChoice){.what = FLOW_AGAIN, .agent = agents[i]};
        wake_us = wake_us == 0 ? due_us : MIN(wake_us, due_us);
    }
    if (wake_us > 0)
        return (FlowChoice){.what = FLOW_REST, .wake_us = wake_us};
    if (choice.what == FLOW_ROUND || !ended)
        return ended ? choice : rest;
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (agents[i] != NULL && row_int(agents[i], "review_id") == 0)
            return (FlowChoice){.what = FLOW_REVIEW, .agent = agents[i]};
    }
    return choice;
}

static FlowChoice
decide_reviewing(const FlowView *v, const Json *task)
{
    if (is_enough(task))
        return (FlowChoice){.what = FLOW_FINISH};
    if (!has_reached(task, "ready"))
        return (FlowChoice){.what = FLOW_READY};
    return decide_round(v, task);
}

/* Whoever wants no merge gets none, also where the squad has nobody to review it. */
static FlowChoice
decide_landing(const FlowView *v, const Json *task)
{
    if (is_enough(task) || wanted_rung(task) < rung_of("merged", 0))
        return (FlowChoice){.what = FLOW_FINISH};
    return (FlowChoice){.what = row_int(task, "merge_id") == 0 ? FLOW_QUEUE : FLOW_LAND};
}

/* ---- all ---- */

static FlowChoice
decide_queued(const FlowView *v, const Json *task)
{
    return (FlowChoice){.what = FLOW_ADMIT};
}

static FlowChoice
decide_blocked(const FlowView *v, const Json *task)
{
    return v->released ? rest : (FlowChoice){.what = FLOW_RELEASE};
}

static const struct {
    const char *state;
    FlowChoice (*decide)(const FlowView *v, const Json *task);
} states[] = {
    {"queued", decide_queued},       {"planning", decide_planning}, {"approving", decide_approving},
    {"preparing", decide_preparing}, {"working", decide_working},   {"reviewing", decide_reviewing},
    {"landing", decide_landing},     {"blocked", decide_blocked},
};

/* Before anything is asked of a model, and when it was raised. */
static bool
wants_binding(const FlowView *v, const Json *task)
{
    g_autofree char *bounds = flow_bounds(task);

    return bounds != NULL && g_strcmp0(v->bound, "") != 0 && g_strcmp0(v->bound, bounds) != 0 &&
           !flow_is(task, "state", "queued") && !flow_is(task, "state", "blocked");
}

FlowChoice
flow_decide(const FlowView *v)
{
    const Json *task = json_object_get(v->rows, "task");

    if (flow_task_ended(task))
        return rest;
    if (!json_is_null(json_object_get(task, "ending")))
        return (FlowChoice){.what = FLOW_STOP};
    if (!is_due(v, row_int(task, "wake_us")))
        return (FlowChoice){.what = FLOW_REST, .wake_us = row_int(task, "wake_us")};
    if (wants_binding(v, task))
        return (FlowChoice){.what = FLOW_BIND};
    for (size_t i = 0; i < G_N_ELEMENTS(states); i++) {
        if (flow_is(task, "state", states[i].state))
            return states[i].decide(v, task);
    }
    return rest;
}
