/* SPDX-License-Identifier: Apache-2.0 */
/* The one way in.  What is meant for a box's port is taken out at once (preview.c), and what comes from
 * inside a box is judged by who it is alone: a route for boxes, or nothing.  Every other
 * request passes these checks in this order, and the first that fails answers:
 *
 *     Host      421   a name that is not ours (DNS rebinding)
 *     Origin    403   a page that is not ours and not configured
 *     path      400   not an origin-form target, a broken escape, dots
 *     key       401   unless the route is public
 *     route     404, 405
 *     fetch     403   a cookie on a request that another site caused
 *     scope     403
 *     rate      429
 *
 * A route without a rule cannot exist: api_new() asserts that each has scopes or is marked
 * public, and a test walks the whole table with every kind of caller. */
#include <string.h>
#include <unistd.h>

#include "api/entrance.h"
#include "api/gate.h"
#include "api/preview.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/url.h"

enum { BASIC_MAX = 512 };

static void
call_free(gpointer data)
{
    ApiCall *call = data;

    route_match_clear(&call->match);
    g_free(call);
}

static void
note_refusal(ApiCall *call, const char *kind, const char *why)
{
    HttpRequest *r = call->request;
    Refusal refusal = {
        .kind = kind,
        .address = http_request_peer(r)->address,
        .method = http_request_method(r),
        .path = http_request_path(r),
        .why = why,
        .origin = http_request_header(r, "Origin"),
    };

    refusal_note(call->api->refusals, &refusal);
}

/* ---- Host and Origin ---- */

static bool
check_host(ApiCall *call)
{
    const char *host = http_request_header(call->request, "Host");

    if (host != NULL &&
        origin_host_allowed(call->api->origins, host, http_request_peer(call->request)->local_port))
        return true;
    api_meter_refuse(call->api->meter, METER_HOST);
    note_refusal(call, "origin.refused", "host");
    respond_error(call->request, 421, "this server does not answer to that name; see http.allowed_hosts");
    return false;
}

bool
gate_refuse_origin(ApiCall *call, const char *why)
{
    api_meter_refuse(call->api->meter, METER_ORIGIN);
    note_refusal(call, "origin.refused", why);
    respond_error(call->request, 403, "requests from this page's origin are not accepted");
    return false;
}

static OriginKind
kind_of_origin(ApiCall *call)
{
    return origin_kind(call->api->origins, http_request_header(call->request, "Origin"),
                       http_request_header(call->request, "Host"));
}

static void
allow_listed_origin(ApiCall *call)
{
    http_response_header(call->request, "Access-Control-Allow-Origin",
                         http_request_header(call->request, "Origin"));
}

/* Only pages on the configured list are told that they may ask. */
static bool
answer_preflight(ApiCall *call)
{
    HttpRequest *r = call->request;

    if (strcmp(http_request_method(r), "OPTIONS") != 0 ||
        http_request_header(r, "Access-Control-Request-Method") == NULL)
        return false;
    http_response_header(r, "Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE");
    http_response_header(r, "Access-Control-Allow-Headers",
                         "Authorization, X-API-Key, Content-Type, Last-Event-ID");
    http_response_header(r, "Access-Control-Max-Age", "600");
    http_respond(r, 204, NULL, NULL, 0);
    return true;
}

static bool
check_origin(ApiCall *call)
{
    OriginKind kind = kind_of_origin(call);

    if (origin_has_listed(call->api->origins))
        http_response_header(call->request, "Vary", "Origin");
    if (http_request_header_count(call->request, "Origin") > 1 || kind == ORIGIN_FOREIGN)
        return gate_refuse_origin(call, "origin");
    if (kind != ORIGIN_LISTED)
        return true;
    allow_listed_origin(call);
    return !answer_preflight(call);
}

/* ---- who is it ---- */

static bool
takes_password(const ApiCall *call)
{
    return call->route != NULL && (call->route->flags & ROUTE_BASIC) != 0;
}

bool
gate_refuse_key(ApiCall *call, const char *why)
{
    if (why != NULL) {
        api_meter_refuse(call->api->meter, METER_KEY);
        note_refusal(call, "key.refused", why);
    }
    http_response_header(call->request, "WWW-Authenticate",
                         takes_password(call) ? "Basic realm=\"coop\", charset=\"UTF-8\""
                                              : "Bearer realm=\"coop\"");
    respond_error(call->request, 401,
                  why != NULL ? "this key is not valid; 'coop key' prints the one of this server"
                              : "a key is needed: X-API-Key: e2b_… or Authorization: Bearer e2b_…; "
                                "'coop key' prints it");
    return false;
}

void
gate_set_caller(ApiCall *call, CallerKind kind, const Key *key)
{
    Caller *c = &call->caller;

    c->kind = kind;
    c->scopes = key != NULL ? key->scopes : SCOPE_ADMIN;
    if (key == NULL) {
        g_strlcpy(c->actor, "local", sizeof c->actor);
        return;
    }
    g_strlcpy(c->key_id, key->id, sizeof c->key_id);
    g_snprintf(c->actor, sizeof c->actor, "key:%s", key->id);
}

/* The password of "Basic …", or the name where the password says nothing, as GitHub takes tokens. */
static char *
read_password(const char *coded)
{
    static const char *const nothing[] = {"", "x-oauth-basic", NULL};
    gsize n;

    if (strlen(coded) > BASIC_MAX)
        return g_strdup("");
    g_autofree guchar *bytes = g_base64_decode(coded, &n);
    const char *colon = memchr(bytes, ':', n);

    if (colon == NULL)
        return g_strdup("");
    gsize n_name = (gsize)(colon - (const char *)bytes);
    g_autofree char *password = g_strndup(colon + 1, n - n_name - 1);

    return g_strv_contains(nothing, password) ? g_strndup((const char *)bytes, n_name)
                                              : g_steal_pointer(&password);
}

/* The secret a request presents, NULL: none.  `*ret_odd` is set when it presents two. */
static char *
presented_secret(const ApiCall *call, bool *ret_odd)
{
    HttpRequest *r = call->request;
    const char *plain = http_request_header(r, "X-API-Key");
    const char *bearer = http_request_header(r, "Authorization");

    *ret_odd = http_request_header_count(r, "X-API-Key") + http_request_header_count(r, "Authorization") > 1;
    if (plain != NULL)
        return g_strdup(plain);
    if (bearer == NULL)
        return NULL;
    if (takes_password(call) && g_ascii_strncasecmp(bearer, "Basic ", 6) == 0)
        return read_password(bearer + 6);
    if (g_ascii_strncasecmp(bearer, "token ", 6) == 0)
        return g_strdup(bearer + 6);
    return g_strdup(g_ascii_strncasecmp(bearer, "Bearer ", 7) == 0 ? bearer + 7 : "");
}

static const char *
session_key(ApiCall *call)
{
    const char *header = http_request_header(call->request, "Cookie");
    g_autofree char *cookie = header != NULL ? http_cookie_get(header, SESSION_COOKIE) : NULL;

    return cookie != NULL ? session_find(call->api->sessions, cookie) : NULL;
}

bool
gate_is_local_owner(const HttpPeer *peer)
{
    return peer->is_unix && (peer->uid == 0 || peer->uid == geteuid());
}

/* False: answered. */
static bool
find_caller(ApiCall *call)
{
    const char *why = NULL;
    bool odd;
    g_autofree char *secret = presented_secret(call, &odd);

    if (odd)
        return gate_refuse_key(call, "two keys");
    if (secret != NULL) {
        Key *key = key_ring_find(call->api->keys, secret, &why);

        if (key == NULL)
            return gate_refuse_key(call, why);
        gate_set_caller(call, CALLER_KEY, key);
        return true;
    }
    if (gate_is_local_owner(http_request_peer(call->request))) {
        gate_set_caller(call, CALLER_LOCAL, NULL);
        return true;
    }
    const char *id = session_key(call);
    Key *key = id != NULL ? key_ring_by_id(call->api->keys, id) : NULL;
    if (key_is_live(key)) {
        key->used = true;
        gate_set_caller(call, CALLER_SESSION, key);
    }
    return true;
}

Key *
caller_key(Api *api, const Caller *caller)
{
    return caller->key_id[0] != '\0' ? key_ring_by_id(api->keys, caller->key_id) : NULL;
}

bool
caller_is_still_known(ApiCall *call)
{
    const Caller *c = &call->caller;

    /* A box that has ended takes its connections along. */
    if (c->kind == CALLER_NOBODY || c->kind == CALLER_LOCAL || c->kind == CALLER_BOX)
        return true;
    return key_is_live(caller_key(call->api, c)) &&
           (c->kind != CALLER_SESSION || g_strcmp0(session_key(call), c->key_id) == 0);
}

static bool
is_safe_method(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 || strcmp(method, "OPTIONS") == 0;
}

/* A cookie travels by itself, so its request must be one that our own page made. */
static bool
check_fetch(ApiCall *call)
{
    HttpRequest *r = call->request;
    const char *site = http_request_header(r, "Sec-Fetch-Site");
    bool own = kind_of_origin(call) == ORIGIN_SELF;
    bool only_reads = is_safe_method(http_request_method(r)) && http_request_header(r, "Upgrade") == NULL;

    if (call->caller.kind != CALLER_SESSION)
        return true;
    /* A link on another page may lead to ours, whose files hold no data. */
    if (only_reads && (call->route->flags & ROUTE_PUBLIC) != 0)
        return true;
    if (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
        return gate_refuse_origin(call, "fetch-site");
    if (own || (site != NULL && strcmp(site, "same-origin") == 0 && kind_of_origin(call) == ORIGIN_NONE))
        return true;
    return only_reads || gate_refuse_origin(call, "no origin");
}

/* ---- what may it ---- */

static bool
check_scope(ApiCall *call)
{
    if (scopes_allow(call->caller.scopes, call->route->scopes))
        return true;
    api_meter_refuse(call->api->meter, METER_SCOPE);
    g_autofree char *need = scopes_format(call->route->scopes != 0 ? call->route->scopes : SCOPE_ADMIN);
    g_autofree char *text = g_strdup_printf("this key may not do that; it needs the scope %s", need);
    respond_error(call->request, 403, text);
    return false;
}

static bool
check_rate(ApiCall *call)
{
    Key *key = caller_key(call->api, &call->caller);
    guint wait_ms;

    if (key == NULL || rate_take(&key->rate, &call->api->rate, clock_mono_us(), &wait_ms))
        return true;
    api_meter_refuse(call->api->meter, METER_RATE);
    respond_error(call->request, 429, "too many calls with this key; see http.rate_per_key");
    return false;
}

static void
stream_over(ApiCall *call)
{
    Key *key = caller_key(call->api, &call->caller);

    if (key != NULL && key->streams > 0)
        key->streams--;
}

bool
gate_take_stream(ApiCall *call)
{
    Key *key = caller_key(call->api, &call->caller);

    if (key == NULL)
        return true;
    if (key->streams >= call->api->streams_per_key) {
        api_meter_refuse(call->api->meter, METER_RATE);
        respond_error(call->request, 429, "too many open streams with this key; see http.streams_per_key");
        return false;
    }
    key->streams++;
    call->counts_stream = true;
    return true;
}

static bool
check_streams(ApiCall *call)
{
    bool endless = call_wants_stream(call) || http_request_header(call->request, "Upgrade") != NULL;

    return (call->route->flags & ROUTE_STREAM) == 0 || !endless || gate_take_stream(call);
}

/* ---- the way through ---- */

static void
on_over(HttpRequest *request, const HttpOutcome *outcome, void *data)
{
    ApiCall *call = data;
    guint row = call->route != NULL ? call->match.row : call->api->routes->len;

    if (call->counts_stream)
        stream_over(call);
    api_meter_count(call->api->meter, row, outcome->complete ? outcome->status : 0, outcome->duration_us);
    log_debug("http", "request", log_str("id", http_request_id(request)),
              log_str("method", http_request_method(request)), log_str("path", http_request_path(request)),
              log_int("status", outcome->status), log_int("us", outcome->duration_us),
              log_str("actor", call->caller.actor));
}

/* Before anybody is asked who he is, because that may be asked in several ways. */
static RouteResult
match_route(ApiCall *call)
{
    RouteResult result = router_match(call->api->router, http_request_method(call->request),
                                      http_request_path(call->request), &call->match);

    if (result == ROUTE_FOUND)
        call->route = call->api->routes->pdata[call->match.row];
    return result;
}

static bool
check_route(ApiCall *call, RouteResult result)
{
    HttpRequest *r = call->request;
    bool is_public = call->route != NULL && (call->route->flags & ROUTE_PUBLIC) != 0;

    if (result == ROUTE_BAD) {
        respond_error(r, 400, "the path is not valid");
        return false;
    }
    /* Who has no key does not learn which paths exist. */
    if (!is_public && call->caller.kind == CALLER_NOBODY)
        return gate_refuse_key(call, NULL);
    if (result == ROUTE_NO_PATH) {
        respond_error(r, 404, "there is nothing at this path; /openapi.json lists what there is");
    } else if (result == ROUTE_NO_METHOD) {
        http_response_header(r, "Allow", call->match.allow);
        respond_error(r, 405, "this path does not take that method; see the Allow header");
    }
    return result == ROUTE_FOUND;
}

/* Keys and cookies that it presents are those of somebody else: they are not looked at. */
static void
pass_box(ApiCall *call, BoxEntrance *entrance)
{
    Caller *c = &call->caller;
    guint wait_ms;

    c->kind = CALLER_BOX;
    g_strlcpy(c->box_id, entrance->id, sizeof c->box_id);
    g_snprintf(c->actor, sizeof c->actor, "box:%s", entrance->id);
    if (match_route(call) != ROUTE_FOUND || (call->route->flags & ROUTE_BOX) == 0) {
        respond_error(call->request, 404, "there is nothing for boxes at this path");
    } else if (!rate_take(&entrance->rate, &call->api->rate, clock_mono_us(), &wait_ms)) {
        api_meter_refuse(call->api->meter, METER_RATE);
        respond_error(call->request, 429, "too many calls from this box; see http.rate_per_key");
    } else {
        call->route->handle(call);
    }
}

static void
pass(ApiCall *call)
{
    BoxEntrance *entrance = http_request_listener_data(call->request);

    /* First: the other end of its socket is a program of ours, and would pass for the owner. */
    if (entrance != NULL) {
        pass_box(call, entrance);
        return;
    }
    if (preview_by_host(call))
        return;
    /* On every answer: nothing is guessed to be a page, no address of ours is told to others. */
    http_response_header(call->request, "X-Content-Type-Options", "nosniff");
    http_response_header(call->request, "Referrer-Policy", "no-referrer");
    if (!check_host(call) || !check_origin(call))
        return;
    RouteResult result = match_route(call);

    if (!find_caller(call) || preview_by_header(call) || !check_route(call, result))
        return;
    bool is_public = (call->route->flags & ROUTE_PUBLIC) != 0;
    if (!check_fetch(call) || (!is_public && !check_scope(call)) || !check_rate(call) || !check_streams(call))
        return;
    call->route->handle(call);
}

void
api_handle(HttpRequest *request, void *api)
{
    ApiCall *call = g_new0(ApiCall, 1);

    call->api = api;
    call->request = request;
    g_strlcpy(call->caller.actor, "nobody", sizeof call->caller.actor);
    http_request_set_data(request, call, call_free);
    http_request_on_over(request, on_over, call);
    pass(call);
}
