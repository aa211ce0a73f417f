/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db-internal.h"
#include "store/event-ring.h"

/* The inside of the log, which lives on the loop. */
struct EventLog {
    guint refs; /* the owner, each cursor, each job under way */
    Db *db;     /* NULL once the owner has let go */
    EventRing ring;
    EventBounds bounds;
    guint generation; /* of the content, as far as the loop was told */
    guint epoch;      /* changes when the content was replaced: cursors of another resync */
    guint n_cursors;
    /* A cursor is in one of these or in none. */
    GQueue waiting; /* at the end of the log */
    GQueue queued;  /* behind the ring, waiting for a turn to read */
    GQueue paged;   /* holding a page, longest unused first */
    size_t paged_bytes;
    guint reading; /* page reads under way */
};

EventLog *event_log_ref(EventLog *log);
void event_log_unref(EventLog *log);

/* Lets every waiting cursor look again. */
void event_cursors_wake(EventLog *log);

/* The content was replaced between two steps of a long reading. */
bool event_log_check_same(EventLog *log, guint generation, GError **error);
