/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-log.h"

#include "base/err.h"
#include "store/event-scan.h"

enum { PRELOAD_BYTES_MAX = 1024 * 1024 };

EventLog *
event_log_ref(EventLog *log)
{
    log->refs++;
    return log;
}

void
event_log_unref(EventLog *log)
{
    if (--log->refs > 0)
        return;
    event_ring_clear(&log->ring);
    g_free(log);
}

static void
on_committed(GQueue *events, void *data)
{
    EventLog *log = data;

    event_log_ref(log); /* a follower may let go of everything */
    for (GList *l = events->head; l != NULL; l = l->next) {
        Event *event = l->data;

        /* What event_log_new() has seen in the database already. */
        if (event->seq <= log->bounds.last)
            continue;
        event_ring_push(&log->ring, event);
        log->bounds.last = event->seq;
    }
    event_cursors_wake(log);
    event_log_unref(log);
}

static void
on_replaced(const EventBounds *bounds, guint generation, void *data)
{
    EventLog *log = data;

    event_log_ref(log);
    log->generation = generation;
    if (bounds != NULL) {
        event_ring_clear(&log->ring);
        log->bounds = *bounds;
        log->epoch++;
    }
    event_cursors_wake(log);
    event_log_unref(log);
}

/* So that those who come back after a restart of the server find the newest in memory. */
static bool
fill_ring(DbTx *tx, void *data, GError **error)
{
    EventLog *log = data;

    if (!event_bounds_load(tx, &log->bounds, error))
        return false;
    gint64 after = MAX(log->bounds.last - EVENT_RING_MAX, log->bounds.first - 1);
    while (after < log->bounds.last) {
        EventScan scan;

        event_scan_init(&scan, NULL, after, log->bounds.last);
        scan.bytes_max = PRELOAD_BYTES_MAX;
        bool ok = event_scan_run(tx, &scan, error);
        for (guint i = 0; ok && i < scan.events->len; i++)
            event_ring_push(&log->ring, scan.events->pdata[i]);
        after = scan.after;
        event_scan_clear(&scan);
        if (!ok)
            return false;
    }
    return true;
}

EventLog *
event_log_new(Db *db, GError **error)
{
    EventLog *log = g_new0(EventLog, 1);
    const DbListener listener = {.committed = on_committed, .replaced = on_replaced, .data = log};

    log->refs = 1;
    log->db = db;
    log->generation = db_generation(db);
    if (!db_read_now(db, fill_ring, log, error)) {
        g_prefix_error(error, "event log: ");
        event_log_unref(log);
        return NULL;
    }
    db_listen(db, &listener);
    return log;
}

void
event_log_free(EventLog *log)
{
    if (log == NULL)
        return;
    db_listen(log->db, NULL);
    log->db = NULL;
    event_log_unref(log);
}

gint64
event_log_last_seq(const EventLog *log)
{
    return log->bounds.last;
}

gint64
event_log_first_seq(const EventLog *log)
{
    return log->bounds.first;
}

void
event_log_stats(const EventLog *log, EventStats *ret_stats)
{
    *ret_stats = (EventStats){
        .cursors = log->n_cursors,
        .ring_events = log->ring.len,
        .ring_bytes = log->ring.bytes,
        .first_seq = log->bounds.first,
        .last_seq = log->bounds.last,
    };
}

bool
event_log_check_same(EventLog *log, guint generation, GError **error)
{
    if (log->db == NULL)
        return err_set(error, ERR_CANCELLED, "the event log is being closed");
    return db_generation(log->db) == generation ||
           err_set(error, ERR_UNAVAILABLE, "the event log was restored while it was read; try again");
}
