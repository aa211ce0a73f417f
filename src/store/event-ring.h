/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/event-row.h"

/* The newest events, without a gap; EVENT_RING_MAX of them or EVENT_RING_BYTES_MAX bytes,
 * whichever comes first (the newest one is kept however large). */
typedef struct EventRing {
    Event *slots[EVENT_RING_MAX];
    guint start, len;
    size_t bytes;
} EventRing;

void event_ring_clear(EventRing *ring);
/* Takes a reference.  An event that does not follow the newest empties the ring first. */
void event_ring_push(EventRing *ring, Event *event);
/* Borrowed; NULL: not here. */
Event *event_ring_get(const EventRing *ring, gint64 seq);
