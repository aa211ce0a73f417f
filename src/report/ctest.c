/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*  Test project /project/build
 *      Start 2: bad
 *  2/9 Test #2: bad ........................***Failed    0.00 sec
 *  50% tests passed, 4 tests failed out of 8
 *  Total Test time (real) =   1.03 sec
 *
 * Tests are counted line by line; the summary has to agree.  It leaves out disabled ones and
 * takes skipped ones for passed. */

typedef struct Ctest {
    bool begun, agreed;
    guint64 first, last;
    gint64 disabled;
    TestReport *run;
} Ctest;

static void
clear(void *state)
{
    Ctest *ctest = state;

    g_clear_pointer(&ctest->run, report_free);
    *ctest = (Ctest){0};
}

static void
finish(Ctest *ctest, Scan *scan)
{
    ctest->run->partial |= !ctest->agreed;
    scan_add(scan, SCAN_STRONG, ctest->first, ctest->last, g_steal_pointer(&ctest->run));
    clear(ctest);
}

/* The name ends where its dots begin: "bad ....***Failed", "good ....   Passed". */
static char *
dup_name(const char *p, const char **ret_verdict)
{
    const char *verdict = strstr(p, ".***");
    const char *end = verdict;

    if (end == NULL)
        end = verdict = strstr(p, ".   ");
    if (end == NULL)
        return NULL;
    *ret_verdict = verdict + strlen(".");
    while (end > p && end[-1] == '.')
        end--;
    return g_strchomp(g_strndup(p, (size_t)(end - p)));
}

static void
count(Ctest *ctest, const char *name, const char *verdict)
{
    const char *p = verdict;
    TestReport *run = ctest->run;

    run->total++;
    if (match_text(&p, "   Passed ")) {
        run->passed++;
    } else if (match_text(&p, "***Skipped")) {
        run->skipped++;
    } else if (match_text(&p, "***Not Run (Disabled)")) {
        run->skipped++;
        ctest->disabled++;
    } else {
        run->failed++;
        report_add_failing(run, name);
    }
}

/* " 2/9 Test #2: bad ....***Failed    0.00 sec" */
static bool
read_test(Ctest *ctest, Scan *scan, const char *line)
{
    const char *p = line;
    const char *verdict;
    gint64 n;

    match_blanks(&p);
    if (!match_number(&p, &n) || !match_text(&p, "/") || !match_number(&p, &n) || !match_text(&p, " Test "))
        return false;
    match_blanks(&p);
    if (!match_text(&p, "#") || !match_number(&p, &n) || !match_text(&p, ": "))
        return false;
    g_autofree char *name = dup_name(p, &verdict);

    if (name == NULL || !g_str_has_suffix(line, " sec"))
        return false;
    count(ctest, name, verdict);
    ctest->last = scan_number(scan);
    return true;
}

/* "50% tests passed, 4 tests failed out of 8" */
static bool
read_summary(Ctest *ctest, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;
    gint64 failed;

    if (!match_number(&p, &n) || !match_text(&p, "% tests passed, ") || !match_number(&p, &failed) ||
        !(match_text(&p, " tests failed out of ") || match_text(&p, " test failed out of ")) ||
        !match_number(&p, &n) || !match_end(p))
        return false;
    if (failed == ctest->run->failed && n == ctest->run->total - ctest->disabled) {
        ctest->agreed = true;
        ctest->last = scan_number(scan);
    }
    return true;
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Ctest *ctest = state;
    const char *p = line;

    if (match_text(&p, "Test project /")) {
        if (ctest->begun)
            finish(ctest, scan);
        ctest->begun = true;
        ctest->first = ctest->last = scan_number(scan);
        ctest->run = report_new("ctest");
        return;
    }
    if (!ctest->begun || read_test(ctest, scan, line) || read_summary(ctest, scan, line))
        return;
    if (strcmp(line, "No tests were found!!!") == 0)
        ctest->agreed = true;
    if (!match_text(&p, "Total Test time (real) =") || !ctest->agreed)
        return;
    match_blanks(&p);
    match_duration(&p, 1000, &ctest->run->duration_ms);
    ctest->last = scan_number(scan);
    finish(ctest, scan);
}

static void
end(void *state, Scan *scan)
{
    Ctest *ctest = state;

    if (ctest->begun)
        finish(ctest, scan);
}

const Runner runner_ctest = {.size = sizeof(Ctest), .line = read_line, .end = end, .clear = clear};
