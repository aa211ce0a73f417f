/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*  running 4 tests
 *  test tests::bad ... FAILED
 *  failures:
 *      tests::bad
 *  test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
 *
 * for each test program.  A result counts if it tells of as many tests as were promised.  A
 * promise while another is open was printed by a test, or the program before it died; the
 * verdicts that follow show which. */

enum { PROMISES_MAX = 4 };

typedef struct Promise {
    gint64 tests;
    guint64 first, last;
    TestReport *seen; /* verdicts since then */
} Promise;

typedef struct Cargo {
    Promise promises[PROMISES_MAX];
    guint depth;
    bool in_names;
    TestReport *names; /* of the last list of failures */
} Cargo;

static void
clear(void *state)
{
    Cargo *cargo = state;

    for (guint i = 0; i < PROMISES_MAX; i++)
        g_clear_pointer(&cargo->promises[i].seen, report_free);
    g_clear_pointer(&cargo->names, report_free);
    *cargo = (Cargo){0};
}

static gint64
told(const TestReport *run)
{
    return run->passed + run->failed + run->skipped;
}

/* The innermost program will not end. */
static void
give_up(Cargo *cargo, Scan *scan)
{
    Promise *promise = &cargo->promises[--cargo->depth];
    TestReport *seen = g_steal_pointer(&promise->seen);
    bool strong = told(seen) > 0;

    seen->total = MAX(promise->tests, told(seen));
    seen->partial = true;
    scan_add(scan, strong ? SCAN_STRONG : SCAN_WEAK, promise->first, promise->last, seen);
}

/* "running 4 tests" */
static bool
read_begin(Cargo *cargo, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;

    if (!match_text(&p, "running ") || !match_number(&p, &n) || !match_text(&p, " test"))
        return false;
    match_text(&p, "s");
    if (!match_end(p))
        return false;
    if (cargo->depth == PROMISES_MAX)
        give_up(cargo, scan);
    cargo->promises[cargo->depth++] = (Promise){
        .tests = n, .first = scan_number(scan), .last = scan_number(scan), .seen = report_new("cargo test")};
    return true;
}

static void
see(Cargo *cargo, Scan *scan, const char *verdict, const char *name)
{
    for (guint i = 0; i < cargo->depth; i++) {
        TestReport *seen = cargo->promises[i].seen;

        if (verdict[0] == 'o')
            seen->passed++;
        else if (verdict[0] == 'i')
            seen->skipped++;
        else
            seen->failed++;
        if (verdict[0] == 'F')
            report_add_failing(seen, name);
        cargo->promises[i].last = scan_number(scan);
    }
}

/* "test NAME ... ok" */
static bool
read_verdict(Cargo *cargo, Scan *scan, const char *line)
{
    const char *p = line;
    const char *dots = g_strrstr(line, " ... ");

    if (!match_text(&p, "test ") || dots == NULL || dots < p)
        return false;
    g_autofree char *name = g_strndup(p, (size_t)(dots - p));

    p = dots + strlen(" ... ");
    if (strcmp(p, "ok") != 0 && strcmp(p, "FAILED") != 0 && strncmp(p, "ignored", strlen("ignored")) != 0)
        return false;
    see(cargo, scan, p, name);
    return true;
}

/* The promise that a result of `n` tests keeps; NULL: it is no result. */
static const Promise *
find_promise(const Cargo *cargo, gint64 n)
{
    const Promise *found = NULL;

    for (guint i = 0; i < cargo->depth; i++) {
        const Promise *promise = &cargo->promises[i];

        if (promise->tests == n && told(promise->seen) == n)
            return promise;
        if (promise->tests == n)
            found = promise;
    }
    return found;
}

static void
finish(Cargo *cargo, Scan *scan, TestReport *run, const Promise *promise)
{
    for (guint i = 0; cargo->names != NULL && i < cargo->names->failing->len; i++)
        report_add_failing(run, cargo->names->failing->pdata[i]);
    run->names_cut |= cargo->names != NULL && cargo->names->names_cut;
    /* Programs before it that died; inside its lines they would be its noise. */
    for (guint i = 0; &cargo->promises[i] != promise; i++) {
        Promise *dead = &cargo->promises[i];

        dead->last = dead->first;
        dead->seen->partial = true;
        dead->seen->passed = dead->seen->failed = dead->seen->skipped = 0;
        dead->seen->total = dead->tests;
        scan_add(scan, SCAN_STRONG, dead->first, dead->last, g_steal_pointer(&dead->seen));
    }
    scan_add(scan, SCAN_STRONG, promise->first, scan_number(scan), run);
    clear(cargo);
}

/* "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s" */
static bool
read_result(Cargo *cargo, Scan *scan, const char *line)
{
    const char *p = line;

    if (!match_text(&p, "test result: ") || (!match_text(&p, "ok. ") && !match_text(&p, "FAILED. ")))
        return false;
    g_autoptr(TestReport) run = report_new("cargo test");
    const MatchCount words[] = {
        {"passed", &run->passed},   {"failed", &run->failed}, {"ignored", &run->skipped},
        {"measured", &run->passed}, {"filtered out", NULL},   {NULL, NULL},
    };

    if (!match_counts(&p, "; ", words) && !match_text(&p, "finished in "))
        return false;
    match_duration(&p, 1000, &run->duration_ms);
    run->total = told(run);
    const Promise *promise = match_end(p) ? find_promise(cargo, run->total) : NULL;

    if (promise == NULL)
        return false;
    finish(cargo, scan, g_steal_pointer(&run), promise);
    return true;
}

/* The list under the last "failures:". */
static void
read_names(Cargo *cargo, const char *line)
{
    const char *p = line;

    if (strcmp(line, "failures:") == 0) {
        g_clear_pointer(&cargo->names, report_free);
        cargo->names = report_new("cargo test");
        cargo->in_names = true;
    } else if (cargo->in_names && match_text(&p, "    ") && *p != ' ') {
        report_add_failing(cargo->names, p);
    } else {
        cargo->in_names = false;
    }
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Cargo *cargo = state;

    if (read_begin(cargo, scan, line) || cargo->depth == 0)
        return;
    if (!read_verdict(cargo, scan, line) && !read_result(cargo, scan, line))
        read_names(cargo, line);
}

static void
end(void *state, Scan *scan)
{
    Cargo *cargo = state;

    while (cargo->depth > 0)
        give_up(cargo, scan);
}

const Runner runner_cargo = {.size = sizeof(Cargo), .line = read_line, .end = end, .clear = clear};
