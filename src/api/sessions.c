/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"
#include "api/state.h"
#include "base/err.h"
#include "http/url.h"

static const char *
caller_kind_name(CallerKind kind)
{
    switch (kind) {
    case CALLER_NOBODY:
        return "nobody";
    case CALLER_KEY:
        return "key";
    case CALLER_SESSION:
        return "session";
    case CALLER_LOCAL:
        return "local";
    case CALLER_BOX:
        return "box";
    }
    g_assert_not_reached();
}

static void
get_session(ApiCall *call)
{
    g_autofree char *scopes = scopes_format(call->caller.scopes);

    call_respond_json(call, 200,
                      json_pack("{s:s, s:s, s:s}", "caller", caller_kind_name(call->caller.kind), "actor",
                                call->caller.actor, "scopes", scopes));
}

/* ---- signing in ---- */

static void
set_cookie(HttpRequest *request, const char *value, int max_age)
{
    g_autofree char *text = g_strdup_printf(
        SESSION_COOKIE "=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict", value, max_age);

    http_response_header(request, "Set-Cookie", text);
}

static void
on_opened(const char *cookie, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        set_cookie(call->request, cookie, SESSION_LIFE_S);
        call_respond_json(call, 201, json_pack("{s:i}", "expires_in", (int)SESSION_LIFE_S));
    }
    http_request_unref(call->request);
}

static void
open_session(ApiCall *call, Json *body, void *data)
{
    const char *ticket = "";
    const JsonField fields[] = {
        {.name = "ticket", .kind = JSON_KIND_STRING, .ret = &ticket, .required = true, .min = 1, .max = 200},
        {NULL},
    };
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    http_request_ref(call->request);
    session_open(call->api->sessions, ticket, on_opened, call);
}

static void
post_session(ApiCall *call)
{
    call_read_json(call, open_session, NULL);
}

/* ---- signing out ---- */

static void
on_closed(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        set_cookie(call->request, "", 0);
        call_respond_empty(call);
    }
    http_request_unref(call->request);
}

static void
delete_session(ApiCall *call)
{
    const char *header = http_request_header(call->request, "Cookie");
    g_autofree char *cookie = header != NULL ? http_cookie_get(header, SESSION_COOKIE) : NULL;

    if (call->caller.kind != CALLER_SESSION || cookie == NULL) {
        respond_error(call->request, 409, "only a browser's session can be closed; keys are revoked");
        return;
    }
    http_request_ref(call->request);
    session_close(call->api->sessions, cookie, on_closed, call);
}

/* ---- links ---- */

static void
post_ticket(ApiCall *call)
{
    const Key *key = caller_key(call->api, &call->caller);
    char ticket[TICKET_LEN + 1];

    /* The session shall end with the key that let it in. */
    if (key != NULL) {
        session_ticket_new(call->api->sessions, key->id, ticket);
    } else if (!api_ticket(call->api, ticket)) {
        respond_error(call->request, 409, "there is no admin key a browser could sign in with");
        return;
    }
    g_autofree char *path = g_strdup_printf("/#ticket=%s", ticket);
    g_autofree char *url = g_strconcat(call->api->address, path, NULL);
    call_respond_json(call, 201,
                      json_pack("{s:s, s:s, s:s, s:i}", "ticket", ticket, "path", path, "url", url,
                                "expires_in", (int)TICKET_LIFE_S));
}

const ApiRoute session_routes[] = {
    {"GET", "/api/v1/session", SCOPE_READ | SCOPE_BOX, 0, get_session},
    {"POST", "/api/v1/session", 0, ROUTE_PUBLIC, post_session},
    {"DELETE", "/api/v1/session", SCOPE_READ | SCOPE_BOX, 0, delete_session},
    {"POST", "/api/v1/tickets", SCOPE_ADMIN, 0, post_ticket},
    {NULL},
};
