/* SPDX-License-Identifier: Apache-2.0 */
#include "api/meter.h"

const gint64 meter_bounds_us[METER_BUCKETS - 1] = {100, 1000, 5000, 25000, 100000, 1000000, 10000000};

struct ApiMeter {
    guint n_routes;
    guint64 refusals[METER_REFUSALS];
    RouteCount counts[];
};

ApiMeter *
api_meter_new(guint n_routes)
{
    ApiMeter *m = g_malloc0(sizeof *m + sizeof(RouteCount) * (n_routes + 1));

    m->n_routes = n_routes;
    return m;
}

void
api_meter_free(ApiMeter *meter)
{
    g_free(meter);
}

void
api_meter_count(ApiMeter *meter, guint route, int status, gint64 duration_us)
{
    g_assert(route <= meter->n_routes);
    RouteCount *c = &meter->counts[route];
    guint class = (guint)status / 100;
    guint bucket = 0;

    while (bucket < METER_BUCKETS - 1 && duration_us > meter_bounds_us[bucket])
        bucket++;
    c->by_class[class < METER_CLASSES ? class : 0]++;
    c->by_duration[bucket]++;
    c->sum_us += (guint64)duration_us;
}

const RouteCount *
api_meter_get(const ApiMeter *meter, guint route)
{
    g_assert(route <= meter->n_routes);
    return &meter->counts[route];
}

void
api_meter_refuse(ApiMeter *meter, MeterRefusal why)
{
    meter->refusals[why]++;
}

guint64
api_meter_refused(const ApiMeter *meter, MeterRefusal why)
{
    return meter->refusals[why];
}
