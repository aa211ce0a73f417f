/* SPDX-License-Identifier: Apache-2.0 */
#include "api/metrics.h"

static guint64
number_of(Json *stats, const char *name)
{
    return (guint64)json_integer_value(json_object_get(stats, name));
}

static void
put_models(GString *out, const DoorModelCounts *c)
{
    const struct {
        const char *name, *help;
        guint64 value;
    } counters[] = {
        {"coop_model_calls_total", "Calls of models", c->calls},
        {"coop_model_failed_total", "Calls of models that failed", c->failed},
        {"coop_model_input_tokens_total", "Tokens that went to models, without cached ones", c->input_tokens},
        {"coop_model_cached_tokens_total", "Tokens that providers had in their caches", c->cached_tokens},
        {"coop_model_output_tokens_total", "Tokens that came from models", c->output_tokens},
        {"coop_model_cost_microdollars_total", "What calls of models cost", c->microusd},
        {"coop_model_milliseconds_total", "Time that calls of models took", c->latency_ms},
        {"coop_budgets_exceeded_total", "Calls that a budget stopped", c->budgets_exceeded},
        {"coop_loops_broken_total", "Calls that were stopped as loops", c->loops_broken},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(counters); i++)
        metric_put_number(out, METRIC_COUNTER, counters[i].name, counters[i].help, counters[i].value);
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
    put_models(out, door_models_counts(door_service_models(door)));
}
