/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "api/api.h"
#include "api/call.h"
#include "api/event-stream.h"
#include "api/grant.h"
#include "api/keyring.h"
#include "api/meter.h"
#include "api/origin.h"
#include "api/refusal.h"
#include "api/session.h"
#include "http/router.h"

/* What the files of this folder share; nobody outside includes it. */
struct Api {
    Loop *loop;
    Db *db;
    EventLog *events;
    BoxHost *boxes;           /* NULL: none */
    TemplateStore *templates; /* NULL: none */
    SelfTest *self_test;      /* NULL: none */
    DoorService *door;        /* NULL: none */
    Forge *forge;             /* NULL: none */
    Checks *checks;           /* NULL: none */
    Landings *landings;       /* NULL: none */
    Hooks *hooks;             /* NULL: none */
    Github *github;           /* NULL: none */
    Team *team;               /* NULL: none */
    HttpServer *server;       /* NULL until it is there */
    GHashTable *entrances;    /* box id -> BoxEntrance */
    char *home, *address;
    OriginRules *origins;
    KeyRing *keys;
    SessionBook *sessions;
    RefusalLog *refusals;
    GrantBook *grants;
    ApiMeter *meter;
    Router *router;
    GPtrArray *routes;    /* const ApiRoute*; a row of the router is an index */
    GHashTable *degraded; /* part -> reason, both owned */
    StreamCounts stream_counts[STREAM_KIND_MAX];
    RateLimit rate;
    guint streams_per_key;
    guint64 body_max, backup_max;
    double price_per_hour;
    gint64 started_us; /* monotonic */
    char *health;      /* the answer of this second; NULL: none yet */
    gint64 health_s;
    guint flush_source;
    bool backing_up, restoring;
    char *slack_secret; /* NULL: not set up */
    char **slack_origins;
    char *extra_secret; /* of the environment; NULL: none */
};

/* Every table of routes, NULL-terminated. */
const ApiRoute *const *api_route_tables(void);

/* After the content was exchanged: keys and sessions anew. */
void api_reload(Api *api, DbDone done, void *data);
/* Whether the key that its owner finds in the data folder is an admin's of this database. */
bool api_key_file_is_valid(Api *api);

/* The key behind a caller; NULL for NOBODY, LOCAL, or one that is gone. */
Key *caller_key(Api *api, const Caller *caller);
/* False once the key was revoked, has expired, or the browser has signed out: for answers
 * that go on for hours. */
bool caller_is_still_known(ApiCall *call);
