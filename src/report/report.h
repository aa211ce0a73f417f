/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "json/json.h"

/* What a test run came to, read out of what a command printed.
 *
 * Nothing is known of the command: the runner is recognised by its output alone, and that
 * output is hostile.  Counts are a runner's own summary, checked against itself and, where the
 * runner names each test, against those; what does not fit together is left out.  A program
 * that prints another runner's summary inside its test is not believed. */

enum {
    REPORT_NAMES_MAX = 200,
    REPORT_NAME_MAX = 512, /* bytes */
};

typedef enum ReportUnit {
    REPORT_TESTS,
    REPORT_PACKAGES, /* `go test` without -v names no test that passed */
    REPORT_MIXED,
    REPORT_UNIT_MAX,
} ReportUnit;

/* passed + failed + skipped is total, unless the report is partial: then it is at most total. */
typedef struct TestReport {
    char *runner; /* "jest"; of several: "jest, pytest" */
    ReportUnit unit;
    gint64 total, passed, failed;
    gint64 skipped;     /* also todo, pending, and failures that were expected */
    gint64 errors;      /* what failed outside of a test and is not in `total`: a file that did not
                           load, a package that did not build */
    gint64 duration_ms; /* -1: not told */
    GPtrArray *failing; /* names of tests, and of what `errors` counts; UTF-8 without controls */
    bool names_cut;     /* there were more, or longer ones */
    bool partial;       /* some tests are missing: a crash, a timeout, output that was cut */
} TestReport;

TestReport *report_new(const char *runner);
void report_free(TestReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(TestReport, report_free)

/* `name` may hold any bytes. */
void report_add_failing(TestReport *report, const char *name);
/* Adds what another run came to. */
void report_merge(TestReport *into, const TestReport *other);
/* {runner, unit, total, passed, failed, skipped, errors, failing, names_cut, partial} and
 * duration_ms where it was told. */
Json *report_to_json(const TestReport *report);
/* Of the above, for messages that have a bound: at most so many bytes of names. */
enum { REPORT_SHORT_BYTES = 8 * 1024 };
void report_json_shorten(Json *report);

/* Reads while the command runs; what it holds has a bound, whatever comes. */
typedef struct ReportReader ReportReader;
typedef enum ReportStream { REPORT_STDOUT, REPORT_STDERR, REPORT_STREAM_MAX } ReportStream;

ReportReader *report_reader_new(void);
void report_reader_free(ReportReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ReportReader, report_reader_free)

void report_reader_feed(ReportReader *reader, ReportStream stream, const void *bytes, size_t n);
/* Bytes of the stream were dropped here: a report that comes of it is partial. */
void report_reader_gap(ReportReader *reader, ReportStream stream);
/* NULL: no runner was recognised, or it is not clear which one.  The reader is used up. */
TestReport *report_reader_end(ReportReader *reader);
