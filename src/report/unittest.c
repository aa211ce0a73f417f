/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*  test_a (test_shop.Shop.test_a) ... ok                     (with -v)
 *  ======================================================================
 *  FAIL: test_b (test_shop.Shop.test_b) (i=1)
 *  ----------------------------------------------------------------------
 *  Traceback ...
 *  ----------------------------------------------------------------------
 *  Ran 8 tests in 0.001s
 *
 *  FAILED (failures=3, errors=1, skipped=1)
 *
 * "failures" counts each subtest that failed, "Ran" does not: so the tests that failed are
 * counted by their names. */

enum { RULE = 70 };

typedef enum Stage { STAGE_TESTS, STAGE_RAN, STAGE_BLANK } Stage;

typedef struct Unittest {
    Stage stage;
    bool begun, after_double, after_rule, after_title;
    guint64 first, last;
    gint64 headings;
    GHashTable *failing; /* each test once */
    gint64 ran, duration_ms;
    TestReport *run;
    TestReport *seen; /* with -v */
} Unittest;

static void
clear(void *state)
{
    Unittest *unittest = state;

    g_clear_pointer(&unittest->failing, g_hash_table_unref);
    g_clear_pointer(&unittest->run, report_free);
    g_clear_pointer(&unittest->seen, report_free);
    *unittest = (Unittest){0};
}

static void
take_line(Unittest *unittest, Scan *scan)
{
    unittest->last = scan_number(scan);
    if (unittest->begun)
        return;
    unittest->begun = true;
    unittest->first = unittest->last;
    unittest->failing = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    unittest->run = report_new("unittest");
    unittest->seen = report_new("unittest");
}

static bool
is_rule(const char *line, char sign)
{
    size_t n = 0;

    while (line[n] == sign)
        n++;
    return n == RULE && line[n] == '\0';
}

static bool
is_fixture(const char *name)
{
    static const char *const fixtures[] = {"setUpClass (", "tearDownClass (", "setUpModule (",
                                           "tearDownModule ("};

    for (size_t i = 0; i < G_N_ELEMENTS(fixtures); i++) {
        if (g_str_has_prefix(name, fixtures[i]))
            return true;
    }
    return false;
}

/* "test_b (test_shop.Shop.test_b) (i=1)": what is behind the first brackets is the subtest. */
static void
read_heading(Unittest *unittest, const char *line)
{
    const char *p = line;
    bool unexpected = match_text(&p, "UNEXPECTED SUCCESS: ");

    if (!unexpected && !match_text(&p, "FAIL: ") && !match_text(&p, "ERROR: "))
        return;
    const char *close = strchr(p, ')');
    g_autofree char *name = g_strndup(p, close != NULL ? (size_t)(close - p) + 1 : strlen(p));

    unittest->headings += !unexpected;
    if (g_hash_table_contains(unittest->failing, name) ||
        g_hash_table_size(unittest->failing) == SCAN_NAMES_MAX * 4)
        return;
    report_add_failing(unittest->run, name);
    if (is_fixture(name))
        unittest->run->errors++;
    else if (!unexpected)
        g_hash_table_add(unittest->failing, g_steal_pointer(&name));
}

/* "test_a (test_shop.Shop.test_a)" */
static bool
match_title(const char **p)
{
    const char *at = *p;
    size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

    at += n;
    if (n == 0 || !match_text(&at, " ("))
        return false;
    n = strcspn(at, " ()");
    if (n == 0 || at[n] != ')' || memchr(at, '.', n) == NULL)
        return false;
    *p = at + n + 1;
    return true;
}

static void
see(TestReport *seen, const char *verdict)
{
    if (strcmp(verdict, "ok") == 0)
        seen->passed++;
    else if (strcmp(verdict, "FAIL") == 0 || strcmp(verdict, "ERROR") == 0 ||
             strcmp(verdict, "unexpected success") == 0)
        seen->failed++;
    else if (g_str_has_prefix(verdict, "skipped ") || strcmp(verdict, "expected failure") == 0)
        seen->skipped++;
    else
        return;
    seen->total++;
}

/* "test_a (test_shop.Shop.test_a) ... ok", or with the first line of its text in between. */
static void
read_verbose(Unittest *unittest, Scan *scan, const char *line)
{
    const char *p = line;
    bool title = match_title(&p);
    const char *dots = strstr(p, " ...");

    if (title || unittest->after_title) {
        if (dots != NULL) {
            take_line(unittest, scan);
            p = dots;
            if (match_text(&p, " ... "))
                see(unittest->seen, p);
        }
    }
    unittest->after_title = title && match_end(p);
}

static void
finish(Unittest *unittest, Scan *scan, gint64 failures, gint64 unexpected, gint64 skipped)
{
    TestReport *run = g_steal_pointer(&unittest->run);
    bool all_named = unittest->headings == failures;

    run->failed = (all_named ? (gint64)g_hash_table_size(unittest->failing) : failures) + unexpected;
    run->skipped = skipped;
    run->total = MAX(unittest->ran, run->failed + run->skipped);
    run->passed = run->total - run->failed - run->skipped;
    run->duration_ms = unittest->duration_ms;
    run->partial = !all_named;
    scan_add(scan, SCAN_STRONG, unittest->first, scan_number(scan), run);
    clear(unittest);
}

/* "OK", "FAILED (failures=3, skipped=1)" */
static bool
read_verdict(Unittest *unittest, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 failures = 0;
    gint64 unexpected = 0;
    gint64 skipped = 0;
    const struct {
        const char *word;
        gint64 *to;
    } words[] = {{"failures=", &failures},
                 {"errors=", &failures},
                 {"skipped=", &skipped},
                 {"expected failures=", &skipped},
                 {"unexpected successes=", &unexpected}};
    gint64 n;

    if (!match_text(&p, "OK") && !match_text(&p, "FAILED") && !match_text(&p, "NO TESTS RAN"))
        return false;
    if (match_text(&p, " (")) {
        do {
            size_t i = 0;

            while (i < G_N_ELEMENTS(words) && !match_text(&p, words[i].word))
                i++;
            if (i == G_N_ELEMENTS(words) || !match_number(&p, &n))
                return false;
            *words[i].to += n;
        } while (match_text(&p, ", "));
        if (!match_text(&p, ")"))
            return false;
    }
    if (!match_end(p))
        return false;
    finish(unittest, scan, failures, unexpected, skipped);
    return true;
}

/* "Ran 8 tests in 0.001s" */
static bool
read_ran(Unittest *unittest, const char *line)
{
    const char *p = line;

    return match_text(&p, "Ran ") && match_number(&p, &unittest->ran) &&
           (match_text(&p, " tests in ") || match_text(&p, " test in ")) &&
           match_duration(&p, 1000, &unittest->duration_ms) && match_end(p);
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Unittest *unittest = state;
    bool after_double = unittest->after_double;
    bool after_rule = unittest->after_rule;

    unittest->after_double = is_rule(line, '=');
    unittest->after_rule = is_rule(line, '-');
    if (unittest->after_double || unittest->after_rule) {
        take_line(unittest, scan);
    } else if (after_double) {
        read_heading(unittest, line);
        unittest->after_double = g_str_has_prefix(line, "UNEXPECTED SUCCESS: "); /* of a list */
    } else if (after_rule && read_ran(unittest, line)) {
        unittest->stage = STAGE_RAN;
        return;
    } else if (unittest->stage == STAGE_RAN && line[0] == '\0') {
        unittest->stage = STAGE_BLANK;
        return;
    } else if (unittest->stage == STAGE_BLANK && read_verdict(unittest, scan, line)) {
        return;
    } else {
        read_verbose(unittest, scan, line);
    }
    unittest->stage = STAGE_TESTS;
}

/* Without -v nothing tells a run that was cut from any other text. */
static void
end(void *state, Scan *scan)
{
    Unittest *unittest = state;

    if (!unittest->begun || unittest->seen->total == 0)
        return;
    unittest->seen->partial = true;
    scan_add(scan, SCAN_STRONG, unittest->first, unittest->last, g_steal_pointer(&unittest->seen));
}

const Runner runner_unittest = {.size = sizeof(Unittest), .line = read_line, .end = end, .clear = clear};
