/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/diff-raw.h"

#include <string.h>

enum { LINES_MAX = 1 << 30, MODE_MAX = 0177777 };

static const struct {
    char letter;
    DiffStatus status;
    const char *name;
} statuses[] = {
    {'A', DIFF_ADDED, "added"},     {'D', DIFF_REMOVED, "removed"},      {'M', DIFF_MODIFIED, "modified"},
    {'R', DIFF_RENAMED, "renamed"}, {'T', DIFF_TYPE_CHANGED, "changed"},
};

const char *
diff_status_name(DiffStatus status)
{
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        if (statuses[i].status == status)
            return statuses[i].name;
    }
    g_assert_not_reached();
}

void
diff_file_free(DiffFile *file)
{
    if (file == NULL)
        return;
    g_free(file->path);
    g_free(file->old_path);
    if (file->patch != NULL)
        g_string_free(file->patch, TRUE);
    g_free(file);
}

void
diff_page_free(DiffPage *page)
{
    if (page == NULL)
        return;
    g_ptr_array_unref(page->files);
    g_free(page->next);
    g_free(page);
}

static bool
parse_mode(const char *text, guint *ret_mode)
{
    guint64 mode;

    if (!g_ascii_string_to_unsigned(text, 8, 0, MODE_MAX, &mode, NULL))
        return false;
    *ret_mode = (guint)mode;
    return true;
}

static bool
parse_oid(const char *text, char *ret_oid)
{
    if (!git_oid_is_valid(text))
        return false;
    memcpy(ret_oid, text, GIT_OID_LEN + 1);
    return true;
}

/* "M", or "R087" */
static bool
parse_status(const char *text, DiffFile *file)
{
    guint64 percent = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        if (statuses[i].letter != text[0])
            continue;
        file->status = statuses[i].status;
        if (text[1] != '\0' && !g_ascii_string_to_unsigned(text + 1, 10, 0, 100, &percent, NULL))
            return false;
        file->similarity = (guint)percent;
        return (text[1] != '\0') == (file->status == DIFF_RENAMED);
    }
    return false;
}

DiffFile *
diff_raw_parse(const char *record)
{
    DiffFile *file = g_new0(DiffFile, 1);
    g_auto(GStrv) words = g_strsplit(record, " ", 6);

    if (g_strv_length(words) == 5 && words[0][0] == ':' && parse_mode(words[0] + 1, &file->old_mode) &&
        parse_mode(words[1], &file->new_mode) && parse_oid(words[2], file->old_oid) &&
        parse_oid(words[3], file->new_oid) && parse_status(words[4], file))
        return file;
    diff_file_free(file);
    return NULL;
}

/* "FROM[,COUNT]" behind `sign`. */
static bool
parse_span(const char **at, char sign, guint64 *ret_count)
{
    char *end;

    if (**at != sign || !g_ascii_isdigit((*at)[1]))
        return false;
    (void)g_ascii_strtoull(*at + 1, &end, 10);
    *ret_count = 1;
    if (*end == ',') {
        if (!g_ascii_isdigit(end[1]))
            return false;
        *ret_count = g_ascii_strtoull(end + 1, &end, 10);
    }
    *at = end;
    return *ret_count <= LINES_MAX;
}

bool
diff_piece_parse(const char *line, guint64 *ret_old, guint64 *ret_new)
{
    guint64 old, new;
    const char *at = line + strlen("@@ ");

    if (!parse_span(&at, '-', &old) || *at++ != ' ' || !parse_span(&at, '+', &new) ||
        !g_str_has_prefix(at, " @@"))
        return false;
    *ret_old = old;
    *ret_new = new;
    return true;
}

bool
diff_totals_parse(const char *text, DiffTotals *ret_totals)
{
    g_auto(GStrv) parts = g_strsplit(text, ",", 4);
    DiffTotals totals = {0};

    for (guint i = 0; parts[i] != NULL; i++) {
        char *end;
        guint64 n = g_ascii_strtoull(parts[i], &end, 10);

        if (end == parts[i] || n > LINES_MAX)
            return false;
        if (strstr(end, " file") == end)
            totals.files = (guint)n;
        else if (strstr(end, " insertion") == end)
            totals.additions = n;
        else if (strstr(end, " deletion") == end)
            totals.deletions = n;
        else
            return false;
    }
    *ret_totals = totals;
    return true;
}
