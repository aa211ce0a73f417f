/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "box/runlog.h"
#include "report/report.h"

/* The test results of a run that is over, read out of its log a slice at a time.  Of each stream
 * the beginning is read and, since summaries come last, the end; private to this folder. */
typedef struct RunTests RunTests;

enum {
    RUN_TESTS_SLICE = 64 * 1024, /* some milliseconds, whatever the bytes are */
    RUN_TESTS_HEAD = 2 << 20,
    RUN_TESTS_TAIL = 1 << 20,
};

RunTests *run_tests_new(guint64 out_bytes, guint64 err_bytes);
void run_tests_free(RunTests *tests);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RunTests, run_tests_free)

/* Which log is to be read next; 0: none, all was read. */
FrameStream run_tests_stream(const RunTests *tests);
/* May take some milliseconds.  `log` NULL: there is none. */
void run_tests_slice(RunTests *tests, RunLog *log);
/* In the place of the slices: bytes that are in memory. */
void run_tests_feed(RunTests *tests, FrameStream stream, const void *bytes, size_t n);
void run_tests_gap(RunTests *tests, FrameStream stream);
/* Once.  NULL: no runner was recognised; the caller owns it. */
TestReport *run_tests_end(RunTests *tests);
