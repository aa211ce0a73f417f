/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

#include "agent/answer.h"
#include "agent/face.h"

/* What the session tells the server while it works.  Telling never holds it up for long: what cannot be told
 * waits, and when too much waits the oldest is dropped.
 *
 *   {"kind": "thought" | "said" | "summary", "text"}
 *   {"kind": "tool", "name", "arguments": short, as text, "exit_code": number or null, "duration_ms",
 * "output", "stderr": what of it is from there}
 *   {"kind": "usage", "input_tokens", "output_tokens", "cached_tokens", "duration_ms"} */
typedef struct Events Events;

enum {
    EVENTS_BATCH_MAX = 100,
    EVENTS_WAITING_MAX = 500,
    EVENTS_TEXT_MAX = 4096, /* bytes of a thought or a word */
    EVENTS_ARGUMENTS_MAX = 300,
    EVENTS_OUTPUT_MAX = 1000, /* the last bytes of a tool's */
    /* After a failure nothing is tried that long; doubled.  A server is back within a second of a
     * crash, and who watches then wants to see at once that the work goes on. */
    EVENTS_AWAY_MS = 250,
    EVENTS_AWAY_MAX_MS = 60 * 1000,
    EVENTS_FULL_MS = 1000, /* the same after too much at once */
    EVENTS_LAST_TRIES = 3,
};

Events *events_new(Face *face);
void events_free(Events *events);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Events, events_free)

void events_text(Events *events, const char *kind, const char *text);
typedef struct ToolEvent {
    const char *name, *arguments, *output, *err;
    int exit_code; /* -1: there is none */
    gint64 duration_ms;
} ToolEvent;
void events_tool(Events *events, const ToolEvent *tool);
void events_usage(Events *events, const Answer *answer, gint64 duration_ms);

/* Sends what waits, unless the server was away a moment ago. */
void events_flush(Events *events);
/* The last time: a few tries, and what cannot be told then is lost. */
void events_finish(Events *events);
