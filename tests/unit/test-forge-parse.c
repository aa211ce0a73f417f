/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/err.h"
#include "forge/batch.h"
#include "forge/commit.h"
#include "forge/contents-parse.h"
#include "forge/diff-parse.h"
#include "forge/diff-raw.h"
#include "forge/merge-parse.h"

/* What git answers, as tables; with real repositories it is in tests/component. */

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define BYTES(text) (const guint8 *)(text), sizeof(text) - 1

/* ---- objects ---- */

static bool
log_object(size_t index, const char *oid, const char *type, guint64 size, void *ctx)
{
    g_string_append_printf(ctx, "[%zu %s]", index, oid != NULL ? type : "none");
    return true;
}

static bool
log_bytes(size_t index, const guint8 *bytes, size_t n, void *ctx)
{
    g_string_append_len(ctx, (const char *)bytes, (gssize)n);
    return true;
}

static void
test_batch(void)
{
    static const char *const names[] = {A, A ":x\ny", B};
    static const BatchSink sink = {.object = log_object, .bytes = log_bytes};
    const struct {
        const char *text, *log;
        bool done;
    } cases[] = {
        {A " blob 3\na\nb\n" A ":x\ny missing\n" B " blob 0\n\n", "[0 blob]a\nb[1 none][2 blob]", true},
        {A " missing\n" B " blob 1\nx\n" B " missing\n", "[0 none][1 blob]x[2 none]", true},
        {A " blob 3\na\nb\n", "[0 blob]a\nb", false},
        {A " blob 3\na\nbX", "[0 blob]a\nb", false},
        {A " missing\n" A ":x\nz missing\n", "[0 none]", false},
        {A " missing\n" A " missing\n", "[0 none]", false},
        {A " blob x\n", "", false},
        {A " missing\n" A ":x\ny missing\n" B " missing\n" B " missing\n", "[0 none][1 none][2 none]", false},
        {"", "", false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(BatchParser) parser = {0};
        g_autoptr(GString) log = g_string_new(NULL);

        batch_parser_init(&parser, names, G_N_ELEMENTS(names), &sink, log);
        batch_parser_feed(&parser, (const guint8 *)cases[i].text, strlen(cases[i].text));
        g_assert_cmpstr(log->str, ==, cases[i].log);
        g_assert_true(batch_parser_is_done(&parser) == cases[i].done);
    }
}

static void
test_tree_entries(void)
{
    const struct {
        const char *record, *path;
        EntryKind kind;
        gint64 size;
    } cases[] = {
        {"100644 blob " A "       7\tf", "d/f", ENTRY_FILE, 7},
        {"100755 blob " A "      70\ta\tb", "d/a\tb", ENTRY_PROGRAM, 70},
        {"120000 blob " A "       0\tl", "d/l", ENTRY_LINK, 0},
        {"040000 tree " A "       -\tt", "d/t", ENTRY_FOLDER, -1},
        {"160000 commit " A "       -\ts", "d/s", ENTRY_SUBMODULE, -1},
        {"100644 blob " A "       -\tf", NULL, 0, 0},
        {"040000 tree " A "       4\tt", NULL, 0, 0},
        {"100644 blob " A " 7\t", NULL, 0, 0},
        {"100644 blob aa 7\tf", NULL, 0, 0},
        {"000000 blob " A " 7\tf", NULL, 0, 0},
        {"100644 blob " A " 7", NULL, 0, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(TreeEntry) entry = tree_entry_parse(cases[i].record, "d");

        g_assert_cmpstr(entry != NULL ? entry->path : NULL, ==, cases[i].path);
        if (entry == NULL)
            continue;
        g_assert_cmpint(entry->kind, ==, cases[i].kind);
        g_assert_cmpint(entry->size, ==, cases[i].size);
    }
}

static void
test_people(void)
{
    const struct {
        const char *line, *name, *email;
        gint64 time_s;
        int zone_min;
    } cases[] = {
        {"A B <a@b> 12 +0130", "A B", "a@b", 12, 90},
        {"A <B> <a@b> 12 -0000", "A", "B> <a@b", 12, 0},
        {"<> 1 -1159", "", "", 1, -719},
        {"A <a@b> 12 +9999", "A", "a@b", 12, 0},
        {"A <a@b> -5 +0000", "A", "a@b", 0, 0},
        {"A <a@b>", "A", "a@b", 0, 0},
        {"nobody", "nobody", "", 0, 0},
        {"A\x1b[1m\xff <a> 1 +0000", "A [1m\xef\xbf\xbd", "a", 1, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("tree " A "\nauthor %s\ncommitter C <c> 1 +0000\n\nm",
                                                cases[i].line);
        g_autoptr(GitCommit) commit = git_commit_parse(B, (const guint8 *)text, strlen(text), NULL);

        g_assert_nonnull(commit);
        g_assert_cmpstr(commit->author.name, ==, cases[i].name);
        g_assert_cmpstr(commit->author.email, ==, cases[i].email);
        g_assert_cmpint(commit->author.time_s, ==, cases[i].time_s);
        g_assert_cmpint(commit->author.zone_min, ==, cases[i].zone_min);
    }
    g_autoptr(GitCommit) latin = git_commit_parse(
        B,
        BYTES("tree " A "\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\nencoding iso-8859-1\n"
              "gpgsig x\n tree " B "\n\ncaf\xe9\n"),
        NULL);

    g_assert_cmpstr(latin->message, ==, "caf\xc3\xa9\n");
    g_assert_cmpstr(latin->tree, ==, A);
    g_assert_true(latin->is_signed);
}

/* ---- changes ---- */

#define RAW ":100644 100644 " A " " B " "

static void
test_diff(void)
{
    DiffParserSpec spec = {
        .max = 2, .patches = true, .patch_max = 40, .line_max = 20, .text_max = 60, .read_max = G_MAXUINT32};
    const struct {
        const guint8 *bytes;
        size_t n;
        const char *log; /* NULL: an error */
    } cases[] = {
        {BYTES(""), ""},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\n@@ -1 +1 @@\n-x\n+y\n"), "a+1-1@@ -1 +1 @@\n-x\n+y\n"},
        {BYTES(RAW "R090\0a\0b\0\0diff --git a/a b/b\nrename from a\n"), "b+0-0"},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\nBinary files a/a and b/a differ\n"), "a+0-0 binary"},
        {BYTES(RAW "T\0a\0\0diff --git a/a b/a\n@@ -1 +0,0 @@\n-x\ndiff --git a/a b/a\n@@ -0,0 +1 @@\n+y\n"),
         "a+1-1@@ -1 +0,0 @@\n-x\n@@ -0,0 +1 @@\n+y\n"},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\n@@ -0,0 +1 @@\n+yyyyyyyyyyyyyyyyyyyyyyyyyy\n"),
         "a+1-0 large"},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\n@@ -0,0 +3 @@\n+yyyyyyyyyyyy\n+yyyyyyyyyyyyy\n+y\n"), NULL},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\n@@ -0,0 +1,3 @@\n+yyyyyyyyyyyy\n+yyyyyyyyyyyyy\n+y\n"),
         "a+3-0 large"},
        {BYTES(RAW "M\0a\0" RAW "M\0b\0" RAW
                   "M\0c\0\0diff --git a/a b/a\ndiff --git a/b b/b\ndiff --git a/c b/c\n@@"),
         "a+0-0b+0-0>c"},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\ndiff --git a/b b/b\n"), NULL},
        {BYTES(RAW "M\0a\0\0"), NULL},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\n@@ -1,2 +1,2 @@\n-x\n+y\n"), NULL},
        {BYTES(RAW "M\0a\0\0diff --git a/a b/a\n@@ -1 +1 @@\n-x\n-x\n"), NULL},
        {BYTES(RAW "M\0a\0\0@@ -1 +1 @@\n"), NULL},
        {BYTES(RAW "X\0a\0"), NULL},
        {BYTES(RAW "R1\0a\0"), NULL},
        {BYTES(RAW "M\0\0"), NULL},
        {BYTES("nonsense\0"), NULL},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(DiffParser) parser = diff_parser_new(&spec);
        g_autoptr(GString) log = g_string_new(NULL);

        g_test_message("case %zu", i);
        diff_parser_feed(parser, cases[i].bytes, cases[i].n);
        g_autoptr(DiffPage) page = diff_parser_end(parser, false, NULL);

        for (guint j = 0; page != NULL && j < page->files->len; j++) {
            const DiffFile *file = page->files->pdata[j];

            g_string_append_printf(log, "%s+%u-%u%s%s%s", file->path, file->additions, file->deletions,
                                   file->binary ? " binary" : "", file->too_large ? " large" : "",
                                   file->patch != NULL ? file->patch->str : "");
        }
        if (page != NULL && page->next != NULL)
            g_string_append_printf(log, ">%s", page->next);
        g_assert_cmpstr(page != NULL ? log->str : NULL, ==, cases[i].log);
    }
}

static void
test_totals(void)
{
    const struct {
        const char *text;
        bool good;
        DiffTotals totals;
    } cases[] = {
        {"", true, {0, 0, 0}},
        {"1 file changed, 2 insertions(+), 3 deletions(-)", true, {1, 2, 3}},
        {"12 files changed, 1 deletion(-)", true, {12, 0, 1}},
        {"1 file changed", true, {1, 0, 0}},
        {"some files changed", false, {0, 0, 0}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        DiffTotals totals = {0};

        g_assert_true(diff_totals_parse(cases[i].text, &totals) == cases[i].good);
        g_assert_cmpuint(totals.files, ==, cases[i].totals.files);
        g_assert_cmpuint(totals.additions, ==, cases[i].totals.additions);
        g_assert_cmpuint(totals.deletions, ==, cases[i].totals.deletions);
    }
}

/* ---- merges ---- */

static void
test_merge(void)
{
    const struct {
        const guint8 *bytes;
        size_t n;
        bool clean, good;
        guint conflicts, notes;
    } cases[] = {
        {BYTES(A "\0"), true, true, 0, 0},
        {BYTES(A "\0"), false, false, 0, 0},
        {BYTES(A "\0"
                 "100644 " A " 1\tf\0"
                 "100644 " B " 2\tf\0"
                 "100644 " B " 3\tg\0"
                 "\0"
                 "1\0f\0Auto-merging\0Auto-merging f\n\0"
                 "1\0f\0CONFLICT (contents)\0CONFLICT: f\n\0"),
         false, true, 2, 1},
        {BYTES(A "\0"
                 "100644 " A " 4\tf\0"),
         false, false, 0, 0},
        {BYTES(A "\0"
                 "100644 " A " 1\tf\0"),
         true, false, 0, 0},
        {BYTES(A "\0\0"
                 "2\0f\0CONFLICT\0x\0"),
         false, false, 0, 0},
        {BYTES("xyz\0"), true, false, 0, 0},
        {BYTES(A), true, false, 0, 0},
        {BYTES(""), true, false, 0, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(MergeResult)
            result = merge_result_parse(cases[i].bytes, cases[i].n, cases[i].clean, &error);

        g_test_message("case %zu", i);
        g_assert_true((result != NULL) == cases[i].good);
        if (result == NULL)
            continue;
        g_assert_cmpuint(result->conflicts->len, ==, cases[i].conflicts);
        g_assert_cmpuint(result->notes->len, ==, cases[i].notes);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/forge/parse/batch", test_batch);
    g_test_add_func("/forge/parse/tree-entries", test_tree_entries);
    g_test_add_func("/forge/parse/people", test_people);
    g_test_add_func("/forge/parse/diff", test_diff);
    g_test_add_func("/forge/parse/totals", test_totals);
    g_test_add_func("/forge/parse/merge", test_merge);
    return g_test_run();
}
