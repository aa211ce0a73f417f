/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/v3/scene.h"

#define NUMBER "%" G_GINT64_FORMAT

Json *
v3_hook(const V3Scene *scene, const Json *hook)
{
    gint64 id = row_int(hook, "id");
    const char *api = scene->place->api;
    Json *config = json_pack("{s:s, s:s, s:s}", "url", row_text(hook, "url"), "content_type", "json",
                             "insecure_ssl", "0");
    Json *object = json_pack("{s:s, s:I, s:s, s:b, s:O, s:o}", "type", "Repository", "id", (json_int_t)id,
                             "name", "web", "active", row_is(hook, "active"), "events",
                             json_object_get(hook, "events"), "config", config);

    if (row_is(hook, "has_secret"))
        json_object_set_new(config, "secret", json_string("********"));
    json_object_set_new(object, "created_at", v3_time(row_int(hook, "created_us")));
    json_object_set_new(object, "updated_at", v3_time(row_int(hook, "updated_us")));
    json_object_set_new(object, "url", v3_format("%s/hooks/" NUMBER, api, id));
    json_object_set_new(object, "test_url", v3_format("%s/hooks/" NUMBER "/tests", api, id));
    json_object_set_new(object, "ping_url", v3_format("%s/hooks/" NUMBER "/pings", api, id));
    json_object_set_new(object, "deliveries_url", v3_format("%s/hooks/" NUMBER "/deliveries", api, id));
    return object;
}

static Json *
delivery_status(const Json *delivery)
{
    const char *problem = row_text(delivery, "problem"), *state = row_text(delivery, "state");

    if (problem != NULL)
        return json_string(problem);
    return json_string(strcmp(state, "done") == 0 ? "OK" : "pending");
}

/* What was asked for, and is no ping, is one that was sent before. */
static bool
is_again(const Json *delivery)
{
    return json_is_null(json_object_get(delivery, "seq")) && strcmp(row_text(delivery, "event"), "ping") != 0;
}

Json *
v3_delivery(const V3Scene *scene, const Json *delivery)
{
    gint64 created = row_int(delivery, "created_us"), ended = row_int(delivery, "ended_us");
    double duration = ended > created ? (double)(ended - created) / G_USEC_PER_SEC : 0;

    return json_pack("{s:I, s:s, s:o, s:b, s:f, s:o, s:I, s:s, s:O, s:n, s:I, s:I, s:n}", "id",
                     (json_int_t)row_int(delivery, "id"), "guid", row_text(delivery, "guid"), "delivered_at",
                     v3_time(ended > 0 ? ended : created), "redelivery", is_again(delivery), "duration",
                     duration, "status", delivery_status(delivery), "status_code",
                     (json_int_t)row_int(delivery, "status"), "event", row_text(delivery, "event"), "action",
                     json_object_get(delivery, "action"), "installation_id", "repository_id",
                     (json_int_t)scene->info->number, "tries", (json_int_t)row_int(delivery, "tries"),
                     "throttled_at");
}

Json *
v3_delivery_whole(const V3Scene *scene, const Json *delivery)
{
    Json *object = v3_delivery(scene, delivery);
    const char *body = row_text(delivery, "body");
    Json *payload = json_decode(body, strlen(body), NULL);
    Json *headers = json_pack("{s:s, s:s, s:s, s:o}", "content-type", "application/json", "X-GitHub-Event",
                              row_text(delivery, "event"), "X-GitHub-Delivery", row_text(delivery, "guid"),
                              "X-GitHub-Hook-ID", v3_format(NUMBER, row_int(delivery, "hook_id")));

    json_object_set_new(
        object, "request",
        json_pack("{s:o, s:o}", "headers", headers, "payload", payload != NULL ? payload : json_null()));
    /* What others answer is not kept. */
    json_object_set_new(object, "response", json_pack("{s:{}, s:n}", "headers", "payload"));
    return object;
}
