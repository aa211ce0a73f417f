/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "report/report.h"

/* Over what real runners printed: REPORT_DATA/README.md. */

typedef struct Golden {
    char *out, *err; /* `err` may be NULL */
    size_t out_len, err_len;
} Golden;

static void
golden_clear(Golden *golden)
{
    g_free(golden->out);
    g_free(golden->err);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Golden, golden_clear)

static char *
load(const char *name, size_t *ret_len)
{
    g_autofree char *path = g_build_filename(REPORT_DATA, name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = NULL;

    g_file_get_contents(path, &text, ret_len, &error);
    g_assert_no_error(error);
    return text;
}

/* "x.1.txt" has standard error beside it. */
static Golden
golden_load(const char *name)
{
    Golden golden = {0};

    golden.out = load(name, &golden.out_len);
    if (g_str_has_suffix(name, ".1.txt")) {
        g_autofree char *other = g_strdup(name);

        other[strlen(other) - strlen("1.txt")] = '2';
        golden.err = load(other, &golden.err_len);
    }
    return golden;
}

static void
feed(ReportReader *reader, ReportStream stream, const char *text, size_t n, size_t piece)
{
    for (size_t i = 0; i < n; i += piece) {
        size_t len = MIN(piece, n - i);
        g_autofree char *exact = g_memdup2(text + i, len);

        report_reader_feed(reader, stream, exact, len);
    }
}

static Json *
read_report(const Golden *golden, ReportStream stream, size_t piece)
{
    g_autoptr(ReportReader) reader = report_reader_new();

    if (golden->err != NULL)
        feed(reader, !stream, golden->err, golden->err_len, piece);
    feed(reader, stream, golden->out, golden->out_len, piece);
    g_autoptr(TestReport) report = report_reader_end(reader);

    return report != NULL ? report_to_json(report) : json_null();
}

static void
check_equal(const char *name, Json *got, Json *want)
{
    g_autoptr(Json) owned = got;
    g_autofree char *got_text = json_encode(got);
    g_autofree char *want_text = json_encode(want);

    if (!json_equal(got, want))
        g_error("%s: got %s, not %s", name, got_text, want_text);
}

static Golden
with_crlf(const Golden *golden)
{
    g_autofree char *text = g_strndup(golden->out, golden->out_len);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    char *out = g_strjoinv("\r\n", lines);

    return (Golden){.out = out, .out_len = strlen(out)};
}

static void
check_golden(const char *name, Json *want)
{
    g_auto(Golden) golden = golden_load(name);
    g_auto(Golden) crlf = with_crlf(&golden);

    check_equal(name, read_report(&golden, REPORT_STDOUT, golden.out_len + 1), want);
    check_equal(name, read_report(&golden, REPORT_STDERR, golden.out_len + 1), want);
    check_equal(name, read_report(&golden, REPORT_STDOUT, 1), want);
    check_equal(name, read_report(&golden, REPORT_STDOUT, 7), want);
    if (golden.err == NULL)
        check_equal(name, read_report(&crlf, REPORT_STDOUT, crlf.out_len + 1), want);
}

static GHashTable *
load_expected(void)
{
    GHashTable *rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)json_decref);
    size_t len;
    g_autofree char *text = load("expected.jsonl", &len);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    for (char **line = lines; **line != '\0'; line++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Json) row = json_decode(*line, strlen(*line), &error);

        g_assert_no_error(error);
        g_hash_table_insert(rows, g_strdup(json_string_value(json_object_get(row, "file"))),
                            json_incref(json_object_get(row, "report")));
    }
    return rows;
}

static void
test_goldens(gconstpointer data)
{
    const char *folder = data;
    g_autofree char *path = g_build_filename(REPORT_DATA, folder, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GHashTable) rows = load_expected();
    const char *entry;
    guint n = 0;

    g_assert_nonnull(dir);
    while ((entry = g_dir_read_name(dir)) != NULL) {
        g_autofree char *name = g_build_filename(folder, entry, NULL);

        if (g_str_has_suffix(name, ".2.txt"))
            continue;
        Json *want = g_hash_table_lookup(rows, name);
        if (want == NULL)
            g_error("%s has no row in expected.jsonl", name);
        check_golden(name, want);
        n++;
    }
    g_assert_cmpuint(n, >, 0);
}

/* What comes out when a run is cut behind a line: at most what the whole has, and partial. */
typedef struct Cut {
    const char *file;
    const char *behind; /* the last line that is there begins so */
    const char *runner; /* NULL: nothing is recognised */
    gint64 total, passed, failed, skipped;
} Cut;

static const Cut cuts[] = {
    {"jest/fail.txt", "Tests: ", "jest", 0, 0, 0, 0},
    {"jest/fail.txt", "FAIL bad/queue", "jest", 0, 0, 0, 0},
    {"vitest/fail.txt", " ❯ bad/queue", "vitest", 3, 1, 2, 0},
    {"vitest/fail.txt", "   Start at", "vitest", 12, 9, 3, 0},
    {"vitest/fail.txt", " RUN", "vitest", 0, 0, 0, 0},
    {"mocha/fail.txt", "    2) gives", NULL},
    {"node/v20-spec-fail.txt", "ℹ fail", "node:test", 0, 0, 0, 0},
    {"node/v20-spec-fail.txt", "✔ holds", "node:test", 0, 0, 0, 0},
    {"node/v20-tap-fail.txt", "ok 5", "tap", 5, 2, 3, 0},
    {"pytest/fail.txt", "=========================== short", "pytest", 13, 9, 4, 0},
    {"pytest/fail.txt", "collected", "pytest", 0, 0, 0, 0},
    {"pytest/verbose.txt", "skip/test_skip.py::test_xfail", "pytest", 15, 9, 4, 2},
    {"pytest/xdist-verbose.txt", "[gw1] [ 55%]", "pytest", 10, 8, 2, 0},
    {"pytest/quiet.txt", "=========================== short", NULL},
    {"unittest/bad.txt", "Ran 8", NULL},
    {"unittest/bad-verbose.txt", "test_skip", "unittest", 6, 1, 3, 2},
    {"go/bad-v.txt", "=== RUN   TestTree/leaf/bad", "go test", 5, 1, 1, 0},
    {"go/bad-json.txt", "{\"Time\"", "go test", 0, 0, 0, 0},
    {"cargo/pass.txt", "test tests::adds", "cargo test", 4, 1, 0, 1},
    {"ctest/fail.txt", "5/9", "ctest", 5, 2, 2, 1},
    {"ctest/fail.txt", "9/9", "ctest", 9, 3, 4, 2},
    {"tap/perl-plan.txt", "not ok 2", "tap", 4, 1, 1, 0},
    {"tap/tape.txt", "not ok 2", "tap", 2, 1, 1, 0},
    {"junit/vitest.txt", "    <testsuite name=\"bad/queue", "junit", 2, 1, 1, 0},
};

static size_t
find_end(const char *text, const char *behind)
{
    const char *line = text;

    while (!g_str_has_prefix(line, behind)) {
        line = strchr(line, '\n');
        g_assert_nonnull(line);
        line++;
    }
    const char *end = strchr(line, '\n');

    return (size_t)(end + 1 - text);
}

static void
check_cut(const Cut *c)
{
    g_auto(Golden) golden = golden_load(c->file);
    size_t n = find_end(golden.out, c->behind);
    g_autoptr(ReportReader) reader = report_reader_new();

    g_test_message("%s, cut behind '%s'", c->file, c->behind);
    report_reader_feed(reader, REPORT_STDOUT, golden.out, n);
    g_autoptr(TestReport) report = report_reader_end(reader);

    if (c->runner == NULL) {
        g_assert_null(report);
        return;
    }
    g_assert_nonnull(report);
    g_assert_cmpstr(report->runner, ==, c->runner);
    g_assert_true(report->partial);
    g_assert_cmpint(report->total, ==, c->total);
    g_assert_cmpint(report->passed, ==, c->passed);
    g_assert_cmpint(report->failed, ==, c->failed);
    g_assert_cmpint(report->skipped, ==, c->skipped);
}

static void
test_cuts(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cuts); i++)
        check_cut(&cuts[i]);
}

int
main(int argc, char **argv)
{
    static const char *const folders[] = {"cargo", "ctest", "go",     "jest", "junit",    "mixed",
                                          "mocha", "node",  "pytest", "tap",  "unittest", "vitest"};

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = g_strdup_printf("/report/goldens/%s", folders[i]);

        g_test_add_data_func(path, folders[i], test_goldens);
    }
    g_test_add_func("/report/cuts", test_cuts);
    return g_test_run();
}
