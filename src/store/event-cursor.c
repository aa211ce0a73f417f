/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-log.h"
#include "store/event-scan.h"

/* A cursor is a position and a filter; it owns no events.
 *
 * At the end of the log it costs its struct and a link in `waiting`.  In the ring it is a
 * number.  Behind the ring it reads pages from the database, a few cursors at a time, each
 * page bounded and all pages together bounded: one that is not consumed is dropped for the
 * sake of others and read again when somebody asks.
 *
 * 1. Everything up to `seq` was handed out or does not pass the filter.
 * 2. A page covers what follows `seq` without a gap; its read was bounded by what was
 *    published when it began, so the ring can be joined behind it.
 * 3. Every cursor in `waiting` stands at the end (or waits to be told of a restore), so a
 *    filter that never matches does not fall behind. */

enum {
    READS_MAX = 4,
    PAGE_EVENTS_MAX = 64,
    PAGE_BYTES_MAX = 64 * 1024,
    PAGED_BYTES_MAX = 16 * 1024 * 1024,
};

typedef struct CursorRead {
    EventLog *log;
    EventCursor *cursor; /* NULL: nobody wants it any more */
    EventScan scan;
    guint generation; /* as told when it began */
} CursorRead;

typedef struct CursorPage {
    GPtrArray *events; /* NULL where handed out */
    guint next;
    size_t bytes;
    gint64 after; /* where the cursor stands when the page is used up */
} CursorPage;

struct EventCursor {
    GList link; /* in `in` */
    GQueue *in;
    EventLog *log;
    FilterCopy *filter;
    void (*wake)(void *data);
    void *data;
    gint64 seq;
    CursorPage *page;
    CursorRead *read;
    guint epoch;
    bool failed;
    bool is_own;
};
/* There may be ten thousand of them, idle. */
G_STATIC_ASSERT(sizeof(EventCursor) <= 128);

static void
move_to(EventCursor *c, GQueue *queue)
{
    if (c->in != NULL)
        g_queue_unlink(c->in, &c->link);
    c->in = queue;
    if (queue != NULL)
        g_queue_push_tail_link(queue, &c->link);
}

static void
drop_page(EventCursor *c)
{
    if (c->page == NULL)
        return;
    c->log->paged_bytes -= c->page->bytes;
    g_ptr_array_unref(c->page->events);
    g_clear_pointer(&c->page, g_free);
}

static void
forget_read(EventCursor *c)
{
    if (c->read != NULL)
        c->read->cursor = NULL;
    c->read = NULL;
}

static void
hold_page(EventCursor *c, EventScan *scan)
{
    EventLog *log = c->log;

    c->page = g_new0(CursorPage, 1);
    c->page->events = g_steal_pointer(&scan->events);
    c->page->bytes = sizeof *c->page + scan->bytes;
    c->page->after = scan->after;
    log->paged_bytes += c->page->bytes;
    while (log->paged_bytes > PAGED_BYTES_MAX && log->paged.length > 0) {
        EventCursor *idle = log->paged.head->data;

        drop_page(idle);
        move_to(idle, NULL);
    }
}

static void start_reads(EventLog *log);

static bool
read_page(DbTx *tx, void *data, GError **error)
{
    return event_scan_run(tx, &((CursorRead *)data)->scan, error);
}

static EventStep advance(EventCursor *c);

static void
take_page(EventCursor *c, CursorRead *r)
{
    EventLog *log = c->log;

    log->bounds.first = MAX(log->bounds.first, r->scan.first);
    /* Otherwise retention was faster than the reading. */
    if (c->seq + 1 >= r->scan.first)
        hold_page(c, &r->scan);
}

static void
take_read(EventCursor *c, CursorRead *r, const GError *error)
{
    EventLog *log = c->log;

    c->read = NULL;
    if (log->db == NULL)
        return;
    guint generation = db_generation(log->db);
    if (error != NULL)
        c->failed = true;
    else if (r->generation == generation)
        take_page(c, r);
    else if (log->generation != generation) {
        /* A restore has begun; the word of its end wakes all that wait. */
        move_to(c, &log->waiting);
        return;
    }
    if (advance(c) != EVENT_WAIT)
        c->wake(c->data);
}

static void
on_page(void *data, const GError *error)
{
    CursorRead *r = data;

    r->log->reading--;
    if (r->cursor != NULL)
        take_read(r->cursor, r, error);
    start_reads(r->log);
}

static void
read_free(void *data)
{
    CursorRead *r = data;

    event_scan_clear(&r->scan);
    event_log_unref(r->log);
    g_free(r);
}

static void
start_reads(EventLog *log)
{
    while (log->db != NULL && log->reading < READS_MAX && log->queued.length > 0) {
        EventCursor *c = log->queued.head->data;
        CursorRead *r = g_new0(CursorRead, 1);

        move_to(c, NULL);
        r->log = event_log_ref(log);
        r->cursor = c;
        r->generation = log->generation;
        event_scan_init(&r->scan, c->filter, c->seq, log->bounds.last);
        r->scan.limit = PAGE_EVENTS_MAX;
        r->scan.bytes_max = PAGE_BYTES_MAX;
        c->read = r;
        log->reading++;
        db_read(log->db, read_page, on_page, r, read_free);
    }
}

static bool
page_has_next(EventCursor *c)
{
    if (c->page == NULL)
        return false;
    if (c->page->next < c->page->events->len)
        return true;
    c->seq = c->page->after;
    drop_page(c);
    return false;
}

static Event *
find_in_ring(EventCursor *c)
{
    for (Event *e; (e = event_ring_get(&c->log->ring, c->seq + 1)) != NULL; c->seq = e->seq) {
        if (filter_event_passes(c->filter, e))
            return e;
    }
    return NULL;
}

/* Where it stands; EVENT_WAIT has arranged for the wake. */
static EventStep
advance(EventCursor *c)
{
    EventLog *log = c->log;

    move_to(c, NULL);
    if (log->db == NULL || c->failed)
        return EVENT_FAILED;
    if (c->epoch != log->epoch || c->seq > log->bounds.last)
        return EVENT_RESYNC;
    if (c->read != NULL)
        return EVENT_WAIT;
    if (page_has_next(c)) {
        move_to(c, &log->paged);
        return EVENT_READY;
    }
    if (find_in_ring(c) != NULL)
        return EVENT_READY;
    if (c->seq == log->bounds.last) {
        move_to(c, &log->waiting);
        return EVENT_WAIT;
    }
    if (c->seq + 1 < log->bounds.first)
        return EVENT_RESYNC;
    move_to(c, &log->queued);
    start_reads(log);
    return EVENT_WAIT;
}

static Event *
take_event(EventCursor *c)
{
    Event *event = c->page != NULL ? g_steal_pointer(&c->page->events->pdata[c->page->next++])
                                   : event_ref(event_ring_get(&c->log->ring, c->seq + 1));

    c->seq = event->seq;
    return event;
}

EventStep
event_cursor_next(EventCursor *c, Event **ret_event)
{
    EventStep step = advance(c);

    switch (step) {
    case EVENT_READY:
        *ret_event = take_event(c);
        break;
    case EVENT_RESYNC:
        forget_read(c);
        drop_page(c);
        c->seq = c->log->bounds.last;
        c->epoch = c->log->epoch;
        break;
    case EVENT_FAILED:
        c->failed = false; /* asked again, it tries again */
        break;
    case EVENT_WAIT:
        break;
    }
    return step;
}

void
event_cursors_wake(EventLog *log)
{
    /* Those that go on waiting go to the end of the queue, so a count ends the loop even if
     * callbacks add and remove cursors. */
    for (guint n = log->waiting.length; n > 0 && log->waiting.length > 0; n--) {
        EventCursor *c = log->waiting.head->data;

        if (advance(c) != EVENT_WAIT)
            c->wake(c->data);
    }
}

EventCursor *
event_cursor_new(EventLog *log, const EventFilter *filter, gint64 after, void (*wake)(void *data), void *data)
{
    EventCursor *c = g_new0(EventCursor, 1);

    c->link.data = c;
    c->log = event_log_ref(log);
    c->filter = filter_copy_new(filter);
    c->wake = wake;
    c->data = data;
    c->seq = after >= 0 ? after : log->bounds.last;
    c->epoch = log->epoch;
    log->n_cursors++;
    return c;
}

void
event_cursor_is_own(EventCursor *c)
{
    c->log->n_cursors -= !c->is_own;
    c->is_own = true;
}

void
event_cursor_free(EventCursor *c)
{
    if (c == NULL)
        return;
    move_to(c, NULL);
    forget_read(c);
    drop_page(c);
    filter_copy_unref(c->filter);
    c->log->n_cursors -= !c->is_own;
    event_log_unref(c->log);
    g_free(c);
}

gint64
event_cursor_seq(const EventCursor *c)
{
    return c->seq;
}
