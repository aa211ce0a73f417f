/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/form.h"
#include "api/routes.h"
#include "api/state.h"
#include "base/clock.h"
#include "base/err.h"

static void
set_time(Json *object, const char *name, gint64 at_us)
{
    char text[CLOCK_ISO_LEN + 1];

    clock_format_iso(at_us, text);
    json_object_set_new(object, name, at_us == 0 ? json_null() : json_string(text));
}

static Json *
describe_key(const Key *key)
{
    g_autofree char *scopes = scopes_format(key->scopes);
    Json *o = json_pack("{s:s, s:s, s:s, s:s}", "id", key->id, "name", key->name, "prefix", key->prefix,
                        "scopes", scopes);

    set_time(o, "created_at", key->created_us);
    set_time(o, "last_used_at", key->last_used_us);
    set_time(o, "expires_at", key->expires_us);
    set_time(o, "revoked_at", key->revoked_us);
    return o;
}

static void
add_to_list(const Key *key, void *data)
{
    json_array_append_new(data, describe_key(key));
}

static void
list_keys(ApiCall *call)
{
    Json *keys = json_array();

    key_ring_list(call->api->keys, add_to_list, keys);
    call_respond_json(
        call, 200,
        json_pack("{s:o, s:I}", "keys", keys, "seq", (json_int_t)event_log_last_seq(call->api->events)));
}

/* ---- making ---- */

static void
on_made(const char *secret, const Key *key, const GError *error, void *data)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        Json *o = describe_key(key);

        json_object_set_new(o, "key", json_string(secret));
        call_respond_json(call, 201, o);
    }
    http_request_unref(call->request);
}

static void
make_key(ApiCall *call, Json *body, void *data)
{
    const char *name = "", *scopes = "read,box";
    gint64 expires_s = 0;
    const JsonField fields[] = {
        {.name = "name",
         .kind = JSON_KIND_STRING,
         .ret = &name,
         .required = true,
         .min = 1,
         .max = KEY_NAME_MAX},
        {.name = "scopes", .kind = JSON_KIND_STRING, .ret = &scopes, .min = 1, .max = 64},
        {.name = "expires_in",
         .kind = JSON_KIND_INT,
         .ret = &expires_s,
         .min = 1,
         .max = 10LL * 366 * 24 * 3600},
        {NULL},
    };
    KeySpec spec = {.actor = call->caller.actor};
    g_autoptr(GError) error = NULL;

    if (!json_read(body, fields, &error) || !scopes_parse(scopes, &spec.scopes, &error) ||
        (!text_is_printable(name) &&
         !err_set(&error, ERR_INVALID, "'name' has characters that do not print"))) {
        call_respond_error(call, error);
        return;
    }
    spec.name = name;
    spec.expires_us = expires_s > 0 ? clock_wall_us() + expires_s * G_USEC_PER_SEC : 0;
    http_request_ref(call->request);
    key_ring_create(call->api->keys, &spec, on_made, call);
}

static void
post_key(ApiCall *call)
{
    call_read_json(call, make_key, NULL);
}

/* ---- revoking ---- */

static void
on_revoked(void *data, const GError *error)
{
    ApiCall *call = data;

    if (error != NULL) {
        call_respond_error(call, error);
    } else {
        session_forget_key(call->api->sessions, call_param(call, "id"));
        call_respond_empty(call);
    }
    http_request_unref(call->request);
}

static void
delete_key(ApiCall *call)
{
    http_request_ref(call->request);
    key_ring_revoke(call->api->keys, call_param(call, "id"), call->caller.actor, on_revoked, call);
}

const ApiRoute keys_routes[] = {
    {"GET", "/api/v1/keys", SCOPE_ADMIN, 0, list_keys},
    {"POST", "/api/v1/keys", SCOPE_ADMIN, 0, post_key},
    {"DELETE", "/api/v1/keys/{id}", SCOPE_ADMIN, 0, delete_key},
    {NULL},
};
