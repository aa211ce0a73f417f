/* SPDX-License-Identifier: Apache-2.0 */
/* What others write about agents. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "team/crew-private.h"

enum { AGAIN_MS = 1000 };

typedef struct CallSpec {
    const char *id;
    gint64 at_us;
} CallSpec;
static const RowMember call_members[] = {ROW_AT_TEXT(CallSpec, id), ROW_AT_END};

static bool
run_call(RowJob *job, const void *spec, Json **ret_value, GError **error)
{
    const CallSpec *c = spec;

    return db_exec(job->tx, "UPDATE task_executions SET first_call_us = ? WHERE id = ? AND first_call_us = 0",
                   DB_ARGS(db_int(c->at_us), db_text(c->id)), error);
}

/* The event is written when the call has ended. */
static gint64
began_us(const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    gint64 took_ms = row_int(json_object_get(whole, "data"), "latency_ms");

    return event->at_us - MAX(took_ms, 0) * 1000;
}

static void
note_call(Crew *crew, const Event *event)
{
    static const RowOp op = {ROW_WRITES, sizeof(CallSpec), call_members, run_call};
    Shift *s = event->box_id != NULL ? g_hash_table_lookup(crew->by_box, event->box_id) : NULL;

    if (s != NULL && s->asking > 0 && began_us(event) > s->asked_us)
        shift_works_on(s);
    if (s == NULL || s->called)
        return;
    s->called = true;
    team_run(crew->team, &op, &(CallSpec){s->id, began_us(event)}, NULL, NULL);
}

static void
break_loop(Crew *crew, const Event *event)
{
    g_autoptr(Json) whole = json_decode(event->json, event->json_len, NULL);
    Shift *s = event->box_id != NULL ? g_hash_table_lookup(crew->by_box, event->box_id) : NULL;

    if (s != NULL)
        shift_loops(s, (guint)CLAMP(row_int(json_object_get(whole, "data"), "repeats"), 1, G_MAXINT));
}

static void
on_events(void *data)
{
    Crew *crew = data;
    Event *next = NULL;
    EventStep step;

    while ((step = event_cursor_next(crew->cursor, &next)) == EVENT_READY) {
        g_autoptr(Event) event = next;

        if (strcmp(event->kind, "model.called") == 0)
            note_call(crew, event);
        else if (strcmp(event->kind, "loop.broken") == 0)
            break_loop(crew, event);
        else if (event->execution_id != NULL)
            crew_answered(crew, event->execution_id);
    }
    if (step == EVENT_WAIT)
        return;
    log_warn("crew", "events cannot be followed; once more, soon");
    crew_follow_end(crew);
    loop_timer_set(crew->loop, &crew->follow_timer, AGAIN_MS);
}

static void
on_again(LoopTimer *timer)
{
    crew_follow((Crew *)(void *)((char *)timer - offsetof(Crew, follow_timer)));
}

void
crew_follow(Crew *crew)
{
    static const char *const kinds[] = {"model.called", "loop.broken", "human.answered", NULL};
    const EventFilter filter = {.kinds = kinds};

    crew_follow_end(crew); /* what it followed before a restore */
    crew->follow_timer.expired = on_again;
    crew->cursor = event_cursor_new(crew->team->spec.events, &filter, -1, on_events, crew);
    event_cursor_is_own(crew->cursor);
    on_events(crew);
}

void
crew_follow_end(Crew *crew)
{
    loop_timer_cancel(crew->loop, &crew->follow_timer);
    g_clear_pointer(&crew->cursor, event_cursor_free);
}
