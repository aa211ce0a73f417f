/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/markdown.h"

#include <stdbool.h>
#include <string.h>

enum { FENCE_MIN = 3 };

static const char no_width[] = "\xe2\x80\x8b";

static size_t
count(const char *p, char c)
{
    size_t n = 0;

    while (p[n] == c)
        n++;
    return n;
}

/* A block that begins on this line; where nothing closes it, it has the rest.  0: none does. */
static size_t
fence_len(const char *line)
{
    size_t indent = MIN(count(line, ' '), (size_t)FENCE_MIN);
    char c = line[indent];
    size_t n = c == '`' || c == '~' ? count(line + indent, c) : 0;
    const char *info_end = line + strcspn(line, "\n");

    /* What has a backtick behind it is a piece of code in the line. */
    if (n < FENCE_MIN || (c == '`' && memchr(line + indent + n, '`', (size_t)(info_end - line) - indent - n)))
        return 0;
    for (const char *p = strchr(line, '\n'); p != NULL; p = strchr(p, '\n')) {
        p++;
        const char *at = p + MIN(count(p, ' '), (size_t)FENCE_MIN);
        size_t closes = count(at, c);

        if (closes >= n && strspn(at + closes, " \t") == strcspn(at + closes, "\n"))
            return (size_t)(at + strcspn(at, "\n") - line);
    }
    return strlen(line);
}

/* `p` is at `n` backticks: up to the next so many in the same paragraph; 0: they are none. */
static size_t
code_len(const char *p, size_t n)
{
    for (const char *at = p + n; *at != '\0';) {
        size_t ticks = count(at, '`');

        if (ticks == n)
            return (size_t)(at + n - p);
        if (at[0] == '\n' && at[1 + strspn(at + 1, " \t")] == '\n')
            return 0;
        at += MAX(ticks, 1);
    }
    return 0;
}

static size_t
put_one(GString *out, const char *p)
{
    if (p[0] == '\\' && p[1] != '\0' && (guchar)p[1] < 0x80 && strchr("@<!", p[1]) == NULL) {
        g_string_append_len(out, p, 2);
        return 2;
    }
    if (*p == '<')
        g_string_append(out, "&lt;");
    else
        g_string_append_c(out, *p);
    if (*p == '@' || (*p == '!' && p[1] == '['))
        g_string_append(out, no_width);
    return 1;
}

char *
markdown_tame(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *out = g_string_new(NULL);
    bool begins = true;

    for (const char *p = valid; *p != '\0';) {
        size_t ticks = count(p, '`');
        size_t n = begins ? fence_len(p) : 0;

        if (n == 0 && ticks > 0)
            n = MAX(code_len(p, ticks), ticks);
        begins = *p == '\n';
        if (n > 0)
            g_string_append_len(out, p, (gssize)n);
        p += n > 0 ? n : put_one(out, p);
    }
    return g_string_free(out, FALSE);
}

char *
markdown_fence(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    size_t longest = FENCE_MIN - 1;

    for (const char *p = valid; *p != '\0'; p += MAX(count(p, '`'), 1))
        longest = MAX(longest, count(p, '`'));
    g_autofree char *fence = g_strnfill(longest + 1, '`');

    return g_strdup_printf("%s\n%s%s%s", fence, valid, g_str_has_suffix(valid, "\n") ? "" : "\n", fence);
}
