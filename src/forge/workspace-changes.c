/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/diff-raw.h"
#include "forge/workspace-private.h"

enum { FILES_MAX = 200, COUNT_MAX = 1000000000 };

/* A name with odd characters stands in quotes; what it is made of does not matter to a message. */
static char *
dup_path(const char *text)
{
    size_t n = strlen(text);

    return n > 1 && text[0] == '"' && text[n - 1] == '"' ? g_strndup(text + 1, n - 2) : g_strdup(text);
}

static bool
status_of(char letter, DiffStatus *ret_status)
{
    static const struct {
        char letter;
        DiffStatus status;
    } rows[] = {{'A', DIFF_ADDED},    {'C', DIFF_ADDED},   {'D', DIFF_REMOVED},
                {'M', DIFF_MODIFIED}, {'R', DIFF_RENAMED}, {'T', DIFF_TYPE_CHANGED}};

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (rows[i].letter == letter) {
            *ret_status = rows[i].status;
            return true;
        }
    }
    return false;
}

/* "M\tPATH", "R097\tOLD\tNEW". */
static DiffFile *
parse_status(char *const *words)
{
    guint n = g_strv_length((char **)(guintptr)words);
    DiffStatus status;

    if (n < 2 || !status_of(words[0][0], &status) || n != (strchr("RC", words[0][0]) != NULL ? 3U : 2U))
        return NULL;
    DiffFile *file = g_new0(DiffFile, 1);

    file->status = status;
    file->path = dup_path(words[n - 1]);
    file->old_path = status == DIFF_RENAMED ? dup_path(words[1]) : NULL;
    return file;
}

/* "3\t1\tPATH", "-\t-\tPATH"; renamed ones have another form, and no count. */
static void
parse_count(char *const *words, GHashTable *by_path)
{
    guint64 more, less;

    if (g_strv_length((char **)(guintptr)words) != 3)
        return;
    g_autofree char *path = dup_path(words[2]);
    DiffFile *file = g_hash_table_lookup(by_path, path);

    if (file == NULL)
        return;
    if (strcmp(words[0], "-") == 0) {
        file->binary = true;
    } else if (g_ascii_string_to_unsigned(words[0], 10, 0, COUNT_MAX, &more, NULL) &&
               g_ascii_string_to_unsigned(words[1], 10, 0, COUNT_MAX, &less, NULL)) {
        file->additions = (guint)more;
        file->deletions = (guint)less;
        file->counted = true;
    }
}

GPtrArray *
workspace_changes_parse(const char *text, guint *ret_more)
{
    GPtrArray *files = g_ptr_array_new_with_free_func((GDestroyNotify)diff_file_free);
    g_autoptr(GHashTable) by_path = g_hash_table_new(g_str_hash, g_str_equal);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    DiffTotals totals = {0};

    /* What is behind the last line's end was cut. */
    for (char **line = lines; line[0] != NULL && line[1] != NULL; line++) {
        g_auto(GStrv) words = g_strsplit(*line, "\t", -1);

        if (line == lines) {
            (void)diff_totals_parse(*line, &totals);
        } else if (g_ascii_isdigit(**line) || **line == '-') {
            parse_count(words, by_path);
        } else if (files->len < FILES_MAX) {
            DiffFile *file = parse_status(words);

            if (file == NULL)
                continue;
            g_ptr_array_add(files, file);
            g_hash_table_insert(by_path, file->path, file);
        }
    }
    *ret_more = totals.files > files->len ? totals.files - files->len : 0;
    return files;
}
