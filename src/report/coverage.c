/* SPDX-License-Identifier: Apache-2.0 */
#include "report/coverage.h"

#include <string.h>

#include "report/text.h"

enum { PERMILLE = 1000, PERCENT = 100 };

static const double ROUND = 0.5;

typedef struct Search {
    bool found;
    guint permille;
} Search;

/* The number at the beginning, which has to be a share. */
static bool
read_share(const char *text, Search *search)
{
    char *end = NULL;
    double value = g_ascii_isdigit(text[0]) ? g_ascii_strtod(text, &end) : -1;

    if (end == NULL || value > PERCENT)
        return false;
    search->found = true;
    search->permille = (guint)(value * PERMILLE / PERCENT + ROUND);
    return true;
}

static const char *
skip_marks(const char *text)
{
    return text + strspn(text, " \t#ℹ");
}

/* "TOTAL    120    6    95%": the last word. */
static void
read_total(const char *line, Search *search)
{
    const char *last = strrchr(line, ' ');

    if (last != NULL && g_str_has_suffix(line, "%"))
        read_share(last + 1, search);
}

/* "All files | 95.2 | 90 | 100 | 95.2 |": its first number; "all files" of node is the same. */
static void
read_files(const char *line, Search *search)
{
    const char *bar = strchr(line, '|');

    if (bar != NULL)
        read_share(bar + 1 + strspn(bar + 1, " "), search);
}

/* "coverage: 81.3% of statements", "Statements   : 81.3% ( 13/16 )" */
static void
read_after(const char *line, Search *search)
{
    const char *colon = strchr(line, ':');

    if (colon != NULL && strchr(colon, '%') != NULL)
        read_share(colon + 1 + strspn(colon + 1, " "), search);
}

static void
on_line(void *data, const char *line, guint64 number)
{
    static const struct {
        const char *begin;
        void (*read)(const char *line, Search *search);
    } ways[] = {
        {"TOTAL ", read_total},     {"All files", read_files},    {"all files", read_files},
        {"coverage: ", read_after}, {"lines......:", read_after}, {"Statements ", read_after},
    };
    const char *text = skip_marks(line);

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        if (g_str_has_prefix(text, ways[i].begin))
            ways[i].read(text, data);
    }
}

bool
coverage_find(const char *text, guint *ret_permille)
{
    Search search = {0};
    TextLines *lines = text_lines_new(on_line, &search);

    text_lines_feed(lines, (const guint8 *)text, strlen(text));
    text_lines_end(lines);
    text_lines_free(lines);
    *ret_permille = search.permille;
    return search.found;
}
