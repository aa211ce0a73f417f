/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/events.h"

/* A row of the log, and what is made of it: its hash and the shared Event. */

enum { EVENT_HASH_LEN = 32 };

typedef struct EventRow {
    gint64 seq, at_us;
    const char *kind, *actor;
    const char *task_id, *squad_id, *box_id, *execution_id;
    const char *data, *owner;
} EventRow;

/* The columns event_row_read() expects first in a SELECT. */
#define EVENT_COLUMNS "seq, at_us, kind, actor, task_id, squad_id, box_id, execution_id, data, owner"
enum { EVENT_COLUMN_COUNT = 10 };

/* Borrowed from `rows` until its next call. */
void event_row_read(DbRows *rows, EventRow *ret_row);

/* BLAKE2b over the previous row's hash and this row's content; every field with its length,
 * so that no byte can change its field unseen.  An owner is part of it where there is one: rows that are
 * older than owners keep their hash. */
void
event_row_hash(const EventRow *row, const guint8 previous[EVENT_HASH_LEN], guint8 ret_hash[EVENT_HASH_LEN]);

Event *event_new(const EventRow *row);
/* What it occupies in memory. */
size_t event_size(const Event *event);

/* ---- the ends of the log ---- */

typedef struct EventBounds {
    gint64 first; /* last + 1 when the log is empty */
    gint64 last;
} EventBounds;
bool event_bounds_load(DbTx *tx, EventBounds *ret_bounds, GError **error);

/* The last row that retention has deleted; seq 0 and a hash of zeros when it never did. */
typedef struct EventAnchor {
    gint64 seq;
    guint8 hash[EVENT_HASH_LEN];
} EventAnchor;
bool event_anchor_load(DbTx *tx, EventAnchor *ret_anchor, GError **error);
bool event_anchor_save(DbTx *tx, const EventAnchor *anchor, GError **error);
