/* SPDX-License-Identifier: Apache-2.0 */
/* A task's budget is enforced at the door, for all of its agents together and for who plans it.  One that is
 * used up stops its task at once: what would be tried next is refused there anyway, and is no try of an
 * agent's.  An answer raises it (flow-raise.c). */
#include <string.h>

#include "base/log.h"
#include "team/flow-private.h"

enum { MICRO = 1000 * 1000 };

/* ---- what binds a task ---- */

char *
flow_bounds(const Json *task)
{
    const Json *budget = json_object_get(json_object_get(task, "policy"), "budget");
    const Json *usd = json_object_get(budget, "usd");
    g_autoptr(Json) bounds = json_object();

    for (size_t i = 0; i < FLOW_COUNTS; i++) {
        if (row_int(budget, flow_counts[i]) > 0)
            json_object_set_new(bounds, flow_counts[i], json_integer(row_int(budget, flow_counts[i])));
    }
    /* To the door a bound of 0 is none; who may spend nothing can still use what costs nothing. */
    if (json_is_number(usd))
        json_object_set_new(bounds, "microusd",
                            json_integer(MAX((json_int_t)(json_number_value(usd) * MICRO + 0.5), 1)));
    return json_object_size(bounds) > 0 ? json_encode(bounds) : NULL;
}

bool
flow_budget_is_own(const FlowTask *t)
{
    const Purse *purse = &t->flow->team->spec.purse;

    return purse->is_bound != NULL && purse->is_bound(purse->ctx, t->id);
}

static void
on_bound(void *data, const GError *error)
{
    FlowTask *t = data;

    if (!flow_goes_on(t, error))
        return;
    g_free(t->bound);
    t->bound = flow_bounds(flow_row(t));
    flow_next(t);
}

void
flow_do_bind(FlowTask *t, const FlowChoice *choice)
{
    const Purse *purse = &t->flow->team->spec.purse;
    g_autofree char *text = flow_bounds(flow_row(t));
    g_autoptr(Json) bounds = json_decode(text, strlen(text), NULL);

    purse->bind(purse->ctx, t->id, bounds, on_bound, t);
}

typedef struct Unbind {
    FlowTask *t;
    void (*then)(FlowTask *t);
} Unbind;

/* One that stays binds nobody: the task is over. */
static void
on_unbound(void *data, const GError *error)
{
    g_autofree Unbind *unbind = data;

    if (flow_goes_on(unbind->t, NULL))
        unbind->then(unbind->t);
}

void
flow_unbind(FlowTask *t, void (*then)(FlowTask *t))
{
    const Purse *purse = &t->flow->team->spec.purse;
    g_autofree char *bounds = flow_bounds(flow_row(t));

    if (bounds == NULL || purse->bind == NULL) {
        then(t);
        return;
    }
    Unbind *unbind = g_new(Unbind, 1);

    *unbind = (Unbind){t, then};
    g_clear_pointer(&t->bound, g_free);
    purse->bind(purse->ctx, t->id, NULL, on_unbound, unbind);
}

/* ---- one that is used up ---- */

static char *
words_of(const Json *task)
{
    const Json *budget = json_object_get(json_object_get(task, "policy"), "budget");
    const Json *usd = json_object_get(budget, "usd");
    g_autoptr(GString) out = g_string_new(NULL);

    if (json_is_number(usd))
        g_string_append_printf(out, "%g USD", json_number_value(usd));
    for (size_t i = 0; i < FLOW_COUNTS; i++) {
        if (row_int(budget, flow_counts[i]) > 0)
            g_string_append_printf(out, "%s%" G_GINT64_FORMAT " %s", out->len > 0 ? ", " : "",
                                   row_int(budget, flow_counts[i]), flow_counts[i]);
    }
    return g_strdup(out->str);
}

/* `message` NULL: the door's is not known. */
static bool
block(RowJob *job, const Json *task, bool own, const char *message, GError **error)
{
    g_autofree char *bounds = flow_bounds(task), *words = words_of(task);

    if (!own || bounds == NULL) {
        const char *problem = message != NULL ? message : "A budget is used up";
        g_autofree char *question = g_strdup_printf("%s. Say `retry` when it was raised, or `stop`.",
                                                    problem);

        return flow_block(job, task, &(FlowBlock){.problem = problem, .question = question}, error);
    }
    g_autofree char *problem = g_strdup_printf("The task's budget is used up: %s", words);
    g_autofree char *question = g_strdup_printf(
        "%s.\n\nShall it be raised, or shall the task stop? `raise` makes it twice as much; `usd 5`, "
        "`tokens 100000` or `calls 50` say what it is from now on.%s%s",
        problem, message != NULL ? "\n\n" : "", message != NULL ? message : "");

    return flow_block(job, task, &(FlowBlock){.problem = problem, .question = question, .first = "raise"},
                      error);
}

bool
flow_last_answer(RowJob *job, const Json *task, gint64 *ret_us, GError **error)
{
    *ret_us = 0;
    return row_ask_int(job,
                       "SELECT COALESCE(MAX(answered_us), 0) FROM questions "
                       "WHERE task_id = ? AND execution_id IS NULL",
                       DB_ARGS(db_text(row_text(task, "id"))), ret_us, error);
}

bool
flow_over(RowJob *job, const Json *task, const Json *agent, bool own, bool *ret_over, GError **error)
{
    gint64 answered_us;

    *ret_over = false;
    if (!flow_is(json_object_get(agent, "report"), "reason", "budget_exceeded"))
        return true;
    if (!flow_last_answer(job, task, &answered_us, error))
        return false;
    *ret_over = row_int(agent, "created_us") > answered_us;
    return !*ret_over || block(job, task, own, row_text(agent, "problem"), error);
}

typedef struct Exceeded {
    const char *task_id, *message;
    const char *bound; /* NULL: not known */
    gint64 most, at_us;
    bool own;
} Exceeded;

/* What the door refused before it heard of the raise. */
static bool
is_old(const Json *task, const Exceeded *exceeded)
{
    g_autofree char *text = flow_bounds(task);
    g_autoptr(Json) bounds = text != NULL ? json_decode(text, strlen(text), NULL) : NULL;

    return exceeded->own && exceeded->bound != NULL &&
           (json_object_get(bounds, exceeded->bound) == NULL ||
            row_int(bounds, exceeded->bound) > exceeded->most);
}

static bool
run_exceeded(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const char *const states[] = {"planning", "working", "reviewing", NULL};
    const Exceeded *exceeded = data;
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) task = flow_task_get(job, exceeded->task_id, &failed);
    gint64 answered_us = 0;

    /* Boxes of no task of ours may carry the name of one, too. */
    if (task == NULL || !g_strv_contains(states, row_text(task, "state")) || is_old(task, exceeded))
        return true;
    if (!flow_last_answer(job, task, &answered_us, error))
        return false;
    return exceeded->at_us < answered_us || block(job, task, exceeded->own, exceeded->message, error);
}

static const RowMember exceeded_members[] = {ROW_AT_TEXT(Exceeded, task_id), ROW_AT_TEXT(Exceeded, message),
                                             ROW_AT_TEXT(Exceeded, bound), ROW_AT_END};
static const RowOp exceeded_op = {ROW_WRITES, sizeof(Exceeded), exceeded_members, run_exceeded};

void
flow_plan_over(FlowTask *t, const char *message)
{
    const Exceeded exceeded = {
        .task_id = t->id, .message = message, .at_us = G_MAXINT64, .own = flow_budget_is_own(t)};

    flow_write(t, &exceeded_op, &exceeded);
}

/* ---- what the door tells ---- */

static void
on_blocked(Json *value, const GError *error, void *data)
{
    FlowTask *t = data;

    if (!t->flow->closed && error != NULL)
        log_warn("team", "a budget is used up, and it goes on", log_str("task", t->id), log_gerror(error));
    if (!t->flow->closed)
        flow_wake(t->flow, t->id);
    flow_task_unref(t);
}

/* A rate comes free again, and whoever asks waits for that. */
static bool
is_rate(const char *bound)
{
    return bound != NULL && strstr(bound, "_per_") != NULL;
}

static void
hear(Flow *flow, const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    const Json *data = json_object_get(whole, "data");
    const char *bound = row_text(data, "bound"), *scope = row_text(data, "scope");

    if (event->task_id == NULL || is_rate(bound))
        return;
    FlowTask *t = flow_task_of(flow, event->task_id);
    g_autofree char *own = g_strconcat("task:", t->id, NULL);
    const Exceeded exceeded = {.task_id = t->id,
                               .message = row_text(data, "message"),
                               .bound = bound,
                               .most = row_int(data, "most"),
                               .at_us = event->at_us,
                               .own = g_strcmp0(scope, own) == 0 && flow_budget_is_own(t)};

    team_run(flow->team, &exceeded_op, &exceeded, on_blocked, flow_task_ref(t));
}

static void
on_news(void *data)
{
    Flow *flow = data;
    Event *event = NULL;

    for (;;) {
        EventStep step = event_cursor_next(flow->news, &event);

        if (step == EVENT_WAIT)
            return;
        if (step == EVENT_FAILED) {
            flow->heard = event_cursor_seq(flow->news);
            g_clear_pointer(&flow->news, event_cursor_free);
            flow_try_again(flow);
            return;
        }
        if (step == EVENT_READY) {
            hear(flow, event);
            event_unref(g_steal_pointer(&event));
        }
    }
}

void
flow_budget_listen(Flow *flow)
{
    static const char *const kinds[] = {"budget.exceeded", NULL};

    if (flow->news != NULL || flow->team->spec.events == NULL)
        return;
    flow->news = event_cursor_new(flow->team->spec.events, &(EventFilter){.kinds = kinds}, flow->heard,
                                  on_news, flow);
    event_cursor_is_own(flow->news);
    on_news(flow);
}
