/* SPDX-License-Identifier: Apache-2.0 */
/* A budget that is used up stops its task at once: what its agents would try next is refused at the door
 * anyway, and is no try of theirs. */
#include <string.h>

#include "base/log.h"
#include "team/flow-private.h"

typedef struct Exceeded {
    const char *task_id, *problem;
} Exceeded;

static bool
run_exceeded(RowJob *job, const void *data, Json **ret_value, GError **error)
{
    static const char *const states[] = {"planning", "working", "reviewing", NULL};
    const Exceeded *exceeded = data;
    g_autoptr(GError) failed = NULL;
    g_autoptr(Json) task = flow_task_get(job, exceeded->task_id, &failed);

    /* Boxes of no task of ours may carry the name of one, too. */
    if (task == NULL || !g_strv_contains(states, row_text(task, "state")))
        return true;
    return flow_block(job, task, &(FlowBlock){.problem = exceeded->problem}, error);
}

static const RowMember exceeded_members[] = {ROW_AT_TEXT(Exceeded, task_id), ROW_AT_TEXT(Exceeded, problem),
                                             ROW_AT_END};
static const RowOp exceeded_op = {ROW_WRITES, sizeof(Exceeded), exceeded_members, run_exceeded};

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

static void
hear(Flow *flow, const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    const char *message = row_text(json_object_get(whole, "data"), "message");
    const Exceeded exceeded = {event->task_id, message != NULL ? message : "A budget is used up"};

    if (event->task_id != NULL)
        team_run(flow->team, &exceeded_op, &exceeded, on_blocked,
                 flow_task_ref(flow_task_of(flow, event->task_id)));
}

static void
on_news(void *data)
{
    Flow *flow = data;
    Event *event = NULL;

    for (;;) {
        EventStep step = event_cursor_next(flow->news, &event);

        if (step == EVENT_WAIT || step == EVENT_FAILED)
            return;
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
    flow->news = event_cursor_new(flow->team->spec.events, &(EventFilter){.kinds = kinds}, -1, on_news, flow);
    event_cursor_is_own(flow->news);
    on_news(flow);
}
