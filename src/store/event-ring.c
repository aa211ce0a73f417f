/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-ring.h"

static Event *
at(const EventRing *r, guint i)
{
    return r->slots[(r->start + i) % EVENT_RING_MAX];
}

static void
drop_oldest(EventRing *r)
{
    Event *oldest = at(r, 0);

    r->bytes -= event_size(oldest);
    r->start = (r->start + 1) % EVENT_RING_MAX;
    r->len--;
    event_unref(oldest);
}

void
event_ring_clear(EventRing *r)
{
    while (r->len > 0)
        drop_oldest(r);
}

void
event_ring_push(EventRing *r, Event *event)
{
    if (r->len > 0 && at(r, r->len - 1)->seq + 1 != event->seq)
        event_ring_clear(r);
    while (r->len == EVENT_RING_MAX || (r->len > 0 && r->bytes + event_size(event) > EVENT_RING_BYTES_MAX))
        drop_oldest(r);
    r->slots[(r->start + r->len) % EVENT_RING_MAX] = event_ref(event);
    r->len++;
    r->bytes += event_size(event);
}

Event *
event_ring_get(const EventRing *r, gint64 seq)
{
    if (r->len == 0 || seq < at(r, 0)->seq || seq > at(r, r->len - 1)->seq)
        return NULL;
    return at(r, (guint)(seq - at(r, 0)->seq));
}
