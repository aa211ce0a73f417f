/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "api/call.h"
#include "store/events.h"

/* Events as they happen, as server-sent events: `id` is the seq, so that a reader goes on where it was;
 * `beat` every 15 s, `resync` where events are missing.  A slow reader is read for from the log. */

typedef enum StreamKind { STREAM_LOG, STREAM_EXECUTION, STREAM_SQUAD, STREAM_KIND_MAX } StreamKind;

typedef struct StreamCounts {
    guint64 opened, events, beats, resyncs, lines;
    guint open;
} StreamCounts;

typedef struct EventStreamSpec {
    StreamKind kind;
    const EventFilter *filter;                /* its owner is the caller */
    gint64 after;                             /* < 0: from now on */
    const char *(*name_of)(const char *kind); /* NULL: the kind itself */
    /* Lines of the commands in a box too (stream-lines.h): */
    bool with_lines;
    const char *box_id; /* NULL: not known yet */
    gint64 run;         /* that goes on; 0: none */
    const char *places; /* of the id that the reader came back with; NULL: it did not */
} EventStreamSpec;

/* Last-Event-ID, where the caller has one; else `*after` stays.  `*ret_places` (NULL: there are none): what
 * stands behind a ';' in it, borrowed from the request; NULL: nothing. */
bool event_stream_read_last_id(const ApiCall *call, gint64 *after, const char **ret_places, GError **error);
/* Answers, also with ERR_INVALID for places that are none; the call must count as a stream already
 * (ROUTE_STREAM, gate_take_stream()). */
void event_stream_follow(ApiCall *call, const EventStreamSpec *spec);

/* What the squad stream calls a kind of event: one fixed table; a kind without a row is itself with an
 * underscore. */
const char *stream_squad_name(const char *kind);
