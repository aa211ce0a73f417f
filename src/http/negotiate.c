/* SPDX-License-Identifier: Apache-2.0 */
#include "http/negotiate.h"

#include <glib.h>
#include <string.h>

static const char blanks[] = " \t";

static const char *
skip_weak(const char *tag)
{
    return strncmp(tag, "W/", 2) == 0 ? tag + 2 : tag;
}

bool
etag_is_listed(const char *list, const char *etag)
{
    const char *p = list != NULL ? list : "";
    size_t n = strlen(skip_weak(etag));

    p += strspn(p, blanks);
    if (*p == '*')
        return p[1 + strspn(p + 1, blanks)] == '\0';
    for (;;) {
        p = skip_weak(p + strspn(p, " \t,"));
        const char *end = *p == '"' ? strchr(p + 1, '"') : NULL;

        /* A tag that has no quotes ends the reading: what follows could be inside it. */
        if (end == NULL)
            return false;
        if ((size_t)(end + 1 - p) == n && memcmp(p, skip_weak(etag), n) == 0)
            return true;
        p = end + 1;
    }
}

/* The weight after a coding's name: true unless it is zero or malformed. */
static bool
weight_is_positive(const char *p, const char *end)
{
    p += strspn(p, blanks);
    if (p == end)
        return true;
    if (*p++ != ';')
        return false;
    p += strspn(p, blanks);
    if ((*p != 'q' && *p != 'Q') || p[1] != '=')
        return false;
    p += 2;
    size_t n = strspn(p, "0123456789.");
    const char *after = p + n + strspn(p + n, blanks);

    return after == end && (*p == '1' || (*p == '0' && strcspn(p, "123456789") < n));
}

bool
accepts_gzip(const char *accept_encoding)
{
    const char *p = accept_encoding != NULL ? accept_encoding : "";
    bool by_star = false;

    while (*p != '\0') {
        p += strspn(p, " \t,");
        const char *end = p + strcspn(p, ",");
        size_t n = strcspn(p, " \t,;");

        if ((n == 4 && g_ascii_strncasecmp(p, "gzip", n) == 0) ||
            (n == 6 && g_ascii_strncasecmp(p, "x-gzip", n) == 0))
            return weight_is_positive(p + n, end);
        if (n == 1 && *p == '*')
            by_star = weight_is_positive(p + n, end);
        p = end;
    }
    return by_star;
}
