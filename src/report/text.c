/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text.h"

#include <string.h>

typedef enum EscapeState {
    ESCAPE_NONE,
    ESCAPE_BEGUN,    /* after ESC */
    ESCAPE_SEQUENCE, /* after ESC [ */
    ESCAPE_STRING,   /* ESC ] and its like, until BEL or ESC \ */
    ESCAPE_STRING_ENDS,
} EscapeState;

struct TextLines {
    TextLineFunc func;
    void *data;
    guint64 number;
    EscapeState escape;
    bool returned; /* a carriage return was the last thing: a line feed may follow */
    bool begun;
    size_t len;
    char line[TEXT_LINE_MAX + 1];
};

TextLines *
text_lines_new(TextLineFunc func, void *data)
{
    TextLines *lines = g_new0(TextLines, 1);

    lines->func = func;
    lines->data = data;
    return lines;
}

void
text_lines_free(TextLines *lines)
{
    g_free(lines);
}

guint64
text_lines_number(const TextLines *lines)
{
    return lines->number;
}

static void
end_line(TextLines *lines)
{
    while (lines->len > 0 && lines->line[lines->len - 1] == ' ')
        lines->len--;
    lines->line[lines->len] = '\0';
    lines->func(lines->data, lines->line, lines->number);
    lines->number++;
    lines->len = 0;
    lines->returned = false;
    lines->begun = false;
    lines->escape = ESCAPE_NONE;
}

static void
put(TextLines *lines, guint8 c)
{
    if (lines->returned) {
        lines->returned = false;
        lines->len = 0;
    }
    if (c == '\r')
        lines->returned = true;
    else if (c == 0x1b)
        lines->escape = ESCAPE_BEGUN;
    else if ((c >= 0x20 || c == '\t') && c != 0x7f && lines->len < TEXT_LINE_MAX)
        lines->line[lines->len++] = (char)c;
}

static void
put_escaped(TextLines *lines, guint8 c)
{
    switch (lines->escape) {
    case ESCAPE_BEGUN:
        if (c == '[')
            lines->escape = ESCAPE_SEQUENCE;
        else if (c != 0 && strchr("]PX^_", c) != NULL)
            lines->escape = ESCAPE_STRING;
        else if (c < 0x20 || c > 0x2f)
            lines->escape = ESCAPE_NONE;
        break;
    case ESCAPE_SEQUENCE:
        if (c >= 0x40 && c <= 0x7e)
            lines->escape = ESCAPE_NONE;
        break;
    case ESCAPE_STRING:
        if (c == 0x07)
            lines->escape = ESCAPE_NONE;
        else if (c == 0x1b)
            lines->escape = ESCAPE_STRING_ENDS;
        break;
    case ESCAPE_STRING_ENDS:
        lines->escape = c == '\\' ? ESCAPE_NONE : ESCAPE_STRING;
        break;
    case ESCAPE_NONE:
        break;
    }
}

/* Bytes that are text and nothing else. */
static size_t
put_plain(TextLines *lines, const guint8 *bytes, size_t n)
{
    size_t i = 0;

    if (lines->escape != ESCAPE_NONE || lines->returned)
        return 0;
    while (i < n && (bytes[i] >= 0x20 || bytes[i] == '\t') && bytes[i] != 0x7f)
        i++;
    size_t room = MIN(i, TEXT_LINE_MAX - lines->len);

    memcpy(lines->line + lines->len, bytes, room);
    lines->len += room;
    lines->begun |= i > 0;
    return i;
}

void
text_lines_feed(TextLines *lines, const guint8 *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        i += put_plain(lines, bytes + i, n - i);
        if (i == n)
            break;
        /* Also inside an escape sequence: one that never ends costs a line, not the rest. */
        if (bytes[i] == '\n') {
            end_line(lines);
            continue;
        }
        lines->begun = true;
        if (lines->escape == ESCAPE_NONE)
            put(lines, bytes[i]);
        else
            put_escaped(lines, bytes[i]);
    }
}

void
text_lines_end(TextLines *lines)
{
    if (lines->begun)
        end_line(lines);
}

static bool
is_trick(gunichar c)
{
    return g_unichar_iscntrl(c) || c == 0x061c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

/* `kept` are control characters that stay. */
static char *
dup_clean(const char *text, const char *kept, size_t max, bool *ret_cut)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *clean = g_string_new(NULL);

    for (char *p = valid; *p != '\0'; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        size_t before = clean->len;

        g_string_append_unichar(clean, is_trick(c) && strchr(kept, *p) == NULL ? ' ' : c);
        if (clean->len > max) {
            g_string_truncate(clean, before);
            *ret_cut = true;
            break;
        }
    }
    return g_string_free(clean, FALSE);
}

char *
text_dup_name(const char *text, size_t max, bool *ret_cut)
{
    return g_strstrip(dup_clean(text, "", max, ret_cut));
}

char *
text_dup_lines(const char *text, size_t max, bool *ret_cut)
{
    return dup_clean(text, "\n\t", max, ret_cut);
}
