/* SPDX-License-Identifier: Apache-2.0 */
#include "box/rows-hours.h"

bool
box_rows_hours(DbTx *tx, gint64 since_us, gint64 until_us, BoxHoursFunc func, void *data, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(tx,
                        "SELECT e2b_id, agent_id, task_id, squad_id, created_us, ended_us FROM sandboxes "
                        "WHERE created_us < ? AND (ended_us = 0 OR ended_us > ?)",
                        DB_ARGS(db_int(until_us), db_int(since_us)), error);
    bool row = true;

    while (rows != NULL) {
        if (!db_rows_next(rows, &row, error))
            return false;
        if (!row)
            return true;
        gint64 ended = db_rows_int(rows, 5);
        gint64 from = MAX(db_rows_int(rows, 4), since_us), to = ended > 0 ? MIN(ended, until_us) : until_us;

        func(&(BoxHours){db_rows_text(rows, 0), db_rows_text(rows, 1), db_rows_text(rows, 2),
                         db_rows_text(rows, 3), MAX(to - from, 0)},
             data);
    }
    return false;
}
