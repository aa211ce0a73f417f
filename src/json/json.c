/* SPDX-License-Identifier: Apache-2.0 */
#include "json/json.h"

#include <string.h>

#include "base/err.h"

enum {
    JSON_QUOTED_NAME_MAX = 64,
    JSON_DIGITS = 15, /* as many as every double keeps: 0.1 stays 0.1 */
};

typedef struct Bounds {
    size_t depth, values;
    size_t flags; /* jansson's */
} Bounds;

/* jansson's own limit (2,048) protects its stack; ours protects every later walk over the
 * tree.  A value is the first of all, the first after a bracket, or comes after a comma, so there
 * are no more of them than that.  What stands in strings does not count. */
static bool
check_bounds(const char *text, size_t len, const Bounds *bounds, size_t *ret_values, GError **error)
{
    size_t depth = 0, values = 1;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            values++;
            if (++depth > bounds->depth)
                return err_set(error, ERR_INVALID, "JSON is nested deeper than %zu levels", bounds->depth);
        } else if (c == ',') {
            values++;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    if (values > bounds->values)
        return err_set(error, ERR_LIMIT, "JSON has more than %zu values", bounds->values);
    *ret_values = values;
    return true;
}

static Json *
decode(const void *text, size_t len, const Bounds *bounds, size_t *ret_values, GError **error)
{
    json_error_t e;

    if (!check_bounds(text, len, bounds, ret_values, error))
        return NULL;
    Json *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | bounds->flags, &e);
    if (value == NULL) {
        /* jansson quotes the input, and may do so in the middle of a character. */
        g_autofree char *why = g_utf8_make_valid(e.text, -1);

        err_set(error, ERR_INVALID, "not valid JSON at line %d, column %d: %s", e.line, e.column, why);
    }
    return value;
}

Json *
json_decode(const void *text, size_t len, GError **error)
{
    const Bounds bounds = {.depth = JSON_DEPTH_MAX, .values = G_MAXSIZE};
    size_t values;

    return decode(text, len, &bounds, &values, error);
}

Json *
json_decode_foreign(const void *text, size_t len, size_t values_max, size_t *ret_values, GError **error)
{
    const Bounds bounds = {.depth = JSON_FOREIGN_DEPTH_MAX, .values = values_max, .flags = JSON_ALLOW_NUL};
    size_t values;

    return decode(text, len, &bounds, ret_values != NULL ? ret_values : &values, error);
}

char *
json_encode(const Json *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(JSON_DIGITS));

    g_assert(text != NULL);
    /* jansson uses malloc, and so does g_free since GLib 2.46. */
    return text;
}

static const JsonField *
find_field(const JsonField *fields, const char *name)
{
    for (const JsonField *f = fields; f->name != NULL; f++) {
        if (strcmp(f->name, name) == 0)
            return f;
    }
    return NULL;
}

static bool
read_string(const JsonField *f, Json *value, GError **error)
{
    if (!json_is_string(value))
        return err_set(error, ERR_INVALID, "'%s' must be a string", f->name);
    size_t len = json_string_length(value);
    if (memchr(json_string_value(value), '\0', len) != NULL)
        return err_set(error, ERR_INVALID, "'%s' must not contain a NUL character", f->name);
    if (len == 0 && f->min == 1)
        return err_set(error, ERR_INVALID, "'%s' must not be empty", f->name);
    if ((gint64)len < f->min)
        return err_set(error, ERR_INVALID, "'%s' is shorter than %" G_GINT64_FORMAT " bytes", f->name,
                       f->min);
    if (f->max > 0 && (gint64)len > f->max)
        return err_set(error, ERR_INVALID, "'%s' is longer than %" G_GINT64_FORMAT " bytes", f->name, f->max);
    *(const char **)f->ret = json_string_value(value);
    return true;
}

static bool
read_int(const JsonField *f, Json *value, GError **error)
{
    if (!json_is_integer(value))
        return err_set(error, ERR_INVALID, "'%s' must be a whole number", f->name);
    gint64 n = json_integer_value(value);
    if (n < f->min || n > f->max)
        return err_set(error, ERR_INVALID, "'%s' must be from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                       f->name, f->min, f->max);
    *(gint64 *)f->ret = n;
    return true;
}

static bool
read_number(const JsonField *f, Json *value, GError **error)
{
    if (!json_is_number(value))
        return err_set(error, ERR_INVALID, "'%s' must be a number", f->name);
    double n = json_number_value(value);
    if (n < (double)f->min || n > (double)f->max)
        return err_set(error, ERR_INVALID, "'%s' must be from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT,
                       f->name, f->min, f->max);
    *(double *)f->ret = n;
    return true;
}

static bool
read_field(const JsonField *f, Json *value, GError **error)
{
    switch (f->kind) {
    case JSON_KIND_STRING:
        return read_string(f, value, error);
    case JSON_KIND_INT:
        return read_int(f, value, error);
    case JSON_KIND_NUMBER:
        return read_number(f, value, error);
    case JSON_KIND_BOOL:
        if (!json_is_boolean(value))
            return err_set(error, ERR_INVALID, "'%s' must be true or false", f->name);
        *(bool *)f->ret = json_is_true(value);
        return true;
    case JSON_KIND_OBJECT:
        if (!json_is_object(value))
            return err_set(error, ERR_INVALID, "'%s' must be an object", f->name);
        *(Json **)f->ret = value;
        return true;
    case JSON_KIND_ARRAY:
        if (!json_is_array(value))
            return err_set(error, ERR_INVALID, "'%s' must be a list", f->name);
        if (f->max > 0 && (gint64)json_array_size(value) > f->max)
            return err_set(error, ERR_INVALID, "'%s' has more than %" G_GINT64_FORMAT " elements", f->name,
                           f->max);
        *(Json **)f->ret = value;
        return true;
    }
    g_assert_not_reached();
}

static bool
refuse_unknown(const char *name, GError **error)
{
    size_t n = strlen(name);

    if (n > JSON_QUOTED_NAME_MAX) {
        n = JSON_QUOTED_NAME_MAX;
        /* Not in the middle of a character. */
        while (((guchar)name[n] & 0xc0) == 0x80)
            n--;
    }
    return err_set(error, ERR_INVALID, "unknown field '%.*s'", (int)n, name);
}

bool
json_read(Json *object, const JsonField *fields, GError **error)
{
    const char *name;
    Json *value;

    if (!json_is_object(object))
        return err_set(error, ERR_INVALID, "the body must be a JSON object");
    json_object_foreach(object, name, value)
    {
        const JsonField *f = find_field(fields, name);

        if (f == NULL)
            return refuse_unknown(name, error);
        if (!read_field(f, value, error))
            return false;
    }
    for (const JsonField *f = fields; f->name != NULL; f++) {
        if (f->required && json_object_get(object, f->name) == NULL)
            return err_set(error, ERR_INVALID, "field '%s' is missing", f->name);
    }
    return true;
}
