/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "team/fact.h"
#include "team/report-rows.h"
#include "team/tally-rows.h"

#define DAY_US (G_GINT64_CONSTANT(24) * 3600 * G_USEC_PER_SEC)

enum { DATE_LEN = 10, MEDIAN = 50, PERCENTILE = 95, PERCENT = 100 };

static void
where_facts(RowWhere *where, const ReportRange *r)
{
    row_where_add(where, "at_us >= ? AND at_us < ?", DB_ARGS(db_int(r->since_us), db_int(r->until_us)));
    if (r->owner != NULL)
        row_where_add(where, "owner = ?", DB_ARGS(db_text(r->owner)));
    if (r->squad != NULL)
        row_where_add(where, "squad_id IN (SELECT id FROM squads WHERE id = ? OR name = ?)",
                      DB_ARGS(db_text(r->squad), db_text(r->squad)));
    if (r->repository_id != NULL)
        row_where_add(where, "repository_id = ?", DB_ARGS(db_text(r->repository_id)));
}

/* `before` ends where the conditions go, `after` follows them. */
static DbRows *
query(RowJob *job, const RowWhere *where, const char *before, const char *after, GError **error)
{
    g_autofree char *sql = g_strconcat(before, where->sql->str, after, NULL);

    return db_query(job->tx, sql, where->args, where->n, error);
}

/* ---- sums ---- */

static bool
read_sums(RowJob *job, const RowWhere *where, Rate *rates, Json *errors, GError **error)
{
    g_autoptr(DbRows) rows = query(job, where, "SELECT " TALLY_RATE_COLUMNS " FROM facts WHERE ",
                                   " GROUP BY name, class ORDER BY name, SUM(n) DESC, class", error);
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        FactName name = fact_name_of(db_rows_text(rows, 0));

        const Rate rate = tally_rate_read(rows);

        if (name == FACT_ERROR)
            json_array_append_new(
                errors, json_pack("{s:s, s:I}", "class", db_rows_text(rows, 1), "total", (json_int_t)rate.n));
        if (name < FACT_MAX)
            rate_add(&rates[name], &rate);
    }
    return rows != NULL && !more;
}

/* The value that so many of a hundred do not exceed. */
static bool
read_rank(RowJob *job, const RowWhere *where, const char *name, gint64 values, guint rank, gint64 *ret,
          GError **error)
{
    gint64 at = (values * rank + PERCENT - 1) / PERCENT - 1;
    g_auto(RowWhere) all = ROW_WHERE_INIT;
    g_autofree char *sql = NULL;

    row_where_add(&all, where->sql->str, where->args, where->n);
    row_where_add(&all, "name = ? AND value > 0", DB_ARGS(db_text(name)));
    sql = g_strdup_printf("SELECT value FROM facts WHERE %s ORDER BY value LIMIT 1 OFFSET %" G_GINT64_FORMAT,
                          all.sql->str, at);
    return row_ask_int(job, sql, all.args, all.n, ret, error);
}

static bool
read_ranks(RowJob *job, const RowWhere *where, Rate *rates, GError **error)
{
    for (guint i = 0; i < FACT_MAX; i++) {
        Rate *rate = &rates[i];

        rate->median = rate->percentile = -1;
        if (rate_specs[i].kind != RATE_BELOW || rate->values == 0)
            continue;
        if (!read_rank(job, where, rate_specs[i].name, rate->values, MEDIAN, &rate->median, error) ||
            !read_rank(job, where, rate_specs[i].name, rate->values, PERCENTILE, &rate->percentile, error))
            return false;
    }
    return true;
}

bool
report_add_rates(RowJob *job, const ReportRange *range, Json *report, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autoptr(Json) errors = json_array(), list = json_array();
    Rate rates[FACT_MAX] = {0};

    where_facts(&where, range);
    if (!read_sums(job, &where, rates, errors, error) || !read_ranks(job, &where, rates, error))
        return false;
    for (guint i = 0; i < FACT_MAX; i++) {
        if (rate_specs[i].kind != RATE_COUNT)
            json_array_append_new(list, rate_json(i, &rates[i]));
    }
    json_object_set(report, "rates", list);
    json_object_set(report, "errors", errors);
    json_object_set_new(report, "box_ms", json_integer(rates[FACT_BOXES].sum));
    return true;
}

/* ---- days ---- */

static Json *
day_new(gint64 day)
{
    char iso[CLOCK_ISO_LEN + 1];

    clock_format_iso(day * DAY_US, iso);
    return json_pack("{s:s%, s:{s:i, s:i}, s:{s:i, s:i}, s:{}}", "day", iso, (size_t)DATE_LEN, "tasks",
                     "good", 0, "total", 0, "executions", "good", 0, "total", 0, "errors");
}

Json *
report_days(RowJob *job, const ReportRange *range, GError **error)
{
    g_auto(RowWhere) where = ROW_WHERE_INIT;
    g_autoptr(Json) list = json_array();
    Json *day = NULL;
    gint64 last = -1;

    where_facts(&where, range);
    row_where_add(&where, "name IN ('tasks', 'executions', 'errors')", DB_NO_ARGS);
    g_autoptr(DbRows) rows = query(job, &where,
                                   "SELECT at_us / 86400000000, name, class, SUM(n), SUM(good) FROM facts "
                                   "WHERE ",
                                   " GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3", error);
    bool more = rows != NULL;

    while (more && db_rows_next(rows, &more, error) && more) {
        gint64 now = db_rows_int(rows, 0);
        json_int_t n = db_rows_int(rows, 3), good = db_rows_int(rows, 4);
        const char *name = db_rows_text(rows, 1);

        if (now != last && json_array_size(list) < REPORT_DAYS_MAX) {
            day = day_new(now);
            json_array_insert_new(list, 0, day);
        }
        if (strcmp(name, "errors") == 0)
            json_object_set_new(json_object_get(day, name), db_rows_text(rows, 2), json_integer(n));
        else
            json_object_set_new(day, name, json_pack("{s:I, s:I}", "good", good, "total", n));
        last = now;
    }
    return rows != NULL && !more ? g_steal_pointer(&list) : NULL;
}
