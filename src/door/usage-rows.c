/* SPDX-License-Identifier: Apache-2.0 */
#include "door/usage-rows.h"

#include <string.h>

#include "base/clock.h"
#include "base/err.h"

#define HOUR_US (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)

static const char *
text_of(const Json *fact, const char *name)
{
    const char *text = json_string_value(json_object_get(fact, name));

    return text != NULL ? text : "";
}

static gint64
number_of(const Json *fact, const char *name)
{
    return MAX(json_integer_value(json_object_get(fact, name)), 0);
}

bool
usage_call_failed(const Json *fact)
{
    enum { STATUS_FAILED = 400, STATUS_GONE = 499 };
    gint64 status = number_of(fact, "status");

    return status >= STATUS_FAILED && status != STATUS_GONE;
}

bool
usage_row_add(DbTx *tx, Json *fact, GError **error)
{
    gint64 time_us = number_of(fact, "time_us");

    if (strcmp(text_of(fact, "kind"), "model.called") != 0)
        return true;
    if (time_us == 0)
        time_us = clock_wall_us();
    return db_exec(
        tx,
        "INSERT INTO usage (hour_us, box_id, agent_id, task_id, squad_id, provider, model, calls, failed, "
        "unpriced, input_tokens, output_tokens, cached_tokens, cache_write_tokens, microusd, latency_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (hour_us, box_id, agent_id, task_id, squad_id, provider, model) DO UPDATE SET "
        "calls = usage.calls + 1, failed = usage.failed + excluded.failed, "
        "unpriced = usage.unpriced + excluded.unpriced, "
        "input_tokens = usage.input_tokens + excluded.input_tokens, "
        "output_tokens = usage.output_tokens + excluded.output_tokens, "
        "cached_tokens = usage.cached_tokens + excluded.cached_tokens, "
        "cache_write_tokens = usage.cache_write_tokens + excluded.cache_write_tokens, "
        "microusd = usage.microusd + excluded.microusd, "
        "latency_ms = usage.latency_ms + excluded.latency_ms",
        DB_ARGS(db_int(time_us - time_us % HOUR_US), db_text(text_of(fact, "box")),
                db_text(text_of(fact, "agent")), db_text(text_of(fact, "task")),
                db_text(text_of(fact, "squad")), db_text(text_of(fact, "provider")),
                db_text(text_of(fact, "model")), db_int(usage_call_failed(fact)),
                db_int(!json_is_true(json_object_get(fact, "price_known"))),
                db_int(number_of(fact, "input_tokens")), db_int(number_of(fact, "output_tokens")),
                db_int(number_of(fact, "cached_tokens")), db_int(number_of(fact, "cache_write_tokens")),
                db_int(number_of(fact, "microusd")), db_int(number_of(fact, "latency_ms"))),
        error);
}

/* ---- sums ---- */

static const struct {
    const char *name, *column;
} groups[USAGE_BY_MAX] = {
    [USAGE_BY_BOX] = {"box", "box_id"},
    [USAGE_BY_AGENT] = {"agent", "agent_id"},
    [USAGE_BY_TASK] = {"task", "task_id"},
    [USAGE_BY_SQUAD] = {"squad", "squad_id"},
    [USAGE_BY_PROVIDER] = {"provider", "provider"},
    [USAGE_BY_MODEL] = {"model", "model"},
};

const char *
usage_by_name(UsageBy by)
{
    return groups[by].name;
}

bool
usage_by_from_name(const char *name, UsageBy *ret)
{
    for (UsageBy i = 0; i < USAGE_BY_MAX; i++) {
        if (strcmp(name, groups[i].name) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

bool
usage_rows_spent(DbTx *tx, const char *scope, BudgetSpent *ret, GError **error)
{
    const char *colon = strchr(scope, ':');
    g_autofree char *name = colon != NULL ? g_strndup(scope, (size_t)(colon - scope)) : NULL;
    UsageBy by = USAGE_BY_BOX;
    bool row;

    if (name != NULL && !usage_by_from_name(name, &by))
        return err_set(error, ERR_INVALID, "'%s' is no scope", scope);
    g_autofree char *sql = g_strdup_printf(
        "SELECT COALESCE(SUM(input_tokens + output_tokens + cached_tokens + cache_write_tokens), 0), "
        "COALESCE(SUM(microusd), 0), COALESCE(SUM(calls - failed), 0) FROM usage%s%s%s",
        name != NULL ? " WHERE " : "", name != NULL ? groups[by].column : "", name != NULL ? " = ?" : "");
    g_autoptr(DbRows) rows = name != NULL ? db_query(tx, sql, DB_ARGS(db_text(colon + 1)), error)
                                          : db_query(tx, sql, DB_NO_ARGS, error);

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    *ret = (BudgetSpent){.tokens = (guint64)db_rows_int(rows, 0),
                         .microusd = (guint64)db_rows_int(rows, 1),
                         .calls = (guint64)db_rows_int(rows, 2)};
    return true;
}

static const char *const sums[] = {
    "calls",         "failed",        "unpriced_calls",     "input_tokens",
    "output_tokens", "cached_tokens", "cache_write_tokens", "microusd",
    "latency_ms",
};

Json *
usage_rows_sum(DbTx *tx, UsageBy by, gint64 since_us, gint64 until_us, GError **error)
{
    g_autofree char *sql = g_strdup_printf(
        "SELECT %s, SUM(calls), SUM(failed), SUM(unpriced), SUM(input_tokens), SUM(output_tokens), "
        "SUM(cached_tokens), SUM(cache_write_tokens), SUM(microusd), SUM(latency_ms) FROM usage "
        "WHERE hour_us >= ? AND hour_us < ? GROUP BY %s ORDER BY SUM(microusd) DESC, SUM(calls) DESC "
        "LIMIT ?",
        groups[by].column, groups[by].column);
    g_autoptr(DbRows) rows = db_query(
        tx, sql, DB_ARGS(db_int(since_us - since_us % HOUR_US), db_int(until_us), db_int(USAGE_ROWS_MAX)),
        error);
    g_autoptr(Json) list = json_array();
    bool row = true;

    while (rows != NULL) {
        if (!db_rows_next(rows, &row, error))
            return NULL;
        if (!row)
            return g_steal_pointer(&list);
        Json *o = json_pack("{s:s}", "id", db_rows_text(rows, 0));

        for (size_t i = 0; i < G_N_ELEMENTS(sums); i++)
            json_object_set_new(o, sums[i], json_integer(db_rows_int(rows, (int)i + 1)));
        json_array_append_new(list, o);
    }
    return NULL;
}
