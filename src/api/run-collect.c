/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run-collect.h"

#include "api/excerpt.h"

enum { STREAMS = 2 };

struct RunCollect {
    Run *run; /* a reference */
    Excerpt streams[STREAMS];
    bool over;
    void (*ended)(RunCollect *collect, void *data);
    void *data;
};

static Excerpt *
text_of(RunCollect *c, FrameStream stream)
{
    return &c->streams[stream - STREAM_STDOUT];
}

static void
on_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    excerpt_add(text_of(ctx, stream), bytes, n);
}

static void
on_gap(Run *run, FrameStream stream, guint64 n, void *ctx)
{
    excerpt_skip(text_of(ctx, stream), n);
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
    for (guint i = 0; i < G_N_ELEMENTS(c->streams); i++)
        excerpt_init(&c->streams[i], max / 2);
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
        excerpt_clear(&c->streams[i]);
    run_unref(c->run);
    g_free(c);
}

Run *
run_collect_run(const RunCollect *c)
{
    return c->run;
}

size_t
run_collect_size(const RunCollect *c)
{
    return excerpt_size(&c->streams[0]) + excerpt_size(&c->streams[1]);
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
    set_text(object, "stdout", "stdout_truncated", &c->streams[0]);
    set_text(object, "stderr", "stderr_truncated", &c->streams[1]);
}
