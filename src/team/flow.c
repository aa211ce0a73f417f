/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "team/flow-private.h"

enum {
    TICK_MS = 100, /* to which times are rounded up: few durations, few queues of timers */
    TIMER_MAX_MS = 60 * 1000,
    LOOK_AGAIN_MS = 1000, /* after the database could not be read */
};

static const FlowAct acts[FLOW_DO_MAX] = {
    [FLOW_MAKE] = flow_do_make,       [FLOW_AWAIT] = flow_do_await,     [FLOW_ADOPT] = flow_do_adopt,
    [FLOW_BASE] = flow_do_base,       [FLOW_PREPARE] = flow_do_prepare, [FLOW_BEGIN] = flow_do_begin,
    [FLOW_JUDGE] = flow_do_judge,     [FLOW_JOIN] = flow_do_join,       [FLOW_WORKED] = flow_do_worked,
    [FLOW_READY] = flow_do_ready,     [FLOW_ROUND] = flow_do_round,     [FLOW_AGAIN] = flow_do_again,
    [FLOW_REVIEW] = flow_do_review,   [FLOW_VERDICT] = flow_do_verdict, [FLOW_QUEUE] = flow_do_queue,
    [FLOW_LAND] = flow_do_land,       [FLOW_FINISH] = flow_do_finish,   [FLOW_RELEASE] = flow_do_release,
    [FLOW_STOP] = flow_do_stop,       [FLOW_BIND] = flow_do_bind,       [FLOW_CHECK] = flow_do_check,
    [FLOW_CHECKED] = flow_do_checked, [FLOW_READ] = flow_do_read,
};

/* ---- tasks ---- */

Flow *
flow_ref(Flow *flow)
{
    flow->refs++;
    return flow;
}

void
flow_unref(Flow *flow)
{
    if (--flow->refs > 0)
        return;
    g_hash_table_unref(flow->tasks);
    g_free(flow);
}

FlowTask *
flow_task_ref(FlowTask *t)
{
    t->refs++;
    return t;
}

void
flow_task_unref(FlowTask *t)
{
    if (--t->refs > 0)
        return;
    json_decref(t->rows);
    g_hash_table_unref(t->started);
    g_ptr_array_unref(t->enders);
    g_free(t->told);
    g_free(t->bound);
    g_free(t->id);
    flow_unref(t->flow);
    g_free(t);
}

static void
on_timer(LoopTimer *timer)
{
    FlowTask *t = (FlowTask *)timer;

    flow_wake(t->flow, t->id);
}

FlowTask *
flow_task_of(Flow *flow, const char *task_id)
{
    FlowTask *t = g_hash_table_lookup(flow->tasks, task_id);

    if (t != NULL)
        return t;
    t = g_new0(FlowTask, 1);
    *t = (FlowTask){
        .timer = {.expired = on_timer}, .flow = flow_ref(flow), .refs = 1, .id = g_strdup(task_id)};
    t->started = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    t->enders = g_ptr_array_new_with_free_func(g_free);
    g_hash_table_insert(flow->tasks, t->id, t);
    return t;
}

/* It has ended, or there is none of it any more. */
static void
forget(FlowTask *t, const GError *error)
{
    flow_enders_tell(t, error);
    loop_timer_cancel(t->flow->team->spec.loop, &t->timer);
    g_hash_table_remove(t->flow->tasks, t->id);
}

/* ---- the wheel ---- */

static void look(FlowTask *t);

static void
arm(FlowTask *t, gint64 wake_us)
{
    gint64 ms = (wake_us - clock_wall_us()) / 1000 + 1;

    ms = CLAMP((ms + TICK_MS - 1) / TICK_MS * TICK_MS, TICK_MS, TIMER_MAX_MS);
    loop_timer_set(t->flow->team->spec.loop, &t->timer, (guint)ms);
}

/* Nothing is to be done now. */
static void
settle(FlowTask *t, gint64 wake_us)
{
    t->busy = false;
    if (t->again)
        look(t);
    else if (flow_task_ended(flow_row(t)))
        forget(t, NULL);
    else if (wake_us > 0)
        arm(t, wake_us);
    flow_task_unref(t);
}

/* What was handed over before is not begun again by the crew. */
static void
start_agents(FlowTask *t)
{
    size_t i;
    const Json *agent;

    if (!json_is_null(json_object_get(flow_row(t), "ending")) || flow_task_ended(flow_row(t)))
        return;
    json_array_foreach(json_object_get(t->rows, "agents"), i, agent)
    {
        const char *id = row_text(agent, "id");

        if (!flow_agent_ended(agent) && g_hash_table_add(t->started, g_strdup(id)))
            t->flow->hands.start(t->flow->team->crew, id);
    }
}

static void
act(FlowTask *t)
{
    const FlowView view = {.rows = t->rows,
                           .limits = &t->flow->team->limits,
                           .now_us = clock_wall_us(),
                           .released = t->released,
                           .bound = t->flow->team->spec.purse.bind != NULL ? t->bound : ""};
    FlowChoice choice = flow_decide(&view);

    t->released = t->released && flow_is(flow_row(t), "state", "blocked");
    start_agents(t);
    flow_tell(t);
    if (choice.what == FLOW_ADMIT)
        flow_admit(t->flow);
    if (acts[choice.what] != NULL)
        acts[choice.what](t, &choice);
    else
        settle(t, choice.wake_us);
}

static void
on_looked(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    if (t->flow->closed) {
        flow_task_unref(t);
    } else if (error != NULL && err_kind(error) == ERR_NOT_FOUND) {
        forget(t, error);
        flow_task_unref(t);
    } else if (error != NULL) {
        log_warn("team", "rows cannot be read", log_str("task", t->id), log_gerror(error));
        t->busy = false;
        loop_timer_set(t->flow->team->spec.loop, &t->timer, LOOK_AGAIN_MS);
        flow_task_unref(t);
    } else {
        json_decref(t->rows);
        t->rows = json_incref(value);
        act(t);
    }
}

/* The reference of the action goes along until settle(). */
static void
look(FlowTask *t)
{
    t->again = false;
    t->busy = true;
    loop_timer_cancel(t->flow->team->spec.loop, &t->timer);
    team_run(t->flow->team, &flow_look_op, &(FlowId){t->id}, on_looked, flow_task_ref(t));
}

void
flow_wake(Flow *flow, const char *task_id)
{
    if (flow->closed)
        return;
    FlowTask *t = flow_task_of(flow, task_id);

    t->again = t->busy;
    if (!t->busy)
        look(t);
}

void
flow_next(FlowTask *t)
{
    look(t);
    flow_task_unref(t);
}

void
flow_rest(FlowTask *t)
{
    settle(t, 0);
}

bool
flow_goes_on(FlowTask *t, const GError *error)
{
    if (t->flow->closed) {
        flow_task_unref(t);
        return false;
    }
    if (error != NULL)
        flow_problem(t, error);
    return error == NULL;
}

static void
on_written(Json *value, const GError *error, void *data)
{
    if (flow_goes_on(data, error))
        flow_next(data);
}

void
flow_write(FlowTask *t, const RowOp *op, const void *spec)
{
    team_run(t->flow->team, op, spec, on_written, t);
}

/* ---- what does not work ---- */

/* Not even that could be written down: the rows are as they were. */
static void
on_failed(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    if (t->flow->closed) {
        flow_task_unref(t);
        return;
    }
    if (error == NULL) {
        flow_admit(t->flow);
        flow_next(t);
        return;
    }
    log_warn("team", "rows cannot be written", log_str("task", t->id), log_gerror(error));
    t->busy = false;
    loop_timer_set(t->flow->team->spec.loop, &t->timer, LOOK_AGAIN_MS);
    flow_task_unref(t);
}

void
flow_problem(FlowTask *t, const GError *error)
{
    ErrKind kind = err_kind(error);
    guint tries = (guint)MIN(row_int(flow_row(t), "tries"), FLOW_TRIES);
    FlowFail fail = {.task_id = t->id,
                     .from = row_text(flow_row(t), "state"),
                     .problem = error->message,
                     .hopeless = kind == ERR_INVALID || kind == ERR_DENIED || kind == ERR_NOT_FOUND,
                     .retry_us = (gint64)t->flow->team->limits.retry_ms * 1000 << tries};

    log_info("team", "does not go on", log_str("task", t->id), log_gerror(error));
    team_run(t->flow->team, &flow_fail_op, &fail, on_failed, t);
}

Repo *
flow_repo(FlowTask *t, GError **error)
{
    const char *id = row_text(flow_row(t), "repository_id");
    Forge *forge = t->flow->team->spec.forge;
    Repo *repo = forge != NULL && id != NULL ? forge_find_id(forge, id) : NULL;

    if (repo == NULL)
        err_set(error, ERR_NOT_FOUND, "the repository of the task is gone");
    return repo;
}

/* ---- beginning and end ---- */

static void open_tasks(Flow *flow);

static void
on_again(LoopTimer *timer)
{
    Flow *flow = (Flow *)(void *)((char *)timer - offsetof(Flow, again));

    flow_budget_listen(flow);
    if (flow->opened)
        flow_admit(flow);
    else
        open_tasks(flow);
}

void
flow_try_again(Flow *flow)
{
    loop_timer_set(flow->team->spec.loop, &flow->again, LOOK_AGAIN_MS);
}

static const FlowHands hands = {crew_start, crew_halt, crew_release, plan_make, plan_cancel};

Flow *
flow_new(Team *team)
{
    Flow *flow = g_new0(Flow, 1);

    *flow = (Flow){.team = team, .refs = 1, .hands = hands, .again.expired = on_again, .heard = -1};
    flow->tasks = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)flow_task_unref);
    return flow;
}

static void
on_agent_ended(const char *execution_id, const char *task_id, const char *state, void *data)
{
    if (task_id == NULL)
        return;
    /* Of a blocked task: this box is to go, too. */
    flow_task_of(data, task_id)->released = false;
    flow_wake(data, task_id);
}

/* Suites say nothing of tasks: whoever is in the queue looks. */
static void
on_suite(Repo *repo, const char *suite_id, const char *state, void *data)
{
    Flow *flow = data;
    g_autofree gpointer *ids = g_hash_table_get_keys_as_array(flow->tasks, NULL);

    for (guint i = 0; ids[i] != NULL; i++) {
        const FlowTask *t = g_hash_table_lookup(flow->tasks, ids[i]);

        if (t->rows != NULL && flow_is(flow_row(t), "state", "landing"))
            flow_wake(flow, t->id);
    }
}

static bool
run_open(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const RowColumn columns[] = {{"id", ROW_TEXT}};
    static const RowTable table = {"task", "tasks", columns, G_N_ELEMENTS(columns)};

    *ret_value = row_all(job, &table, "state NOT IN ('done', 'failed', 'cancelled') ORDER BY number",
                         DB_NO_ARGS, error);
    return *ret_value != NULL;
}

static void
on_open(Json *value, const GError *error, void *data)
{
    Flow *flow = data;
    size_t i;
    const Json *task;

    if (error != NULL && !flow->closed) {
        log_warn("team", "tasks cannot be read", log_gerror(error));
        flow_try_again(flow);
    }
    flow->opened = error == NULL;
    json_array_foreach(value, i, task) flow_wake(flow, row_text(task, "id"));
    flow_unref(flow);
}

static void
open_tasks(Flow *flow)
{
    static const RowOp op = {ROW_READS, 0, NULL, run_open};

    team_run(flow->team, &op, NULL, on_open, flow_ref(flow));
}

/* What is known of tasks is of other rows, where a backup was restored. */
static void
look_anew(Flow *flow)
{
    g_autofree gpointer *ids = g_hash_table_get_keys_as_array(flow->tasks, NULL);

    for (guint i = 0; ids[i] != NULL; i++) {
        FlowTask *t = g_hash_table_lookup(flow->tasks, ids[i]);

        g_hash_table_remove_all(t->started);
        g_clear_pointer(&t->bound, g_free);
        t->released = false;
        flow_wake(flow, t->id);
    }
}

void
flow_start(Flow *flow)
{
    Team *team = flow->team;

    crew_listen(team->crew, on_agent_ended, flow);
    look_anew(flow);
    /* Once more when a backup was restored. */
    if (team->spec.checks != NULL)
        checks_unlisten(team->spec.checks, on_suite, flow);
    if (team->spec.checks != NULL)
        checks_listen(team->spec.checks, on_suite, flow);
    flow_budget_listen(flow);
    open_tasks(flow);
}

void
flow_free(Flow *flow)
{
    g_autoptr(GError) error = g_error_new_literal(ERR_DOMAIN, ERR_CANCELLED, "the server is stopping");
    GHashTableIter iter;
    gpointer value;

    if (flow->team->spec.checks != NULL)
        checks_unlisten(flow->team->spec.checks, on_suite, flow);
    crew_listen(flow->team->crew, NULL, NULL);
    loop_timer_cancel(flow->team->spec.loop, &flow->again);
    g_hash_table_iter_init(&iter, flow->tasks);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        FlowTask *t = value;

        loop_timer_cancel(flow->team->spec.loop, &t->timer);
        flow_enders_tell(t, error);
    }
    g_clear_pointer(&flow->news, event_cursor_free);
    flow->closed = true;
    g_hash_table_remove_all(flow->tasks);
    flow_unref(flow);
}
