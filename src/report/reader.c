/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"
#include "report/scan.h"

/* The streams are read apart: which of their lines came first is not known. */
struct ReportReader {
    Scan *scans[REPORT_STREAM_MAX];
};

ReportReader *
report_reader_new(void)
{
    ReportReader *reader = g_new0(ReportReader, 1);

    for (int i = 0; i < REPORT_STREAM_MAX; i++)
        reader->scans[i] = scan_new();
    return reader;
}

void
report_reader_free(ReportReader *reader)
{
    if (reader == NULL)
        return;
    for (int i = 0; i < REPORT_STREAM_MAX; i++)
        scan_free(reader->scans[i]);
    g_free(reader);
}

void
report_reader_feed(ReportReader *reader, ReportStream stream, const void *bytes, size_t n)
{
    scan_feed(reader->scans[stream], bytes, n);
}

void
report_reader_gap(ReportReader *reader, ReportStream stream)
{
    scan_gap(reader->scans[stream]);
}

typedef void (*RunFunc)(const ScanRun *run, void *data);

static void
each_run(const ReportReader *reader, RunFunc func, void *data)
{
    for (int i = 0; i < REPORT_STREAM_MAX; i++) {
        const GArray *runs = scan_runs(reader->scans[i]);

        for (guint k = 0; k < runs->len; k++)
            func(&g_array_index(runs, ScanRun, k), data);
    }
}

typedef struct Choice {
    ScanRank rank;
    const char *runner; /* of that rank */
    bool several;
    TestReport *report;
} Choice;

/* TAP is what a row of test programs prints, one after the other. */
static bool
may_repeat(const char *runner)
{
    return g_str_equal(runner, "tap");
}

static void
find_best(const ScanRun *run, void *data)
{
    Choice *choice = data;

    if (run->rank == SCAN_NAMES)
        return;
    if (choice->runner == NULL || run->rank > choice->rank) {
        choice->rank = run->rank;
        choice->runner = run->report->runner;
        choice->several = false;
    } else if (run->rank == choice->rank) {
        choice->several |= !may_repeat(run->report->runner) ||
                           !g_str_equal(choice->runner, run->report->runner);
    }
}

static void
add_up(const ScanRun *run, void *data)
{
    Choice *choice = data;

    if (run->rank != choice->rank)
        return;
    if (choice->report == NULL)
        choice->report = report_new(run->report->runner);
    report_merge(choice->report, run->report);
}

static void
add_names(const ScanRun *run, void *data)
{
    Choice *choice = data;

    if (run->rank == SCAN_NAMES && g_str_equal(run->report->runner, choice->report->runner))
        report_merge(choice->report, run->report);
}

/* Only the best rank counts: a summary in a program's log must not be added to a real one, and
 * a JUnit file beside a runner's own summary is about the same tests.  Of several
 * weak ones it is not clear which is real. */
TestReport *
report_reader_end(ReportReader *reader)
{
    Choice choice = {0};

    for (int i = 0; i < REPORT_STREAM_MAX; i++)
        scan_end(reader->scans[i]);
    each_run(reader, find_best, &choice);
    if (choice.runner == NULL || (choice.rank == SCAN_WEAK && choice.several))
        return NULL;
    each_run(reader, add_up, &choice);
    each_run(reader, add_names, &choice);
    for (int i = 0; i < REPORT_STREAM_MAX; i++)
        choice.report->partial |= scan_is_cut(reader->scans[i]);
    return choice.report;
}
