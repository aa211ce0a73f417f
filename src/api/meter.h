/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* Counters of what was asked and answered, by route.  Plain increments on the loop. */
typedef struct ApiMeter ApiMeter;

enum { METER_BUCKETS = 8, METER_CLASSES = 6 };

/* Upper bounds of the duration histogram, in microseconds; the last one is "more". */
extern const gint64 meter_bounds_us[METER_BUCKETS - 1];

typedef struct RouteCount {
    guint64 by_class[METER_CLASSES]; /* 0: cut off, 1: 1xx … 5: 5xx */
    guint64 by_duration[METER_BUCKETS];
    guint64 sum_us;
} RouteCount;

ApiMeter *api_meter_new(guint n_routes);
void api_meter_free(ApiMeter *meter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ApiMeter, api_meter_free)

/* `route` may be n_routes: requests that matched none. */
void api_meter_count(ApiMeter *meter, guint route, int status, gint64 duration_us);
const RouteCount *api_meter_get(const ApiMeter *meter, guint route);

typedef enum MeterRefusal {
    METER_KEY,
    METER_SCOPE,
    METER_HOST,
    METER_ORIGIN,
    METER_RATE,
    METER_REFUSALS
} MeterRefusal;
void api_meter_refuse(ApiMeter *meter, MeterRefusal why);
guint64 api_meter_refused(const ApiMeter *meter, MeterRefusal why);
