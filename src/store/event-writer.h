/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "store/event-row.h"

/* What the writer thread keeps for event_append(): the head of the chain, and the events of
 * the open transaction that wait for their commit.
 *
 * After any rollback the head is read again, so that neither a number nor a hash of an event
 * that never was is built upon.  Only as many events are kept as the ring could hold: a
 * follower that misses the older ones reads them from the database. */
typedef struct EventWriter {
    bool known;
    gint64 seq;
    guint8 hash[EVENT_HASH_LEN];
    GQueue pending; /* Event *, oldest first */
    size_t pending_bytes;
} EventWriter;

void event_writer_clear(EventWriter *w);

gint64 event_writer_mark(const EventWriter *w);
/* Forgets what was appended after the mark. */
void event_writer_rewind(EventWriter *w, gint64 mark);
/* The committed events move out; NULL when there are none. */
GQueue *event_writer_steal(EventWriter *w);

void event_queue_free(GQueue *events);
