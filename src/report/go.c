/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*  === RUN   TestTree/leaf                 (with -v)
 *      --- FAIL: TestTree/leaf (0.00s)
 *  FAIL
 *  FAIL    example.org/shop    0.003s
 *  ok      example.org/till    (cached)
 *
 * The line of a package ends its run.  Without -v the tests that passed have no line, so
 * packages are counted; with it, a verdict counts if its test was seen to begin. */

enum { RUNNING_MAX = 16 * 1024 };

typedef struct Go {
    bool begun;
    bool verbose;
    bool summed;  /* the test program told its end: PASS or FAIL on a line of its own */
    bool crashed; /* a panic was printed */
    guint64 first, last;
    GHashTable *running;
    TestReport *run; /* the tests of a package */
} Go;

static void
clear(void *state)
{
    Go *go = state;

    g_clear_pointer(&go->running, g_hash_table_unref);
    g_clear_pointer(&go->run, report_free);
    *go = (Go){0};
}

static void
take_line(Go *go, Scan *scan)
{
    go->last = scan_number(scan);
    if (go->begun)
        return;
    go->begun = true;
    go->first = go->last;
    go->running = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    go->run = report_new("go test");
}

static void
read_begin(Go *go, Scan *scan, const char *name)
{
    take_line(go, scan);
    go->verbose = true;
    if (g_hash_table_size(go->running) < RUNNING_MAX)
        g_hash_table_add(go->running, g_strdup(name));
    else
        go->run->partial = true;
}

/* "--- FAIL: TestTree/leaf (0.00s)", also behind output that did not end its line. */
static bool
read_verdict(Go *go, Scan *scan, const char *line)
{
    const char *p = strstr(line, "--- ") != NULL ? g_strrstr(line, "--- ") : NULL;
    gint64 ms;
    gint64 *to = NULL;

    if (p == NULL)
        return false;
    p += strlen("--- ");
    bool failed = match_text(&p, "FAIL: ");
    bool passed = !failed && match_text(&p, "PASS: ");
    if (!failed && !passed && !match_text(&p, "SKIP: "))
        return false;
    const char *end = g_strrstr(p, " (");
    if (end == NULL)
        return false;
    g_autofree char *name = g_strndup(p, (size_t)(end - p));

    p = end + strlen(" (");
    if (!match_duration(&p, 1000, &ms) || !match_text(&p, ")") || !match_end(p))
        return false;
    take_line(go, scan);
    if (go->verbose && !g_hash_table_remove(go->running, name))
        return true;
    to = failed ? &go->run->failed : passed ? &go->run->passed : &go->run->skipped;
    (*to)++;
    if (failed)
        report_add_failing(go->run, name);
    return true;
}

/* The package's name goes before those of its tests. */
static TestReport *
new_report(const Go *go, const char *package)
{
    TestReport *run = report_new("go test");

    for (guint i = 0; i < go->run->failing->len; i++) {
        g_autofree char *name = g_strconcat(package, ".", (char *)go->run->failing->pdata[i], NULL);

        report_add_failing(run, name);
    }
    run->names_cut |= go->run->names_cut;
    return run;
}

static void
count_tests(const Go *go, TestReport *run, const char *package, bool failed)
{
    gint64 running = g_hash_table_size(go->running);

    run->passed = go->run->passed;
    run->failed = go->run->failed;
    run->skipped = go->run->skipped;
    run->total = run->passed + run->failed + run->skipped + running;
    run->partial = go->run->partial || running > 0 || (failed && (go->crashed || !go->summed));
    if (failed && run->failed == 0) {
        run->errors = 1;
        report_add_failing(run, package);
    }
}

static void
count_package(TestReport *run, const char *package, bool failed)
{
    run->unit = REPORT_PACKAGES;
    run->total = 1;
    run->passed = !failed;
    run->failed = failed;
    if (failed && run->failing->len == 0)
        report_add_failing(run, package);
}

/* "ok  \tPACKAGE\t0.003s", "ok  \tPACKAGE\t(cached)", "FAIL\tPACKAGE [build failed]" */
static bool
read_package(Go *go, Scan *scan, const char *line)
{
    const char *p = line;
    bool failed = match_text(&p, "FAIL\t");
    gint64 ms = -1;

    if (!failed && !match_text(&p, "ok  \t"))
        return false;
    size_t n = strcspn(p, "\t ");
    const char *rest = p + n;
    bool unbuilt = failed && g_str_has_prefix(rest, " [") && g_str_has_suffix(rest, " failed]");
    bool timed = match_text(&rest, "\t") &&
                 (match_duration(&rest, 1000, &ms) || match_text(&rest, "(cached)"));

    if (n == 0 || !(unbuilt || timed))
        return false;
    take_line(go, scan);
    g_autofree char *package = g_strndup(p, n);
    TestReport *run = new_report(go, package);

    if (unbuilt) {
        g_autofree char *name = g_strdup(p);

        run->errors = 1;
        report_add_failing(run, name);
    } else if (go->verbose) {
        count_tests(go, run, package, failed);
    } else if (strstr(rest, "[no tests to run]") == NULL) {
        count_package(run, package, failed);
    }
    run->duration_ms = ms;
    scan_add(scan, SCAN_STRONG, go->first, scan_number(scan), run);
    clear(go);
    return true;
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Go *go = state;
    const char *p = line;

    if (match_text(&p, "=== RUN   "))
        read_begin(go, scan, p);
    else if (read_verdict(go, scan, line) || read_package(go, scan, line))
        return;
    else if (strcmp(line, "FAIL") == 0 || strcmp(line, "PASS") == 0)
        go->summed = true;
    else if (match_text(&p, "panic: ") || match_text(&p, "fatal error: "))
        go->crashed = true;
}

/* A test program that was started without the go command has no line of its package. */
static void
end(void *state, Scan *scan)
{
    Go *go = state;

    if (!go->begun || !go->verbose)
        return;
    TestReport *run = g_steal_pointer(&go->run);
    gint64 running = g_hash_table_size(go->running);

    run->total = run->passed + run->failed + run->skipped + running;
    run->partial |= running > 0 || !go->summed;
    scan_add(scan, SCAN_STRONG, go->first, go->last, run);
}

const Runner runner_go = {.size = sizeof(Go), .line = read_line, .end = end, .clear = clear};
