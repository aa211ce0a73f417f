/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"

/* The rows of upstream_items, inside jobs: which comment, review or comment on a line of ours is which
 * one there.  A pair stays when either of the two is gone, so that nothing comes back. */

typedef struct UpstreamItem {
    const char *kind; /* "comment", "review", "line"; NULL: none */
    gint64 upstream_id, id;
} UpstreamItem;

/* One that is there already stays as it is. */
bool upstream_item_put(DbTx *tx, const char *repository_id, const UpstreamItem *item, GError **error);
/* Ours of theirs, and theirs of ours; 0: none. */
bool upstream_item_here(DbTx *tx, const char *repository_id, const char *kind, gint64 upstream_id,
                        gint64 *ret_id, GError **error);
bool upstream_item_there(DbTx *tx, const char *repository_id, const char *kind, gint64 id,
                         gint64 *ret_upstream_id, GError **error);
