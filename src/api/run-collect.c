/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run-collect.h"

#include "api/excerpt.h"

struct RunCollect {
    Run *run; /* a reference */
    Excerpt out, err;
    ReportReader *reader;
    bool over;
    void (*ended)(RunCollect *collect, void *data);
    void *data;
};

static Excerpt *
excerpt_of(RunCollect *c, FrameStream stream)
{
    return stream == STREAM_STDERR ? &c->err : &c->out;
}

static ReportStream
report_stream(FrameStream stream)
{
    return stream == STREAM_STDERR ? REPORT_STDERR : REPORT_STDOUT;
}

static void
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    RunCollect *c = ctx;

    excerpt_add(excerpt_of(c, stream), bytes, n);
    report_reader_feed(c->reader, report_stream(stream), bytes, n);
}

static void
on_gap(Run *run, FrameStream stream, guint64 n, void *ctx)
{
    RunCollect *c = ctx;

    excerpt_skip(excerpt_of(c, stream), n);
    report_reader_gap(c->reader, report_stream(stream));
}

static void
on_ended(Run *run, const RunEnd *end, void *ctx)
{
    RunCollect *c = ctx;

    c->over = true;
    c->ended(c, c->data);
}

RunCollect *
run_collect_new(Run *run, size_t max, void (*ended)(RunCollect *collect, void *data), void *data)
{
    static const RunTap tap = {.output = on_output, .gap = on_gap, .ended = on_ended};
    RunCollect *c = g_new0(RunCollect, 1);

    c->run = run_ref(run);
    c->ended = ended;
    c->data = data;
    c->reader = report_reader_new();
    excerpt_init(&c->out, max / 2);
    excerpt_init(&c->err, max / 2);
    run_tap(run, &tap, c);
    return c;
}

void
run_collect_free(RunCollect *c)
{
    if (c == NULL)
        return;
    if (!c->over)
        run_untap(c->run);
    excerpt_clear(&c->out);
    excerpt_clear(&c->err);
    report_reader_free(c->reader);
    run_unref(c->run);
    g_free(c);
}

Run *
run_collect_run(const RunCollect *c)
{
    return c->run;
}

TestReport *
run_collect_steal_report(RunCollect *c)
{
    return report_reader_end(c->reader);
}

size_t
run_collect_size(const RunCollect *c)
{
    return excerpt_size(&c->out) + excerpt_size(&c->err);
}

static void
set_text(Json *object, const char *name, const char *cut_name, const Excerpt *e)
{
    g_autofree char *text = excerpt_dup_text(e);

    json_object_set_new(object, name, json_string(text));
    if (excerpt_is_cut(e))
        json_object_set_new(object, cut_name, json_true());
}

void
run_collect_set_text(const RunCollect *c, Json *object)
{
    set_text(object, "stdout", "stdout_truncated", &c->out);
    set_text(object, "stderr", "stderr_truncated", &c->err);
}
