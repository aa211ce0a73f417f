/* SPDX-License-Identifier: Apache-2.0 */
/* Marks in the code that silence scanners, and whose they are. */
#include <stdlib.h>
#include <string.h>

#include "team/scan.h"

typedef struct Span {
    gint64 first, last;
} Span;

struct ScanLines {
    GHashTable *files; /* path -> GArray of Span */
};

static void
spans_free(gpointer data)
{
    g_array_unref(data);
}

ScanLines *
scan_lines_new(void)
{
    ScanLines *lines = g_new0(ScanLines, 1);

    lines->files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, spans_free);
    return lines;
}

void
scan_lines_free(ScanLines *lines)
{
    if (lines == NULL)
        return;
    g_hash_table_unref(lines->files);
    g_free(lines);
}

static void
add_line(GArray *spans, gint64 line)
{
    Span *last = spans->len > 0 ? &g_array_index(spans, Span, spans->len - 1) : NULL;

    if (last != NULL && last->last + 1 == line)
        last->last = line;
    else
        g_array_append_val(spans, ((Span){line, line}));
}

/* "@@ -a,b +c,d @@": c.  What a hunk's lines say begins with another character. */
static gint64
hunk_line(const char *head, size_t n)
{
    const char *plus = memchr(head, '+', n);

    return plus != NULL ? strtoll(plus + 1, NULL, 10) : 0;
}

static bool
has_any(const char *line, size_t n, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (memmem(line, n, *words, strlen(*words)) != NULL)
            return true;
    }
    return false;
}

/* More than the marks themselves: programs are not of one mind about how a mark is written.  Nor about what
 * ends a line: then they would count others than git does. */
static bool
is_sly(const char *line, size_t n)
{
    static const char *const marks[] = {"nosec", "eslint", "shellcheck", "cppcheck", "pragma", NULL};
    static const char *const ends[] = {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9", NULL};

    n -= n > 0 && line[n - 1] == '\r';
    for (size_t i = 0; i < n; i++) {
        if (g_ascii_iscntrl(line[i]) && line[i] != '\t')
            return true;
    }
    return has_any(line, n, marks) || has_any(line, n, ends);
}

void
scan_lines_add(ScanLines *lines, const char *path, const char *patch, size_t n)
{
    g_autoptr(GArray) spans = g_array_new(FALSE, FALSE, sizeof(Span));
    const char *next, *end = patch + n;
    gint64 line = 0;

    for (const char *at = patch; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t length = (size_t)((stop != NULL ? stop : end) - at);

        next = stop != NULL ? stop + 1 : end;
        if (length > 3 && memcmp(at, "@@ ", 3) == 0)
            line = hunk_line(at, length);
        else if (*at == '+' && is_sly(at + 1, length - 1))
            return;
        else if (*at == '+')
            add_line(spans, line++);
        else if (*at == ' ')
            line++;
    }
    g_hash_table_insert(lines->files, g_strdup(path), g_steal_pointer(&spans));
}

bool
scan_lines_have(const ScanLines *lines, const char *path, gint64 first, gint64 last)
{
    const GArray *spans = g_hash_table_lookup(lines->files, path);

    for (guint i = 0; spans != NULL && i < spans->len; i++) {
        const Span *span = &g_array_index(spans, Span, i);

        if (span->first <= last && span->last >= first)
            return true;
    }
    return spans == NULL || first <= 0;
}

/* ---- what is forgiven ---- */

bool
scan_may_forgive(const ScanResult *result)
{
    return result->counts[SCAN_ERROR] + result->counts[SCAN_WARNING] > 0;
}

static char *
key_of(const ScanFinding *f)
{
    return g_strdup_printf("%" G_GINT64_FORMAT ":%s:%s", f->line, f->rule, f->path);
}

void
scan_forgive(ScanResult *result, const ScanResult *marked, const ScanLines *written)
{
    g_autoptr(GHashTable) loud = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    /* Whoever did not read all of it does not know what is silent. */
    if (marked->findings->len == SCAN_READ_MAX)
        return;
    for (guint i = 0; i < marked->findings->len; i++)
        g_hash_table_add(loud, key_of(marked->findings->pdata[i]));
    for (guint i = result->findings->len; i > 0; i--) {
        const ScanFinding *f = result->findings->pdata[i - 1];
        g_autofree char *key = key_of(f);

        if (g_hash_table_contains(loud, key) || scan_lines_have(written, f->path, f->line, f->last))
            continue;
        result->counts[f->severity]--;
        g_ptr_array_remove_index(result->findings, i - 1);
    }
}
