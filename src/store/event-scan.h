/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/event-filter.h"

/* One pass over the stored log, in a reader thread: a bounded number of rows is looked at
 * and a bounded number of events is kept, so that no filter and no size of log can hold a
 * thread for long or fill the memory.  Called again, it goes on where it stopped. */
typedef struct EventScan {
    /* asked */
    FilterCopy *filter;
    gint64 upto;      /* nothing after this */
    guint limit;      /* events to keep */
    size_t bytes_max; /* and their size; the first is kept however large */
    /* answered */
    gint64 after;      /* everything up to here is done with; the caller sets the start */
    GPtrArray *events; /* Event * */
    size_t bytes;
    gint64 first; /* oldest row there was */
    bool full;    /* one more passes the filter but found no room */
} EventScan;

void event_scan_init(EventScan *scan, FilterCopy *filter, gint64 after, gint64 upto); /* takes a reference */
void event_scan_clear(EventScan *scan);
bool event_scan_run(DbTx *tx, EventScan *scan, GError **error);

static inline bool
event_scan_ended(const EventScan *scan)
{
    return scan->full || scan->after >= scan->upto;
}
