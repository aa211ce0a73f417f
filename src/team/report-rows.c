/* SPDX-License-Identifier: Apache-2.0 */
#include "team/report-rows.h"

#include "team/flow-private.h"
#include "team/task-private.h"

#define HOUR_US (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)

/* Columns of a query that become members of an object, in their order. */
typedef struct Column {
    const char *name;
    bool is_text;
} Column;

static Json *
read_groups(RowJob *job, const char *sql, const RowWhere *where, const Column *columns, GError **error)
{
    g_autoptr(DbRows) rows = db_query(job->tx, sql, where->args, where->n, error);
    g_autoptr(Json) list = json_array();
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        Json *item = json_object();

        for (int i = 0; columns[i].name != NULL; i++) {
            const char *text = columns[i].is_text ? db_rows_text(rows, i) : NULL;

            json_object_set_new(item, columns[i].name,
                                !columns[i].is_text ? json_integer(db_rows_int(rows, i))
                                : text != NULL      ? json_string(text)
                                                    : json_null());
        }
        json_array_append_new(list, item);
    }
    return rows != NULL && !more ? g_steal_pointer(&list) : NULL;
}

/* ---- models ---- */

Json *
report_models(RowJob *job, const ReportRange *r, GError **error)
{
    static const Column columns[] = {
        {"provider", true},       {"model", true},
        {"calls", false},         {"failed_calls", false},
        {"input_tokens", false},  {"output_tokens", false},
        {"cached_tokens", false}, {"microusd", false},
        {"latency_ms", false},    {NULL, false},
    };
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autofree char *sql = NULL;

    row_where_add(&where, "hour_us > ? AND hour_us < ?",
                  DB_ARGS(db_int(r->since_us - HOUR_US), db_int(r->until_us)));
    if (r->owner != NULL)
        row_where_add(&where, "task_id IN (SELECT id FROM tasks WHERE owner = ?)",
                      DB_ARGS(db_text(r->owner)));
    if (r->squad != NULL)
        row_where_add(&where, "squad_id IN (SELECT id FROM squads WHERE id = ? OR name = ?)",
                      DB_ARGS(db_text(r->squad), db_text(r->squad)));
    if (r->repository_id != NULL)
        row_where_add(&where, "task_id IN (SELECT id FROM tasks WHERE repository_id = ?)",
                      DB_ARGS(db_text(r->repository_id)));
    sql = g_strdup_printf("SELECT provider, model, SUM(calls), SUM(failed), SUM(input_tokens), "
                          "SUM(output_tokens), SUM(cached_tokens), SUM(microusd), SUM(latency_ms) FROM usage "
                          "WHERE %s GROUP BY provider, model ORDER BY SUM(microusd) DESC, provider, model "
                          "LIMIT %d",
                          where.sql->str, REPORT_GROUPS_MAX);
    return read_groups(job, sql, &where, columns, error);
}

/* ---- tasks and agents ---- */

/* Those that were under way meanwhile; `t` are the tasks. */
static void
where_tasks(RowWhere *where, const ReportRange *r)
{
    row_where_add(where, "t.created_us < ? AND (t.ended_us = 0 OR t.ended_us >= ?)",
                  DB_ARGS(db_int(r->until_us), db_int(r->since_us)));
    if (r->owner != NULL)
        row_where_add(where, "t.owner = ?", DB_ARGS(db_text(r->owner)));
    if (r->squad != NULL)
        row_where_add(where, "(s.id = ? OR s.name = ?)", DB_ARGS(db_text(r->squad), db_text(r->squad)));
    if (r->repository_id != NULL)
        row_where_add(where, "t.repository_id = ?", DB_ARGS(db_text(r->repository_id)));
}

Json *
report_agents(RowJob *job, const ReportRange *r, GError **error)
{
    static const Column columns[] = {
        {"role", true},   {"provider", true},     {"model", true},  {"total", false}, {"done", false},
        {"tasks", false}, {"duration_ms", false}, {"turns", false}, {"tools", false}, {NULL, false},
    };
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autofree char *sql = NULL;

    where_tasks(&where, r);
    sql = g_strdup_printf(
        "SELECT e.role, e.provider, e.model, COUNT(*), SUM(CASE WHEN e.state = 'done' THEN 1 ELSE 0 END), "
        "COUNT(DISTINCT e.task_id), SUM(CASE WHEN e.ended_us > 0 AND e.started_us > 0 THEN (e.ended_us - "
        "e.started_us) / 1000 ELSE 0 END), SUM(e.turns), SUM(e.tools) FROM task_executions e JOIN tasks t ON "
        "t.id = e.task_id JOIN squads s ON s.id = t.squad_id WHERE %s GROUP BY e.role, e.provider, e.model "
        "ORDER BY e.role, e.provider, e.model LIMIT %d",
        where.sql->str, REPORT_GROUPS_MAX);
    return read_groups(job, sql, &where, columns, error);
}

Json *
report_states(RowJob *job, const ReportRange *r, GError **error)
{
    static const Column columns[] = {{"state", true}, {"total", false}, {NULL, false}};
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autofree char *sql = NULL;

    where_tasks(&where, r);
    sql = g_strdup_printf("SELECT t.state, COUNT(*) FROM tasks t JOIN squads s ON s.id = t.squad_id WHERE %s "
                          "GROUP BY t.state ORDER BY t.state",
                          where.sql->str);
    return read_groups(job, sql, &where, columns, error);
}

Json *
report_of_task(RowJob *job, Json *task, GError **error)
{
    static const char *const names[] = {"id",         "number",     "title",       "state",    "squad",
                                        "repository", "branch",     "pull_number", "pull_url", "problem",
                                        "progress",   "created_us", "started_us",  "ended_us", NULL};
    const char *state = row_text(task, "state");
    g_autoptr(Json) report = json_incref(json_object_get(task, "report"));
    g_autoptr(Json) rows = NULL;
    Json *shown = json_object();

    if (!task_has_ended(state)) {
        json_decref(g_steal_pointer(&report));
        rows = flow_rows_get(job, row_text(task, "id"), error);
        report = rows != NULL ? flow_report(job, rows, state, error) : NULL;
    }
    for (guint i = 0; names[i] != NULL; i++)
        json_object_set(shown, names[i], json_object_get(task, names[i]));
    if (report == NULL) {
        json_decref(shown);
        return NULL;
    }
    json_object_set(shown, "report", report);
    return shown;
}

bool
report_add_tasks(RowJob *job, const ReportRange *r, Json *report, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autoptr(Json) page = NULL, list = json_array();
    size_t i;
    Json *row;

    where_tasks(&where, r);
    page = row_list(job, &task_table, &where, "t.number DESC", r->page, error);
    if (page == NULL)
        return false;
    json_array_foreach(json_object_get(page, "items"), i, row)
    {
        task_shape(row, job->now_us);
        Json *shown = report_of_task(job, row, error);

        if (shown == NULL)
            return false;
        json_array_append_new(list, shown);
    }
    json_object_set(report, "tasks", list);
    json_object_set(report, "total", json_object_get(page, "total"));
    return true;
}
