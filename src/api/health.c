/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/version.h"
#include "box/host.h"

static Json *
describe_tier(const char *name, const char *absent)
{
    Json *tier = json_pack("{s:s, s:b}", "name", name, "available", (int)(absent == NULL));

    if (absent != NULL)
        json_object_set_new(tier, "reason", json_string(absent));
    return tier;
}

static const char *
why_no_native(Api *api)
{
    BoxHostStats stats;

    if (api->boxes == NULL)
        return "this server runs without boxes";
    box_host_stats(api->boxes, &stats);
    return stats.keeper_ready ? NULL : "the keeper is not there";
}

/* A tier is said to be there only when it is. */
static Json *
list_tiers(Api *api)
{
    Json *tiers = json_array();

    json_array_append_new(tiers, describe_tier("native", why_no_native(api)));
    json_array_append_new(tiers, describe_tier("gvisor", "not part of this version"));
    json_array_append_new(tiers, describe_tier("microvm", "not part of this version"));
    return tiers;
}

static Json *
list_degraded(Api *api)
{
    Json *parts = json_array();
    DbStats db;
    GHashTableIter iter;
    gpointer part, reason;

    db_stats(api->db, &db);
    if (db.degraded)
        json_array_append_new(parts, json_pack("{s:s, s:s}", "part", "store", "reason",
                                               "the last write failed: is the disk full?"));
    g_hash_table_iter_init(&iter, api->degraded);
    while (g_hash_table_iter_next(&iter, &part, &reason))
        json_array_append_new(parts, json_pack("{s:s, s:s}", "part", part, "reason", reason));
    return parts;
}

static char *
describe(Api *api, gint64 uptime_s)
{
    Json *degraded = list_degraded(api);
    const char *status = json_array_size(degraded) == 0 ? "ok" : "degraded";
    g_autoptr(Json) health = json_pack("{s:s, s:s, s:s, s:I, s:o, s:o}", "status", status, "service", "coop",
                                       "version", version_number(), "uptime_s", (json_int_t)uptime_s, "tiers",
                                       list_tiers(api), "degraded", degraded);

    return json_encode(health);
}

/* Probes ask often, and the answer changes once a second at most. */
static void
get_health(ApiCall *call)
{
    Api *api = call->api;
    gint64 uptime_s = (clock_mono_us() - api->started_us) / G_USEC_PER_SEC;

    if (api->health == NULL || api->health_s != uptime_s) {
        g_free(api->health);
        api->health = describe(api, uptime_s);
        api->health_s = uptime_s;
    }
    call_respond_text(call, 200, api->health);
}

const ApiRoute health_routes[] = {
    {"GET", "/health", 0, ROUTE_PUBLIC, get_health},
    {NULL},
};
