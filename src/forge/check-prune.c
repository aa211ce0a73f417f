/* SPDX-License-Identifier: Apache-2.0 */
/* Suites that nobody needs any more.  Whoever adds one removes the oldest, so their number is bounded
 * without a clock. */
#include "forge/checks-private.h"

enum { AT_ONCE = 8 }; /* more than are added, so that a lower bound is reached one day, too */

/* Needed is what a merge landed with, or waits for, and the last word on an open pull request's head. */
static const char unneeded[] =
    "SELECT s.id FROM check_suites s WHERE s.repository_id = ? AND s.ended_us <> 0 "
    "AND NOT EXISTS (SELECT 1 FROM merges m WHERE m.repository_id = s.repository_id AND m.number = s.number "
    "AND m.suite_id = s.id AND (m.state = 'landed' OR m.ended_us = 0)) "
    "AND NOT EXISTS (SELECT 1 FROM threads t WHERE t.repository_id = s.repository_id AND t.number = s.number "
    "AND t.kind = 'pull' AND t.state = 'open' AND t.head_oid = s.head_oid AND s.created_us = (SELECT "
    "MAX(n.created_us) FROM check_suites n WHERE n.repository_id = s.repository_id AND n.number = s.number "
    "AND n.head_oid = s.head_oid)) "
    "ORDER BY s.created_us DESC, s.id LIMIT ? OFFSET ?";

static GPtrArray *
find(RowJob *job, GError **error)
{
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(DbRows) rows = db_query(
        job->tx, unneeded, DB_ARGS(db_text(job->repository_id), db_int(AT_ONCE), db_int(CHECKS_SUITES_KEPT)),
        error);
    bool more = rows != NULL;

    while (more) {
        if (!db_rows_next(rows, &more, error))
            return NULL;
        if (more)
            g_ptr_array_add(ids, g_strdup(db_rows_text(rows, 0)));
    }
    return rows != NULL ? g_steal_pointer(&ids) : NULL;
}

bool
check_suites_prune(RowJob *job, GError **error)
{
    g_autoptr(GPtrArray) ids = find(job, error);

    for (guint i = 0; ids != NULL && i < ids->len; i++) {
        DbValue id = db_text(ids->pdata[i]);

        if (!db_exec(job->tx, "DELETE FROM checks WHERE suite = ? AND seen_by = 'coop'", DB_ARGS(id),
                     error) ||
            !db_exec(job->tx, "DELETE FROM check_suites WHERE id = ?", DB_ARGS(id), error))
            return false;
    }
    return ids != NULL;
}
