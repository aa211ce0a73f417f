/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "report/match.h"
#include "report/scan.h"

/*    queue
 *      ✔ takes
 *      1) gives back in order
 *      - is pending
 *
 *    1 passing (5ms)
 *    1 pending
 *    1 failing
 *
 *    1) queue
 *         gives back in order:
 *       Error: no
 *
 * The summary alone is a text that any program may print.  It is strong if the tree above it,
 * as the spec reporter prints it, holds as many marks. */

enum { TITLE_PARTS_MAX = 16 };

typedef enum Stage {
    STAGE_TREE,
    STAGE_COUNTS,   /* behind "passing" */
    STAGE_FAILURES, /* their list */
    STAGE_TITLE,    /* of one, over several lines */
} Stage;

typedef struct Mocha {
    Stage stage;
    gint64 passed, failed, pending; /* marks of the tree */
    bool in_tree;
    guint64 tree_first, first, last;
    GString *title;
    guint parts;
    TestReport *run;
} Mocha;

static void
clear(void *state)
{
    Mocha *mocha = state;

    g_clear_pointer(&mocha->run, report_free);
    if (mocha->title != NULL)
        g_string_free(g_steal_pointer(&mocha->title), TRUE);
    *mocha = (Mocha){0};
}

static void
finish(Mocha *mocha, Scan *scan)
{
    TestReport *run = g_steal_pointer(&mocha->run);
    bool strong = run->passed == mocha->passed && run->failed == mocha->failed &&
                  run->skipped == mocha->pending && mocha->in_tree;

    run->total = run->passed + run->failed + run->skipped;
    scan_add(scan, strong ? SCAN_STRONG : SCAN_WEAK, strong ? mocha->tree_first : mocha->first, mocha->last,
             run);
    clear(mocha);
}

static bool
is_passed(const char *line)
{
    const char *p = line + strspn(line, " ");

    return p - line >= 2 && (match_text(&p, "✔ ") || match_text(&p, "✓ ") || match_text(&p, "√ "));
}

static void
read_tree(Mocha *mocha, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;

    if (!match_text(&p, "  "))
        return;
    match_blanks(&p);
    if (is_passed(line))
        mocha->passed++;
    else if (match_text(&p, "- "))
        mocha->pending++;
    else if (match_number(&p, &n) && n == mocha->failed + 1 && match_text(&p, ") "))
        mocha->failed++;
    else
        return;
    if (!mocha->in_tree) {
        mocha->in_tree = true;
        mocha->tree_first = scan_number(scan);
    }
}

/* "  6 passing (5ms)" */
static bool
read_passing(Mocha *mocha, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 passed;
    gint64 ms;

    if (!match_text(&p, "  ") || !match_number(&p, &passed) || !match_text(&p, " passing (") ||
        !match_duration(&p, 1000, &ms) || !match_text(&p, ")") || !match_end(p))
        return false;
    if (mocha->run != NULL)
        finish(mocha, scan);
    mocha->run = report_new("mocha");
    mocha->run->passed = passed;
    mocha->run->duration_ms = ms;
    mocha->first = mocha->last = scan_number(scan);
    mocha->stage = STAGE_COUNTS;
    return true;
}

static void
read_counts(Mocha *mocha, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;

    if (match_text(&p, "  ") && match_number(&p, &n) && mocha->run->failed == 0) {
        mocha->last = scan_number(scan);
        if (match_text(&p, " pending") && match_end(p)) {
            mocha->run->skipped = n;
            return;
        }
        if (match_text(&p, " failing") && match_end(p)) {
            mocha->run->failed = n;
            return;
        }
    }
    mocha->stage = mocha->run->failed > 0 ? STAGE_FAILURES : STAGE_TREE;
    if (mocha->stage == STAGE_TREE)
        finish(mocha, scan);
}

static void
read_title(Mocha *mocha, Scan *scan, const char *line)
{
    const char *p = line;

    match_blanks(&p);
    size_t n = strlen(p);
    bool last = n > 0 && p[n - 1] == ':';

    if (n == 0 || mocha->parts == TITLE_PARTS_MAX) { /* not a title after all */
        mocha->stage = STAGE_FAILURES;
        return;
    }
    if (mocha->parts++ > 0)
        g_string_append(mocha->title, " > ");
    g_string_append_len(mocha->title, p, (gssize)(n - last));
    mocha->last = scan_number(scan);
    if (!last)
        return;
    report_add_failing(mocha->run, mocha->title->str);
    mocha->stage = STAGE_FAILURES;
    if ((gint64)mocha->run->failing->len == mocha->run->failed)
        finish(mocha, scan);
}

/* "  2) queue" */
static void
read_failure(Mocha *mocha, Scan *scan, const char *line)
{
    const char *p = line;
    gint64 n;

    if (!match_text(&p, "  ") || !match_number(&p, &n) || n != (gint64)mocha->run->failing->len + 1 ||
        !match_text(&p, ") "))
        return;
    if (mocha->title == NULL)
        mocha->title = g_string_new(NULL);
    g_string_truncate(mocha->title, 0);
    mocha->parts = 0;
    mocha->stage = STAGE_TITLE;
    read_title(mocha, scan, p);
}

static void
read_line(void *state, Scan *scan, const char *line)
{
    Mocha *mocha = state;

    if (read_passing(mocha, scan, line))
        return;
    if (mocha->run != NULL && is_passed(line)) /* the tree of the next run */
        finish(mocha, scan);
    switch (mocha->stage) {
    case STAGE_TREE:
        read_tree(mocha, scan, line);
        break;
    case STAGE_COUNTS:
        read_counts(mocha, scan, line);
        break;
    case STAGE_FAILURES:
        read_failure(mocha, scan, line);
        break;
    case STAGE_TITLE:
        read_title(mocha, scan, line);
        break;
    }
}

static void
end(void *state, Scan *scan)
{
    Mocha *mocha = state;

    if (mocha->run != NULL)
        finish(mocha, scan);
}

const Runner runner_mocha = {.size = sizeof(Mocha), .line = read_line, .end = end, .clear = clear};
