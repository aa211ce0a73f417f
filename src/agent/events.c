/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/events.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

struct Events {
    Face *face;
    Json *waiting;
    gint64 not_before_us;
    gint64 away_ms; /* 0: the last time it was there */
    guint64 dropped;
};

Events *
events_new(Face *face)
{
    Events *e = g_new0(Events, 1);

    e->face = face;
    e->waiting = json_array();
    return e;
}

void
events_free(Events *events)
{
    if (events == NULL)
        return;
    json_decref(events->waiting);
    g_free(events);
}

/* The beginning of a text, or its end. */
static Json *
short_text(const char *text, size_t max, bool end)
{
    size_t n = strlen(text);
    const char *from = end && n > max ? text + n - max : text;
    g_autofree char *valid = g_utf8_make_valid(from, (gssize)MIN(n, max));

    return json_string(valid);
}

static void
add(Events *e, Json *event)
{
    while (json_array_size(e->waiting) >= EVENTS_WAITING_MAX) {
        json_array_remove(e->waiting, 0);
        e->dropped++;
    }
    json_array_append_new(e->waiting, event);
}

void
events_text(Events *events, const char *kind, const char *text)
{
    if (*text != '\0')
        add(events, json_pack("{s:s, s:o}", "kind", kind, "text", short_text(text, EVENTS_TEXT_MAX, false)));
}

void
events_tool(Events *events, const ToolEvent *tool)
{
    Json *code = tool->exit_code >= 0 ? json_integer(tool->exit_code) : json_null();

    Json *err = tool->err[0] != '\0' ? short_text(tool->err, EVENTS_OUTPUT_MAX, true) : NULL;

    add(events, json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:o*}", "kind", "tool", "name", tool->name,
                          "arguments", short_text(tool->arguments, EVENTS_ARGUMENTS_MAX, false), "exit_code",
                          code, "duration_ms", (json_int_t)tool->duration_ms, "output",
                          short_text(tool->output, EVENTS_OUTPUT_MAX, true), "stderr", err));
}

void
events_usage(Events *events, const Answer *answer, gint64 duration_ms)
{
    add(events, json_pack("{s:s, s:I, s:I, s:I, s:I}", "kind", "usage", "input_tokens",
                          (json_int_t)MAX(answer->input_tokens, 0), "output_tokens",
                          (json_int_t)MAX(answer->output_tokens, 0), "cached_tokens",
                          (json_int_t)MAX(answer->cached_tokens, 0), "duration_ms", (json_int_t)duration_ms));
}

static Json *
take_batch(const Events *e)
{
    Json *batch = json_array();

    for (size_t i = 0; i < MIN(json_array_size(e->waiting), (size_t)EVENTS_BATCH_MAX); i++)
        json_array_append(batch, json_array_get(e->waiting, i));
    return batch;
}

static void
on_away(Events *e, const GError *error)
{
    if (err_kind(error) == ERR_LIMIT)
        e->away_ms = EVENTS_FULL_MS;
    else
        e->away_ms = e->away_ms == 0 ? EVENTS_AWAY_MS : MIN(e->away_ms * 2, EVENTS_AWAY_MAX_MS);
    e->not_before_us = clock_mono_us() + e->away_ms * 1000;
    log_warn("agent", "the server does not hear", log_gerror(error),
             log_int("waiting", json_array_size(e->waiting)), log_int("dropped", e->dropped));
}

void
events_flush(Events *events)
{
    while (json_array_size(events->waiting) > 0 && clock_mono_us() >= events->not_before_us) {
        g_autoptr(Json) batch = take_batch(events);
        g_autoptr(GError) error = NULL;

        if (!face_report(events->face, batch, &error)) {
            on_away(events, error);
            return;
        }
        events->away_ms = 0;
        for (size_t i = 0; i < json_array_size(batch); i++)
            json_array_remove(events->waiting, 0);
    }
}

void
events_finish(Events *events)
{
    for (guint i = 0; i < EVENTS_LAST_TRIES && json_array_size(events->waiting) > 0; i++) {
        if (i > 0 && !face_pause(events->face, EVENTS_FULL_MS, NULL))
            return;
        events->not_before_us = 0;
        events_flush(events);
    }
}
