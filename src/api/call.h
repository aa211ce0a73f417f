/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "api/keyring.h"
#include "api/scope.h"
#include "http/request.h"
#include "http/router.h"
#include "json/json.h"

typedef struct Api Api;
typedef struct ApiRoute ApiRoute;

/* Who is calling, as the gate found out. */
typedef enum CallerKind {
    CALLER_NOBODY,
    CALLER_KEY,
    CALLER_SESSION, /* a browser; stands for the key it signed in with */
    CALLER_LOCAL,   /* the control socket, by the owner of the server or root */
    CALLER_BOX,     /* code in a box, by way of the door; routes for boxes only, and no scope */
} CallerKind;

typedef struct Caller {
    CallerKind kind;
    Scopes scopes;
    char key_id[ID_UUID_LEN + 1]; /* "" for NOBODY, LOCAL and BOX */
    char box_id[ID_UUID_LEN + 1]; /* of BOX; "" for all others */
    char actor[ID_UUID_LEN + 8];  /* for events: "key:…", "local", "box:…", "nobody" */
} Caller;

/* One request that passed the gate.  Lives as long as the request. */
typedef struct ApiCall {
    Api *api;
    HttpRequest *request; /* borrowed: the call is the request's data */
    const ApiRoute *route;
    RouteMatch match;
    Caller caller;
    bool counts_stream;
} ApiCall;

/* What stands between a request and its handler for one resource's routes.  `scopes` 0 is
 * allowed only with ROUTE_PUBLIC. */
typedef enum RouteFlags {
    ROUTE_PUBLIC = 1 << 0, /* no key: health, the page's files, what checks a signature itself */
    ROUTE_STREAM = 1 << 1, /* can be a stream, which counts against those of the caller */
    ROUTE_BOX = 1 << 2,    /* for boxes too; the handler looks at who calls */
    ROUTE_BASIC = 1 << 3,  /* a key may be a password: for clients that know nothing else */
} RouteFlags;

struct ApiRoute {
    const char *method; /* NULL ends a table */
    const char *pattern;
    Scopes scopes; /* one of these is needed; admin always will do */
    unsigned flags;
    void (*handle)(ApiCall *call);
};

static inline const char *
call_param(const ApiCall *call, const char *name)
{
    return route_match_param(&call->match, name);
}

/* ---- answering ---- */

/* JSON as text. */
void call_respond_text(ApiCall *call, int status, const char *json);
/* Takes `value`. */
void call_respond_json(ApiCall *call, int status, Json *value);
void call_respond_empty(ApiCall *call); /* 204 */
/* The end of work that was begun with a reference to the request, which this drops: `data` is the
 * call, answered with the error or with nothing.  A DbDone. */
void call_on_done(void *data, const GError *error);
bool call_is_admin(const ApiCall *call);
/* {"code", "message", "request_id"}; the status follows from the error's kind.  Messages of
 * internal errors go to the log, not out. */
void call_respond_error(ApiCall *call, const GError *error);
/* With 429 and 503: before that many seconds it is of no use to try again. */
void call_respond_error_after(ApiCall *call, const GError *error, gint64 retry_s);
/* The same for what HttpSink.end reports: too long is 413, too slow 408. */
void call_respond_body_error(ApiCall *call, const GError *error);
/* The same without a call, for the gate. */
void respond_error(HttpRequest *request, int status, const char *message);
int error_status(const GError *error);

/* ---- reading ---- */

/* Does the caller ask for events as they come? */
bool call_wants_stream(const ApiCall *call);

/* A JSON object of at most the configured size.  On failure the error was answered already
 * and `func` is not called; `body` is borrowed. */
typedef void (*CallBodyFunc)(ApiCall *call, Json *body, void *data);
void call_read_json(ApiCall *call, CallBodyFunc func, void *data);
