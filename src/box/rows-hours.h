/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"

/* How long boxes lived, for those whose rows are still kept; in the store's threads.  `func` for
 * each box that lived between since and until, with the time of it that lies there; `agent`,
 * `task` and `squad` NULL: none. */
typedef struct BoxHours {
    const char *box, *agent, *task, *squad;
    gint64 lived_us;
} BoxHours;
typedef void (*BoxHoursFunc)(const BoxHours *hours, void *data);
bool
box_rows_hours(DbTx *tx, gint64 since_us, gint64 until_us, BoxHoursFunc func, void *data, GError **error);
