/* SPDX-License-Identifier: Apache-2.0 */
#include "api/output-cut.h"

#include <string.h>

enum { CHARACTER_MAX = 4 };

static size_t
text_length(const guint8 *bytes, size_t n)
{
    const char *end;

    (void)g_utf8_validate((const char *)bytes, (gssize)n, &end);
    return (size_t)((const guint8 *)end - bytes);
}

/* The beginning of a character.  GLib takes a NUL for one too. */
static bool
may_become_text(const guint8 *bytes, size_t n)
{
    return n > 0 && n < CHARACTER_MAX && memchr(bytes, 0, n) == NULL &&
           g_utf8_get_char_validated((const char *)bytes, (gssize)n) == (gunichar)-2;
}

OutputCut
output_cut(const guint8 *bytes, size_t n, size_t max, bool more_may_come)
{
    n = MIN(n, max);
    size_t text = text_length(bytes, n);
    bool cut = may_become_text(bytes + text, n - text);

    if (text == n || (cut && text > 0))
        return (OutputCut){.n = text, .is_text = true};
    if (cut && more_may_come)
        return (OutputCut){0};
    return (OutputCut){.n = n};
}
