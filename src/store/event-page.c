/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-log.h"
#include "store/event-scan.h"

enum { PAGE_BYTES_MAX = 1024 * 1024 };

typedef struct PageJob {
    EventLog *log;
    EventScan scan;
    guint generation;
    EventPageFunc done;
    void *data;
} PageJob;

static void
page_job_free(PageJob *p)
{
    event_scan_clear(&p->scan);
    event_log_unref(p->log);
    g_free(p);
}

static bool
run(DbTx *tx, void *data, GError **error)
{
    return event_scan_run(tx, &((PageJob *)data)->scan, error);
}

static void
on_run(void *data, const GError *error)
{
    PageJob *p = data;
    g_autoptr(GError) local = error != NULL ? g_error_copy(error) : NULL;

    if (local == NULL)
        event_log_check_same(p->log, p->generation, &local);
    if (local == NULL && !event_scan_ended(&p->scan)) {
        db_read(p->log->db, run, on_run, p, NULL);
        return;
    }
    const EventPage page = {
        .events = p->scan.events,
        .next_after = p->scan.after,
        .seq = p->scan.upto,
        .more = p->scan.full,
    };
    p->done(local == NULL ? &page : NULL, local, p->data);
    page_job_free(p);
}

void
event_log_read(EventLog *log, const EventFilter *filter, gint64 after, guint limit, EventPageFunc done,
               void *data)
{
    PageJob *p = g_new0(PageJob, 1);
    FilterCopy *copy = filter_copy_new(filter);

    p->log = event_log_ref(log);
    event_scan_init(&p->scan, copy, CLAMP(after, 0, log->bounds.last), log->bounds.last);
    filter_copy_unref(copy);
    p->scan.limit = CLAMP(limit, 1, EVENT_PAGE_MAX);
    p->scan.bytes_max = PAGE_BYTES_MAX;
    p->generation = log->generation;
    p->done = done;
    p->data = data;
    db_read(log->db, run, on_run, p, NULL);
}
