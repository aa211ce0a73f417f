/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/state.h"
#include "api/v3/v3.h"
#include "base/clock.h"

/* Whether the header names the tag: "*", or a list of tags, weak or not. */
static bool
names_tag(const char *header, const char *opaque)
{
    g_auto(GStrv) tags = g_strsplit(header, ",", 0);

    for (char **t = tags; *t != NULL; t++) {
        const char *tag = g_strstrip(*t);

        if (g_str_has_prefix(tag, "W/"))
            tag += 2;
        if (strcmp(tag, "*") == 0 || strcmp(tag, opaque) == 0)
            return true;
    }
    return false;
}

/* True: answered. */
static bool
respond_unchanged(ApiCall *call, const char *opaque)
{
    HttpRequest *r = call->request;
    const char *known = http_request_header(r, "If-None-Match");
    const char *method = http_request_method(r);
    Key *key = caller_key(call->api, &call->caller);

    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return false;
    g_autofree char *tag = g_strconcat("W/", opaque, NULL);

    http_response_header(r, "ETag", tag);
    http_response_header(r, "Cache-Control", "private, no-cache");
    http_response_header(r, "Vary", "Accept, Authorization, Cookie, X-API-Key");
    if (known == NULL || !names_tag(known, opaque))
        return false;
    if (key != NULL)
        rate_give_back(&key->rate, &call->api->rate);
    v3_add_headers(r);
    http_respond(r, 304, NULL, NULL, 0);
    return true;
}

void
v3_encode_bytes(V3Encoded *encoded, const char *type, GBytes *bytes)
{
    g_autofree char *sum = g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, bytes);

    *encoded = (V3Encoded){.bytes = bytes, .type = type, .tag = g_strdup_printf("\"%s\"", sum)};
}

void
v3_encode(V3Encoded *encoded, const Json *value)
{
    char *text = json_encode(value);

    v3_encode_bytes(encoded, "application/json; charset=utf-8", g_bytes_new_take(text, strlen(text)));
}

void
v3_encoded_clear(V3Encoded *encoded)
{
    g_clear_pointer(&encoded->bytes, g_bytes_unref);
    g_free(encoded->tag);
    *encoded = (V3Encoded){0};
}

void
v3_respond_encoded(ApiCall *call, int status, const V3Encoded *encoded)
{
    if (status == 200 && respond_unchanged(call, encoded->tag))
        return;
    v3_add_headers(call->request);
    http_respond_bytes(call->request, status, encoded->type, encoded->bytes);
}

void
v3_respond(ApiCall *call, int status, Json *value)
{
    g_autoptr(Json) owned = value;
    g_auto(V3Encoded) encoded = {0};

    v3_encode(&encoded, owned);
    v3_respond_encoded(call, status, &encoded);
}

void
v3_respond_empty(ApiCall *call)
{
    v3_add_headers(call->request);
    call_respond_empty(call);
}

void
v3_on_done(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL)
        call_respond_error(call, error);
    else
        v3_respond_empty(call);
    http_request_unref(call->request);
}

Json *
v3_time(gint64 us)
{
    char text[CLOCK_ISO_LEN + 1];

    if (us == 0)
        return json_null();
    clock_format_iso(us, text);
    text[V3_TIME_LEN - 1] = 'Z';
    return json_stringn(text, V3_TIME_LEN);
}
