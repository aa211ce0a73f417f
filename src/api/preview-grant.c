/* SPDX-License-Identifier: Apache-2.0 */
/* Links to previews, for browsers: made for one port of one box, good for one opening.  The
 * first answer takes the token out of the address, so that it stays in no history, log or
 * Referer, and leaves a cookie that only this host gets. */
#include <string.h>

#include "api/call-box.h"
#include "api/preview.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/url.h"

/* ---- opening one ---- */

/* The query without the token; "" when nothing is left. */
static char *
rest_of_query(const char *query)
{
    g_auto(GStrv) parts = g_strsplit(query, "&", -1);
    GString *rest = g_string_new(NULL);

    for (char **p = parts; *p != NULL; p++) {
        if (g_str_has_prefix(*p, PREVIEW_TOKEN "="))
            continue;
        g_string_append_printf(rest, "%c%s", rest->len == 0 ? '?' : '&', *p);
    }
    return g_string_free(rest, FALSE);
}

static const char *
scheme_of(const Api *api)
{
    return g_str_has_prefix(api->address, "https:") ? "https" : "http";
}

static void
redirect(ApiCall *call, const char *cookie, gint64 left_s)
{
    HttpRequest *r = call->request;
    const char *scheme = scheme_of(call->api);
    g_autofree char *rest = rest_of_query(http_request_query(r));
    /* With the host: a path that begins with two slashes would lead elsewhere. */
    g_autofree char *location = g_strdup_printf("%s://%s%s%s", scheme, http_request_header(r, "Host"),
                                                http_request_path(r), rest);
    /* Lax: whoever follows the link comes from another site. */
    g_autofree char *set = g_strdup_printf(PREVIEW_COOKIE "=%s; Path=/; Max-Age=%" G_GINT64_FORMAT
                                                          "; HttpOnly; SameSite=Lax%s",
                                           cookie, left_s, strcmp(scheme, "https") == 0 ? "; Secure" : "");

    http_response_header(r, "Set-Cookie", set);
    http_response_header(r, "Location", location);
    http_response_header(r, "Referrer-Policy", "no-referrer");
    http_response_header(r, "Cache-Control", "no-store");
    http_respond(r, 303, NULL, NULL, 0);
}

bool
preview_redeem(ApiCall *call, const GrantFor *what)
{
    HttpRequest *r = call->request;
    g_autofree char *token = NULL;
    char cookie[GRANT_SECRET_LEN + 1];
    gint64 left_s;

    if (strcmp(http_request_method(r), "GET") != 0 || http_request_query(r) == NULL ||
        strstr(http_request_query(r), PREVIEW_TOKEN "=") == NULL)
        return false;
    if (!url_query_get(http_request_query(r), PREVIEW_TOKEN, &token, NULL) || token == NULL)
        return false;
    http_response_header(r, "Referrer-Policy", "no-referrer");
    if (grant_redeem(call->api->grants, what, token, cookie, &left_s))
        redirect(call, cookie, left_s);
    else
        preview_refuse(call, 401, "this link was used already or is too old; ask for another");
    return true;
}

/* ---- making one ---- */

/* The name and port under which this caller finds us, as the base of a preview's host. */
static char *
base_of(ApiCall *call)
{
    const char *host = http_request_header(call->request, "Host");

    if (http_request_peer(call->request)->is_unix)
        host = strstr(call->api->address, "://") != NULL ? strstr(call->api->address, "://") + 3
                                                         : call->api->address;
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(end != NULL ? end : host, ':');
    g_autofree char *name = g_strndup(host, colon != NULL ? (size_t)(colon - host) : strcspn(host, "/"));
    bool is_address = host[0] == '[' || g_hostname_is_ip_address(name);

    return g_strconcat(is_address ? "localhost" : name, colon, NULL);
}

static void
grant(ApiCall *call, Json *body, void *data)
{
    gint64 port = 0, life_s = GRANT_LIFE_S;
    const JsonField fields[] = {
        {.name = "port", .kind = JSON_KIND_INT, .ret = &port, .required = true, .min = 1, .max = G_MAXUINT16},
        {.name = "expires_in", .kind = JSON_KIND_INT, .ret = &life_s, .min = 1, .max = GRANT_LIFE_MAX_S},
        {NULL},
    };
    g_autoptr(GError) error = NULL;
    char token[GRANT_SECRET_LEN + 1], until[CLOCK_ISO_LEN + 1];
    BoxInfo info;

    if (!json_read(body, fields, &error)) {
        call_respond_error(call, error);
        return;
    }
    Box *box = call_box(call);
    if (box == NULL)
        return;
    box_info(box, &info);
    GrantFor what = {.box = info.id, .port = (guint16)port};
    grant_new(call->api->grants, &what, call->caller.key_id, life_s, token);
    clock_format_iso(clock_wall_us() + life_s * G_USEC_PER_SEC, until);
    g_autofree char *base = base_of(call);
    g_autofree char *url = g_strdup_printf("%s://%u-%s.%s/?" PREVIEW_TOKEN "=%s", scheme_of(call->api),
                                           what.port, info.id, base, token);
    call_respond_json(call, 201, json_pack("{s:s, s:s}", "url", url, "expires_at", until));
}

static void
post_preview(ApiCall *call)
{
    call_read_json(call, grant, NULL);
}

const ApiRoute previews_routes[] = {
    {"POST", "/api/v1/sandboxes/{id}/previews", SCOPE_BOX, 0, post_preview},
    {NULL},
};
