/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/v3/v3.h"
#include "http/url.h"

V3Media
v3_media(const ApiCall *call)
{
    static const struct {
        const char *suffix;
        V3Media media;
    } suffixes[] = {
        {".diff", V3_DIFF}, {".patch", V3_PATCH}, {".raw", V3_RAW}, {".sha", V3_SHA}, {".object", V3_OBJECT},
    };
    const char *accept = http_request_header(call->request, "Accept");

    if (accept == NULL)
        return V3_JSON;
    /* The first that we know; "+json" behind it says nothing more. */
    for (const char *p = strstr(accept, "application/vnd.github"); p != NULL;
         p = strstr(p + 1, "application/vnd.github")) {
        g_autofree char *type = g_strndup(p, strcspn(p, ",;+ "));

        for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
            if (g_str_has_suffix(type, suffixes[i].suffix))
                return suffixes[i].media;
        }
    }
    return V3_JSON;
}

bool
v3_query(ApiCall *call, const char *name, char **ret_value)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *value = NULL;

    if (!url_query_get(http_request_query(call->request), name, &value, &error)) {
        call_respond_error(call, error);
        return false;
    }
    *ret_value = value != NULL && value[0] != '\0' ? g_steal_pointer(&value) : NULL;
    return true;
}

static bool
read_field(ApiCall *call, Json *value, const JsonField *field, const char *resource)
{
    const JsonField one[] = {*field, {NULL}};
    g_autoptr(Json) object = json_pack("{s:O}", field->name, value);
    g_autoptr(GError) error = NULL;

    if (json_read(object, one, &error))
        return true;
    v3_respond_invalid(call, &(V3Invalid){resource, field->name, "invalid", error->message});
    return false;
}

bool
v3_read_fields(ApiCall *call, Json *body, const JsonField *fields, const char *resource)
{
    if (!json_is_object(body)) {
        respond_error(call->request, 400, "Body should be a JSON object");
        return false;
    }
    for (const JsonField *f = fields; f->name != NULL; f++) {
        Json *value = json_object_get(body, f->name);

        if (value == NULL || json_is_null(value)) {
            if (!f->required)
                continue;
            v3_respond_invalid(call, &(V3Invalid){resource, f->name, "missing_field", NULL});
            return false;
        }
        if (!read_field(call, value, f, resource))
            return false;
    }
    return true;
}

bool
v3_param_int(ApiCall *call, const char *name, gint64 *ret_value)
{
    const char *text = call_param(call, name);
    guint64 value = 0;

    if (text != NULL && g_ascii_string_to_unsigned(text, 10, 1, G_MAXINT64, &value, NULL)) {
        *ret_value = (gint64)value;
        return true;
    }
    respond_error(call->request, 404, "there is no such number");
    return false;
}
