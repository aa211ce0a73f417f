/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*   RUN  v3.1.1 /project
 *   ❯ src/queue.test.js (3 tests | 2 failed) 6ms
 *   FAIL  src/queue.test.js > queue > gives back in order     (on standard error)
 *   Test Files  1 failed | 3 passed (4)
 *        Tests  2 failed | 9 passed (11)
 *     Start at  13:59:35
 *     Duration  1.27s (transform 24ms, ...)
 */

typedef struct Vitest {
    bool begun, files_told, tests_told;
    guint64 first, last;
    TestReport *run;   /* the summary */
    TestReport *seen;  /* file by file, for a run that has no summary */
    TestReport *names; /* before, or without, a run on this stream */
} Vitest;

static void
clear(void *state)
{
    Vitest *vitest = state;

    g_clear_pointer(&vitest->run, report_free);
    g_clear_pointer(&vitest->seen, report_free);
    g_clear_pointer(&vitest->names, report_free);
    vitest->begun = vitest->files_told = vitest->tests_told = false;
}

static void
begin(Vitest *vitest, Scan *scan)
{
    vitest->begun = true;
    vitest->first = vitest->last = scan_number(scan);
    vitest->run = report_new("vitest");
    vitest->seen = report_new("vitest");
}

static void
finish(Vitest *vitest, Scan *scan, bool complete)
{
    if (!complete) {
        TestReport *seen = g_steal_pointer(&vitest->seen);

        seen->partial = true;
        for (guint i = 0; i < vitest->run->failing->len; i++)
            report_add_failing(seen, vitest->run->failing->pdata[i]);
        seen->errors = vitest->run->errors;
        report_free(vitest->run);
        vitest->run = seen;
    }
    scan_add(scan, SCAN_STRONG, vitest->first, vitest->last, g_steal_pointer(&vitest->run));
    g_clear_pointer(&vitest->seen, report_free);
    vitest->begun = vitest->files_told = vitest->tests_told = false;
}

/* "3 failed | 9 passed (12)" */
static bool
read_counts(TestReport *run, const char *p)
{
    const MatchCount words[] = {
        {"failed", &run->failed}, {"passed", &run->passed},         {"skipped", &run->skipped},
        {"todo", &run->skipped},  {"expected fail", &run->skipped}, {NULL, NULL},
    };

    run->total = run->passed = run->failed = run->skipped = 0;
    if (match_text(&p, "no tests"))
        return match_end(p);
    if (!match_counts(&p, " | ", words) || !match_text(&p, " (") || !match_number(&p, &run->total) ||
        !match_text(&p, ")") || !match_end(p))
        return false;
    gint64 told = run->passed + run->failed + run->skipped;

    run->partial |= told < run->total; /* a worker died */
    return told <= run->total;
}

/* "bad/queue.test.js (3 tests | 2 failed) 6ms" */
static void
read_file(Vitest *vitest, Scan *scan, const char *p)
{
    const char *at = strstr(p, " (");
    gint64 n;
    gint64 failed = 0;
    gint64 skipped = 0;
    const MatchCount words[] = {{"failed", &failed}, {"skipped", &skipped}, {NULL, NULL}};

    if (at == NULL)
        return;
    at += strlen(" (");
    if (!match_number(&at, &n) || !match_text(&at, " test"))
        return;
    match_text(&at, "s");
    if (match_text(&at, " | ") && !match_counts(&at, " | ", words))
        return;
    if (!match_text(&at, ")") || failed + skipped > n)
        return;
    vitest->last = scan_number(scan);
    vitest->seen->total += n;
    vitest->seen->failed += failed;
    vitest->seen->skipped += skipped;
    vitest->seen->passed += n - failed - skipped;
}

/* "file > suite > test", or "file [ file ]" for one that did not load. */
static void
read_failure(Vitest *vitest, Scan *scan, const char *p)
{
    const char *broken = g_str_has_suffix(p, " ]") ? strstr(p, " [ ") : NULL;

    if (*p == ' ' || (broken == NULL && strstr(p, " > ") == NULL))
        return;
    if (!vitest->begun && vitest->names == NULL)
        vitest->names = report_new("vitest");
    TestReport *to = vitest->begun ? vitest->run : vitest->names;
    g_autofree char *name = broken != NULL ? g_strndup(p, (size_t)(broken - p)) : g_strdup(p);

    vitest->last = scan_number(scan);
    to->errors += broken != NULL;
    report_add_failing(to, name);
}

static void
read_summary(Vitest *vitest, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;

    if (match_text(&p, " Test Files  ")) {
        vitest->files_told = true;
    } else if (vitest->files_told && match_text(&p, "      Tests  ")) {
        vitest->tests_told = read_counts(vitest->run, p);
    } else if (vitest->tests_told && match_text(&p, "     Errors  ") && match_number(&p, &n)) {
        vitest->run->errors += n;
    } else if (vitest->tests_told && match_text(&p, "   Duration  ") &&
               match_duration(&p, 1000, &vitest->run->duration_ms)) {
        vitest->last = scan_number(scan);
        finish(vitest, scan, true);
    } else if (match_text(&p, "No test files found")) {
        finish(vitest, scan, true);
    }
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Vitest *vitest = state;
    const char *p = line;

    if (match_text(&p, " RUN  v") && g_ascii_isdigit(*p)) {
        if (vitest->begun)
            finish(vitest, scan, false);
        begin(vitest, scan);
    } else if (match_text(&p, " FAIL  ")) {
        read_failure(vitest, scan, p);
    } else if (vitest->begun && (match_text(&p, " ✓ ") || match_text(&p, " ❯ ") || match_text(&p, " × ") ||
                                 match_text(&p, " ↓ "))) {
        read_file(vitest, scan, p);
    } else if (vitest->begun) {
        read_summary(vitest, scan, line);
    }
}

static void
end(void *state, Scan *scan)
{
    Vitest *vitest = state;

    if (vitest->begun)
        finish(vitest, scan, false);
    if (vitest->names != NULL)
        scan_add(scan, SCAN_NAMES, vitest->last, vitest->last, g_steal_pointer(&vitest->names));
}

const Runner runner_vitest = {.size = sizeof(Vitest), .line = read_line, .end = end, .clear = clear};
