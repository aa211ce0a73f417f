/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "store/db.h"

/* How long boxes lived, for those whose rows are still kept; in the store's threads.  `func` for
 * each box that lived between since and until, with the time of it that lies there; `agent` and
 * `task` NULL: none. */
typedef void (*BoxHoursFunc)(const char *box, const char *agent, const char *task, gint64 lived_us,
                             void *data);
bool
box_rows_hours(DbTx *tx, gint64 since_us, gint64 until_us, BoxHoursFunc func, void *data, GError **error);
