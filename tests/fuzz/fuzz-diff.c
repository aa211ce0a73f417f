/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/diff-parse.h"
#include "fuzz.h"

/* The input is what `git diff-tree` wrote.  However it is cut, the page is the same, and no larger than its
 * bounds. */

enum { FILES = 3, PATCH = 64, LINE = 32, TEXT = 128 };

static bool
on_piece(void *ctx, const guint8 *bytes, size_t n)
{
    return diff_parser_feed(ctx, bytes, n);
}

static void
check_file(const DiffFile *file, size_t *total)
{
    g_assert_true(file->path != NULL && file->path[0] != '\0');
    g_assert_true((file->old_path != NULL) == (file->status == DIFF_RENAMED));
    g_assert_cmpuint(file->similarity, <=, 100);
    g_assert_true(file->patch == NULL || (file->patch->len <= PATCH && !file->too_large));
    *total += file->patch != NULL ? file->patch->len : 0;
}

static char *
read_page(const guint8 *data, size_t n, size_t cut, bool patches, guint skip)
{
    DiffParserSpec spec = {
        .skip = skip,
        .max = FILES,
        .patches = patches,
        .patch_max = PATCH,
        .line_max = LINE,
        .text_max = TEXT,
        .read_max = G_MAXUINT32,
    };
    g_autoptr(DiffParser) parser = diff_parser_new(&spec);
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) log = g_string_new(NULL);
    size_t total = 0;

    (void)fuzz_feed(data, n, cut, on_piece, parser);
    g_autoptr(DiffPage) page = diff_parser_end(parser, false, &error);

    g_assert_true((page != NULL) == (error == NULL));
    if (page == NULL)
        return g_strdup("none");
    g_assert_cmpuint(page->files->len, <=, FILES);
    for (guint i = 0; i < page->files->len; i++) {
        const DiffFile *file = page->files->pdata[i];

        check_file(file, &total);
        g_string_append_printf(log, "%d %s %u %u %d %d %d\n", file->status, file->path, file->additions,
                               file->deletions, file->counted, file->binary, file->too_large);
        if (file->patch != NULL)
            g_string_append_len(log, file->patch->str, (gssize)file->patch->len);
    }
    g_assert_cmpuint(total, <=, TEXT);
    g_string_append_printf(log, "next %s", page->next);
    return g_strdup(log->str);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    for (guint i = 0; i < 4; i++) {
        g_autofree char *whole = read_page(data, n, n, i % 2 != 0, i / 2);
        g_autofree char *pieces = read_page(data, n, cut, i % 2 != 0, i / 2);

        g_assert_cmpstr(whole, ==, pieces);
    }
}
