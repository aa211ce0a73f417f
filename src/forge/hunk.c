/* SPDX-License-Identifier: Apache-2.0 */
#include "forge/hunk.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "forge/compare.h"
#include "forge/diff.h"

static char *
valid(const char *start, size_t len)
{
    return g_utf8_make_valid(start, (gssize)len);
}

/* From `start` to `end`, the line end of the last line left out. */
static char *
bounded(const char *start, const char *end)
{
    size_t len = (size_t)(end - start);
    const char *head_end = memchr(start, '\n', len);
    size_t head = head_end != NULL ? (size_t)(head_end + 1 - start) : len;

    if (len <= HUNK_MAX || head >= HUNK_MAX)
        return valid(start, MIN(len, HUNK_MAX));
    const char *tail = memchr(end - (HUNK_MAX - head), '\n', HUNK_MAX - head);
    g_autofree char *first = valid(start, head);
    g_autofree char *last = tail != NULL ? valid(tail + 1, (size_t)(end - tail - 1)) : g_strdup("");

    return g_strconcat(first, last, NULL);
}

char *
hunk_cut(const char *patch, size_t len, bool left, gint64 line)
{
    const char *start = NULL, *stop = patch + len;
    gint64 old = 0, new = 0;

    for (const char *at = patch, *end; at < stop; at = end + 1) {
        end = memchr(at, '\n', (size_t)(stop - at));
        end = end != NULL ? end : stop;
        if (*at == '@') {
            g_autofree char *head = g_strndup(at, (size_t)(end - at));
            long long from, to;

            start = at;
            if (sscanf(head, "@@ -%lld%*[,0-9] +%lld", &from, &to) != 2 &&
                sscanf(head, "@@ -%lld +%lld", &from, &to) != 2)
                return NULL;
            old = from;
            new = to;
            continue;
        }
        bool is_old = *at == ' ' || *at == '-', is_new = *at == ' ' || *at == '+';

        if (start != NULL && ((left && is_old && old == line) || (!left && is_new && new == line)))
            return bounded(start, end);
        old += is_old;
        new += is_new;
    }
    return NULL;
}

/* From that file on: so renames are found among all files, as in the whole. */
static DiffPage *
patch_of(GitRepo *git, const char *from, const char *commit, const char *path)
{
    g_autoptr(DiffPage)
        page = diff_files(git, &(DiffSpec){.old = from, .new = commit, .from = path, .max = 1}, NULL);
    const DiffFile *file = page != NULL && page->files->len > 0 ? page->files->pdata[0] : NULL;

    return file != NULL && file->patch != NULL && strcmp(file->path, path) == 0 ? g_steal_pointer(&page)
                                                                                : NULL;
}

static void
fill(Json *line, const DiffPage *page)
{
    const GString *patch = ((const DiffFile *)page->files->pdata[0])->patch;
    bool left = g_strcmp0(json_string_value(json_object_get(line, "side")), "LEFT") == 0;
    g_autofree char *hunk = hunk_cut(patch->str, patch->len, left,
                                     json_integer_value(json_object_get(line, "line")));

    if (hunk != NULL)
        json_object_set_new(line, "diff_hunk", json_string(hunk));
}

bool
hunks_fill(GitRepo *git, const char *base, const char *commit, Json *lines, GError **error)
{
    g_autoptr(GHashTable)
        pages = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)diff_page_free);
    g_auto(Comparison) between = {0};
    size_t i;
    Json *line;

    json_array_foreach(lines, i, line)
    {
        json_object_del(line, "diff_hunk");
    }
    if (!compare_commits(git, base, commit, &between, error))
        return false;
    const char *from = between.merge_base != NULL ? between.merge_base : base;

    json_array_foreach(lines, i, line)
    {
        const char *path = json_string_value(json_object_get(line, "path"));
        gpointer page = NULL;

        if (path == NULL)
            continue;
        if (!g_hash_table_lookup_extended(pages, path, NULL, &page)) {
            page = patch_of(git, from, commit, path);
            g_hash_table_insert(pages, (gpointer)(guintptr)path, page);
        }
        if (page != NULL)
            fill(line, page);
    }
    return true;
}
