/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*  FAIL src/queue.test.js
 *    ● queue › gives back in order
 *  Test Suites: 1 failed, 3 passed, 4 total
 *  Tests:       2 failed, 9 passed, 11 total
 *  Snapshots:   0 total
 *  Time:        0.41 s
 *
 * The four lines of the summary come in a row, without indentation, which console output of a
 * test has. */

typedef enum Stage { STAGE_FILES, STAGE_SUITES, STAGE_TESTS, STAGE_SNAPSHOTS } Stage;

typedef struct Jest {
    Stage stage;
    bool begun;
    guint64 first, last;
    char *file;        /* that failed, and whose tests are named */
    GHashTable *named; /* a long run names its failures again at the end */
    TestReport *run;
} Jest;

static void
clear(void *state)
{
    Jest *jest = state;

    g_clear_pointer(&jest->file, g_free);
    g_clear_pointer(&jest->named, g_hash_table_unref);
    g_clear_pointer(&jest->run, report_free);
    jest->begun = false;
    jest->stage = STAGE_FILES;
}

static void
take_line(Jest *jest, Scan *scan)
{
    jest->last = scan_number(scan);
    if (jest->begun)
        return;
    jest->begun = true;
    jest->first = jest->last;
    jest->run = report_new("jest");
    jest->named = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static bool
is_script(const char *path, size_t n)
{
    static const char *const endings[] = {".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"};

    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        size_t len = strlen(endings[i]);

        if (n > len && memcmp(path + n - len, endings[i], len) == 0)
            return true;
    }
    return false;
}

/* "PASS src/a.test.js (5.1 s)"; in colour the word has a blank on each side. */
static bool
read_file(Jest *jest, Scan *scan, const char *line)
{
    const char *p = line;

    match_text(&p, " ");
    bool failed = match_text(&p, "FAIL ");
    if (!failed && !match_text(&p, "PASS "))
        return false;
    match_text(&p, " ");
    const char *end = strstr(p, " (");
    size_t n = end != NULL ? (size_t)(end - p) : strlen(p);

    if (*p == ' ' || !is_script(p, n))
        return false;
    take_line(jest, scan);
    g_free(jest->file);
    jest->file = failed ? g_strndup(p, n) : NULL;
    return true;
}

static void
read_failure(Jest *jest, Scan *scan, const char *name)
{
    bool broken = strcmp(name, "Test suite failed to run") == 0;
    char *full = broken ? g_strdup(jest->file) : g_strdup_printf("%s › %s", jest->file, name);

    jest->last = scan_number(scan);
    if (g_hash_table_size(jest->named) > SCAN_NAMES_MAX) {
        jest->run->names_cut = true;
        g_free(full);
        return;
    }
    if (!g_hash_table_add(jest->named, full))
        return;
    jest->run->errors += broken;
    report_add_failing(jest->run, full);
}

static bool
read_tests(Jest *jest, const char *p)
{
    TestReport *run = jest->run;
    const MatchCount words[] = {
        {"failed", &run->failed},
        {"passed", &run->passed},
        {"skipped", &run->skipped},
        {"todo", &run->skipped},
        {"pending", &run->skipped},
        {"total", &run->total},
        {NULL, NULL},
    };

    run->total = run->passed = run->failed = run->skipped = 0;
    return match_blanks(&p) && match_counts(&p, ", ", words) && match_end(p) &&
           run->total == run->passed + run->failed + run->skipped;
}

static void
read_summary(Jest *jest, Scan *scan, const char *line)
{
    const char *p = line;

    if (match_text(&p, "Test Suites: ")) {
        take_line(jest, scan);
        jest->stage = STAGE_SUITES;
    } else if (jest->stage == STAGE_SUITES && match_text(&p, "Tests:") && read_tests(jest, p)) {
        jest->stage = STAGE_TESTS;
    } else if (jest->stage == STAGE_TESTS && match_text(&p, "Snapshots: ")) {
        jest->stage = STAGE_SNAPSHOTS;
    } else if (jest->stage == STAGE_SNAPSHOTS && match_text(&p, "Time:") && match_blanks(&p) &&
               match_duration(&p, 1000, &jest->run->duration_ms)) {
        scan_add(scan, SCAN_STRONG, jest->first, scan_number(scan), g_steal_pointer(&jest->run));
        clear(jest);
    } else {
        jest->stage = STAGE_FILES;
    }
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Jest *jest = state;
    const char *p = line;

    if (read_file(jest, scan, line))
        return;
    if (jest->file != NULL && match_text(&p, "  ● ") && strcmp(p, "Console") != 0)
        read_failure(jest, scan, p);
    read_summary(jest, scan, line);
}

static void
end(void *state, Scan *scan)
{
    Jest *jest = state;

    if (!jest->begun)
        return;
    jest->run->total = jest->run->passed = jest->run->failed = jest->run->skipped = 0;
    jest->run->partial = true;
    scan_add(scan, SCAN_STRONG, jest->first, jest->last, g_steal_pointer(&jest->run));
}

const Runner runner_jest = {.size = sizeof(Jest), .line = read_line, .end = end, .clear = clear};
