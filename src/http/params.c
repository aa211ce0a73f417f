/* SPDX-License-Identifier: Apache-2.0 */
#include "http/params.h"

#include <string.h>

static const char blanks[] = " \t";

bool
params_begin(const char *header, const char *value, const char **ret_params)
{
    const char *p = header + strspn(header, blanks);
    size_t n = strlen(value);

    if (g_ascii_strncasecmp(p, value, n) != 0)
        return false;
    p += n + strspn(p + n, blanks);
    if (*p != ';' && *p != '\0')
        return false;
    *ret_params = p;
    return true;
}

/* A quoted string that begins at `*p`; NULL: it never ends. */
static char *
take_quoted(const char **p)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char *at = *p + 1;

    for (; *at != '"'; at++) {
        if (*at == '\0')
            return NULL;
        if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        g_string_append_c(text, *at);
    }
    *p = at + 1;
    return g_strdup(text->str);
}

/* Up to a blank or ';'.  Boundaries come unquoted with characters that no token has. */
static char *
take_bare(const char **p)
{
    size_t n = strcspn(*p, " \t;");

    if (n == 0 || memchr(*p, '"', n) != NULL)
        return NULL;
    *p += n;
    return g_strndup(*p - n, n);
}

bool
params_next(const char **params, char **ret_name, char **ret_text)
{
    const char *p = *params + strspn(*params, " \t;");
    size_t name_len = strcspn(p, "=; \t\"");

    *ret_name = NULL;
    *ret_text = NULL;
    if (*p == '\0') {
        *params = p;
        return true;
    }
    const char *name = p;
    p += name_len;
    if (name_len == 0 || *p++ != '=')
        return false;
    g_autofree char *text = *p == '"' ? take_quoted(&p) : take_bare(&p);

    p += strspn(p, blanks);
    if (text == NULL || (*p != ';' && *p != '\0'))
        return false;
    *params = p;
    *ret_name = g_ascii_strdown(name, (gssize)name_len);
    *ret_text = g_steal_pointer(&text);
    return true;
}
