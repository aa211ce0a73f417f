/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/* The spec reporter of node:test ends with
 *
 *    ℹ tests 12
 *    ℹ suites 2        (from Node 18.17 on)
 *    ℹ pass 8
 *    ...
 *    ℹ duration_ms 205.38
 *
 *    ✖ failing tests:
 *
 *    test at src/queue.test.js:4:1
 *    ✖ gives back in order (1.06ms)
 *
 * The tree before it begins each test at the left edge; its marks tell a suite from a test only
 * in some versions, so it is not counted.  TAP of node:test is read in tap.c. */

typedef struct Node {
    bool in_tree;
    guint64 tree_first, tree_last;
    guint row; /* of the summary: what has to come next */
    guint64 first;
    gint64 counts[8];
    TestReport *run;
    char *place; /* of the failing test that comes next */
    guint64 last;
} Node;

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
static const char *const rows[] = {"tests ",     "suites ",  "pass ", "fail ",
                                   "cancelled ", "skipped ", "todo ", "duration_ms "};

static void
clear(void *state)
{
    Node *node = state;

    g_clear_pointer(&node->run, report_free);
    g_clear_pointer(&node->place, g_free);
    *node = (Node){0};
}

static void
finish(Node *node, Scan *scan)
{
    scan_add(scan, SCAN_STRONG, node->first, node->last, g_steal_pointer(&node->run));
    clear(node);
}

static void
complete(Node *node, Scan *scan)
{
    const gint64 *n = node->counts;
    TestReport *run = report_new("node:test");

    run->total = n[ROW_TESTS];
    run->passed = n[ROW_PASS];
    run->failed = n[ROW_FAIL] + n[ROW_CANCELLED];
    run->skipped = n[ROW_SKIPPED] + n[ROW_TODO];
    run->duration_ms = n[ROW_MS];
    node->row = 0;
    if (run->total != run->passed + run->failed + run->skipped) {
        report_free(run);
        return;
    }
    node->run = run;
    node->last = scan_number(scan);
}

static bool
read_summary(Node *node, Scan *scan, const char *line)
{
    const char *p = line;

    if (!match_text(&p, "ℹ "))
        return false;
    if (node->row == ROW_SUITES && g_str_has_prefix(p, rows[ROW_PASS]))
        node->row++;
    if (g_str_has_prefix(p, rows[ROW_TESTS]))
        node->row = ROW_TESTS;
    if (!match_text(&p, rows[node->row]))
        return false;
    if (node->row == ROW_TESTS) {
        if (node->run != NULL)
            finish(node, scan);
        node->first = node->in_tree ? node->tree_first : scan_number(scan);
    }
    if (node->row == ROW_MS ? !match_duration(&p, 1, &node->counts[ROW_MS])
                            : !match_number(&p, &node->counts[node->row]) || !match_end(p))
        return false;
    if (node->row++ == ROW_MS)
        complete(node, scan);
    return true;
}

/* "✖ gives back (1.06ms)"; behind the time of a test that is still to be done stands why. */
static void
read_failure(Node *node, Scan *scan, const char *line)
{
    const char *p = line;
    const char *end = g_strrstr(line, " (");
    gint64 ms;

    if (match_text(&p, "test at ")) {
        const char *colon = strchr(p, ':');

        g_free(node->place);
        node->place = g_strndup(p, colon != NULL ? (size_t)(colon - p) : strlen(p));
    } else if (node->place != NULL && match_text(&p, "✖ ") && end != NULL && end >= p) {
        g_autofree char *test = g_strndup(p, (size_t)(end - p));
        bool whole_file = g_str_has_suffix(test, node->place);
        g_autofree char *name = whole_file ? g_strdup(node->place)
                                           : g_strdup_printf("%s > %s", node->place, test);

        end += strlen(" (");
        if (match_duration(&end, 1, &ms) && match_text(&end, ")") && match_end(end))
            report_add_failing(node->run, name);
        g_clear_pointer(&node->place, g_free);
        node->last = scan_number(scan);
    }
}

/* "✔ takes (0.64ms)" */
static bool
is_timed(const char *line)
{
    const char *p = g_strrstr(line, " (");
    gint64 ms;

    if (p == NULL)
        return false;
    p += strlen(" (");
    return strchr(p, '.') != NULL && match_duration(&p, 1, &ms) && match_text(&p, ")");
}

static void
read_tree(Node *node, Scan *scan, const char *line)
{
    bool passed = g_str_has_prefix(line, "✔ ") || g_str_has_prefix(line, "▶ ");

    if (node->run != NULL && passed) /* of the next run: failures are listed with another mark */
        finish(node, scan);
    if (node->run != NULL || !(passed || g_str_has_prefix(line, "✖ ")) || !is_timed(line))
        return;
    if (!node->in_tree)
        node->tree_first = scan_number(scan);
    node->in_tree = true;
    node->tree_last = scan_number(scan);
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Node *node = state;

    if (read_summary(node, scan, line))
        return;
    node->row = 0;
    read_tree(node, scan, line);
    if (node->run != NULL)
        read_failure(node, scan, line);
}

static void
end(void *state, Scan *scan)
{
    Node *node = state;

    if (node->run != NULL) {
        finish(node, scan);
    } else if (node->in_tree) {
        TestReport *run = report_new("node:test");

        run->partial = true;
        scan_add(scan, SCAN_WEAK, node->tree_first, node->tree_last, run);
    }
}

const Runner runner_node = {.size = sizeof(Node), .line = read_line, .end = end, .clear = clear};
