/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "http/negotiate.h"
#include "http/range.h"
#include "http/url.h"

/* The input is a query, a Cookie header, a Range header and so on in turn, held against a slow
 * reading of the same rules. */

static const char *const names[] = {"a", "ab", "kind", "", NULL};

/* ---- decoding ---- */

static char *
slow_decode(const char *text, size_t n, bool plus_is_space)
{
    if (memchr(text, '\0', n) != NULL)
        return NULL;
    g_autofree char *copy = g_strndup(text, n);

    if (plus_is_space)
        g_strdelimit(copy, "+", ' ');
    g_autoptr(GBytes) bytes = g_uri_unescape_bytes(copy, -1, NULL, NULL);
    gsize size;
    const char *decoded = bytes != NULL ? g_bytes_get_data(bytes, &size) : NULL;

    if (bytes == NULL || (size > 0 && memchr(decoded, '\0', size) != NULL))
        return NULL;
    return g_strndup(size > 0 ? decoded : "", size);
}

/* A cut that splits no escape splits the decoding too. */
static void
check_cut(const char *text, size_t n, size_t cut)
{
    if (cut >= n || memchr(text + (cut > 2 ? cut - 2 : 0), '%', MIN(cut, 2)) != NULL)
        return;
    g_autofree char *whole = url_decode(text, n, true);
    g_autofree char *left = url_decode(text, cut, true);
    g_autofree char *right = url_decode(text + cut, n - cut, true);
    g_autofree char *both = left != NULL && right != NULL ? g_strconcat(left, right, NULL) : NULL;

    g_assert_cmpstr(whole, ==, both);
}

static void
check_decode(const char *text, size_t n)
{
    g_autoptr(GString) escaped = g_string_new(NULL);

    for (guint plus = 0; plus < 2; plus++) {
        g_autofree char *decoded = url_decode(text, n, plus);
        g_autofree char *wanted = slow_decode(text, n, plus);

        g_assert_cmpstr(decoded, ==, wanted);
    }
    for (size_t i = 0; i < n; i++)
        g_string_append_printf(escaped, "%%%02X", (guint8)text[i]);
    g_autofree char *back = url_decode(escaped->str, escaped->len, true);

    g_assert((back == NULL) == (memchr(text, '\0', n) != NULL));
    g_assert(back == NULL || (strlen(back) == n && memcmp(back, text, n) == 0));
}

/* ---- queries ---- */

/* The value; NULL: not there, or `*ret_bad`. */
static char *
slow_get(const char *query, const char *name, bool *ret_bad)
{
    g_auto(GStrv) pairs = g_strsplit(query, "&", -1);
    g_autofree char *value = NULL;

    *ret_bad = false;
    for (guint i = 0; pairs[i] != NULL; i++) {
        g_auto(GStrv) sides = g_strsplit(pairs[i], "=", 2);

        if (*pairs[i] == '\0')
            continue;
        const char *right = sides[1] != NULL ? sides[1] : "";
        g_autofree char *key = slow_decode(sides[0], strlen(sides[0]), true);

        if (key != NULL && strcmp(key, name) != 0)
            continue;
        g_autofree char *text = slow_decode(right, strlen(right), true);

        *ret_bad |= key == NULL || value != NULL || text == NULL || !g_utf8_validate(text, -1, NULL);
        if (value == NULL)
            value = g_steal_pointer(&text);
    }
    return *ret_bad ? NULL : g_steal_pointer(&value);
}

static void
check_get(const char *query, const char *name)
{
    g_autofree char *value = NULL;
    g_autoptr(GError) error = NULL;
    bool bad;
    g_autofree char *wanted = slow_get(query, name, &bad);
    bool ok = url_query_get(query, name, &value, &error);

    g_assert(ok == !bad);
    g_assert(ok || err_kind(error) == ERR_INVALID);
    g_assert_cmpstr(value, ==, wanted);
    gint64 number = 77;

    if (url_query_get_int(query, name, -5, 1000, &number, NULL))
        g_assert(number >= -5 && number <= 1000 &&
                 (value == NULL || number == g_ascii_strtoll(value, NULL, 10)));
    else
        g_assert(number == 77);
}

/* A query has only what it has, and no longer when one of them is not in the list. */
static void
check_only(const char *query)
{
    g_auto(GStrv) pairs = g_strsplit(query, "&", -1);
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; pairs[i] != NULL; i++) {
        g_auto(GStrv) sides = g_strsplit(pairs[i], "=", 2);
        char *key = *pairs[i] != '\0' ? slow_decode(sides[0], strlen(sides[0]), true) : NULL;

        if (*pairs[i] != '\0' && key == NULL) {
            g_assert(!url_query_only(query, names, NULL));
            return;
        }
        if (key != NULL)
            g_ptr_array_add(found, key);
    }
    g_ptr_array_add(found, NULL);
    g_assert(url_query_only(query, (const char *const *)found->pdata, NULL));
    if (found->pdata[0] == NULL)
        return;
    g_autofree char *missing = g_strdup(found->pdata[0]);

    for (guint i = 0; found->pdata[i] != NULL;) {
        if (strcmp(found->pdata[i], missing) == 0)
            g_ptr_array_remove_index(found, i);
        else
            i++;
    }
    g_assert(!url_query_only(query, (const char *const *)found->pdata, &error));
    g_assert(g_utf8_validate(error->message, -1, NULL) && strlen(error->message) < 250);
}

/* ---- headers ---- */

static char *
trimmed(const char *text)
{
    size_t n = strlen(text);

    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        n--;
    size_t from = MIN(n, strspn(text, " \t"));
    return g_strndup(text + from, n - from);
}

static char *
slow_cookie(const char *header, const char *name)
{
    g_auto(GStrv) cookies = g_strsplit(header, ";", -1);

    for (guint i = 0; cookies[i] != NULL; i++) {
        g_auto(GStrv) sides = g_strsplit(cookies[i], "=", 2);

        if (sides[0] == NULL || sides[1] == NULL)
            continue;
        g_autofree char *key = trimmed(sides[0]);
        g_autofree char *value = trimmed(sides[1]);
        size_t n = strlen(value);

        if (strcmp(key, name) != 0)
            continue;
        if (n >= 2 && g_str_has_prefix(value, "\"") && g_str_has_suffix(value, "\""))
            return g_strndup(value + 1, n - 2);
        return g_steal_pointer(&value);
    }
    return NULL;
}

static void
check_range(const char *header)
{
    static const guint64 sizes[] = {0, 1, 10, G_MAXUINT64};

    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        guint64 first = 7;
        guint64 last = 3;
        RangeResult result = range_parse(header, sizes[i], &first, &last);

        if (result == RANGE_ONE)
            g_assert(first <= last && last < sizes[i] && g_ascii_strncasecmp(header, "bytes=", 6) == 0);
        else
            g_assert(first == 7 && last == 3);
    }
}

/* What stands first decides, whatever follows. */
static void
check_negotiation(const char *header)
{
    g_autofree char *yes = g_strconcat("gzip,", header, NULL);
    g_autofree char *no = g_strconcat("gzip;q=0,", header, NULL);
    g_autofree char *tags = g_strconcat("\"abc\",", header, NULL);

    g_assert(accepts_gzip(yes) && !accepts_gzip(no));
    g_assert(etag_is_listed(tags, "\"abc\""));
    g_assert(!accepts_gzip(header) || strpbrk(header, "*gG") != NULL);
    g_assert(!etag_is_listed(header, "\"abc\"") || strchr(header, '*') != NULL ||
             strstr(header, "\"abc\"") != NULL);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    g_autofree char *exact = g_memdup2(data, MAX(n, 1));
    g_autofree char *text = fuzz_string(data, n);

    check_cut(exact, n, cut);
    if (cut != n)
        return;
    check_decode(exact, n);
    check_only(text);
    check_range(text);
    check_negotiation(text);
    for (guint i = 0; names[i] != NULL; i++) {
        g_autofree char *cookie = http_cookie_get(text, names[i]);
        g_autofree char *wanted = slow_cookie(text, names[i]);

        g_assert_cmpstr(cookie, ==, wanted);
        check_get(text, names[i]);
    }
}
