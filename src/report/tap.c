/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/* TAP 12 to 14.  Points at the left edge count; those of a subtest are told again by their
 * parent's.  Without a version line it takes a plan and numbers, and it is weak even then.
 * Node's reporter ends with counts of its own, which know a test from a suite:
 *
 *    # tests 12
 *    # suites 2
 *    # pass 8
 *    ...
 *    # duration_ms 205.38
 */

enum { PATH_MAX_PARTS = 8, PART_MAX = 256, INDENT = 4 };

typedef enum Row {
    ROW_TESTS,
    ROW_SUITES,
    ROW_PASS,
    ROW_FAIL,
    ROW_CANCELLED,
    ROW_SKIPPED,
    ROW_TODO,
    ROW_MS
} Row;
static const char *const rows[] = {"# tests ",     "# suites ",  "# pass ", "# fail ",
                                   "# cancelled ", "# skipped ", "# todo ", "# duration_ms "};

typedef struct Tap {
    bool begun, versioned, broken;
    guint64 first, last;
    gint64 plan; /* -1: none yet */
    TestReport *run;

    guint row;
    gint64 counts[8];
    TestReport *deep; /* failing tests of all levels, for node */
    char *held;       /* one of them, until it is known not to fail for its subtests only */
    char *parts[PATH_MAX_PARTS];
} Tap;

static void
clear(void *state)
{
    Tap *tap = state;

    g_clear_pointer(&tap->run, report_free);
    g_clear_pointer(&tap->deep, report_free);
    g_clear_pointer(&tap->held, g_free);
    for (int i = 0; i < PATH_MAX_PARTS; i++)
        g_clear_pointer(&tap->parts[i], g_free);
    *tap = (Tap){0};
}

static void
begin(Tap *tap, Scan *scan, bool versioned)
{
    tap->begun = true;
    tap->versioned = versioned;
    tap->first = tap->last = scan_number(scan);
    tap->plan = -1;
    tap->run = report_new("tap");
    tap->deep = report_new("node:test");
}

static void
finish(Tap *tap, Scan *scan)
{
    TestReport *run = g_steal_pointer(&tap->run);
    gint64 told = run->passed + run->failed + run->skipped;

    run->total = MAX(told, tap->plan);
    run->partial = tap->broken || told != tap->plan;
    if (tap->versioned || (tap->plan >= 0 && told > 0))
        scan_add(scan, tap->versioned ? SCAN_STRONG : SCAN_WEAK, tap->first, tap->last, run);
    else
        report_free(run);
    clear(tap);
}

static bool
is_complete(const Tap *tap)
{
    return tap->plan >= 0 && tap->run->passed + tap->run->failed + tap->run->skipped >= tap->plan;
}

static void
release_held(Tap *tap)
{
    if (tap->held != NULL)
        report_add_failing(tap->deep, tap->held);
    g_clear_pointer(&tap->held, g_free);
}

/* A directive that excuses the point, behind a "#" without a backslash; `*ret_len` is what stands
 * before it. */
static bool
is_excused(const char *text, size_t *ret_len)
{
    *ret_len = strlen(text);
    for (const char *hash = strchr(text, '#'); hash != NULL; hash = strchr(hash + 1, '#')) {
        const char *p = hash + 1;

        if (hash > text && hash[-1] == '\\')
            continue;
        match_blanks(&p);
        if (g_ascii_strncasecmp(p, "skip", 4) == 0 || g_ascii_strncasecmp(p, "todo", 4) == 0) {
            *ret_len = (size_t)(hash - text);
            return true;
        }
    }
    return false;
}

typedef struct Point {
    bool ok, excused;
    gint64 number; /* 0: none */
    char *name;
} Point;

static bool
read_point(const char *line, Point *ret)
{
    const char *p = line;
    size_t len;

    *ret = (Point){.ok = !match_text(&p, "not ")};
    if (!match_text(&p, "ok") || (*p != ' ' && *p != '\0'))
        return false;
    match_blanks(&p);
    const char *number = p;
    if (!match_number(&p, &ret->number) || (*p != ' ' && *p != '\0'))
        p = number;
    match_blanks(&p);
    match_text(&p, "- ");
    ret->excused = is_excused(p, &len);
    const char *time = strstr(p, " # time=");
    if (time != NULL && (size_t)(time - p) < len)
        len = (size_t)(time - p);
    ret->name = g_strndup(p, len);
    for (char *from = ret->name, *to = ret->name;; from++) {
        if (from[0] == '\\' && from[1] == '#')
            continue;
        *to++ = *from;
        if (*from == '\0')
            break;
    }
    g_strstrip(ret->name);
    return true;
}

static void
hold_failure(Tap *tap, size_t level, const char *name)
{
    g_autoptr(GString) path = g_string_new(NULL);

    for (size_t i = 0; i < MIN(level, PATH_MAX_PARTS); i++)
        g_string_append_printf(path, "%s > ", tap->parts[i] != NULL ? tap->parts[i] : "");
    g_string_append(path, name);
    tap->held = g_strdup(path->str);
}

static void
take_point(Tap *tap, Scan *scan, const Point *point)
{
    if (tap->begun && !tap->versioned && point->number == 1 && is_complete(tap))
        finish(tap, scan);
    if (!tap->begun) {
        if (point->number != 1)
            return;
        begin(tap, scan, false);
    }
    if (!tap->versioned && point->number == 0)
        return;
    tap->last = scan_number(scan);
    if (point->excused)
        tap->run->skipped++;
    else if (point->ok)
        tap->run->passed++;
    else
        tap->run->failed++;
    if (!point->ok && !point->excused)
        report_add_failing(tap->run, point->name[0] != '\0' ? point->name : "(no name)");
}

/* A point of any level. */
static bool
read_any_point(Tap *tap, Scan *scan, const char *line)
{
    size_t indent = strspn(line, " ");
    Point point;

    if (!read_point(line + indent, &point))
        return false;
    g_autofree char *name = point.name;

    if (indent == 0)
        take_point(tap, scan, &point);
    if (tap->begun) {
        release_held(tap);
        if (!point.ok && !point.excused)
            hold_failure(tap, indent / INDENT, name);
    }
    return true;
}

static bool
read_plan(Tap *tap, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;

    if (!match_text(&p, "1..") || !match_number(&p, &n) || (*p != '\0' && *p != ' '))
        return false;
    if (tap->begun && tap->plan >= 0)
        finish(tap, scan);
    if (!tap->begun)
        begin(tap, scan, false);
    tap->plan = n;
    tap->last = scan_number(scan);
    return true;
}

static void
finish_node(Tap *tap, Scan *scan)
{
    const gint64 *n = tap->counts;
    TestReport *run = tap->deep;

    release_held(tap);
    run->total = n[ROW_TESTS];
    run->passed = n[ROW_PASS];
    run->failed = n[ROW_FAIL] + n[ROW_CANCELLED];
    run->skipped = n[ROW_SKIPPED] + n[ROW_TODO];
    run->duration_ms = n[ROW_MS];
    if (run->total == run->passed + run->failed + run->skipped) {
        tap->deep = NULL;
        scan_add(scan, SCAN_STRONG, tap->first, scan_number(scan), run);
        clear(tap);
    }
}

static bool
read_node_summary(Tap *tap, Scan *scan, const char *line)
{
    const char *p = line;

    if (tap->row == ROW_SUITES && g_str_has_prefix(p, rows[ROW_PASS]))
        tap->row++;
    if (g_str_has_prefix(p, rows[ROW_TESTS]))
        tap->row = ROW_TESTS;
    if (!match_text(&p, rows[tap->row]) ||
        (tap->row == ROW_MS ? !match_duration(&p, 1, &tap->counts[ROW_MS])
                            : !match_number(&p, &tap->counts[tap->row]) || !match_end(p))) {
        tap->row = 0;
        return false;
    }
    if (tap->row++ == ROW_MS) {
        tap->row = 0;
        finish_node(tap, scan);
    }
    return true;
}

static void
read_subtest(Tap *tap, const char *line)
{
    size_t level = strspn(line, " ") / INDENT;
    const char *p = line + level * INDENT;

    if (match_text(&p, "# Subtest: ") && level < PATH_MAX_PARTS) {
        g_free(tap->parts[level]);
        tap->parts[level] = g_strndup(p, PART_MAX);
    }
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Tap *tap = state;
    const char *p = line;
    gint64 version;

    if (match_text(&p, "TAP version ") && match_number(&p, &version) && match_end(p)) {
        if (tap->begun)
            finish(tap, scan);
        begin(tap, scan, true);
        return;
    }
    if (read_any_point(tap, scan, line) || read_plan(tap, scan, line) || !tap->begun ||
        read_node_summary(tap, scan, line))
        return;
    read_subtest(tap, line);
    if (match_text(&p, "Bail out!")) {
        tap->broken = true;
        tap->last = scan_number(scan);
    } else if (tap->held != NULL && strstr(line, "failureType: 'subtestsFailed'") != NULL) {
        g_clear_pointer(&tap->held, g_free);
    }
}

static void
end(void *state, Scan *scan)
{
    Tap *tap = state;

    if (tap->begun)
        finish(tap, scan);
}

const Runner runner_tap = {.size = sizeof(Tap), .line = read_line, .end = end, .clear = clear};
