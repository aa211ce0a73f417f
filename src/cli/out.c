/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/out.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

enum { OUT_COLUMNS_MAX = 16 };

struct Out {
    int fd;
    int error_fd;
    OutFormat format;
    bool colour;
    bool failed;
    bool gone;
};

Out *
out_new(int fd, int error_fd, OutFormat format, bool colour)
{
    Out *out = g_new0(Out, 1);

    *out = (Out){.fd = fd, .error_fd = error_fd, .format = format, .colour = colour};
    return out;
}

void
out_free(Out *out)
{
    g_free(out);
}

bool
out_wants_colour(int fd)
{
    const char *no_color = g_getenv("NO_COLOR");
    const char *term = g_getenv("TERM");

    return (no_color == NULL || no_color[0] == '\0') && g_strcmp0(term, "dumb") != 0 && isatty(fd) == 1;
}

void
out_set_format(Out *out, OutFormat format)
{
    out->format = format;
}

OutFormat
out_format(const Out *out)
{
    return out->format;
}

bool
out_ok(const Out *out)
{
    return !out->failed;
}

bool
out_is_gone(const Out *out)
{
    return out->gone;
}

int
out_fd(const Out *out)
{
    return out->fd;
}

static void
put(Out *out, const char *text)
{
    if (out->gone || io_write_all(out->fd, text, strlen(text)))
        return;
    out->gone = errno == EPIPE;
    out->failed = out->failed || !out->gone;
}

/* C0 and C1 controls reach the terminal's escape parser; the direction controls make text
 * read other than it is. */
static bool
is_unsafe(gunichar c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

static char *
clean_but(const char *text, const char *allowed)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *clean = g_string_sized_new(strlen(valid));

    for (char *p = valid; *p != '\0'; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);

        if (is_unsafe(c) && (c >= 0x80 || strchr(allowed, (int)c) == NULL))
            g_string_append_printf(clean, "\\x%02x", c);
        else
            g_string_append_unichar(clean, c);
    }
    return g_string_free(clean, FALSE);
}

char *
out_clean(const char *text)
{
    return clean_but(text, "");
}

char *
out_clean_line(const char *text)
{
    return clean_but(text, "\t");
}

static char *
styled(const Out *out, OutStyle style, const char *text)
{
    static const char *const codes[OUT_STYLE_MAX] = {
        [OUT_BOLD] = "1", [OUT_DIM] = "2", [OUT_GOOD] = "32", [OUT_WARN] = "33", [OUT_BAD] = "31",
    };

    if (!out->colour || codes[style] == NULL || text[0] == '\0')
        return g_strdup(text);
    return g_strdup_printf("\033[%sm%s\033[0m", codes[style], text);
}

/* How a value looks in a table: lists are joined, an absent value is a dash. */
static char *
value_text(const Json *value)
{
    switch (value != NULL ? json_typeof(value) : JSON_NULL) {
    case JSON_NULL:
        return g_strdup("-");
    case JSON_STRING:
        return out_clean(json_string_value(value));
    case JSON_TRUE:
        return g_strdup("yes");
    case JSON_FALSE:
        return g_strdup("no");
    case JSON_ARRAY: {
        g_autoptr(GPtrArray) items = g_ptr_array_new_with_free_func(g_free);

        for (size_t i = 0; i < json_array_size(value); i++)
            g_ptr_array_add(items, value_text(json_array_get(value, i)));
        g_ptr_array_add(items, NULL);
        return items->len > 1 ? g_strjoinv(", ", (char **)items->pdata) : g_strdup("-");
    }
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_OBJECT:
        break;
    }
    g_autofree char *text = json_encode(value);
    return out_clean(text);
}

static void
pad(GString *line, size_t width)
{
    for (size_t i = 0; i < width; i++)
        g_string_append_c(line, ' ');
}

static void
append_cell(const Out *out, GString *line, OutStyle style, const char *text, size_t width)
{
    g_autofree char *shown = styled(out, style, text);
    size_t len = (size_t)g_utf8_strlen(text, -1);

    g_string_append(line, shown);
    if (width > len)
        pad(line, width - len);
}

static size_t
count_columns(const OutColumn *columns)
{
    size_t n = 0;

    while (columns[n].key != NULL)
        n++;
    return n;
}

static void
text_table(Out *out, const OutColumn *columns, const Json *rows)
{
    size_t n = count_columns(columns), n_rows = json_array_size(rows);
    size_t width[OUT_COLUMNS_MAX];
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) text = g_string_new(NULL);

    g_assert(n > 0 && n <= OUT_COLUMNS_MAX);
    for (size_t c = 0; c < n; c++)
        width[c] = strlen(columns[c].title);
    for (size_t i = 0; i < n_rows * n; i++) {
        char *cell = value_text(json_object_get(json_array_get(rows, i / n), columns[i % n].key));

        width[i % n] = MAX(width[i % n], (size_t)g_utf8_strlen(cell, -1));
        g_ptr_array_add(cells, cell);
    }
    for (size_t c = 0; c < n; c++)
        append_cell(out, text, OUT_BOLD, columns[c].title, c + 1 < n ? width[c] + 2 : 0);
    g_string_append_c(text, '\n');
    for (size_t i = 0; i < cells->len; i++) {
        size_t c = i % n;
        const char *cell = cells->pdata[i];

        append_cell(out, text, columns[c].style != NULL ? columns[c].style(cell) : OUT_PLAIN, cell,
                    c + 1 < n ? width[c] + 2 : 0);
        if (c + 1 == n)
            g_string_append_c(text, '\n');
    }
    put(out, text->str);
}

void
out_json(Out *out, const Json *value)
{
    if (out->format != OUT_JSON)
        return;
    g_autofree char *text = json_encode(value);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    put(out, line);
}

void
out_table(Out *out, const OutColumn *columns, const Json *rows)
{
    g_assert(json_is_array(rows));
    if (out->format == OUT_JSON)
        out_json(out, rows);
    else
        text_table(out, columns, rows);
}

void
out_row(Out *out, const OutColumn *columns, const Json *row)
{
    if (out->format == OUT_JSON) {
        out_json(out, row);
        return;
    }
    g_autoptr(GString) line = g_string_new(NULL);
    for (const OutColumn *c = columns; c->key != NULL; c++) {
        g_autofree char *cell = value_text(json_object_get(row, c->key));

        if (c != columns)
            g_string_append_c(line, ' ');
        append_cell(out, line, c->style != NULL ? c->style(cell) : OUT_PLAIN, cell, 0);
    }
    g_string_append_c(line, '\n');
    put(out, line->str);
}

void
out_fields(Out *out, const OutColumn *fields, const Json *object)
{
    g_autoptr(GString) text = g_string_new(NULL);
    size_t width = 0;

    if (out->format == OUT_JSON) {
        out_json(out, object);
        return;
    }
    for (const OutColumn *f = fields; f->key != NULL; f++)
        width = MAX(width, strlen(f->title));
    for (const OutColumn *f = fields; f->key != NULL; f++) {
        const Json *value = json_object_get(object, f->key);

        if (value == NULL)
            continue;
        g_autofree char *cell = value_text(value);
        g_autofree char *label = g_strconcat(f->title, ":", NULL);
        append_cell(out, text, OUT_BOLD, label, width + 2);
        append_cell(out, text, f->style != NULL ? f->style(cell) : OUT_PLAIN, cell, 0);
        g_string_append_c(text, '\n');
    }
    put(out, text->str);
}

void
out_text(Out *out, OutStyle style, const char *fmt, ...)
{
    va_list ap;

    if (out->format != OUT_TEXT)
        return;
    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_autofree char *safe = clean_but(text, "\n\t");
    g_autofree char *shown = styled(out, style, safe);
    put(out, shown);
}

void
out_raw(Out *out, const char *text)
{
    put(out, text);
}

static char *valid_text(const char *fmt, va_list ap) G_GNUC_PRINTF(1, 0);

static char *
valid_text(const char *fmt, va_list ap)
{
    g_autofree char *text = g_strdup_vprintf(fmt, ap);

    return g_utf8_make_valid(text, -1);
}

static void
put_message(const Out *out, const char *prefix, const char *text, const Json *value)
{
    g_autofree char *encoded = json_encode(value);
    g_autofree char *safe = clean_but(text, "\n\t");
    g_autofree char *line = out->format == OUT_JSON ? g_strconcat(encoded, "\n", NULL)
                                                    : g_strconcat("coop: ", prefix, safe, "\n", NULL);

    /* Nobody is left to tell when standard error cannot be written. */
    (void)io_write_all(out->error_fd, line, strlen(line));
}

void
out_error(Out *out, int code, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = valid_text(fmt, ap);
    va_end(ap);
    g_autoptr(Json) value = json_pack("{s:{s:i,s:s}}", "error", "code", code, "message", text);
    put_message(out, "", text, value);
}

void
out_notice(Out *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = valid_text(fmt, ap);
    va_end(ap);
    g_autoptr(Json) value = json_pack("{s:s}", "notice", text);
    put_message(out, "note: ", text, value);
}
