/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

static guint64
number_of(Json *stats, const char *name)
{
    return (guint64)json_integer_value(json_object_get(stats, name));
}

void
metrics_put_door(GString *out, DoorService *door)
{
    DoorLink *link = door_service_link(door);
    Json *s = link != NULL ? door_link_stats(link) : NULL;

    metric_put_number(out, METRIC_GAUGE, "coop_door_up", "Whether the door is there",
                      link != NULL && door_link_is_up(link));
    metric_put_number(out, METRIC_GAUGE, "coop_door_connections", "Connections of boxes",
                      number_of(s, "connections"));
    metric_put_number(out, METRIC_GAUGE, "coop_door_tunnels", "Tunnels of boxes", number_of(s, "tunnels"));
    metric_put_number(out, METRIC_COUNTER, "coop_door_allowed_total", "Requests that were let through",
                      number_of(s, "allowed"));
    metric_put_number(out, METRIC_COUNTER, "coop_door_denied_total", "Requests that were denied",
                      number_of(s, "denied"));
    metric_put_number(out, METRIC_COUNTER, "coop_door_observed_total",
                      "Requests that were let through and would have been denied", number_of(s, "observed"));
    metric_put_number(out, METRIC_COUNTER, "coop_door_received_bytes_total", "Bytes that came to boxes",
                      number_of(s, "bytes_in"));
    metric_put_number(out, METRIC_COUNTER, "coop_door_sent_bytes_total", "Bytes that boxes sent",
                      number_of(s, "bytes_out"));
}
