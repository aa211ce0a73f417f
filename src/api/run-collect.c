/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run-collect.h"

#include "api/excerpt.h"

/* Lines are looked at on the loop, and an output may have no end.  A report is looked for in this
 * much of its beginning and, since summaries come last, in what is kept of its end. */
enum { REPORT_BYTES = 2 * 1024 * 1024 };

typedef struct Collected {
    Excerpt text;
    guint64 came, read; /* bytes; of those the reader had */
} Collected;

struct RunCollect {
    Run *run; /* a reference */
    Collected streams[2];
    ReportReader *reader;
    bool over;
    void (*ended)(RunCollect *collect, void *data);
    void *data;
};

static guint
index_of(FrameStream stream)
{
    return stream == STREAM_STDERR ? REPORT_STDERR : REPORT_STDOUT;
}

static void
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    RunCollect *c = ctx;
    guint i = index_of(stream);
    Collected *s = &c->streams[i];

    excerpt_add(&s->text, bytes, n);
    s->came += n;
    if (s->came > REPORT_BYTES)
        return;
    s->read += n;
    report_reader_feed(c->reader, i, bytes, n);
}

static void
on_gap(Run *run, FrameStream stream, guint64 n, void *ctx)
{
    RunCollect *c = ctx;
    guint i = index_of(stream);

    excerpt_skip(&c->streams[i].text, n);
    report_reader_gap(c->reader, i);
}

static void
read_tail(RunCollect *c, guint i)
{
    Collected *s = &c->streams[i];
    size_t n;
    const guint8 *tail = excerpt_peek_tail(&s->text, &n);
    guint64 unread = s->came - s->read;

    if (unread == 0)
        return;
    if (unread > n)
        report_reader_gap(c->reader, i);
    size_t old = n > unread ? n - (size_t)unread : 0;
    if (n > old)
        report_reader_feed(c->reader, i, tail + old, n - old);
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
    for (guint i = 0; i < G_N_ELEMENTS(c->streams); i++)
        excerpt_init(&c->streams[i].text, max / 2);
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
    for (guint i = 0; i < G_N_ELEMENTS(c->streams); i++)
        excerpt_clear(&c->streams[i].text);
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
    for (guint i = 0; i < G_N_ELEMENTS(c->streams); i++)
        read_tail(c, i);
    return report_reader_end(c->reader);
}

size_t
run_collect_size(const RunCollect *c)
{
    return excerpt_size(&c->streams[REPORT_STDOUT].text) + excerpt_size(&c->streams[REPORT_STDERR].text);
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
    set_text(object, "stdout", "stdout_truncated", &c->streams[REPORT_STDOUT].text);
    set_text(object, "stderr", "stderr_truncated", &c->streams[REPORT_STDERR].text);
}
