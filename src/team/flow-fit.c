/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a change is fit for production: tests pass in a clean box, lint and security scan are clean, the
 * pull request can be merged.  All of it is what Coop has seen itself. */
#include <string.h>

#include "team/flow-private.h"

/* Of the last whole run of the pull request's checks in a clean box. */
typedef struct Clean {
    gint64 passed, failed;
} Clean;

static bool
read_clean(RowJob *job, const Json *task, Clean *ret, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        job->tx,
        "SELECT SUM(CASE WHEN c.conclusion = 'success' THEN 1 ELSE 0 END), SUM(CASE WHEN c.conclusion NOT IN "
        "('success', 'neutral', 'skipped') THEN 1 ELSE 0 END) FROM checks c JOIN check_suites s ON s.id = "
        "c.suite WHERE c.seen_by = 'coop' AND s.id = (SELECT id FROM check_suites WHERE repository_id = ? "
        "AND "
        "number = ? AND state IN ('passed', 'failed', 'error') ORDER BY created_us DESC LIMIT 1)",
        DB_ARGS(db_text(row_text(task, "repository_id")), db_int(row_int(task, "pull_number"))), error);
    bool found = false;

    *ret = (Clean){0, 0};
    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    if (found)
        *ret = (Clean){db_rows_int(rows, 0), db_rows_int(rows, 1)};
    return true;
}

static void
add_reason(Json *reasons, const char *name, const char *why)
{
    g_autofree char *text = name != NULL ? g_strdup_printf("%s: %s", name, why) : g_strdup(why);

    json_array_append_new(reasons, json_string(text));
}

/* Linters and scanners are run by Coop in the box of whoever reviewed last (scan.h). */
static void
add_scans(Json *reasons, const Json *rows)
{
    gint64 round = row_int(json_object_get(rows, "task"), "round");
    const Json *scans = NULL;
    guint seen = 0;
    size_t i;
    const Json *item;

    json_array_foreach(json_object_get(rows, "agents"), i, item)
    {
        if (flow_is(item, "kind", "review") && flow_is(item, "state", "done") &&
            row_int(item, "try") == round)
            scans = json_object_get(json_object_get(item, "result"), "checks");
    }
    json_array_foreach(scans, i, item)
    {
        const char *name = row_text(item, "name");

        if (name == NULL || !g_str_has_prefix(name, "scan: "))
            continue;
        seen++;
        if (row_text(item, "skipped") != NULL)
            add_reason(reasons, name, row_text(item, "skipped"));
        else if (row_is(item, "partial"))
            add_reason(reasons, name, "it did not look at all files");
        else if (row_int(item, "exit_code") != 0)
            add_reason(reasons, name, "it found errors");
    }
    if (seen == 0)
        add_reason(reasons, NULL, "nothing was scanned");
}

static bool
read_unmoved(RowJob *job, const Json *task, bool *ret_unmoved, GError **error)
{
    g_autofree char *ref = g_strconcat("refs/heads/", row_text(task, "base_branch"), NULL);
    gint64 n = 0;

    if (!row_ask_int(job,
                     "SELECT COUNT(*) FROM repository_refs WHERE repository_id = ? AND name = ? AND oid = ?",
                     DB_ARGS(db_text(row_text(task, "repository_id")), db_text(ref),
                             db_text(row_text(task, "base_oid"))),
                     &n, error))
        return false;
    *ret_unmoved = n > 0;
    return true;
}

/* One whose target has not moved since it began can be merged; of another one nobody has looked. */
static bool
add_merge(RowJob *job, Json *reasons, const Json *task, const char *state, GError **error)
{
    const char *rung = row_text(task, "rung");
    bool is_open = g_strcmp0(rung, "ready") == 0 || g_strcmp0(rung, "reviewed") == 0, unmoved = false;

    if (strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0)
        add_reason(reasons, NULL, "its pull request is closed");
    else if (g_strcmp0(rung, "merged") == 0)
        return true;
    else if (!is_open)
        add_reason(reasons, NULL, "its pull request is not ready");
    else if (!read_unmoved(job, task, &unmoved, error))
        return false;
    else if (!unmoved)
        add_reason(reasons, NULL, "its target has moved, and nobody has seen that it can be merged");
    return true;
}

Json *
flow_fit(RowJob *job, const Json *rows, const char *state, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    g_autoptr(Json) reasons = json_array();
    Clean clean = {0, 0};

    if (row_int(task, "pull_number") == 0) {
        add_reason(reasons, NULL, "there is no pull request");
        return g_steal_pointer(&reasons);
    }
    if (!read_clean(job, task, &clean, error))
        return NULL;
    if (clean.passed == 0)
        add_reason(reasons, NULL, "no check passed in a clean box");
    if (clean.failed > 0)
        add_reason(reasons, NULL, "a check failed in a clean box");
    add_scans(reasons, rows);
    return add_merge(job, reasons, task, state, error) ? g_steal_pointer(&reasons) : NULL;
}
