/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>
#include <string.h>

#include "report/report.h"

/* Texts that no runner printed as they stand: what is ambiguous, hostile or too much. */

#define RULE70 "----------------------------------------------------------------------\n"
#define JEST                                                                                                 \
    "Test Suites: 1 passed, 1 total\nTests:       2 passed, 2 total\nSnapshots:   0 total\nTime:        "    \
    "1.5 s\n"
#define SESSION "=== test session starts ===\nplatform linux -- Python 3.11.7\ncollected 2 items\n\n"

/* "runner total/passed/failed/skipped+errors", "!" if partial, then the names. */
static char *
describe(const TestReport *report)
{
    GString *text = g_string_new(NULL);

    if (report == NULL)
        return g_string_free(text, FALSE);
    g_string_append_printf(text, "%s %d/%d/%d/%d+%d%s", report->runner, (int)report->total,
                           (int)report->passed, (int)report->failed, (int)report->skipped,
                           (int)report->errors, report->partial ? "!" : "");
    for (guint i = 0; i < report->failing->len; i++)
        g_string_append_printf(text, "; %s", (char *)report->failing->pdata[i]);
    return g_string_free(text, FALSE);
}

static TestReport *
read_text(const char *text, size_t n)
{
    g_autoptr(ReportReader) reader = report_reader_new();

    report_reader_feed(reader, REPORT_STDOUT, text, n);
    return report_reader_end(reader);
}

typedef struct Case {
    const char *text, *want;
} Case;

static const Case ambiguous[] = {
    {"", ""},
    {"all 5 passed\nTests: 5 passed, 5 total\n3 tests failed\nok\n", ""},
    {"Tests:       2 passed, 2 total\n", ""},
    /* jest: its four lines in a row, which add up */
    {JEST, "jest 2/2/0/0+0"},
    {"Test Suites: 1 passed, 1 total\n\nTests:       2 passed, 2 total\nSnapshots:   0 total\nTime:        1 "
     "s\n",
     "jest 0/0/0/0+0!"},
    {"Test Suites: 1 passed, 1 total\nTests:       2 passed, 3 total\nSnapshots:   0 total\nTime:        1 "
     "s\n",
     "jest 0/0/0/0+0!"},
    {"  " JEST, ""},
    /* a summary in a log beside a real one */
    {"  3 passing (1s)\n" JEST, "jest 2/2/0/0+0"},
    {"1..2\nok 1\nok 2\n" JEST, "jest 2/2/0/0+0"},
    {"7 failed, 5 passed in 0.03s\n" JEST, "jest 2/2/0/0+0"},
    /* one of two that any program might have printed */
    {"  3 passing (1s)\n", "mocha 3/3/0/0+0"},
    {"  3 passing (1s)\n\n  2 passing (1s)\n", ""},
    {"  3 passing (1s)\n\n5 passed in 0.03s\n", ""},
    {"5 passed in 0.03s\n", "pytest 5/5/0/0+0"},
    {"5 passed in 0.03s\n4 passed in 0.03s\n", ""},
    /* the tree makes it sure */
    {"  3 passing (1s)\n\n  ✔ a\n  ✔ b\n\n  2 passing (1s)\n", "mocha 2/2/0/0+0"},
    {"  ✔ a\n  1) b\n  - c\n\n  1 passing (1s)\n  1 pending\n  1 failing\n\n  1) b:\n     Error\n",
     "mocha 3/1/1/1+0; b"},
    /* a session inside a session is a test's; one that follows a dead one is not */
    {SESSION "a.py .F [100%]\n\n" SESSION "b.py .. [100%]\n=== 2 passed in 0.1s ===\n"
             "=== 1 failed, 1 passed in 0.2s ===\n",
     "pytest 2/1/1/0+0"},
    {SESSION "a.py .\n" SESSION "b.py .. [100%]\n=== 2 passed in 0.1s ===\n", "pytest 3/3/0/0+0!"},
    {SESSION "a.py .. [100%]\n=== 2 passed in 0.1s ===\n=== 9 passed in 0.2s ===\n", "pytest 2/2/0/0+0"},
    {SESSION "a.py .F [100%]\n=== 9 passed in 0.1s ===\n=== 1 failed, 1 passed in 0.2s ===\n",
     "pytest 2/1/1/0+0"},
    {"=== test session starts ===\nand more\n", ""},
    {"..F [100%]\n=== FAILURES ===\n3 passed in 0.1s\n=== short test summary info ===\nFAILED a.py::b[x - y] "
     "- no\n"
     "1 failed, 2 passed in 0.2s\n",
     "pytest 3/2/1/0+0; a.py::b[x - y]"},
    {".. [100%]\n2 passed in 0.1s\n... [100%]\n3 passed in 61.00s (0:01:01)\n", "pytest 5/5/0/0+0"},
    {"s [100%]\n1 skipped, 3 rerun, 2 deselected in 0.1s\n", "pytest 1/0/0/1+0"},
    /* unittest: the rule, an empty line */
    {"Ran 2 tests in 0.1s\n\nOK\n", ""},
    {RULE70 "Ran 2 tests in 0.1s\nOK\n", ""},
    {RULE70 "Ran 2 tests in 0.1s\n\nOK\n", "unittest 2/2/0/0+0"},
    {RULE70 "Ran 2 tests in 0.1s\n\nOK (skipped=1, expected failures=1)\n", "unittest 2/0/0/2+0"},
    {RULE70 "Ran 2 tests in 0.1s\n\nFAILED (failures=1)\n", "unittest 2/1/1/0+0!"},
    /* cargo: as many as promised, and by whom */
    {"test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n", ""},
    {"running 2 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
     "cargo test 2/0/0/0+0!"},
    {"running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
     "cargo test 2/2/0/0+0"},
    {"running 2 tests\ntest a ... ok\nrunning 2 tests\ntest b ... ok\n"
     "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n",
     "cargo test 2/2/0/0+0"},
    {"running 3 tests\ntest a ... ok\nrunning 1 test\ntest b ... ok\n"
     "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n",
     "cargo test 4/1/0/0+0!"},
    /* ctest */
    {"Test project /x\n1/1 Test #1: a ....   Passed    0.1 sec\n100% tests passed, 0 tests failed out of 2\n"
     "Total Test time (real) = 1 sec\n",
     "ctest 1/1/0/0+0!"},
    /* go: with -v only what was seen to begin */
    {"ok  \tx\n", ""},
    {"=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nPASS\nok  "
     "\tp\t1s\n",
     "go test 1/1/0/0+0"},
    {"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", "go test 1/1/0/0+0"},
    {"{\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"T\"}\n{\"Action\":\"pass\",\"Package\":\"p\"}\n",
     "go test 0/0/0/0+0"},
};

static const Case more[] = {
    /* strong ones inside another's lines, whichever ends first */
    {" RUN  v3.1.1 /p\nTAP version 13\nok 1\n" JEST " Test Files  1 passed (1)\n      Tests  1 passed (1)\n"
     "   Duration  1s\n",
     "vitest 1/1/0/0+0"},
    {"Test Suites: 1 passed, 1 total\nTests:       2 passed, 2 total  \nSnapshots:   0 total \nTime:        "
     "1 s\n",
     "jest 2/2/0/0+0"},
    {"Test Suites: 1 passed, 1 total\nTests:       2 passedx, 2 total\nSnapshots:   0 total\nTime:        1 "
     "s\n",
     "jest 0/0/0/0+0!"},
    {"FAIL a.test.js\n  ● x\nSummary of all failing tests\nFAIL a.test.js\n  ● x\n"
     "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\nSnapshots:   0 total\nTime:        1 "
     "s\n",
     "jest 1/0/1/0+0; a.test.js › x"},
    /* a number that is not the next is not a mark of the tree: the run below stays sure */
    {"  3 passing (1s)\n\n  ✔ a\n  7) noise\n\n  1 passing (1s)\n", "mocha 1/1/0/0+0"},
    {"  ✔ a\n\n  9 passing (1s)\n\n  ✔ b\n\n  1 passing (1s)\n", "mocha 1/1/0/0+0"},
    {".. [100%]\n5 passed in 0.1s\n  3 passing (1s)\n", ""},
    {"======================================================================\nFAIL: t (m.C.t) (i=1)\n" RULE70
     "x\n======================================================================\nFAIL: t (m.C.t) "
     "(i=2)\n" RULE70 "x\n======================================================================\nERROR: "
     "setUpClass (m.D)\n" RULE70 "x\n" RULE70 "Ran 3 tests in 0.1s\n\nFAILED (failures=2, errors=1)\n",
     "unittest 3/2/1/0+1; t (m.C.t); setUpClass (m.D)"},
    {RULE70 "Ran 2 tests in 0.1s\nnoise\nOK\n", ""},
    {"{\"Action\":\"start\",\"Package\":\"a\"}\n{\"Action\":\"run\",\"Package\":\"a\",\"Test\":\"T\"}\n"
     "{\"Action\":\"run\",\"Package\":\"b\",\"Test\":\"T\"}\n{\"Action\":\"pass\",\"Package\":\"b\",\"Test\":"
     "\"T\"}\n"
     "{\"Action\":\"pass\",\"Package\":\"b\"}\n{\"Action\":\"fail\",\"Package\":\"a\",\"Test\":\"T\"}\n"
     "{\"Action\":\"fail\",\"Package\":\"a\"}\n",
     "go test 2/1/1/0+0; a.T"},
    {"running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\nfailures:\n    "
     "fake\n\nfailures:\n    a\n\n"
     "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s\n",
     "cargo test 1/0/1/0+0; a"},
};

static const Case taps[] = {
    {"ok 1\nok 2\n", ""},
    {"1..2\n", ""},
    {"ok\nok\n1..2\n", ""},
    {"ok 1\nok 2\n1..2\n", "tap 2/2/0/0+0"},
    {"TAP version 13\nok\nnot ok\n1..2\n", "tap 2/1/1/0+0; (no name)"},
    {"TAP version 12\n", "tap 0/0/0/0+0!"},
    {"TAP version 14\n1..0 # SKIP nothing here\n", "tap 0/0/0/0+0"},
    {"TAP version 14\nok 1 - a\n", "tap 1/1/0/0+0!"},
    {"TAP version 14\n1..1\nok 1 - a\nok 2 - b\n", "tap 2/2/0/0+0!"},
    {"TAP version 14\n1..2\nok 1 # skip x\nnot ok 2 - b # todo y\n", "tap 2/0/0/2+0"},
    {"TAP version 14\n1..2\nnot ok 1 - a \\# SKIP x\nnot ok 2 - b#c\n", "tap 2/0/2/0+0; a # SKIP x; b#c"},
    {"TAP version 14\n1..1\n    1..2\n    not ok 1 - in\n    ok 2\nok 1 - out\n", "tap 1/1/0/0+0"},
    {"TAP version 14\n1..3\nok 1\nBail out! no disk\n", "tap 3/1/0/0+0!"},
    {"TAP version 14\n1..1\nok 1\nBail out! late\n", "tap 1/1/0/0+0!"},
    {"1..2\nok 1\nok\nok 2\n", "tap 2/2/0/0+0"},
    {"TAP version 13\n1..99999999999999999999\nok 1\n", "tap 1/1/0/0+0!"},
    {"TAP version 13\n1..1\nok 1\nTAP version 13\n1..1\nnot ok 1 - z\n", "tap 2/1/1/0+0; z"},
    {"1..1\nok 1\n1..1\nnot ok 1 - z\n", "tap 2/1/1/0+0; z"},
    {"ok 1\n1..1\nok 1\n1..1\n", "tap 2/2/0/0+0"},
    {"TAP version 13\nok 1 - a\n1..1\n# tests 1\n# pass 1\n# fail 0\n", "tap 1/1/0/0+0"},
    {"TAP version 13\nok 1 - a\n1..1\n# tests 3\n# pass 3\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n"
     "# duration_ms 1.5\n",
     "node:test 3/3/0/0+0"},
    {"TAP version 13\nok 1 - a\n1..1\n# tests 3\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n"
     "# duration_ms 1.5\n",
     "tap 1/1/0/0+0"},
    {"ℹ tests 3\nℹ pass 1\nℹ fail 0\nℹ cancelled 2\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 1.5\n",
     "node:test 3/1/2/0+0"},
    {"ℹ tests 4\nℹ pass 1\nℹ fail 0\nℹ cancelled 2\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 1.5\n", ""},
    {"ℹ tests 3\nℹ pass 1\n\nℹ fail 0\nℹ cancelled 2\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 1.5\n", ""},
};

static const Case xmls[] = {
    {"<testsuite><testcase name='a'/></testsuite>", "junit 1/1/0/0+0"},
    {"\xef\xbb\xbf<testsuite><testcase name='a'/></testsuite>", "junit 1/1/0/0+0"},
    {"<?xml version=\"1.0\"?><testsuites><testsuite><testcase name='a'/></testsuite></testsuites>",
     "junit 1/1/0/0+0"},
    {"see <testsuite><testcase name='a'/></testsuite>", ""},
    {"<testsuitex><testcase name='a'/></testsuitex>", ""},
    {"<testsuites/>", "junit 0/0/0/0+0"},
    {"<testsuites>\n<testsuite>\n<testsuite>\n<testcase name='a'></testcase></testsuite>\n"
     "<testcase name='b'><failure/></testcase></testsuite></testsuites>\n",
     "junit 2/1/1/0+0; b"},
    {"<testsuite><testcase classname='c' name='a &lt;b&gt; &amp;&#34;&#x27;&apos;&quot; &nope; &#0; &#xd800; "
     "&'>"
     "<error/></testcase></testsuite>",
     "junit 1/0/1/0+0; c > a <b> &\"''\" &nope; &#0; &#xd800; &"},
    {"<testsuite><testcase name=\"a>b'/\" class='x'><failure "
     "message='<skipped/>'>x</failure></testcase></testsuite>",
     "junit 1/0/1/0+0; a>b'/"},
    {"<testsuite><testcase name='a'><system-out><![CDATA[</testcase><failure/>]] "
     "]>]]></system-out></testcase>"
     "<!-- > <testcase name='b'/> - -- > --><testcase name='c'><skipped/></testcase></testsuite>",
     "junit 2/1/0/1+0"},
    {"<testsuite><testcase name='a'><failure/><error/><skipped/></testcase></testsuite>",
     "junit 1/0/1/0+0; a"},
    {"<testsuite><properties/><failure/><testcase name='a' status='disabled'/></testsuite>",
     "junit 1/0/0/1+0"},
    {"<testsuite><testcase><failure/></testcase></testsuite>", "junit 1/0/1/0+0; (no name)"},
    {"<testsuite><testcase name='a'/><testcase name='b'>", "junit 1/1/0/0+0!"},
    {"<testsuite><testcase name='a'/></testsuite>\n<testsuite><testcase name='b'/></testsuite>",
     "junit 2/2/0/0+0"},
    {"<testsuite><testcase name='a'/></testsuite><testsuite><testcase name='b'/></testsuite>",
     "junit 2/2/0/0+0"},
    {"<testsuite>\n<testcase name='a'>1..1\nok 1\n</testcase>\n</testsuite>\n", "junit 1/1/0/0+0"},
    {JEST "<testsuite><testcase name='a'/></testsuite>", "jest 2/2/0/0+0"},
    {"1..1\nok 1\n<testsuite><testcase name='a'/></testsuite>", "junit 1/1/0/0+0"},
};

static const Case noisy[] = {
    {"\x1b]0;title\x07" JEST, "jest 2/2/0/0+0"},
    {"\x1b]8;;http://x\x1b\\\x1b[?25l\x1b(B" JEST, "jest 2/2/0/0+0"},
    {"50%\r100%\r" JEST, "jest 2/2/0/0+0"},
    {"\x1b]never ended\n" JEST, "jest 2/2/0/0+0"},
    {"50%\r100%\rTAP version 13\r\n1..1\r\nnot ok 1 - \xff\xfe\x07 z\xe2\x80\xae\xc2\x9b\r\n",
     "tap 1/0/1/0+0; \xef\xbf\xbd\xef\xbf\xbd z"},
    {"TAP version 13\n1..1\nnot ok 1 - a\x1b[31mb\x1b[0mc", "tap 1/0/1/0+0; abc"},
};

static void
check_cases(const Case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        g_autoptr(TestReport) report = read_text(cases[i].text, strlen(cases[i].text));
        g_autofree char *got = describe(report);

        g_test_message("case %zu", i);
        g_assert_cmpstr(got, ==, cases[i].want);
    }
}

static void
test_ambiguous(void)
{
    check_cases(ambiguous, G_N_ELEMENTS(ambiguous));
}

static void
test_more(void)
{
    check_cases(more, G_N_ELEMENTS(more));
}

static void
test_tap(void)
{
    check_cases(taps, G_N_ELEMENTS(taps));
}

static void
test_xml(void)
{
    check_cases(xmls, G_N_ELEMENTS(xmls));
}

static void
test_noisy(void)
{
    check_cases(noisy, G_N_ELEMENTS(noisy));
}

static void
test_nul(void)
{
    static const char text[] = "TAP version 13\n1..1\nnot ok\0 1 - \0a\0\n";
    g_autoptr(TestReport) report = read_text(text, sizeof text - 1);
    g_autofree char *got = describe(report);

    g_assert_cmpstr(got, ==, "tap 1/0/1/0+0; a");
}

static void
test_duration(void)
{
    static const struct {
        const char *text;
        gint64 ms;
    } cases[] = {{"1.5 s", 1500},  {"12 ms", 12},   {"2 m", 120000},
                 {"1 h", 3600000}, {"7", 7000},     {"2 more", 2000},
                 {"0.0004 s", 0},  {"0.0005 s", 1}, {"999999999 h", 3599999996400000}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "Test Suites: 0 total\nTests:       0 total\nSnapshots:   0 total\nTime:        %s\n",
            cases[i].text);
        g_autoptr(TestReport) report = read_text(text, strlen(text));

        g_test_message("case %zu", i);
        g_assert_cmpint(report->duration_ms, ==, cases[i].ms);
    }
}

static void
test_streams(void)
{
    g_autoptr(ReportReader) reader = report_reader_new();
    static const char out[] = "running 1 test\n";
    static const char err[] = RULE70 "Ran 3 tests in 0.1s\n\nOK\n";
    static const char end[] = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";

    report_reader_feed(reader, REPORT_STDOUT, out, strlen(out));
    report_reader_feed(reader, REPORT_STDERR, err, strlen(err));
    report_reader_feed(reader, REPORT_STDOUT, end, strlen(end));
    g_autoptr(TestReport) report = report_reader_end(reader);
    g_autofree char *got = describe(report);

    g_assert_cmpstr(got, ==, "cargo test, unittest 4/4/0/0+0");
}

static void
test_gap(void)
{
    g_autoptr(ReportReader) reader = report_reader_new();
    g_autoptr(ReportReader) nothing = report_reader_new();

    report_reader_feed(reader, REPORT_STDOUT, "half of a line ", 15);
    report_reader_gap(reader, REPORT_STDOUT);
    report_reader_feed(reader, REPORT_STDOUT, JEST, strlen(JEST));
    g_autoptr(TestReport) report = report_reader_end(reader);
    g_autofree char *got = describe(report);

    g_assert_cmpstr(got, ==, "jest 2/2/0/0+0!");
    report_reader_gap(nothing, REPORT_STDERR);
    g_assert_null(report_reader_end(nothing));
}

/* Names and runs beyond their bounds; the counts stay right. */
static void
test_many(void)
{
    g_autoptr(GString) tap = g_string_new("TAP version 13\n1..1000\n");
    g_autoptr(GString) go = g_string_new(NULL);
    g_autofree char *long_name = g_strnfill(100000, 'x');

    for (int i = 1; i <= 1000; i++)
        g_string_append_printf(tap, "not ok %d - t%d\n", i, i);
    g_autoptr(TestReport) many = read_text(tap->str, tap->len);
    g_assert_cmpint(many->failed, ==, 1000);
    g_assert_cmpuint(many->failing->len, ==, REPORT_NAMES_MAX);
    g_assert_true(many->names_cut);
    g_assert_false(many->partial);

    for (int i = 0; i < 5000; i++)
        g_string_append_printf(go, "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.org/p%d\t0.01s\n", i);
    g_autoptr(TestReport) packages = read_text(go->str, go->len);
    g_assert_cmpint(packages->failed, ==, 5000);
    g_assert_cmpint(packages->duration_ms, ==, 50000);
    g_assert_false(packages->partial);

    g_string_printf(tap, "TAP version 13\n1..2\nnot ok 1 - é%s\nok 2\n", long_name);
    g_autoptr(TestReport) name = read_text(tap->str, tap->len);
    g_assert_cmpint(name->total, ==, 2);
    g_assert_cmpuint(strlen(name->failing->pdata[0]), ==, REPORT_NAME_MAX);
    g_assert_true(name->names_cut);
}

/* A tag longer than what is kept of it still ends where it ends. */
static void
test_long_tag(void)
{
    g_autofree char *filler = g_strnfill(100000, 'x');
    g_autofree char *text = g_strdup_printf(
        "<testsuite><testcase name='a' x='%s'/><testcase y='%s' name='b'><failure/>"
        "</testcase></testsuite>",
        filler, filler);
    g_autoptr(TestReport) report = read_text(text, strlen(text));
    g_autofree char *got = describe(report);

    g_assert_cmpstr(got, ==, "junit 2/1/1/0+0; (no name)");
}

static void
test_merge(void)
{
    g_autoptr(TestReport) a = read_text(JEST, strlen(JEST));
    g_autoptr(TestReport) b = read_text("ok  \tp\t2s\nFAIL\tq [build failed]\n",
                                        strlen("ok  \tp\t2s\nFAIL\tq [build failed]\n"));
    g_autoptr(TestReport)
        c = read_text("TAP version 13\n1..2\nnot ok 1 - x\n", strlen("TAP version 13\n1..2\nnot ok 1 - x\n"));

    g_assert_cmpint(b->unit, ==, REPORT_PACKAGES);
    report_merge(a, c);
    g_assert_cmpint(a->unit, ==, REPORT_TESTS);
    g_assert_cmpint(a->duration_ms, ==, 1500);
    report_merge(a, b);
    report_merge(a, b);
    g_autofree char *got = describe(a);
    g_autoptr(Json) json = report_to_json(a);
    g_autofree char *text = json_encode(json);

    g_assert_cmpstr(got, ==, "jest, tap, go test 6/4/1/0+2!; x; q [build failed]; q [build failed]");
    g_assert_cmpstr(
        text, ==,
        "{\"runner\":\"jest, tap, go test\",\"unit\":\"mixed\",\"total\":6,\"passed\":4,\"failed\":1,"
        "\"skipped\":0,\"errors\":2,\"failing\":[\"x\",\"q [build failed]\",\"q [build failed]\"],"
        "\"names_cut\":false,\"partial\":true,\"duration_ms\":5500}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/text/ambiguous", test_ambiguous);
    g_test_add_func("/report/text/more", test_more);
    g_test_add_func("/report/text/duration", test_duration);
    g_test_add_func("/report/text/tap", test_tap);
    g_test_add_func("/report/text/xml", test_xml);
    g_test_add_func("/report/text/noisy", test_noisy);
    g_test_add_func("/report/text/nul", test_nul);
    g_test_add_func("/report/text/streams", test_streams);
    g_test_add_func("/report/text/gap", test_gap);
    g_test_add_func("/report/text/many", test_many);
    g_test_add_func("/report/text/long-tag", test_long_tag);
    g_test_add_func("/report/text/merge", test_merge);
    return g_test_run();
}
