/* SPDX-License-Identifier: Apache-2.0 */
#include "api/preview-headers.h"

#include <stdbool.h>
#include <string.h>

#include "api/preview.h"
#include "api/session.h"

static const char *const own_cookies[] = {SESSION_COOKIE, PREVIEW_COOKIE};

/* They speak for more than the one host: its siblings, its parent, or the time when the same
 * name belongs to another box. */
static const char *const refused[] = {
    "Service-Worker-Allowed",
    "Clear-Site-Data",
    "Alt-Svc",
    "Strict-Transport-Security",
    "Public-Key-Pins",
    "Public-Key-Pins-Report-Only",
    "Set-Cookie2",
    "NEL",
    "Report-To",
    "Reporting-Endpoints",
};

/* The name before '=', without blanks around it, is `name`. */
static bool
is_named(const char *text, size_t n, const char *name, bool in_any_case)
{
    const char *equals = memchr(text, '=', n);
    size_t len = equals != NULL ? (size_t)(equals - text) : n;

    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    if (len != strlen(name))
        return false;
    return in_any_case ? g_ascii_strncasecmp(text, name, len) == 0 : memcmp(text, name, len) == 0;
}

static bool
is_own_cookie(const char *text, size_t n)
{
    for (size_t i = 0; i < G_N_ELEMENTS(own_cookies); i++) {
        if (is_named(text, n, own_cookies[i], false))
            return true;
    }
    return false;
}

/* Adds to `kept`, which it takes: of the pieces between semicolons those that `drop` lets stay. */
static char *
filter_pieces(GString *kept, const char *text, bool (*drop)(const char *piece, size_t n))
{
    for (const char *p = text; *p != '\0';) {
        p += strspn(p, "; \t");
        size_t n = strcspn(p, ";");

        if (n > 0 && !drop(p, n)) {
            if (kept->len > 0)
                g_string_append(kept, "; ");
            g_string_append_len(kept, p, (gssize)n);
        }
        p += n;
    }
    return g_string_free(kept, FALSE);
}

char *
preview_cookies(const char *header)
{
    g_autofree char *kept = filter_pieces(g_string_new(NULL), header, is_own_cookie);

    return kept[0] != '\0' ? g_steal_pointer(&kept) : NULL;
}

static bool
is_domain(const char *text, size_t n)
{
    return is_named(text, n, "domain", true);
}

char *
preview_judge_answer(const char *name, const char *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(refused); i++) {
        if (g_ascii_strcasecmp(name, refused[i]) == 0)
            return NULL;
    }
    if (g_ascii_strcasecmp(name, "Set-Cookie") != 0)
        return g_strdup(value);
    /* What comes first is the cookie, whatever its name. */
    size_t n = strcspn(value, ";");
    if (is_own_cookie(value, n))
        return NULL;
    return filter_pieces(g_string_new_len(value, (gssize)n), value + n, is_domain);
}
