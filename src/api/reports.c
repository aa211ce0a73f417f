/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks came to, and how well things go. */
#include <string.h>

#include "api/call-box.h"
#include "api/routes.h"
#include "api/state.h"
#include "api/team-call.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/url.h"
#include "team/report.h"

#define SECOND_US ((gint64)G_USEC_PER_SEC)
#define HOUR_US (3600 * SECOND_US)
#define DAY_US (24 * HOUR_US)

enum { DAYS = 30, DAYS_MAX = 400, DATE_LEN = 10, DECIMAL = 10 };

/* ---- times ---- */

static gint64
unit_us(char unit)
{
    static const struct {
        char unit;
        gint64 us;
    } units[] = {{'s', SECOND_US}, {'m', 60 * SECOND_US}, {'h', HOUR_US}, {'d', DAY_US}, {'w', 7 * DAY_US}};

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        if (units[i].unit == unit)
            return units[i].us;
    }
    return 0;
}

/* "36h" is so long ago. */
static bool
parse_ago(const char *text, gint64 now_us, gint64 *ret_us)
{
    char *end = NULL;
    guint64 n = g_ascii_isdigit(text[0]) ? g_ascii_strtoull(text, &end, DECIMAL) : 0;
    gint64 us = end != NULL && end[0] != '\0' && end[1] == '\0' ? unit_us(end[0]) : 0;

    if (us == 0 || n > DAYS_MAX * (guint64)DAY_US / (guint64)us)
        return false;
    *ret_us = now_us - (gint64)n * us;
    return true;
}

/* A time of ISO 8601, or a day, which begins at midnight UTC. */
static bool
parse_iso(const char *text, gint64 *ret_us)
{
    g_autofree char *whole = strlen(text) == DATE_LEN ? g_strconcat(text, "T00:00:00Z", NULL)
                                                      : g_strdup(text);
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(whole, utc);

    if (time == NULL)
        return false;
    *ret_us = g_date_time_to_unix(time) * SECOND_US + g_date_time_get_microsecond(time);
    return true;
}

static bool
read_time(const char *query, const char *name, gint64 now_us, gint64 *ret_us, GError **error)
{
    g_autofree char *text = NULL;

    if (!url_query_get(query, name, &text, error))
        return false;
    return text == NULL || parse_ago(text, now_us, ret_us) || parse_iso(text, ret_us) ||
           err_set(error, ERR_INVALID,
                   "'%s' is a time such as 2026-01-31T12:00:00Z, a day such as 2026-01-31, or how long ago, "
                   "such as "
                   "7d",
                   name);
}

static bool
read_range(const char *query, ReportSpec *spec, GError **error)
{
    gint64 now_us = clock_wall_us();

    spec->until_us = now_us;
    if (!read_time(query, "until", now_us, &spec->until_us, error))
        return false;
    spec->since_us = spec->until_us - DAYS * DAY_US;
    if (!read_time(query, "since", now_us, &spec->since_us, error))
        return false;
    if (spec->since_us >= spec->until_us)
        return err_set(error, ERR_INVALID, "'since' must be before 'until'");
    return spec->until_us - spec->since_us <= DAYS_MAX * DAY_US ||
           err_set(error, ERR_INVALID, "a report is about at most %d days", DAYS_MAX);
}

/* ---- the calls ---- */

/* In dollars: models, and boxes at the price of an hour. */
static Json *
cost_json(const Json *report, double price_per_hour)
{
    double models = 0, hours = (double)json_integer_value(json_object_get(report, "box_ms")) * 1000 / HOUR_US;
    size_t i;
    Json *model;

    json_array_foreach(json_object_get(report, "models"), i, model)
        models += (double)json_integer_value(json_object_get(model, "microusd")) / 1e6;
    return json_pack("{s:f, s:f, s:f, s:f}", "models", models, "box_hours", hours, "boxes",
                     hours * price_per_hour, "total", models + hours * price_per_hour);
}

static void
on_report(Json *value, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error == NULL)
        json_object_set_new(value, "cost", cost_json(value, call->api->price_per_hour));
    call_on_row(value, error, call);
}

static void
get_reports(ApiCall *call)
{
    static const char *const names[] = {"since", "until", "squad", "repo", "page", "per_page", NULL};
    const char *query = http_request_query(call->request);
    g_autofree char *squad = NULL, *repo = NULL;
    ReportSpec spec = {.owner = caller_owner(&call->caller)};
    CallPage page;
    g_autoptr(GError) error = NULL;

    if (call_team(call) == NULL)
        return;
    if (!url_query_only(query, names, &error) || !url_query_get(query, "squad", &squad, &error) ||
        !url_query_get(query, "repo", &repo, &error) || !read_range(query, &spec, &error) ||
        !call_read_page(call, &page, &error)) {
        call_respond_error(call, error);
        return;
    }
    spec.squad = squad;
    spec.repository = repo;
    spec.page = (ForgePage){(guint)page.page, (guint)page.per_page};
    http_request_ref(call->request);
    team_report(call_team(call), &spec, on_report, call);
}

static void
get_task_report(ApiCall *call)
{
    TaskRef ref = call_task_ref(call);

    if (call_team(call) == NULL)
        return;
    http_request_ref(call->request);
    task_report(call_team(call), &ref, call_on_row, call);
}

const ApiRoute reports_routes[] = {
    {"GET", "/api/v1/reports", SCOPE_READ, 0, get_reports},
    {"GET", "/api/v1/tasks/{task}/report", SCOPE_READ, 0, get_task_report},
    {NULL},
};
