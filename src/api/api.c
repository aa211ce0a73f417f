/* SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include <errno.h>
#include <string.h>

#include "api/entrance.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/path.h"

enum { FLUSH_USED_S = 60 };

static void
add_routes(Api *api)
{
    for (const ApiRoute *const *table = api_route_tables(); *table != NULL; table++) {
        for (const ApiRoute *r = *table; r->method != NULL; r++) {
            g_assert(r->scopes != 0 || (r->flags & ROUTE_PUBLIC) != 0);
            router_add(api->router, r->method, r->pattern, api->routes->len);
            g_ptr_array_add(api->routes, (gpointer)(guintptr)r);
        }
    }
}

void
api_flush(Api *api)
{
    key_ring_flush_used(api->keys);
    refusal_flush(api->refusals);
}

static gboolean
flush_used(gpointer data)
{
    Api *api = data;

    key_ring_flush_used(api->keys);
    return G_SOURCE_CONTINUE;
}

Api *
api_new(const ApiSpec *spec)
{
    Api *api = g_new0(Api, 1);

    api->loop = spec->loop;
    api->db = spec->db;
    api->events = spec->events;
    api->boxes = spec->boxes;
    api->templates = spec->templates;
    api->self_test = spec->self_test;
    api->door = spec->door;
    api->forge = spec->forge;
    api->checks = spec->checks;
    api->landings = spec->landings;
    api->github = spec->github;
    api->team = spec->team;
    api->home = g_strdup(spec->home);
    api->address = g_strdup(spec->address);
    api->slack_secret = g_strdup(spec->slack_secret);
    api->slack_origins = g_strdupv((char **)(guintptr)spec->slack_origins);
    api->rate = spec->rate;
    api->streams_per_key = spec->streams_per_key;
    api->body_max = spec->body_max;
    api->backup_max = spec->backup_max;
    api->price_per_hour = spec->price_per_hour;
    api->started_us = clock_mono_us();
    api->origins = origin_rules_new(spec->hosts, spec->origins);
    api->keys = key_ring_new(spec->db);
    api->sessions = session_book_new(spec->db);
    api->refusals = refusal_log_new(spec->db);
    api->grants = grant_book_new();
    api->entrances = box_entrances_new();
    api->degraded = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    api->router = router_new();
    api->routes = g_ptr_array_new();
    add_routes(api);
    api->meter = api_meter_new(api->routes->len);
    api->flush_source = g_timeout_add_seconds(FLUSH_USED_S, flush_used, api);
    return api;
}

void
api_forget_door(Api *api)
{
    api->door = NULL;
}

void
api_free(Api *api)
{
    if (api == NULL)
        return;
    g_source_remove(api->flush_source);
    key_ring_free(api->keys);
    session_book_free(api->sessions);
    refusal_log_free(api->refusals);
    grant_book_free(api->grants);
    origin_rules_free(api->origins);
    api_meter_free(api->meter);
    router_free(api->router);
    g_ptr_array_unref(api->routes);
    g_hash_table_unref(api->entrances);
    g_hash_table_unref(api->degraded);
    g_free(api->home);
    g_free(api->address);
    g_free(api->slack_secret);
    g_strfreev(api->slack_origins);
    g_free(api->extra_secret);
    g_free(api->health);
    g_free(api);
}

void
api_set_hooks(Api *api, Hooks *hooks)
{
    api->hooks = hooks;
}

void
api_set_server(Api *api, HttpServer *server)
{
    api->server = server;
    /* Those of boxes go with their server. */
    if (server == NULL)
        g_hash_table_remove_all(api->entrances);
}

void
api_set_degraded(Api *api, const char *part, const char *reason)
{
    if (reason == NULL)
        g_hash_table_remove(api->degraded, part);
    else
        g_hash_table_replace(api->degraded, g_strdup(part), g_strdup(reason));
    g_clear_pointer(&api->health, g_free);
}

static void
find_admin(const Key *key, void *data)
{
    const Key **found = data;

    if (*found == NULL && key_is_live(key) && (key->scopes & SCOPE_ADMIN) != 0)
        *found = key;
}

bool
api_ticket(Api *api, char ret_ticket[TICKET_LEN + 1])
{
    const Key *admin = NULL;

    key_ring_list(api->keys, find_admin, &admin);
    if (admin == NULL)
        return false;
    session_ticket_new(api->sessions, admin->id, ret_ticket);
    return true;
}
