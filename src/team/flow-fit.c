/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a change is fit for production: tests pass in a clean box, lint and security scan are clean, the
 * pull request can be merged.  All of it is what Coop has seen itself. */
#include "team/flow-private.h"

/* Its pull request as it is now. */
typedef struct Pull {
    bool found, merged, open, mergeable;
    gint64 passed,
        failed; /* checks of the last whole run in a clean box, of this head or of what was merged */
} Pull;

/* A pull request can be merged if that was seen of its head and the target's tip, or if the target is where
 * it was when the work began. */
static bool
read_pull(RowJob *job, const Json *task, Pull *ret, GError **error)
{
    g_autoptr(DbRows)
        rows = db_query(job->tx,
                        "SELECT t.merged, CASE WHEN t.state = 'open' AND t.draft = 0 THEN 1 ELSE 0 END, CASE "
                        "WHEN r.oid = ? OR "
                        "(r.oid = t.compared_base AND t.head_oid = t.compared_head AND t.conflicts = 0) THEN "
                        "1 ELSE 0 END FROM "
                        "threads t LEFT JOIN repository_refs r ON r.repository_id = t.repository_id AND "
                        "r.name = 'refs/heads/' || "
                        "t.base WHERE t.repository_id = ? AND t.number = ?",
                        DB_ARGS(db_text(row_text(task, "base_oid")), db_text(row_text(task, "repository_id")),
                                db_int(row_int(task, "pull_number"))),
                        error);

    if (rows == NULL || !db_rows_next(rows, &ret->found, error))
        return false;
    if (ret->found) {
        ret->merged = db_rows_int(rows, 0) != 0;
        ret->open = db_rows_int(rows, 1) != 0;
        ret->mergeable = db_rows_int(rows, 2) != 0;
    }
    return true;
}

static bool
read_clean(RowJob *job, const Json *task, Pull *pull, GError **error)
{
    g_autoptr(DbRows) rows = db_query(
        job->tx,
        "SELECT SUM(CASE WHEN c.conclusion = 'success' THEN 1 ELSE 0 END), SUM(CASE WHEN c.conclusion NOT IN "
        "('success', 'neutral', 'skipped') THEN 1 ELSE 0 END) FROM checks c WHERE c.seen_by = 'coop' AND "
        "c.suite = "
        "(SELECT s.id FROM check_suites s JOIN threads t ON t.repository_id = s.repository_id AND t.number = "
        "s.number WHERE s.repository_id = ? AND s.number = ? AND s.head_oid IN (t.head_oid, t.merge_oid) AND "
        "s.state IN ('passed', 'failed', 'error') ORDER BY s.created_us DESC LIMIT 1)",
        DB_ARGS(db_text(row_text(task, "repository_id")), db_int(row_int(task, "pull_number"))), error);
    bool found = false;

    if (rows == NULL || !db_rows_next(rows, &found, error))
        return false;
    pull->passed = found ? db_rows_int(rows, 0) : 0;
    pull->failed = found ? db_rows_int(rows, 1) : 0;
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

static void
add_merge(Json *reasons, const Pull *pull)
{
    if (pull->merged)
        return;
    if (!pull->open)
        add_reason(reasons, NULL, "its pull request is not open and ready");
    else if (!pull->mergeable)
        add_reason(reasons, NULL, "nobody has seen that its pull request can be merged");
}

Json *
flow_fit(RowJob *job, const Json *rows, GError **error)
{
    const Json *task = json_object_get(rows, "task");
    g_autoptr(Json) reasons = json_array();
    Pull pull = {0};

    if (row_int(task, "pull_number") > 0 &&
        (!read_pull(job, task, &pull, error) || !read_clean(job, task, &pull, error)))
        return NULL;
    if (!pull.found) {
        add_reason(reasons, NULL, "there is no pull request");
        return g_steal_pointer(&reasons);
    }
    if (pull.passed == 0)
        add_reason(reasons, NULL, "no check passed in a clean box");
    if (pull.failed > 0)
        add_reason(reasons, NULL, "a check failed in a clean box");
    add_scans(reasons, rows);
    add_merge(reasons, &pull);
    return g_steal_pointer(&reasons);
}
