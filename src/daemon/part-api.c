/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/listen.h"
#include "daemon/serve-private.h"

enum {
    BACKUP_MAX_GIB = 64, /* an uploaded backup */
    CENTS = 100,
};

static void
make_api(Server *s)
{
    const ConfigHttp *h = &s->config->http;
    g_auto(GStrv) hosts = listen_host_names(s->config);
    ApiSpec spec = {
        .loop = s->loop,
        .db = s->db,
        .events = s->events,
        .boxes = serve_box_host(s),
        .templates = serve_templates_store(s->templates),
        .door = s->boxes != NULL ? boxes_door(s->boxes) : NULL,
        .forge = s->forge,
        .checks = s->checks,
        .landings = s->landings,
        .github = s->github,
        .team = s->team,
        .self_test = s->boxes != NULL ? boxes_self_test(s->boxes) : NULL,
        .price_per_hour = (double)s->config->boxes.price_cents / CENTS,
        .home = s->config->home,
        .address = s->address,
        .slack_secret = s->config->slack_secret,
        .slack_origins = s->config->slack_origins,
        .hosts = (const char *const *)hosts,
        .origins = h->allowed_origins,
        .rate = {.per_second = (guint)h->rate_per_key, .burst = (guint)h->rate_burst},
        .streams_per_key = (guint)h->streams_per_key,
        .body_max = (guint64)h->body_limit,
        .backup_max = (guint64)BACKUP_MAX_GIB << 30,
    };

    s->api = api_new(&spec);
    if (s->forge == NULL)
        api_set_degraded(s->api, "forge", s->forge_problem->message);
}

static void
clear_api(Server *s)
{
    api_free(s->api);
}

/* What it knows of keys is loaded before all else. */
const ServePart part_api = {.make = make_api, .clear = clear_api};
