/* SPDX-License-Identifier: Apache-2.0 */
#include "http/url.h"

#include <string.h>

#include "base/err.h"

enum { NAME_SHOWN_MAX = 40 }; /* characters of a stranger's parameter name in a message */

typedef struct Pair {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
} Pair;

/* The byte that begins at `**p`, which is before `end`; -1: a broken escape or NUL. */
static int
next_byte(const char **p, const char *end, bool plus_is_space)
{
    char c = *(*p)++;

    if (c == '+' && plus_is_space)
        return ' ';
    if (c != '%')
        return c != '\0' ? (guint8)c : -1;
    if (end - *p < 2 || !g_ascii_isxdigit((*p)[0]) || !g_ascii_isxdigit((*p)[1]))
        return -1;
    int byte = g_ascii_xdigit_value((*p)[0]) * 16 + g_ascii_xdigit_value((*p)[1]);

    *p += 2;
    return byte != 0 ? byte : -1;
}

char *
url_decode(const char *text, size_t n, bool plus_is_space)
{
    g_autofree char *decoded = g_malloc(n + 1);
    const char *end = text + n;
    char *to = decoded;

    for (const char *p = text; p < end;) {
        int byte = next_byte(&p, end, plus_is_space);

        if (byte < 0)
            return NULL;
        *to++ = (char)byte;
    }
    *to = '\0';
    return g_steal_pointer(&decoded);
}

char *
url_encode_path(const char *bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    GString *text = g_string_new(NULL);

    for (const guint8 *p = (const guint8 *)bytes; *p != '\0'; p++) {
        if (g_ascii_isalnum(*p) || strchr("-._~/", *p) != NULL) {
            g_string_append_c(text, (char)*p);
            continue;
        }
        g_string_append_c(text, '%');
        g_string_append_c(text, hex[*p >> 4]);
        g_string_append_c(text, hex[*p & 15]);
    }
    return g_string_free(text, FALSE);
}

/* The next pair at `*cursor`; empty ones ("a=1&&b=2") are stepped over.  False: no more. */
static bool
next_pair(const char **cursor, Pair *ret_pair)
{
    const char *p = *cursor + strspn(*cursor, "&");

    if (*p == '\0')
        return false;
    size_t n = strcspn(p, "&");
    const char *equals = memchr(p, '=', n);

    *cursor = p + n;
    ret_pair->name = p;
    ret_pair->name_len = equals != NULL ? (size_t)(equals - p) : n;
    ret_pair->value = equals != NULL ? equals + 1 : p + n;
    ret_pair->value_len = (size_t)(p + n - ret_pair->value);
    return true;
}

/* Compares without a copy: a hostile query holds thousands of names.  A name with a broken
 * escape fails, since nobody can say which parameter it is. */
static bool
name_is(const Pair *pair, const char *name, bool *ret_same, GError **error)
{
    const char *end = pair->name + pair->name_len;
    bool same = true;

    for (const char *p = pair->name; p < end;) {
        int byte = next_byte(&p, end, true);

        if (byte < 0)
            return err_set(error, ERR_INVALID, "the query has a parameter name with a broken escape");
        same = same && byte == (guint8)*name;
        name += same;
    }
    *ret_same = same && *name == '\0';
    return true;
}

bool
url_query_get_bytes(const char *query, const char *name, char **ret_value, GError **error)
{
    g_autofree char *value = NULL;
    const char *cursor = query != NULL ? query : "";
    Pair pair;

    while (next_pair(&cursor, &pair)) {
        bool same = false;

        if (!name_is(&pair, name, &same, error))
            return false;
        if (!same)
            continue;
        if (value != NULL)
            return err_set(error, ERR_INVALID, "'%s' is given more than once", name);
        value = url_decode(pair.value, pair.value_len, true);
        if (value == NULL)
            return err_set(error, ERR_INVALID, "'%s' has a broken escape", name);
    }
    *ret_value = g_steal_pointer(&value);
    return true;
}

bool
url_query_get(const char *query, const char *name, char **ret_value, GError **error)
{
    g_autofree char *value = NULL;

    if (!url_query_get_bytes(query, name, &value, error))
        return false;
    if (value != NULL && !g_utf8_validate(value, -1, NULL))
        return err_set(error, ERR_INVALID, "'%s' is not valid UTF-8", name);
    *ret_value = g_steal_pointer(&value);
    return true;
}

bool
url_query_get_int(const char *query, const char *name, gint64 min, gint64 max, gint64 *ret_value,
                  GError **error)
{
    g_autofree char *value = NULL;

    if (!url_query_get(query, name, &value, error))
        return false;
    if (value == NULL)
        return true;
    /* GLib takes a plus sign; one number should have one spelling. */
    if (*value != '+' && g_ascii_string_to_signed(value, 10, min, max, ret_value, NULL))
        return true;
    return err_set(error, ERR_INVALID,
                   "'%s' must be a whole number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, name, min,
                   max);
}

static bool
refuse_name(const Pair *pair, GError **error)
{
    g_autofree char *name = url_decode(pair->name, pair->name_len, true);

    if (name == NULL || !g_utf8_validate(name, -1, NULL))
        return err_set(error, ERR_INVALID, "the query has a parameter name that cannot be read");
    if (g_utf8_strlen(name, -1) > NAME_SHOWN_MAX)
        *g_utf8_offset_to_pointer(name, NAME_SHOWN_MAX) = '\0';
    return err_set(error, ERR_INVALID, "there is no parameter '%s'", name);
}

bool
url_query_only(const char *query, const char *const *names, GError **error)
{
    const char *cursor = query != NULL ? query : "";
    Pair pair;

    while (next_pair(&cursor, &pair)) {
        bool known = false;

        for (size_t i = 0; names[i] != NULL && !known; i++) {
            if (!name_is(&pair, names[i], &known, error))
                return false;
        }
        if (!known)
            return refuse_name(&pair, error);
    }
    return true;
}

static void
trim(const char **start, const char **end)
{
    while (*start < *end && (**start == ' ' || **start == '\t'))
        (*start)++;
    while (*start < *end && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        (*end)--;
}

/* The value of the one cookie in `text`..`end` if it has this name. */
static char *
cookie_value(const char *text, const char *end, const char *name)
{
    const char *equals = memchr(text, '=', (size_t)(end - text));

    if (equals == NULL)
        return NULL;
    const char *name_end = equals;
    const char *value = equals + 1;

    trim(&text, &name_end);
    trim(&value, &end);
    if ((size_t)(name_end - text) != strlen(name) || memcmp(text, name, strlen(name)) != 0)
        return NULL;
    if (end - value >= 2 && *value == '"' && end[-1] == '"') {
        value++;
        end--;
    }
    return g_strndup(value, (size_t)(end - value));
}

char *
http_cookie_get(const char *cookie_header, const char *name)
{
    const char *p = cookie_header != NULL ? cookie_header : "";

    /* A ';' ends a cookie even between quotes (RFC 6265, 4.1.1). */
    while (*p != '\0') {
        const char *end = p + strcspn(p, ";");
        char *value = cookie_value(p, end, name);

        if (value != NULL)
            return value;
        p = *end == ';' ? end + 1 : end;
    }
    return NULL;
}
