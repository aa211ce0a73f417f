/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*  ===== test session starts =====
 *  platform linux -- Python 3.11.7, pytest-8.3.4
 *  tests/test_a.py ..F.                                [100%]
 *  ===== short test summary info =====
 *  FAILED tests/test_a.py::test_b - assert 1 == 2
 *  ===== 1 failed, 3 passed in 0.04s =====
 *
 * With -q there is neither the first banner nor the decoration of the last line.  A test may
 * print such lines, or all of a session, and pytest shows them again under the test's failure:
 * so a session ends with the last of such lines that fits, not with the first. */

enum { SESSIONS_MAX = 8 };

/* What the progress of one showed; the first stands for those without a banner. */
typedef struct Session {
    guint64 first, last;
    TestReport *seen;
} Session;

typedef struct Pytest {
    guint64 banner; /* line behind one that may begin a session; 0: none */
    Session sessions[1 + SESSIONS_MAX];
    guint depth; /* sessions inside another are printed by its tests */

    bool quiet; /* lines of a session with -q were seen */
    bool in_names;
    bool interrupted;
    TestReport *names; /* of the short summary */

    bool ended; /* a session that was seen had its last line, or one that looks like it */
    bool decorated;
    bool confirmed; /* the progress showed as many tests */
    guint64 ended_first;
    gint64 ended_seen;
} Pytest;

static void
clear(void *state)
{
    Pytest *pytest = state;

    g_clear_pointer(&pytest->names, report_free);
    for (guint i = 0; i <= SESSIONS_MAX; i++)
        g_clear_pointer(&pytest->sessions[i].seen, report_free);
}

static Session *
current(Pytest *pytest)
{
    return &pytest->sessions[pytest->depth];
}

static void
begin(Pytest *pytest, guint64 first)
{
    Session *session = current(pytest);

    g_clear_pointer(&session->seen, report_free);
    session->seen = report_new("pytest");
    session->first = session->last = first;
    g_clear_pointer(&pytest->names, report_free);
    pytest->names = report_new("pytest");
    pytest->in_names = pytest->interrupted = pytest->quiet = false;
}

static void
see_quiet(Pytest *pytest, Scan *scan)
{
    if (pytest->depth > 0 || pytest->quiet)
        return;
    pytest->quiet = true;
    pytest->sessions[0].first = scan_number(scan);
}

/* "1 failed, 3 passed, 2 warnings in 0.04s", "no tests ran in 0.01s" */
static TestReport *
read_counts(const char *p, gint64 *ret_errors)
{
    g_autoptr(TestReport) run = report_new("pytest");
    const MatchCount words[] = {
        {"passed", &run->passed},
        {"failed", &run->failed},
        {"errors", ret_errors},
        {"error", ret_errors},
        {"skipped", &run->skipped},
        {"xfailed", &run->skipped},
        {"xpassed", &run->passed},
        {"deselected", NULL},
        {"warnings", NULL},
        {"warning", NULL},
        {"rerun", NULL},
        {"subtests passed", NULL},
        {"subtests failed", NULL},
        {"subtests skipped", NULL},
        {NULL, NULL},
    };

    *ret_errors = 0;
    if (!match_text(&p, "no tests ran") && !match_counts(&p, ", ", words))
        return NULL;
    if (!match_text(&p, " in ") || !match_duration(&p, 1000, &run->duration_ms) ||
        (!match_end(p) && !match_text(&p, " (")))
        return NULL;
    run->failed += *ret_errors;
    run->total = run->passed + run->failed + run->skipped;
    return g_steal_pointer(&run);
}

/* Where the session began that has its last line here; false: nothing speaks for one. */
static bool
find_begin(Pytest *pytest, bool decorated, guint64 *ret_first)
{
    bool evidence = decorated ? pytest->depth > 0 : pytest->quiet;
    bool again = pytest->ended && pytest->decorated == decorated;

    if (evidence)
        *ret_first = current(pytest)->first;
    /* Another last line without progress before it: one of the two was printed by a test. */
    if (again && pytest->depth == 0 && pytest->ended_seen == pytest->sessions[0].seen->total &&
        (!pytest->confirmed || !evidence)) {
        *ret_first = pytest->ended_first;
        return !pytest->confirmed;
    }
    return evidence;
}

static void
finish(Pytest *pytest, Scan *scan, const char *text, bool decorated)
{
    gint64 errors;
    g_autoptr(TestReport) run = g_ascii_isdigit(*text) || *text == 'n' ? read_counts(text, &errors) : NULL;

    if (run == NULL)
        return;
    const TestReport *seen = current(pytest)->seen;
    /* Files that failed to load are not in the progress. */
    bool confirmed = seen->passed == run->passed && seen->skipped == run->skipped &&
                     seen->failed <= run->failed && seen->failed >= run->failed - errors;
    guint64 first = scan_number(scan);
    bool found = find_begin(pytest, decorated, &first);

    if (!found && first != scan_number(scan))
        return;
    for (guint i = 0; i < pytest->names->failing->len; i++)
        report_add_failing(run, pytest->names->failing->pdata[i]);
    run->names_cut |= pytest->names->names_cut;
    run->partial = pytest->interrupted;
    scan_add(scan, found && (decorated || confirmed) ? SCAN_STRONG : SCAN_WEAK, first, scan_number(scan),
             g_steal_pointer(&run));
    if (decorated && pytest->depth > 0)
        pytest->depth--;
    pytest->quiet = pytest->in_names = false;
    if (pytest->depth == 0 && confirmed)
        begin(pytest, scan_number(scan));
    pytest->ended = found;
    pytest->decorated = decorated;
    pytest->confirmed = confirmed;
    pytest->ended_first = first;
    pytest->ended_seen = current(pytest)->seen->total;
}

static void
read_banner(Pytest *pytest, Scan *scan, const char *text)
{
    if (strcmp(text, "test session starts") == 0) {
        pytest->banner = scan_number(scan) + 1;
    } else if (strcmp(text, "short test summary info") == 0) {
        see_quiet(pytest, scan);
        g_clear_pointer(&pytest->names, report_free);
        pytest->names = report_new("pytest");
        pytest->in_names = true;
    } else if (strcmp(text, "ERRORS") == 0 || strcmp(text, "FAILURES") == 0) {
        see_quiet(pytest, scan);
    } else {
        finish(pytest, scan, text, true);
    }
}

static void
begin_session(Pytest *pytest)
{
    if (pytest->depth < SESSIONS_MAX)
        pytest->depth++;
    begin(pytest, pytest->banner - 1);
    pytest->ended = false;
}

/* "FAILED a.py::test_b[x - y] - assert 1 == 2": the name ends behind its parameters. */
static void
read_name(Pytest *pytest, const char *line)
{
    const char *p = line;

    if (!match_text(&p, "FAILED ") && !match_text(&p, "ERROR "))
        return;
    const char *end = strstr(p, " - ");
    const char *bracket = strchr(p, '[');
    if (bracket != NULL && end != NULL && bracket < end) {
        const char *close = strstr(bracket, "] - ");

        end = close != NULL ? close + 1 : g_str_has_suffix(p, "]") ? NULL : end;
    }
    g_autofree char *name = g_strndup(p, end != NULL ? (size_t)(end - p) : strlen(p));

    report_add_failing(pytest->names, name);
}

static void
see(TestReport *seen, gint64 *which)
{
    seen->total++;
    (*which)++;
}

/* "..F.sxXE" */
static bool
read_marks(TestReport *seen, const char *p, size_t n)
{
    if (n == 0 || strspn(p, ".FEsxXR") != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '.' || p[i] == 'X')
            see(seen, &seen->passed);
        else if (p[i] == 'F' || p[i] == 'E')
            see(seen, &seen->failed);
        else if (p[i] != 'R')
            see(seen, &seen->skipped);
    }
    return true;
}

/* "a.py::test_b PASSED   [ 10%]", "[gw0] [ 10%] PASSED a.py::test_b" */
static bool
read_verdict(TestReport *seen, const char *line)
{
    const struct {
        const char *word;
        gint64 *to;
    } words[] = {
        {" PASSED", &seen->passed}, {" XPASS", &seen->passed},    {" FAILED", &seen->failed},
        {" ERROR", &seen->failed},  {" SKIPPED", &seen->skipped}, {" XFAIL", &seen->skipped},
    };

    if (strstr(line, "::") == NULL)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        const char *at = strstr(line, words[i].word);
        size_t n = strlen(words[i].word);

        if (at != NULL && (at[n] == ' ' || at[n] == '\0')) {
            see(seen, words[i].to);
            return true;
        }
    }
    return false;
}

static void
read_progress(Pytest *pytest, Scan *scan, const char *line)
{
    size_t n = strlen(line);
    bool percent = n > 2 && g_str_has_suffix(line, "%]");

    if (percent) {
        while (n > 0 && line[n - 1] != '[')
            n--;
        while (n > 0 && (line[n - 1] == '[' || line[n - 1] == ' '))
            n--;
    }
    const char *marks = line + n;
    while (marks > line && marks[-1] != ' ')
        marks--;
    bool file = marks - line > 4 && memcmp(marks - 4, ".py ", 4) == 0;
    if (!file && marks != line)
        marks = line;
    TestReport *seen = current(pytest)->seen;
    bool taken = (percent || pytest->depth > 0) && read_marks(seen, marks, n - (size_t)(marks - line));

    if (taken)
        see_quiet(pytest, scan);
    if (taken || (pytest->depth > 0 && read_verdict(seen, line)))
        current(pytest)->last = scan_number(scan);
}

static char *
dup_undecorated(const char *line, char sign)
{
    size_t n = strlen(line);
    size_t from = 0;

    while (from < n && (line[from] == sign || line[from] == ' '))
        from++;
    while (n > from && (line[n - 1] == sign || line[n - 1] == ' '))
        n--;
    return g_strndup(line + from, n - from);
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Pytest *pytest = state;
    size_t n = strlen(line);

    if (pytest->names == NULL)
        begin(pytest, scan_number(scan));
    if (pytest->banner > 0 && pytest->banner == scan_number(scan) && g_str_has_prefix(line, "platform "))
        begin_session(pytest);
    if (n > 2 && (line[0] == '=' || line[0] == '!') && line[n - 1] == line[0]) {
        g_autofree char *text = dup_undecorated(line, line[0]);

        if (line[0] == '=')
            read_banner(pytest, scan, text);
        else if (strcmp(text, "KeyboardInterrupt") == 0)
            pytest->interrupted = true;
        return;
    }
    if (pytest->in_names)
        read_name(pytest, line);
    else
        read_progress(pytest, scan, line);
    if (pytest->depth == 0)
        finish(pytest, scan, line, false);
}

/* Those that an inner one followed were cut off: what stands inside a session that goes on to
 * its end was dropped when it ended. */
static void
end(void *state, Scan *scan)
{
    Pytest *pytest = state;

    for (; pytest->depth > 0; pytest->depth--) {
        Session *session = current(pytest);

        session->seen->partial = true;
        scan_add(scan, SCAN_STRONG, session->first, session->last, g_steal_pointer(&session->seen));
    }
}

const Runner runner_pytest = {.size = sizeof(Pytest), .line = read_line, .end = end, .clear = clear};
