/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "api/session.h"
#include "base/loop.h"
#include "base/rate.h"
#include "box/box.h"
#include "box/selftest.h"
#include "box/template.h"
#include "door/service.h"
#include "forge/checks.h"
#include "forge/forge.h"
#include "forge/hook.h"
#include "forge/landing.h"
#include "github/github.h"
#include "http/request.h"
#include "http/server.h"
#include "store/db.h"
#include "store/events.h"
#include "team/team.h"
#include "json/json.h"

/* Everything that is served on the port.  One table of routes (routes.c), one gate through
 * which every request passes (gate.c): Host, Origin, route, key, scope, rate. */
typedef struct Api Api;

typedef struct ApiSpec {
    Loop *loop; /* borrowed, as are the next eleven */
    Db *db;
    EventLog *events;
    BoxHost *boxes;             /* NULL: this server has none */
    TemplateStore *templates;   /* NULL: none */
    SelfTest *self_test;        /* NULL: none */
    DoorService *door;          /* NULL: boxes have no way out */
    Forge *forge;               /* NULL: none */
    Checks *checks;             /* NULL: none */
    Landings *landings;         /* NULL: none */
    Github *github;             /* NULL: none */
    Team *team;                 /* NULL: none */
    const char *home;           /* for temporary files of uploads */
    const char *address;        /* where a browser finds us: "http://127.0.0.1:8003" */
    const char *const *hosts;   /* further names we answer to; NULL: none */
    const char *const *origins; /* pages that may call us; NULL: none */
    RateLimit rate;             /* calls per key */
    guint streams_per_key;
    guint64 body_max;                 /* JSON bodies */
    guint64 backup_max;               /* an uploaded backup */
    const char *slack_secret;         /* that Slack signs with; NULL: not set up */
    const char *const *slack_origins; /* where progress may be posted to; NULL: nowhere */
    double price_per_hour;            /* of a box, in dollars: what its cost is reckoned by */
} ApiSpec;

Api *api_new(const ApiSpec *spec);
/* Before the door is freed: what was begun may still be answered. */
void api_forget_door(Api *api);
void api_free(Api *api);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Api, api_free)

/* The HttpHandler of the server; `api` is its data. */
void api_handle(HttpRequest *request, void *api);

/* Before anything is served, and NULL before they are freed. */
void api_set_hooks(Api *api, Hooks *hooks);

/* So that /stats and /metrics can tell of it, and boxes can come in; NULL before it is freed. */
void api_set_server(Api *api, HttpServer *server);

/* A connection from inside a box, handed on by the door: whoever asks here is that box, whatever the
 * request says.  `fd` is taken. */
void api_adopt_box(Api *api, const char *box_id, int fd);
/* The box is gone, and what it asked with it. */
void api_forget_box(Api *api, const char *box_id);

/* Reads the keys and sessions; makes the first admin key when there is none, and keeps it in
 * `home`/key for its owner.  `extra_secret` (may be NULL) is a key from the environment that
 * shall work too.  Nothing may be served before `done`. */
void api_load(Api *api, const char *extra_secret, DbDone done, void *data);

/* A ticket for a one-time link that signs a browser in as admin; false before any admin key
 * exists. */
bool api_ticket(Api *api, char ret_ticket[TICKET_LEN + 1]);

/* The table of routes with the rule of each row: method, pattern, scopes, public, stream. */
Json *api_describe_routes(void);

/* Writes down what is gathered in memory: the stop has begun. */
void api_flush(Api *api);

/* A part that works less well than it should, shown in /health; `reason` NULL: it is well
 * again. */
void api_set_degraded(Api *api, const char *part, const char *reason);
