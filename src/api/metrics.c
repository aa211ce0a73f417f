/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text format, written by hand: it is lines of "name{labels} value". */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/metrics.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/version.h"
#include "http/server.h"

void
metric_put_meta(GString *out, MetricType type, const char *name, const char *help)
{
    g_string_append_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
                           type == METRIC_GAUGE ? "gauge" : "counter");
}

void
metric_put_number(GString *out, MetricType type, const char *name, const char *help, guint64 value)
{
    metric_put_meta(out, type, name, help);
    g_string_append_printf(out, "%s %" G_GUINT64_FORMAT "\n", name, value);
}

static void
put_http(GString *out, Api *api)
{
    HttpStats s = {0};

    if (api->server != NULL)
        http_server_stats(api->server, &s);
    metric_put_number(out, METRIC_GAUGE, "coop_http_connections", "Open connections", s.connections);
    metric_put_number(out, METRIC_GAUGE, "coop_http_streams", "Answers that are streams", s.streams);
    metric_put_number(out, METRIC_COUNTER, "coop_http_accepted_total", "Connections accepted", s.accepted);
    metric_put_number(out, METRIC_COUNTER, "coop_http_shed_total", "Connections refused at a bound", s.shed);
    metric_put_number(out, METRIC_COUNTER, "coop_http_malformed_total", "Requests that were not valid HTTP",
                      s.refused);
    metric_put_number(out, METRIC_COUNTER, "coop_http_timeouts_total", "Connections ended by a deadline",
                      s.timeouts);
    metric_put_number(out, METRIC_COUNTER, "coop_http_received_bytes_total", "Bytes received", s.bytes_in);
    metric_put_number(out, METRIC_COUNTER, "coop_http_sent_bytes_total", "Bytes sent", s.bytes_out);
}

static void
put_route_counts(GString *out, const RouteCount *c, const char *method, const char *pattern)
{
    static const char *const classes[METER_CLASSES] = {"cut", "1xx", "2xx", "3xx", "4xx", "5xx"};

    for (guint i = 0; i < METER_CLASSES; i++) {
        if (c->by_class[i] > 0)
            g_string_append_printf(out,
                                   "coop_http_requests_total{method=\"%s\",route=\"%s\",code=\"%s\"} "
                                   "%" G_GUINT64_FORMAT "\n",
                                   method, pattern, classes[i], c->by_class[i]);
    }
}

static void
put_requests(GString *out, Api *api)
{
    guint n = api->routes->len;

    metric_put_meta(out, METRIC_COUNTER, "coop_http_requests_total", "Requests by route and outcome");
    for (guint i = 0; i < n; i++) {
        const ApiRoute *route = api->routes->pdata[i];

        put_route_counts(out, api_meter_get(api->meter, i), route->method, route->pattern);
    }
    put_route_counts(out, api_meter_get(api->meter, n), "", "none");
}

static void
put_durations(GString *out, Api *api)
{
    RouteCount all = {0};
    guint64 below = 0;

    for (guint i = 0; i <= api->routes->len; i++) {
        const RouteCount *c = api_meter_get(api->meter, i);

        for (guint b = 0; b < METER_BUCKETS; b++)
            all.by_duration[b] += c->by_duration[b];
        all.sum_us += c->sum_us;
    }
    g_string_append(out, "# HELP coop_http_request_seconds Time from head to end of the answer\n"
                         "# TYPE coop_http_request_seconds histogram\n");
    for (guint b = 0; b < METER_BUCKETS; b++) {
        below += all.by_duration[b];
        if (b < METER_BUCKETS - 1)
            g_string_append_printf(out, "coop_http_request_seconds_bucket{le=\"%g\"} %" G_GUINT64_FORMAT "\n",
                                   (double)meter_bounds_us[b] / G_USEC_PER_SEC, below);
    }
    g_string_append_printf(out,
                           "coop_http_request_seconds_bucket{le=\"+Inf\"} %" G_GUINT64_FORMAT "\n"
                           "coop_http_request_seconds_sum %.6f\n"
                           "coop_http_request_seconds_count %" G_GUINT64_FORMAT "\n",
                           below, (double)all.sum_us / G_USEC_PER_SEC, below);
}

static void
put_refusals(GString *out, Api *api)
{
    static const char *const names[METER_REFUSALS] = {"key", "scope", "host", "origin", "rate"};

    metric_put_meta(out, METRIC_COUNTER, "coop_api_refused_total", "Calls the gate turned away");
    for (guint i = 0; i < METER_REFUSALS; i++)
        g_string_append_printf(out, "coop_api_refused_total{why=\"%s\"} %" G_GUINT64_FORMAT "\n", names[i],
                               api_meter_refused(api->meter, i));
}

static void
put_store(GString *out, Api *api)
{
    DbStats db;
    EventStats events;

    db_stats(api->db, &db);
    event_log_stats(api->events, &events);
    metric_put_number(out, METRIC_GAUGE, "coop_store_writes_waiting", "Writes in the queue",
                      db.writes_waiting);
    metric_put_number(out, METRIC_GAUGE, "coop_store_reads_waiting", "Reads in the queue", db.reads_waiting);
    metric_put_number(out, METRIC_COUNTER, "coop_store_writes_total", "Writes done", db.writes);
    metric_put_number(out, METRIC_COUNTER, "coop_store_commits_total", "Commits that carried them",
                      db.commits);
    metric_put_number(out, METRIC_COUNTER, "coop_store_failures_total", "Writes and reads that failed",
                      db.failures);
    metric_put_number(out, METRIC_GAUGE, "coop_store_degraded", "1 while the last commit failed",
                      db.degraded);
    metric_put_number(out, METRIC_GAUGE, "coop_events_last_seq", "Number of the newest event",
                      (guint64)events.last_seq);
    metric_put_number(out, METRIC_GAUGE, "coop_events_followers", "Open cursors on the event log",
                      events.cursors);
    metric_put_number(out, METRIC_GAUGE, "coop_events_ring_bytes", "Bytes of events held in memory",
                      events.ring_bytes);
}

static guint64
resident_bytes(void)
{
    g_autofree char *text = NULL;
    unsigned long total, resident;

    if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL) ||
        sscanf(text, "%lu %lu", &total, &resident) != 2)
        return 0;
    return (guint64)resident * (guint64)sysconf(_SC_PAGESIZE);
}

static void
put_process(GString *out)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    metric_put_meta(out, METRIC_GAUGE, "coop_build_info", "What is running");
    g_string_append_printf(out, "coop_build_info{version=\"%s\",commit=\"%s\"} 1\n", version_number(),
                           version_commit() != NULL ? version_commit() : "");
    metric_put_meta(out, METRIC_COUNTER, "process_cpu_seconds_total", "User and system time");
    g_string_append_printf(out, "process_cpu_seconds_total %.6f\n",
                           (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                               (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / G_USEC_PER_SEC);
    metric_put_number(out, METRIC_GAUGE, "process_resident_memory_bytes", "Resident memory",
                      resident_bytes());
}

static void
answer(ApiCall *call, const BoxUse *use)
{
    GString *out = g_string_sized_new(8192);

    put_process(out);
    put_http(out, call->api);
    put_requests(out, call->api);
    put_durations(out, call->api);
    put_refusals(out, call->api);
    put_store(out, call->api);
    if (call->api->boxes != NULL)
        metrics_put_boxes(out, call->api->boxes, use);
    if (call->api->door != NULL)
        metrics_put_door(out, call->api->door);
    if (call->api->forge != NULL)
        metrics_put_forge(out, call->api->forge);
    if (call->api->landings != NULL)
        metrics_put_landings(out, call->api->landings);
    if (call->api->team != NULL)
        metrics_put_team(out, call->api->team);
    http_response_header(call->request, "Cache-Control", "no-store");
    http_respond(call->request, 200, "text/plain; version=0.0.4; charset=utf-8", out->str, out->len);
    g_string_free(out, TRUE);
}

static void
get_metrics(ApiCall *call)
{
    if (call->api->boxes != NULL)
        metrics_gather_use(call, answer);
    else
        answer(call, NULL);
}

const ApiRoute metrics_routes[] = {
    {"GET", "/metrics", SCOPE_READ, 0, get_metrics},
    {NULL},
};
