/* SPDX-License-Identifier: Apache-2.0 */
/* A box's port is shown under a host of its own, "{port}-{id}.{name}": an origin that shares no
 * cookie, storage or worker with the board or with another box, because what runs there is hostile.
 * Who may see it:
 *
 *     a key       in X-API-Key or as Bearer, for programs; it does not go on into the box
 *     a cookie    of a link (preview-grant.c), for browsers; it does not go on either
 *
 * A cookie travels by itself, so its request must come from a page of the same host, or be a
 * person who follows a link.  Names that are not text of ours are left alone: Authorization and
 * X-API-Key of the program in the box pass through unless they hold one of our keys. */
#include "api/preview.h"

#include <string.h>

#include "api/call-box.h"
#include "api/gate.h"
#include "api/preview-headers.h"
#include "api/state.h"
#include "base/err.h"
#include "box/host.h"
#include "http/proxy.h"
#include "http/url.h"

enum { PREVIEW_HEAD_MS = 120 * 1000, PREVIEW_STALL_MS = 600 * 1000 };

#define HEADER_ID "E2b-Sandbox-Id"
#define HEADER_PORT "E2b-Sandbox-Port"

static const char page_policy[] = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

void
preview_refuse(ApiCall *call, int status, const char *message)
{
    HttpRequest *r = call->request;
    const char *accept = http_request_header(r, "Accept");

    if (accept == NULL || strstr(accept, "text/html") == NULL) {
        respond_error(r, status, message);
        return;
    }
    g_autofree char *text = g_markup_escape_text(message, -1);
    g_autofree char *page = g_strdup_printf("<!doctype html><meta charset=\"utf-8\"><title>%d</title>"
                                            "<style>body{font:16px sans-serif;margin:4em}</style>"
                                            "<h1>%d</h1><p>%s</p>\n",
                                            status, status, text);
    http_response_header(r, "Content-Security-Policy", page_policy);
    http_response_header(r, "Cache-Control", "no-store");
    http_respond_text(r, status, "text/html; charset=utf-8", page);
}

/* ---- to the box ---- */

typedef struct Preview {
    ApiCall *call; /* with a reference to its request */
    guint16 port;
    bool by_header;
} Preview;

static char *
left_cookies(HttpRequest *request)
{
    GString *all = g_string_new(NULL);

    for (guint i = 0; i < http_request_headers(request); i++) {
        const char *name, *value;

        http_request_header_at(request, i, &name, &value);
        if (g_ascii_strcasecmp(name, "Cookie") != 0)
            continue;
        g_autofree char *kept = preview_cookies(value);
        if (kept != NULL)
            g_string_append_printf(all, "%s%s", all->len > 0 ? "; " : "", kept);
    }
    return g_string_free(all, FALSE);
}

/* The secret in a header that may hold one; NULL: it is none of ours. */
static const char *
own_secret(HttpRequest *request, const char *name)
{
    const char *value = http_request_header(request, name);

    if (value != NULL && g_ascii_strncasecmp(value, "Bearer ", 7) == 0)
        value += 7;
    return value != NULL && key_secret_is_well_formed(value) ? value : NULL;
}

static void
pass_on(Preview *p, int fd)
{
    HttpRequest *r = p->call->request;
    const char *address = http_request_peer(r)->address;
    g_autofree char *cookies = left_cookies(r);
    g_autofree char *local = g_strdup_printf("localhost:%u", p->port);
    const char *drop[] = {HEADER_ID, HEADER_PORT, "Cookie", NULL, NULL, NULL};
    const char *add[] = {"X-Forwarded-For",
                         address[0] != '\0' ? address : "unknown",
                         "X-Forwarded-Host",
                         http_request_header(r, "Host"),
                         "X-Forwarded-Proto",
                         g_str_has_prefix(p->call->api->address, "https:") ? "https" : "http",
                         cookies[0] != '\0' ? "Cookie" : NULL,
                         cookies,
                         NULL};
    size_t n = 3;

    if (own_secret(r, "Authorization") != NULL)
        drop[n++] = "Authorization";
    if (own_secret(r, "X-API-Key") != NULL)
        drop[n++] = "X-API-Key";
    HttpProxySpec spec = {
        .loop = p->call->api->loop,
        .host = p->by_header ? local : NULL,
        .drop_headers = drop,
        .add_headers = add,
        .judge_answer = preview_judge_answer,
        .head_ms = PREVIEW_HEAD_MS,
        .stall_ms = PREVIEW_STALL_MS,
    };
    /* Under our own host what a box says is never a page. */
    if (p->by_header)
        http_response_header(r, "Content-Security-Policy", "default-src 'none'; sandbox");
    http_proxy(r, fd, &spec);
}

static void
on_connected(int fd, const GError *error, void *data)
{
    g_autofree Preview *p = data;

    if (error == NULL) {
        pass_on(p, fd);
    } else if (err_kind(error) == ERR_TIMEOUT) {
        preview_refuse(p->call, 504, "the sandbox does not answer");
    } else if (err_kind(error) == ERR_UNAVAILABLE) {
        g_autofree char *text = g_strdup_printf("nothing listens on port %u of this sandbox", p->port);

        preview_refuse(p->call, 502, text);
    } else {
        preview_refuse(p->call, error_status(error), error->message);
    }
    http_request_unref(p->call->request);
}

static void
connect_to(ApiCall *call, const char *id, guint16 port, bool by_header)
{
    Box *box = call->api->boxes != NULL ? box_host_find(call->api->boxes, id, caller_owner(&call->caller))
                                        : NULL;
    BoxInfo info;

    if (box == NULL) {
        preview_refuse(call, 404, "there is no such sandbox, or it has ended");
        return;
    }
    box_info(box, &info);
    if (info.state != BOX_READY) {
        preview_refuse(call, info.state == BOX_PAUSED ? 409 : 503,
                       info.state == BOX_PAUSED ? "the sandbox is paused" : "the sandbox is not ready");
        return;
    }
    if (http_request_header(call->request, "Upgrade") != NULL && !gate_take_stream(call))
        return;
    Preview *p = g_new0(Preview, 1);
    *p = (Preview){.call = call, .port = port, .by_header = by_header};
    http_request_ref(call->request);
    box_touch(box);
    box_connect(box, port, on_connected, p);
}

/* ---- who is it ---- */

static bool
may_use_boxes(ApiCall *call)
{
    if (scopes_allow(call->caller.scopes, SCOPE_BOX))
        return true;
    api_meter_refuse(call->api->meter, METER_SCOPE);
    preview_refuse(call, 403, "this key may not do that; it needs the scope box");
    return false;
}

/* Page of the same host, or a person who typed or followed a link. */
static bool
came_by_itself(HttpRequest *r)
{
    const char *site = http_request_header(r, "Sec-Fetch-Site");
    const char *mode = http_request_header(r, "Sec-Fetch-Mode");
    const char *dest = http_request_header(r, "Sec-Fetch-Dest");
    const char *method = http_request_method(r);

    if (site == NULL || strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0)
        return false;
    return g_strcmp0(mode, "navigate") != 0 || g_strcmp0(dest, "document") != 0 ||
           (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0);
}

/* Of several cookies any will do: a page of another host may have put one before ours. */
static const char *
cookie_key(ApiCall *call, const GrantFor *what)
{
    for (guint i = 0; i < http_request_headers(call->request); i++) {
        const char *name, *value;

        http_request_header_at(call->request, i, &name, &value);
        if (g_ascii_strcasecmp(name, "Cookie") != 0)
            continue;
        for (const char *p = value; p != NULL; p = strchr(p, ';')) {
            p += strspn(p, "; \t");
            g_autofree char *cookie = http_cookie_get(p, PREVIEW_COOKIE);
            const char *key = cookie != NULL ? grant_find(call->api->grants, what, cookie) : NULL;

            if (key != NULL)
                return key;
        }
    }
    return NULL;
}

static bool
find_by_cookie(ApiCall *call, const GrantFor *what)
{
    const char *id = cookie_key(call, what);
    HttpRequest *r = call->request;

    if (id == NULL)
        return false;
    const Key *key = id[0] != '\0' ? key_ring_by_id(call->api->keys, id) : NULL;
    if (id[0] != '\0' && !key_is_live(key))
        return false;
    if (came_by_itself(r))
        return gate_refuse_origin(call, "fetch-site");
    /* Browsers name the page that opens a WebSocket, always. */
    if (http_request_header(r, "Upgrade") != NULL && http_request_header(r, "Origin") == NULL)
        return gate_refuse_origin(call, "no origin");
    gate_set_caller(call, CALLER_SESSION, key);
    return true;
}

static bool
find_caller(ApiCall *call, const GrantFor *what)
{
    const char *secret = own_secret(call->request, "X-API-Key");
    const char *why = NULL;

    if (secret == NULL)
        secret = own_secret(call->request, "Authorization");
    if (secret != NULL) {
        const Key *key = key_ring_find(call->api->keys, secret, &why);

        if (key == NULL)
            return gate_refuse_key(call, why);
        gate_set_caller(call, CALLER_KEY, key);
        return true;
    }
    if (gate_is_local_owner(http_request_peer(call->request))) {
        gate_set_caller(call, CALLER_LOCAL, NULL);
        return true;
    }
    if (find_by_cookie(call, what) || http_request_is_answered(call->request))
        return !http_request_is_answered(call->request);
    http_response_header(call->request, "WWW-Authenticate", "Bearer realm=\"coop\"");
    preview_refuse(call, 401, "this preview needs a link from the board, from POST …/previews, or a key");
    return false;
}

static bool
check_origin(ApiCall *call)
{
    const char *origin = http_request_header(call->request, "Origin");
    OriginKind kind = origin_kind(call->api->origins, origin, http_request_header(call->request, "Host"));

    if (http_request_header_count(call->request, "Origin") > 1 ||
        (kind != ORIGIN_NONE && kind != ORIGIN_SELF))
        return gate_refuse_origin(call, "origin");
    return true;
}

bool
preview_by_host(ApiCall *call)
{
    const char *host = http_request_header(call->request, "Host");
    char id[ID_BOX_LEN + 1];
    GrantFor what = {.box = id};

    if (host == NULL || http_request_header_count(call->request, "Host") > 1 ||
        !origin_is_preview(call->api->origins, host, http_request_peer(call->request)->local_port, &what.port,
                           id))
        return false;
    if (!check_origin(call) || preview_redeem(call, &what) || !find_caller(call, &what) ||
        !may_use_boxes(call))
        return true;
    connect_to(call, id, what.port, false);
    return true;
}

/* ---- by header ---- */

static bool
is_from_browser(HttpRequest *r)
{
    return http_request_header(r, "Origin") != NULL || http_request_header(r, "Sec-Fetch-Site") != NULL;
}

bool
preview_by_header(ApiCall *call)
{
    HttpRequest *r = call->request;
    const char *id = http_request_header(r, HEADER_ID);
    const char *text = http_request_header(r, HEADER_PORT);
    guint64 port;

    if (id == NULL && text == NULL)
        return false;
    if (call->caller.kind == CALLER_NOBODY)
        gate_refuse_key(call, NULL);
    else if (call->caller.kind == CALLER_SESSION || is_from_browser(r))
        gate_refuse_origin(call, "preview by header");
    else if (id == NULL || text == NULL || !g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT16, &port, NULL))
        respond_error(r, 400, HEADER_ID " and " HEADER_PORT " belong together; the port is 1 to 65535");
    else if (may_use_boxes(call))
        connect_to(call, id, (guint16)port, true);
    return true;
}
