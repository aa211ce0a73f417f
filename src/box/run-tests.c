/* SPDX-License-Identifier: Apache-2.0 */
#include "box/run-tests.h"

enum { STREAMS = STREAM_STDERR };

struct RunTests {
    ReportReader *reader;
    guint64 ends[STREAMS];
    FrameStream stream;
    guint64 at;
};

static ReportStream
report_stream(FrameStream stream)
{
    return stream == STREAM_STDERR ? REPORT_STDERR : REPORT_STDOUT;
}

static guint64
end_of(const RunTests *t)
{
    return t->ends[t->stream - STREAM_STDOUT];
}

RunTests *
run_tests_new(guint64 out_bytes, guint64 err_bytes)
{
    RunTests *t = g_new0(RunTests, 1);

    t->reader = report_reader_new();
    t->ends[0] = out_bytes;
    t->ends[1] = err_bytes;
    t->stream = STREAM_STDOUT;
    return t;
}

void
run_tests_free(RunTests *t)
{
    if (t == NULL)
        return;
    report_reader_free(t->reader);
    g_free(t);
}

static void
skip_to(RunTests *t, guint64 offset)
{
    report_reader_gap(t->reader, report_stream(t->stream));
    t->at = offset;
}

FrameStream
run_tests_stream(const RunTests *t)
{
    if (t->at < end_of(t))
        return t->stream;
    return t->stream == STREAM_STDOUT && t->ends[1] > 0 ? STREAM_STDERR : 0;
}

void
run_tests_slice(RunTests *t, RunLog *log)
{
    g_autofree guint8 *bytes = g_malloc(RUN_TESTS_SLICE);
    guint64 gap = 0;
    gssize n;

    if (run_tests_stream(t) != t->stream) {
        t->stream = STREAM_STDERR;
        t->at = 0;
    }
    n = log != NULL ? run_log_read(log, t->at, bytes, RUN_TESTS_SLICE, &gap, NULL) : -1;
    if (n > 0) {
        report_reader_feed(t->reader, report_stream(t->stream), bytes, (size_t)n);
        t->at += (guint64)n;
    } else {
        skip_to(t, gap > 0 ? t->at + gap : end_of(t));
    }
    if (t->at >= RUN_TESTS_HEAD && t->at + RUN_TESTS_TAIL < end_of(t))
        skip_to(t, end_of(t) - RUN_TESTS_TAIL);
}

void
run_tests_feed(RunTests *t, FrameStream stream, const void *bytes, size_t n)
{
    report_reader_feed(t->reader, report_stream(stream), bytes, n);
}

void
run_tests_gap(RunTests *t, FrameStream stream)
{
    report_reader_gap(t->reader, report_stream(stream));
}

TestReport *
run_tests_end(RunTests *t)
{
    return report_reader_end(t->reader);
}
