/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "forge/contents-parse.h"
#include "forge/diff-raw.h"
#include "forge/merge-parse.h"
#include "fuzz.h"

/* The input is what `git merge-tree` wrote, a record of `git ls-tree`, and the first part of one of `git
 * diff-tree`. */

static void
check_side(const MergeSide *side)
{
    g_assert_true(side->mode == 0 || git_oid_is_valid(side->oid));
}

static void
check_result(const guint8 *bytes, size_t n, bool clean)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(MergeResult) result = merge_result_parse(bytes, n, clean, &error);

    g_assert_true((result != NULL) == (error == NULL));
    if (result == NULL)
        return;
    g_assert_true(git_oid_is_valid(result->tree));
    g_assert_cmpuint(result->conflicts->len, <=, MERGE_CONFLICTS_MAX);
    for (guint i = 0; i < result->conflicts->len; i++) {
        const MergeConflict *conflict = result->conflicts->pdata[i];

        g_assert_cmpuint(strlen(conflict->path), <=, MERGE_PATH_MAX);
        check_side(&conflict->base);
        check_side(&conflict->ours);
        check_side(&conflict->theirs);
    }
    for (guint i = 0; i < result->notes->len; i++) {
        const MergeNote *note = result->notes->pdata[i];

        g_assert_true(g_utf8_validate(note->text, -1, NULL) && g_utf8_validate(note->kind, -1, NULL));
        g_assert_nonnull(note->paths);
    }
}

static void
check_record(const char *record)
{
    g_autoptr(TreeEntry) entry = tree_entry_parse(record, "below");
    DiffFile *file = diff_raw_parse(record);
    DiffTotals totals;

    if (entry != NULL) {
        g_assert_true(git_oid_is_valid(entry->oid));
        g_assert_true(g_str_has_prefix(entry->path, "below/"));
        g_assert_true((entry->size < 0) == (entry->kind == ENTRY_FOLDER || entry->kind == ENTRY_SUBMODULE));
    }
    diff_file_free(file);
    (void)diff_totals_parse(record, &totals);
}

void
fuzz_input(const guint8 *data, size_t n, size_t cut)
{
    size_t whole = cut == FUZZ_EACH_BYTE ? n : MIN(cut, n);
    g_autofree guint8 *exact = g_memdup2(data, MAX(whole, 1));
    g_autofree char *record = fuzz_string(data, whole);

    check_result(exact, whole, true);
    check_result(exact, whole, false);
    check_record(record);
}
