/* SPDX-License-Identifier: Apache-2.0 */
#include "api/state.h"
#include "api/v3/v3.h"
#include "base/clock.h"
#include "base/err.h"

static const char media_header[] = "github.v3; format=json";

bool
v3_is_asked(const HttpRequest *request)
{
    return g_str_has_prefix(http_request_path(request), V3 "/");
}

static Api *
api_of(const HttpRequest *request)
{
    const ApiCall *call = http_request_data(request);

    return call->api;
}

static void
add_number(HttpRequest *request, const char *name, gint64 value)
{
    char text[24];

    g_snprintf(text, sizeof text, "%" G_GINT64_FORMAT, value);
    http_response_header(request, name, text);
}

void
v3_add_headers(HttpRequest *request)
{
    const ApiCall *call = http_request_data(request);
    Key *key = caller_key(call->api, &call->caller);

    http_response_header(request, "X-GitHub-Media-Type", media_header);
    if (key == NULL)
        return;
    RateState state;

    rate_look(&key->rate, &call->api->rate, clock_mono_us(), &state);
    add_number(request, "X-RateLimit-Limit", state.limit);
    add_number(request, "X-RateLimit-Remaining", state.remaining);
    add_number(request, "X-RateLimit-Used", state.limit - state.remaining);
    add_number(request, "X-RateLimit-Reset", clock_wall_us() / G_USEC_PER_SEC + state.full_s);
    http_response_header(request, "X-RateLimit-Resource", "core");
}

/* ---- errors ---- */

int
v3_error_status(const GError *error)
{
    return err_kind(error) == ERR_INVALID ? 422 : error_status(error);
}

static Json *
error_json(const HttpRequest *request, int status, const char *message)
{
    g_autofree char *docs = g_strconcat(api_of(request)->address, "/docs/github-api.md", NULL);
    char code[12];

    g_snprintf(code, sizeof code, "%d", status);
    return json_pack("{s:s, s:s, s:s, s:s}", "message", message, "documentation_url", docs, "status", code,
                     "request_id", http_request_id(request));
}

/* Clients compare these words. */
static const char *
known_message(const HttpRequest *request, int status, const char *message)
{
    bool has_key = http_request_header(request, "Authorization") != NULL ||
                   http_request_header(request, "X-API-Key") != NULL;

    switch (status) {
    case 401:
        return has_key ? "Bad credentials" : "Requires authentication";
    case 404:
        return "Not Found";
    case 422:
        return "Validation Failed";
    default:
        return message;
    }
}

Json *
v3_error_json(const HttpRequest *request, int status, const char *message)
{
    Json *body = error_json(request, status, known_message(request, status, message));

    if (status == 422)
        json_object_set_new(body, "errors", json_pack("[{s:s, s:s}]", "code", "custom", "message", message));
    return body;
}

void
v3_respond_invalid(ApiCall *call, const V3Invalid *invalid)
{
    g_autoptr(Json) body = error_json(call->request, 422, "Validation Failed");
    g_autofree char *message = invalid->message != NULL ? g_utf8_make_valid(invalid->message, -1) : NULL;

    json_object_set_new(body, "errors",
                        json_pack("[{s:s, s:s*, s:s, s:s*}]", "resource", invalid->resource, "field",
                                  invalid->field, "code", invalid->code, "message", message));
    g_autofree char *text = json_encode(body);

    v3_add_headers(call->request);
    call_respond_text(call, 422, text);
}
