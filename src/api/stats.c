/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "http/server.h"

static Json *
http_numbers(Api *api)
{
    HttpStats s = {0};

    if (api->server != NULL)
        http_server_stats(api->server, &s);
    return json_pack("{s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "connections", (int)s.connections,
                     "requests_active", (int)s.requests_active, "streams", (int)s.streams, "accepted",
                     (json_int_t)s.accepted, "shed", (json_int_t)s.shed, "requests", (json_int_t)s.requests,
                     "refused", (json_int_t)s.refused, "timeouts", (json_int_t)s.timeouts, "bytes_in",
                     (json_int_t)s.bytes_in, "bytes_out", (json_int_t)s.bytes_out);
}

static Json *
store_numbers(Api *api)
{
    DbStats s;

    db_stats(api->db, &s);
    return json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:b}", "writes_waiting", (int)s.writes_waiting,
                     "reads_waiting", (int)s.reads_waiting, "writes", (json_int_t)s.writes, "commits",
                     (json_int_t)s.commits, "failures", (json_int_t)s.failures, "schema",
                     (json_int_t)s.schema, "degraded", (int)s.degraded);
}

static Json *
event_numbers(Api *api)
{
    EventStats s;

    event_log_stats(api->events, &s);
    return json_pack("{s:i, s:i, s:I, s:I, s:I}", "followers", (int)s.cursors, "ring_events",
                     (int)s.ring_events, "ring_bytes", (json_int_t)s.ring_bytes, "first_seq",
                     (json_int_t)s.first_seq, "last_seq", (json_int_t)s.last_seq);
}

static void
get_stats(ApiCall *call)
{
    Api *api = call->api;

    call_respond_json(call, 200,
                      json_pack("{s:s, s:o, s:o, s:o, s:I}", "address", api->address, "http",
                                http_numbers(api), "store", store_numbers(api), "events", event_numbers(api),
                                "seq", (json_int_t)event_log_last_seq(api->events)));
}

const ApiRoute stats_routes[] = {
    {"GET", "/api/v1/stats", SCOPE_READ, 0, get_stats},
    {NULL},
};
