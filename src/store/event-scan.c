/* SPDX-License-Identifier: Apache-2.0 */
#include "store/event-scan.h"

#include "base/err.h"

enum { SCAN_ROWS_MAX = 4096 };

void
event_scan_init(EventScan *scan, FilterCopy *filter, gint64 after, gint64 upto)
{
    *scan = (EventScan){
        .filter = filter_copy_ref(filter),
        .upto = upto,
        .limit = EVENT_PAGE_MAX,
        .bytes_max = G_MAXSIZE,
        .after = after,
        .events = g_ptr_array_new_with_free_func((GDestroyNotify)event_unref),
    };
}

void
event_scan_clear(EventScan *scan)
{
    g_clear_pointer(&scan->filter, filter_copy_unref);
    g_clear_pointer(&scan->events, g_ptr_array_unref);
}

#define SELECT "SELECT " EVENT_COLUMNS " FROM events WHERE "
#define BETWEEN "seq > ? AND seq <= ? "
#define RANGE BETWEEN "ORDER BY seq LIMIT ?"

/* Two walks through one index, merged: one owner's, and what is for all.  The index leaves out what is
 * nobody's, and is found by the same words. */
static DbRows *
open_owner(DbTx *tx, const char *owner, const DbValue range[3], GError **error)
{
#define OWNED SELECT "owner = ? AND owner <> '' AND " BETWEEN
    return db_query(
        tx, OWNED "UNION ALL " OWNED "ORDER BY seq LIMIT ?",
        DB_ARGS(db_text(owner), range[0], range[1], db_text(EVENT_FOR_ALL), range[0], range[1], range[2]),
        error);
}

/* The index of the narrowest id does most of the work; the filter itself decides. */
static DbRows *
open_rows(DbTx *tx, const EventScan *scan, GError **error)
{
    const EventFilter *f = filter_copy_get(scan->filter);
    const DbValue range[] = {db_int(scan->after), db_int(scan->upto), db_int(SCAN_ROWS_MAX)};
    const struct {
        const char *id, *sql;
    } ways[] = {
        {f != NULL ? f->execution_id : NULL, SELECT "execution_id = ? AND " RANGE},
        {f != NULL ? f->box_id : NULL, SELECT "box_id = ? AND " RANGE},
        {f != NULL ? f->task_id : NULL, SELECT "task_id = ? AND " RANGE},
        {f != NULL ? f->squad_id : NULL, SELECT "squad_id = ? AND " RANGE},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        if (ways[i].id != NULL)
            return db_query(tx, ways[i].sql, DB_ARGS(db_text(ways[i].id), range[0], range[1], range[2]),
                            error);
    }
    if (f != NULL && f->owner != NULL)
        return open_owner(tx, f->owner, range, error);
    return db_query(tx, SELECT RANGE, range, G_N_ELEMENTS(range), error);
}

/* False: no room for it. */
static bool
keep(EventScan *scan, const EventRow *row)
{
    if (scan->events->len >= scan->limit)
        return false;
    g_autoptr(Event) event = event_new(row);
    if (scan->events->len > 0 && scan->bytes + event_size(event) > scan->bytes_max)
        return false;
    scan->bytes += event_size(event);
    g_ptr_array_add(scan->events, g_steal_pointer(&event));
    return true;
}

bool
event_scan_run(DbTx *tx, EventScan *scan, GError **error)
{
    EventBounds bounds;
    guint looked_at = 0;

    if (!event_bounds_load(tx, &bounds, error))
        return false;
    scan->first = bounds.first;
    g_autoptr(DbRows) rows = open_rows(tx, scan, error);
    if (rows == NULL)
        return false;
    for (;;) {
        EventRow row;
        bool more;

        if (!db_rows_next(rows, &more, error))
            return false;
        if (!more)
            break;
        event_row_read(rows, &row);
        if (filter_row_passes(scan->filter, &row) && !keep(scan, &row)) {
            scan->full = true;
            return true;
        }
        scan->after = row.seq;
        looked_at++;
    }
    if (looked_at < SCAN_ROWS_MAX)
        scan->after = scan->upto;
    return true;
}
