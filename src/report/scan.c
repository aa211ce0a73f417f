/* SPDX-License-Identifier: Apache-2.0 */
#include "report/scan.h"

#include "report/text.h"

static const Runner *const runners[] = {
    &runner_junit, &runner_cargo,  &runner_ctest,    &runner_go,     &runner_go_json, &runner_jest,
    &runner_mocha, &runner_pytest, &runner_unittest, &runner_vitest, &runner_node,    &runner_tap,
};

struct Scan {
    TextLines *lines;
    void *states[G_N_ELEMENTS(runners)];
    GArray *runs;
    guint names; /* that the runs hold */
    bool cut;
};

static void
on_line(void *data, const char *line, guint64 number)
{
    Scan *scan = data;

    for (size_t i = 0; i < G_N_ELEMENTS(runners); i++) {
        if (runners[i]->line != NULL)
            runners[i]->line(scan->states[i], scan, line);
    }
}

static void
clear_run(void *data)
{
    report_free(((ScanRun *)data)->report);
}

Scan *
scan_new(void)
{
    Scan *scan = g_new0(Scan, 1);

    scan->lines = text_lines_new(on_line, scan);
    scan->runs = g_array_new(FALSE, FALSE, sizeof(ScanRun));
    g_array_set_clear_func(scan->runs, clear_run);
    for (size_t i = 0; i < G_N_ELEMENTS(runners); i++)
        scan->states[i] = g_malloc0(runners[i]->size);
    return scan;
}

void
scan_free(Scan *scan)
{
    if (scan == NULL)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(runners); i++) {
        if (runners[i]->clear != NULL)
            runners[i]->clear(scan->states[i]);
        g_free(scan->states[i]);
    }
    text_lines_free(scan->lines);
    g_array_unref(scan->runs);
    g_free(scan);
}

/* Piece by piece, so that a reader of bytes and the readers of lines are at the same line. */
void
scan_feed(Scan *scan, const guint8 *bytes, size_t n)
{
    while (n > 0) {
        const guint8 *lf = memchr(bytes, '\n', n);
        size_t piece = lf != NULL ? (size_t)(lf - bytes) + 1 : n;

        for (size_t i = 0; i < G_N_ELEMENTS(runners); i++) {
            if (runners[i]->bytes != NULL)
                runners[i]->bytes(scan->states[i], scan, bytes, piece);
        }
        text_lines_feed(scan->lines, bytes, piece);
        bytes += piece;
        n -= piece;
    }
}

void
scan_gap(Scan *scan)
{
    scan->cut = true;
    scan_feed(scan, (const guint8 *)"\n", 1);
}

void
scan_end(Scan *scan)
{
    text_lines_end(scan->lines);
    for (size_t i = 0; i < G_N_ELEMENTS(runners); i++)
        runners[i]->end(scan->states[i], scan);
}

guint64
scan_number(const Scan *scan)
{
    return text_lines_number(scan->lines);
}

/* Two of one runner on the same lines stand side by side: files without line ends. */
static bool
is_inside(const ScanRun *inner, const ScanRun *outer)
{
    bool same = inner->first == outer->first && inner->last == outer->last;

    return inner->first >= outer->first && inner->last <= outer->last &&
           !(same && g_str_equal(inner->report->runner, outer->report->runner));
}

/* False: it is itself inside one that is there.  Names for the other stream stand aside. */
static bool
make_way(Scan *scan, const ScanRun *run)
{
    if (run->rank == SCAN_NAMES)
        return true;
    for (guint i = scan->runs->len; i > 0; i--) {
        const ScanRun *other = &g_array_index(scan->runs, ScanRun, i - 1);

        if (other->rank == SCAN_NAMES)
            continue;
        if (is_inside(other, run)) {
            scan->names -= other->report->failing->len;
            g_array_remove_index(scan->runs, i - 1);
        } else if (is_inside(run, other)) {
            return false;
        }
    }
    return true;
}

/* Past the bound the counts go on in the last run of their kind; what has none is lost, and
 * that is told. */
static void
add_to_last(Scan *scan, const ScanRun *run)
{
    ScanRun *last = &g_array_index(scan->runs, ScanRun, scan->runs->len - 1);

    if (last->rank == run->rank && g_str_equal(last->report->runner, run->report->runner)) {
        guint before = last->report->failing->len;

        report_merge(last->report, run->report);
        scan->names += last->report->failing->len - before;
        last->last = run->last;
    } else {
        scan->cut = true;
    }
    report_free(run->report);
}

void
scan_add(Scan *scan, ScanRank rank, guint64 first, guint64 last, TestReport *report)
{
    ScanRun run = {.rank = rank, .first = first, .last = last, .report = report};

    if (!make_way(scan, &run)) {
        report_free(report);
        return;
    }
    if (scan->names + report->failing->len > SCAN_NAMES_MAX) {
        report->names_cut = true;
        g_ptr_array_set_size(report->failing, (gint)(SCAN_NAMES_MAX - MIN(scan->names, SCAN_NAMES_MAX)));
    }
    if (scan->runs->len >= SCAN_RUNS_MAX) {
        add_to_last(scan, &run);
        return;
    }
    scan->names += report->failing->len;
    g_array_append_val(scan->runs, run);
}

const GArray *
scan_runs(const Scan *scan)
{
    return scan->runs;
}

bool
scan_is_cut(const Scan *scan)
{
    return scan->cut;
}
