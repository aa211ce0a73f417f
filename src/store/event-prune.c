/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "store/event-log.h"

/* Retention deletes from the old end only, so what is left has no gap; a step is one write
 * job, so other writes get their turn in between. */
enum { PRUNE_STEP = 500 };

typedef struct PruneJob {
    EventLog *log;
    gint64 before_us;
    gint64 first; /* what is the oldest after this step; 0: nothing was deleted */
    bool more;
    DbDone done;
    void *data;
} PruneJob;

/* The last row to go; seq 0: none.  The first that is young enough ends it, whatever the
 * clock said later. */
static bool
find_cut(DbTx *tx, PruneJob *p, EventAnchor *cut, GError **error)
{
    EventBounds bounds;

    if (!event_bounds_load(tx, &bounds, error))
        return false;
    g_autoptr(DbRows) rows = db_query(tx, "SELECT seq, at_us, hash FROM events ORDER BY seq LIMIT ?",
                                      DB_ARGS(db_int(PRUNE_STEP)), error);
    if (rows == NULL)
        return false;
    for (guint n = 0; n < PRUNE_STEP; n++) {
        bool row;
        size_t len;

        if (!db_rows_next(rows, &row, error))
            return false;
        if (!row || db_rows_int(rows, 1) >= p->before_us || db_rows_int(rows, 0) == bounds.last)
            return true;
        const void *hash = db_rows_blob(rows, 2, &len);
        if (len != EVENT_HASH_LEN)
            return err_set(error, ERR_INTERNAL, "an event's hash is damaged");
        cut->seq = db_rows_int(rows, 0);
        memcpy(cut->hash, hash, EVENT_HASH_LEN);
    }
    p->more = true;
    return true;
}

static bool
prune(DbTx *tx, void *data, GError **error)
{
    PruneJob *p = data;
    EventAnchor cut = {0};

    p->first = 0;
    p->more = false;
    if (!find_cut(tx, p, &cut, error))
        return false;
    if (cut.seq == 0)
        return true;
    p->first = cut.seq + 1;
    return db_exec(tx, "DELETE FROM events WHERE seq <= ?", DB_ARGS(db_int(cut.seq)), error) &&
           event_anchor_save(tx, &cut, error);
}

static void
on_pruned(void *data, const GError *error)
{
    PruneJob *p = data;

    if (error == NULL && p->first != 0)
        p->log->bounds.first = p->first;
    if (error == NULL && p->more && p->log->db != NULL) {
        db_write(p->log->db, prune, on_pruned, p, NULL);
        return;
    }
    if (p->done != NULL)
        p->done(p->data, error);
    event_log_unref(p->log);
    g_free(p);
}

void
event_log_prune(EventLog *log, gint64 before_us, DbDone done, void *data)
{
    PruneJob *p = g_new0(PruneJob, 1);

    p->log = event_log_ref(log);
    p->before_us = before_us;
    p->done = done;
    p->data = data;
    db_write(log->db, prune, on_pruned, p, NULL);
}
