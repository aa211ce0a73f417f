/* SPDX-License-Identifier: Apache-2.0 */
/* Streamed runs: back-pressure both ways. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "link-fixture.h"
#include "room.h"

enum { MIB = 1 << 20, ECHO_BYTES = 100 * MIB, BIG_BYTES = 64 * MIB };

typedef struct Sink {
    Run *run;
    guint64 bytes[2], enough; /* pause after so many more */
    guint64 paused_at;
    bool paused, check;
    guint ended, pauses;
    RunEnd end;
    /* input */
    guint64 given, to_give;
    bool free_link;
    LinkBox *box;
} Sink;

static guint8
byte_at(guint64 offset)
{
    return (guint8)((offset * 2654435761u) >> 13 ^ offset >> 24);
}

static bool
sink_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    Sink *sink = ctx;
    guint64 *at = &sink->bytes[stream - STREAM_STDOUT];

    g_assert_false(sink->paused);
    g_assert_cmpuint(sink->ended, ==, 0);
    for (size_t i = 0; sink->check && i < n; i++) {
        if (bytes[i] != byte_at(*at + i))
            g_error("wrong byte at %" G_GUINT64_FORMAT, *at + i);
    }
    *at += n;
    if (sink->free_link)
        g_clear_pointer(&sink->box->link, box_link_free);
    sink->paused = sink->enough > 0 && *at - sink->paused_at >= sink->enough;
    if (sink->paused) {
        sink->paused_at = *at;
        sink->pauses++;
    }
    return !sink->paused;
}

static void
sink_ended(Run *run, const RunEnd *end, void *ctx)
{
    Sink *sink = ctx;

    g_assert_false(sink->paused);
    g_assert_true(run_has_ended(run));
    sink->end = *end;
    sink->ended++;
}

static void
give(Run *run, void *ctx)
{
    static guint8 bytes[200000];
    Sink *sink = ctx;
    size_t n = 1, taken = 1;

    while (sink->given < sink->to_give && taken == n) {
        n = (size_t)MIN(sizeof bytes, sink->to_give - sink->given);
        for (size_t i = 0; i < n; i++)
            bytes[i] = byte_at(sink->given + i);
        taken = run_write(run, bytes, n);
        g_assert_cmpuint(taken, <=, n);
        sink->given += taken;
    }
    if (sink->given == sink->to_give)
        run_close_input(run);
}

static const RunSink funcs = {sink_output, sink_ended, give};

static bool
is_over(void *data)
{
    const Sink *sink = data;

    return sink->ended > 0;
}

static bool
is_paused_or_over(void *data)
{
    const Sink *sink = data;

    return sink->ended > 0 || sink->paused;
}

static void
turn_with_pauses(Sink *sink)
{
    while (sink->ended == 0) {
        turn_until(is_paused_or_over, sink);
        /* Whatever is on the way may come. */
        turn_some(sink->pauses % 7);
        if (sink->paused) {
            sink->paused = false;
            run_resume(sink->run);
        }
    }
}

static size_t
resident_bytes(void)
{
    g_autofree char *text = NULL;
    unsigned long pages = 0;

    g_assert_true(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
    g_assert_cmpint(sscanf(text, "%*u %lu", &pages), ==, 1);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void
test_echo(void)
{
    Sink sink = {.to_give = ECHO_BYTES, .enough = 700000, .check = true};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    size_t before = resident_bytes();

    sink.run = link_box_stream(box, START_STDIN, "exec cat", &funcs, &sink);
    give(sink.run, &sink);
    turn_with_pauses(&sink);
    g_assert_cmpuint(sink.bytes[0], ==, ECHO_BYTES);
    g_assert_cmpuint(sink.given, ==, ECHO_BYTES);
    g_assert_cmpuint(sink.pauses, >, 100);
    g_assert_cmpint(sink.end.reason, ==, RUN_EXIT);
    g_assert_cmpuint(resident_bytes(), <, before + 16 * MIB);
    g_assert_cmpuint(box->ended, ==, 0); /* of logged runs only */
    g_assert_cmpuint(box->active, >=, 1);
    run_unref(sink.run);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* A reader that stops makes the writer wait: nothing is dropped, nothing grows. */
static void
test_waits(void)
{
    Sink sink = {.enough = 1}, other = {0};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    size_t before = resident_bytes();
    g_autofree char *line = g_strdup_printf("head -c %d /dev/zero; echo done >&2", BIG_BYTES);

    sink.run = link_box_stream(box, 0, line, &funcs, &sink);
    turn_until(is_paused_or_over, &sink);
    sink.enough = 0;
    /* Others go on meanwhile. */
    other.run = link_box_stream(box, 0, "head -c 20000000 /dev/zero", &funcs, &other);
    turn_until(is_over, &other);
    g_assert_cmpuint(other.bytes[0], ==, 20000000);
    g_assert_cmpuint(sink.bytes[0], <=, FRAME_DATA_MAX);
    g_assert_cmpuint(resident_bytes(), <, before + 8 * MIB);
    sink.paused = false;
    run_resume(sink.run);
    turn_until(is_over, &sink);
    g_assert_cmpuint(sink.bytes[0], ==, BIG_BYTES);
    g_assert_cmpuint(sink.bytes[1], ==, 5);
    run_unref(sink.run);
    run_unref(other.run);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* The end waits for a reader who is behind. */
static void
test_end_waits(void)
{
    Sink sink = {.enough = 1};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    sink.run = link_box_stream(box, 0, "echo one; echo two >&2", &funcs, &sink);
    turn_until(is_paused_or_over, &sink);
    g_autoptr(Run) marker = link_box_shell(box, 0, "sleep 0.5");
    turn_until_ended(marker);
    g_assert_cmpuint(sink.ended, ==, 0);
    sink.paused = false;
    sink.enough = 0;
    run_resume(sink.run);
    turn_until(is_over, &sink);
    g_assert_cmpuint(sink.bytes[0] + sink.bytes[1], ==, 8);
    run_unref(sink.run);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* More than a box can hold at once: each is killed and its place is free again. */
static void
test_abandon(void)
{
    Sink sink = {0}, paused = {.enough = 1};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    /* Before it was ever sent. */
    g_autoptr(Run) never = link_box_stream(box, 0, "echo never", &funcs, &sink);
    run_abandon(never);
    g_assert_true(run_has_ended(never));
    for (int i = 0; i < 300; i++) {
        g_autoptr(Run) run = link_box_stream(box, 0, i % 2 == 0 ? "exec yes" : "sleep 1000 & exec sleep 1000",
                                             &funcs, &sink);

        turn_some((guint)i % 20);
        run_abandon(run);
        guint64 seen = sink.bytes[0];
        turn_some(3);
        g_assert_cmpuint(sink.bytes[0], ==, seen);
        if (i % 50 == 0) {
            g_autoptr(Run) marker = link_box_shell(box, 0, "true");

            turn_until_ended(marker);
            g_assert_cmpint(run_end(marker)->reason, ==, RUN_EXIT);
        }
    }
    /* One whose reader had stopped long before. */
    paused.run = link_box_stream(box, 0, "exec yes", &funcs, &paused);
    turn_until(is_paused_or_over, &paused);
    run_abandon(paused.run);
    run_unref(paused.run);
    g_assert_cmpuint(sink.ended + paused.ended, ==, 0);
    for (int left = 1; left > 0;) {
        g_autoptr(Run) count = link_box_shell(box, 0, "ps -A -o comm= | grep -c -e yes -e sleep");

        turn_until_ended(count);
        g_autofree char *text = run_text(count, 0);
        left = (int)g_ascii_strtoll(text, NULL, 10);
    }
    g_assert_null(box->error);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* From inside its own callbacks. */
static void
test_free_inside(void)
{
    Sink sink = {.free_link = true};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    sink.box = box;
    sink.run = link_box_stream(box, START_STDIN, "yes | head -c 100000; cat", &funcs, &sink);
    while (box->link != NULL)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpint(run_end(sink.run)->reason, ==, RUN_LOST);
    g_assert_cmpuint(run_write(sink.run, "x", 1), ==, 0);
    run_resume(sink.run);
    run_abandon(sink.run);
    turn_some(10);
    g_assert_cmpuint(sink.ended, ==, 0);
    run_unref(sink.run);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* A process that does not read its input, and one that has none. */
static void
test_input_refused(void)
{
    Sink sink = {.to_give = 4 * MIB}, none = {0};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    none.run = link_box_stream(box, 0, "cat", &funcs, &none);
    g_assert_cmpuint(run_write(none.run, "x", 1), ==, 0);
    sink.run = link_box_stream(box, START_STDIN, "exec <&-; exec sleep 0.3", &funcs, &sink);
    give(sink.run, &sink);
    turn_until(is_over, &sink);
    turn_until(is_over, &none);
    g_assert_cmpuint(sink.given, ==, sink.to_give);
    run_unref(sink.run);
    run_unref(none.run);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/stream/echo", test_echo);
    g_test_add_func("/box/stream/waits", test_waits);
    g_test_add_func("/box/stream/end-waits", test_end_waits);
    g_test_add_func("/box/stream/abandon", test_abandon);
    g_test_add_func("/box/stream/free-inside", test_free_inside);
    g_test_add_func("/box/stream/input-refused", test_input_refused);
    return g_test_run();
}
