/* SPDX-License-Identifier: Apache-2.0 */
/* What a box tells of its files, taken apart: cut anywhere, hostile, or no longer wanted.  The
 * run behind it is played here. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "box/watch.h"

struct Run {
    const RunSink *sink;
    void *ctx;
    guint refs, resumed, abandoned, killed;
    char *argv;
};

static struct Run the_run;

Run *
box_start(Box *box, const RunSpec *spec, const char *actor, GError **error)
{
    g_assert_true((spec->flags & START_BUILTIN) != 0);
    the_run = (struct Run){.sink = spec->sink, .ctx = spec->ctx, .refs = 1};
    the_run.argv = g_strjoinv(" ", (char **)(guintptr)spec->argv);
    return &the_run;
}

void
run_unref(Run *run)
{
    run->refs--;
    g_clear_pointer(&run->argv, g_free);
}

void
run_abandon(Run *run)
{
    run->abandoned++;
}

void
run_resume(Run *run)
{
    run->resumed++;
}

void
run_signal(Run *run, int signal)
{
    run->killed++;
}

/* ---- who watches ---- */

typedef struct Seen {
    GString *text;
    bool stop, ended;
    guint cancel_at; /* the n-th change cancels; 0: none */
    guint changes;
    ErrKind kind;
} Seen;

static void
on_change(BoxWatch *watch, const BoxChange *change, void *ctx)
{
    Seen *s = ctx;

    g_string_append_printf(s->text, "%d%s:%s:%u ", change->kind, change->directory ? "d" : "", change->path,
                           change->cookie);
    if (++s->changes == s->cancel_at)
        box_watch_cancel(watch);
}

static bool
on_pause(BoxWatch *watch, void *ctx)
{
    Seen *s = ctx;

    return !s->stop;
}

static void
on_end(BoxWatch *watch, const GError *error, void *ctx)
{
    Seen *s = ctx;

    g_assert_false(s->ended);
    g_assert_nonnull(error);
    s->ended = true;
    s->kind = err_kind(error);
}

static BoxWatch *
start(Seen *s, bool recursive)
{
    static const BoxWatchEvents events = {.change = on_change, .pause = on_pause, .end = on_end};
    BoxFileSpec spec = {.actor = "test"};
    g_autoptr(GError) error = NULL;

    s->text = g_string_new(NULL);
    BoxWatch *w = box_watch(&spec, "/tmp", recursive, &events, s, &error);
    g_assert_no_error(error);
    return w;
}

static void
put(GByteArray *bytes, guint kind, guint flags, guint cookie, const char *path)
{
    BuiltinEvent event = {
        .kind = (guint8)kind, .flags = (guint8)flags, .path_bytes = (guint16)strlen(path), .cookie = cookie};

    g_byte_array_append(bytes, (const guint8 *)&event, sizeof event);
    g_byte_array_append(bytes, (const guint8 *)path, (guint)strlen(path));
}

static bool
say(const guint8 *bytes, size_t n)
{
    /* A copy of its exact size: a read past it is seen. */
    g_autofree guint8 *exact = g_memdup2(bytes, MAX(n, 1));

    return the_run.sink->output(&the_run, STREAM_STDOUT, exact, n, the_run.ctx);
}

static void
end(Seen *s, RunReason reason, int code)
{
    RunEnd how = {.reason = reason, .code = code};

    the_run.sink->ended(&the_run, &how, the_run.ctx);
    g_assert_true(s->ended);
    g_assert_cmpuint(the_run.refs, ==, 0);
    g_string_free(s->text, TRUE);
}

/* ---- cases ---- */

static void
test_cut_anywhere(void)
{
    static const char expected[] = "1::0 3:a/b:0 6d:x:7 7d:y\n\xff:7 ";
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    put(bytes, WATCH_READY, 0, 0, "");
    put(bytes, WATCH_CREATED, 0, 0, "a/b");
    put(bytes, WATCH_MOVED_FROM, WATCH_IS_DIR, 7, "x");
    put(bytes, WATCH_MOVED_TO, WATCH_IS_DIR, 7, "y\n\xff");
    for (guint cut = 0; cut <= bytes->len; cut++) {
        Seen s = {0};

        start(&s, true);
        g_assert_cmpstr(the_run.argv, ==, "watch /tmp 128");
        g_assert_true(say(bytes->data, cut));
        g_assert_true(say(bytes->data + cut, bytes->len - cut));
        g_assert_cmpstr(s.text->str, ==, expected);
        end(&s, RUN_EXIT, ENOENT);
        g_assert_cmpint(s.kind, ==, ERR_NOT_FOUND);
    }
}

static void
test_nonsense(void)
{
    static const struct {
        guint kind;
        const char *path;
        size_t n;
    } cases[] = {{0, "", 0}, {WATCH_ATTRIBUTES + 1, "", 0}, {255, "", 0}, {WATCH_CREATED, "a\0b", 3}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        BuiltinEvent event = {.kind = (guint8)cases[i].kind, .path_bytes = (guint16)cases[i].n};
        Seen s = {0};

        g_byte_array_append(bytes, (const guint8 *)&event, sizeof event);
        g_byte_array_append(bytes, (const guint8 *)cases[i].path, (guint)cases[i].n);
        start(&s, true);
        say(bytes->data, bytes->len);
        g_assert_cmpstr(s.text->str, ==, "");
        g_assert_cmpuint(the_run.killed, ==, 1);
        say(bytes->data, bytes->len); /* and what it says afterwards is not looked at */
        g_assert_cmpuint(the_run.killed, ==, 1);
        end(&s, RUN_SIGNAL, 9);
        g_assert_cmpint(s.kind, ==, ERR_UNAVAILABLE);
    }
}

static void
test_pauses(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    Seen s = {.stop = true};
    BoxWatch *w = start(&s, false);

    g_assert_cmpstr(the_run.argv, ==, "watch /tmp 0");
    put(bytes, WATCH_READY, 0, 0, "");
    g_assert_false(say(bytes->data, bytes->len));
    box_watch_resume(w);
    g_assert_cmpuint(the_run.resumed, ==, 1);
    end(&s, RUN_LOST, 0);
    g_assert_cmpint(s.kind, ==, ERR_UNAVAILABLE);
}

static void
test_cancelled(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    for (int i = 0; i < 3; i++)
        put(bytes, WATCH_CREATED, 0, 0, "f");
    for (guint at = 1; at <= 3; at++) {
        Seen s = {.cancel_at = at};

        start(&s, true);
        say(bytes->data, bytes->len);
        g_assert_cmpuint(s.changes, ==, at);
        g_assert_cmpuint(the_run.abandoned, ==, 1);
        g_assert_cmpuint(the_run.refs, ==, 0);
        g_string_free(s.text, TRUE);
    }
    Seen s = {0};
    box_watch_cancel(start(&s, true));
    g_assert_cmpuint(the_run.refs, ==, 0);
    g_string_free(s.text, TRUE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch/cut-anywhere", test_cut_anywhere);
    g_test_add_func("/watch/nonsense", test_nonsense);
    g_test_add_func("/watch/pauses", test_pauses);
    g_test_add_func("/watch/cancelled", test_cancelled);
    return g_test_run();
}
