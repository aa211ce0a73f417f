/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "store/event-log.h"

/* Walks the chain in steps, each in a snapshot of its own.  Retention may delete in between;
 * then the walk goes on from the anchor it has left. */
enum { VERIFY_STEP = 1000 };

typedef struct VerifyJob {
    EventLog *log;
    guint generation;
    gint64 upto;    /* what was published when it began has to be there */
    EventAnchor at; /* the last row that was found sound */
    gint64 events;
    gint64 bad_seq;
    bool more;
    EventVerifyFunc done;
    void *data;
} VerifyJob;

static bool
verify_row(VerifyJob *v, DbRows *rows)
{
    guint8 want[EVENT_HASH_LEN];
    EventRow row;
    size_t len;

    event_row_read(rows, &row);
    event_row_hash(&row, v->at.hash, want);
    const void *have = db_rows_blob(rows, EVENT_COLUMN_COUNT, &len);
    if (len != EVENT_HASH_LEN || memcmp(have, want, EVENT_HASH_LEN) != 0)
        return false;
    v->at.seq = row.seq;
    memcpy(v->at.hash, want, EVENT_HASH_LEN);
    v->events++;
    return true;
}

static bool
verify(DbTx *tx, void *data, GError **error)
{
    VerifyJob *v = data;
    EventAnchor anchor;
    gint64 n = 0;
    bool row;

    if (!event_anchor_load(tx, &anchor, error))
        return false;
    if (anchor.seq > v->at.seq)
        v->at = anchor;
    g_autoptr(DbRows)
        rows = db_query(tx, "SELECT " EVENT_COLUMNS ", hash FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
                        DB_ARGS(db_int(v->at.seq), db_int(VERIFY_STEP)), error);
    if (rows == NULL)
        return false;
    for (;; n++) {
        if (!db_rows_next(rows, &row, error))
            return false;
        if (!row)
            break;
        if (!verify_row(v, rows)) {
            v->bad_seq = v->at.seq + 1;
            return true;
        }
    }
    v->more = n == VERIFY_STEP;
    if (!v->more && v->at.seq < v->upto)
        v->bad_seq = v->at.seq + 1;
    return true;
}

static void
on_verified(void *data, const GError *error)
{
    VerifyJob *v = data;
    g_autoptr(GError) local = error != NULL ? g_error_copy(error) : NULL;

    if (local == NULL)
        event_log_check_same(v->log, v->generation, &local);
    if (local == NULL && v->bad_seq == 0 && v->more) {
        db_read(v->log->db, verify, on_verified, v, NULL);
        return;
    }
    v->done(v->events, v->bad_seq, local, v->data);
    event_log_unref(v->log);
    g_free(v);
}

void
event_log_verify(EventLog *log, EventVerifyFunc done, void *data)
{
    VerifyJob *v = g_new0(VerifyJob, 1);

    v->log = event_log_ref(log);
    v->generation = log->generation;
    v->upto = log->bounds.last;
    v->done = done;
    v->data = data;
    db_read(log->db, verify, on_verified, v, NULL);
}
