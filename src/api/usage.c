/* SPDX-License-Identifier: Apache-2.0 */
/* What boxes and models came to. */
#include <string.h>

#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "box/rows-hours.h"
#include "door/usage-rows.h"
#include "http/url.h"

#define HOUR_US (G_GINT64_CONSTANT(3600) * G_USEC_PER_SEC)
#define DAY_US (24 * HOUR_US)

enum { DAYS = 30, DAYS_MAX = 366, DAYS_OF_MONTH = 30 };

typedef struct UsageCall {
    ApiCall *call; /* with a reference to its request */
    UsageBy by;
    gint64 since_us, until_us;
    Json *rows;        /* of models, and then of both */
    GHashTable *lived; /* id -> gint64*: microseconds */
    gint64 lived_us, first_us;
} UsageCall;

static void
usage_call_free(gpointer data)
{
    UsageCall *u = data;

    json_decref(u->rows);
    g_hash_table_unref(u->lived);
    http_request_unref(u->call->request);
    g_free(u);
}

/* ---- in the store's thread ---- */

static void
on_box(const BoxHours *hours, void *data)
{
    UsageCall *u = data;
    const char *const ids[] = {[USAGE_BY_BOX] = hours->box,
                               [USAGE_BY_AGENT] = hours->agent,
                               [USAGE_BY_TASK] = hours->task,
                               [USAGE_BY_SQUAD] = hours->squad};

    u->lived_us += hours->lived_us;
    u->first_us = MIN(u->first_us, u->until_us - hours->lived_us);
    if (u->by >= G_N_ELEMENTS(ids))
        return;
    const char *id = ids[u->by] != NULL ? ids[u->by] : "";
    gint64 *sum = g_hash_table_lookup(u->lived, id);

    if (sum == NULL) {
        sum = g_new0(gint64, 1);
        g_hash_table_insert(u->lived, g_strdup(id), sum);
    }
    *sum += hours->lived_us;
}

static bool
read_first(DbTx *tx, UsageCall *u, GError **error)
{
    g_autoptr(DbRows) rows = db_query(tx, "SELECT MIN(hour_us) FROM usage WHERE hour_us >= ?",
                                      DB_ARGS(db_int(u->since_us)), error);
    bool row;

    if (rows == NULL || !db_rows_next(rows, &row, error))
        return false;
    if (row && !db_rows_is_null(rows, 0))
        u->first_us = MIN(u->first_us, db_rows_int(rows, 0));
    return true;
}

static bool
read_usage(DbTx *tx, void *data, GError **error)
{
    UsageCall *u = data;

    u->first_us = u->until_us;
    u->rows = usage_rows_sum(tx, u->by, u->since_us, u->until_us, error);
    return u->rows != NULL && box_rows_hours(tx, u->since_us, u->until_us, on_box, u, error) &&
           read_first(tx, u, error);
}

/* ---- the answer ---- */

static double
dollars(double microusd)
{
    return (double)(gint64)(microusd + 0.5) / 1e6;
}

/* Adds the box's part to a row, or to the total. */
static void
price(Json *o, gint64 lived_us, double price_per_hour)
{
    double hours = (double)lived_us / (double)HOUR_US;
    double model = (double)json_integer_value(json_object_get(o, "microusd"));

    json_object_del(o, "microusd");
    json_object_set_new(o, "model_cost", json_real(dollars(model)));
    json_object_set_new(o, "box_hours", json_real(dollars(hours * 1e6)));
    json_object_set_new(o, "box_cost", json_real(dollars(hours * price_per_hour * 1e6)));
    json_object_set_new(o, "cost", json_real(dollars(model + hours * price_per_hour * 1e6)));
}

static Json *
total_of(const UsageCall *u)
{
    Json *total = json_object(), *row, *value;
    const char *name;
    size_t i;

    json_array_foreach(u->rows, i, row)
    {
        json_object_foreach(row, name, value)
        {
            if (json_is_integer(value))
                json_object_set_new(total, name,
                                    json_integer(json_integer_value(json_object_get(total, name)) +
                                                 json_integer_value(value)));
        }
    }
    price(total, u->lived_us, u->call->api->price_per_hour);
    return total;
}

static void
add_boxes_without_models(UsageCall *u)
{
    GHashTableIter iter;
    gpointer id, lived;

    g_hash_table_iter_init(&iter, u->lived);
    while (g_hash_table_iter_next(&iter, &id, &lived) && json_array_size(u->rows) < USAGE_ROWS_MAX) {
        Json *o = json_pack("{s:s, s:i}", "id", (const char *)id, "calls", 0);

        price(o, *(gint64 *)lived, u->call->api->price_per_hour);
        json_array_append_new(u->rows, o);
    }
}

static void
price_rows(UsageCall *u)
{
    Json *row;
    size_t i;

    json_array_foreach(u->rows, i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        const gint64 *lived = g_hash_table_lookup(u->lived, id);

        price(row, lived != NULL ? *lived : 0, u->call->api->price_per_hour);
        g_hash_table_remove(u->lived, id);
    }
    add_boxes_without_models(u);
}

/* As much again until a month is over.  Less than a day tells nothing about a month, so a day it is. */
static double
monthly(const UsageCall *u, const Json *total)
{
    gint64 span = MAX(u->until_us - MAX(u->first_us, u->since_us), DAY_US);
    double cost = json_real_value(json_object_get(total, "cost"));

    return dollars(cost * 1e6 * DAYS_OF_MONTH * (double)DAY_US / (double)span);
}

static void
on_read(void *data, const GError *error)
{
    UsageCall *u = data;
    char since[CLOCK_ISO_LEN + 1], until[CLOCK_ISO_LEN + 1];

    if (error != NULL) {
        call_respond_error(u->call, error);
        return;
    }
    Json *total = total_of(u);

    price_rows(u);
    clock_format_iso(u->since_us, since);
    clock_format_iso(u->until_us, until);
    call_respond_json(u->call, 200,
                      json_pack("{s:s, s:s, s:s, s:O, s:f, s:f, s:o}", "since", since, "until", until, "by",
                                usage_by_name(u->by), "rows", u->rows, "price_per_hour",
                                u->call->api->price_per_hour, "monthly_estimate", monthly(u, total), "total",
                                total));
}

static void
get_usage(ApiCall *call)
{
    static const char *const names[] = {"by", "days", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *by = NULL;
    g_autoptr(GError) error = NULL;
    gint64 days = DAYS;
    UsageBy group = USAGE_BY_MODEL;

    if (!url_query_only(query, names, &error) || !url_query_get(query, "by", &by, &error) ||
        !url_query_get_int(query, "days", 1, DAYS_MAX, &days, &error) ||
        (by != NULL && !usage_by_from_name(by, &group) &&
         !err_set(&error, ERR_INVALID, "'by' is one of box, agent, task, squad, provider and model"))) {
        call_respond_error(call, error);
        return;
    }
    UsageCall *u = g_new0(UsageCall, 1);

    *u = (UsageCall){.call = call,
                     .by = group,
                     .until_us = clock_wall_us(),
                     .lived = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)};
    u->since_us = u->until_us - days * DAY_US;
    http_request_ref(call->request);
    db_read(call->api->db, read_usage, on_read, u, usage_call_free);
}

const ApiRoute usage_routes[] = {
    {"GET", "/api/v1/usage", SCOPE_ADMIN, 0, get_usage},
    {NULL},
};
