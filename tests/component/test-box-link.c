/* SPDX-License-Identifier: Apache-2.0 */
/* Logged runs in a box with the real init. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "link-fixture.h"
#include "room.h"

enum { ENDLESS_BYTES = 40 << 20 };

static void
test_one(void)
{
    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    /* Before init's HELLO: it is queued. */
    g_autoptr(Run) run = link_box_shell(box, 0, "printf 'one\\ntwo'; printf err >&2; exit 3");

    g_assert_cmpuint(box->ready, ==, 0);
    g_assert_cmpuint(run_id(run), ==, 1);
    g_assert_null(run_end(run));
    g_assert_cmpuint(box_link_live(box->link), ==, 1);
    turn_until_ended(run);
    g_assert_cmpuint(box->ready, ==, 1);
    g_assert_cmpuint(box->started, ==, 1);
    g_assert_cmpuint(box->ended, ==, 1);
    g_assert_cmpuint(box_link_live(box->link), ==, 0);
    g_assert_null(box_link_find(box->link, 1));
    g_assert_cmpint(run_end(run)->reason, ==, RUN_EXIT);
    g_assert_cmpint(run_end(run)->code, ==, 3);
    g_assert_cmpuint(run_end(run)->out_bytes, ==, 7);
    g_assert_cmpuint(run_end(run)->err_bytes, ==, 3);
    g_autofree char *out = run_text(run, 0);
    g_autofree char *err = run_text(run, 1);
    g_assert_cmpstr(out, ==, "one\ntwo");
    g_assert_cmpstr(err, ==, "err");
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
test_ends(void)
{
    static const struct {
        const char *line;
        RunReason reason;
        int code, exit_code;
        const char *message;
    } cases[] = {
        {"exit 0", RUN_EXIT, 0, 0, NULL},
        {"exit 255", RUN_EXIT, 255, 255, NULL},
        {"kill -TERM $$", RUN_SIGNAL, SIGTERM, 143, "killed by SIGTERM"},
        {"kill -KILL $$", RUN_SIGNAL, SIGKILL, 137, "killed by SIGKILL"},
        {"exit 137", RUN_EXIT, 137, 137, NULL},
    };

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Run) run = link_box_shell(box, 0, cases[i].line);

        turn_until_ended(run);
        const RunEnd *end = run_end(run);
        g_autofree char *message = run_end_dup_message(end);
        g_assert_cmpint(end->reason, ==, cases[i].reason);
        g_assert_cmpint(end->code, ==, cases[i].code);
        g_assert_cmpint(run_end_exit_code(end), ==, cases[i].exit_code);
        g_assert_cmpstr(message, ==, cases[i].message);
        g_assert_cmpuint(end->duration_us, >, 0);
    }
    g_assert_cmpuint(box->oom, ==, 2);
    box->is_oom = true;
    g_autoptr(Run) oom = link_box_shell(box, 0, "kill -KILL $$");
    turn_until_ended(oom);
    g_assert_cmpint(run_end(oom)->reason, ==, RUN_OOM);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
test_refused(void)
{
    static const char *const no_args[] = {NULL}, *const empty[] = {"", NULL}, *const ok[] = {"true", NULL};
    static const char *const bad_env[][2] = {{"NAME", NULL}, {"=value", NULL}};
    g_autofree char *huge = g_strnfill(70000, 'x');
    const char *long_args[] = {"true", huge, NULL};
    const struct {
        const char *const *argv, *const *env;
        const char *cwd;
    } cases[] = {
        {no_args, NULL, ""},  {empty, NULL, ""},     {ok, bad_env[0], ""},
        {ok, bad_env[1], ""}, {long_args, NULL, ""}, {ok, NULL, huge},
    };

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        RunSpec spec = {.argv = cases[i].argv, .env = cases[i].env, .user = "", .cwd = cases[i].cwd};
        g_autoptr(GError) error = NULL;

        g_assert_null(box_link_start(box->link, &spec, &error));
        g_assert_cmpint(err_kind(error), ==, ERR_INVALID);
    }
    static const char *const missing[] = {"/no/such/program", NULL};
    RunSpec spec = {.argv = missing, .user = "", .cwd = "/"};
    g_autoptr(Run) run = box_link_start(box->link, &spec, NULL);
    turn_until_ended(run);
    g_assert_cmpint(run_end(run)->reason, ==, RUN_NOT_STARTED);
    g_assert_cmpint(run_end(run)->code, ==, ENOENT);
    g_assert_cmpint(run_end_exit_code(run_end(run)), ==, 127);
    g_assert_cmpuint(run_end(run)->stage, ==, FAIL_EXEC);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* Every byte, in both streams, of ten at once, seen live and read again later. */
static void
test_many(void)
{
    enum { N = 10 };
    Run *runs[N];
    Followed live[N];

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    box->forget = false;
    for (int i = 0; i < N; i++) {
        g_autofree char *line = g_strdup_printf("i=0; while [ $i -lt 20000 ]; do echo %d-$i; [ $((i %% 100)) "
                                                "= 0 ] && echo e%d-$i >&2; i=$((i+1)); done",
                                                i, i);

        runs[i] = link_box_shell(box, 0, line);
        followed_begin(&live[i], runs[i], 0, 0);
    }
    for (int i = 0; i < N; i++) {
        g_autoptr(GString) want = g_string_new(NULL);
        g_autoptr(GString) want_err = g_string_new(NULL);

        for (int k = 0; k < 20000; k++)
            g_string_append_printf(want, "%d-%d\n", i, k);
        for (int k = 0; k < 20000; k += 100)
            g_string_append_printf(want_err, "e%d-%d\n", i, k);
        followed_to_end(&live[i]);
        for (int pass = 0; pass < 2; pass++) {
            g_autofree char *out = pass == 0 ? followed_text(&live[i], 0) : run_text(runs[i], 0);
            g_autofree char *err = pass == 0 ? followed_text(&live[i], 1) : run_text(runs[i], 1);

            g_assert_true(g_str_equal(out, want->str));
            g_assert_cmpstr(err, ==, want_err->str);
        }
        g_assert_cmpuint(run_end(runs[i])->out_bytes, ==, want->len);
        followed_clear(&live[i]);
        g_assert_true(box_link_find(box->link, run_id(runs[i])) == runs[i]);
        box_link_forget(box->link, runs[i]);
        run_unref(runs[i]);
    }
    g_assert_cmpint(link_box_free(box), ==, 0);
}

typedef struct Tapped {
    GString *out, *err;
    guint64 gaps, bytes;
    guint ended;
} Tapped;

static void
tap_output(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    Tapped *t = ctx;

    t->bytes += n;
    if (t->out != NULL)
        g_string_append_len(stream == STREAM_STDOUT ? t->out : t->err, (const char *)bytes, (gssize)n);
}

static void
tap_gap(Run *run, FrameStream stream, guint64 n, void *ctx)
{
    ((Tapped *)ctx)->gaps += n;
}

static void
tap_ended(Run *run, const RunEnd *end, void *ctx)
{
    ((Tapped *)ctx)->ended++;
}

static const RunTap tap = {tap_output, tap_gap, tap_ended};

static void
test_tap(void)
{
    Tapped t = {.out = g_string_new(NULL), .err = g_string_new(NULL)};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, 0, "echo a; sleep 0.05; echo b >&2; sleep 0.05; echo c");

    run_tap(run, &tap, &t);
    turn_until_ended(run);
    g_assert_cmpstr(t.out->str, ==, "a\nc\n");
    g_assert_cmpstr(t.err->str, ==, "b\n");
    g_assert_cmpuint(t.ended, ==, 1);
    g_autoptr(Run) other = link_box_shell(box, 0, "echo d");
    run_tap(other, &tap, &t);
    run_untap(other);
    turn_until_ended(other);
    g_assert_cmpuint(t.ended, ==, 1);
    g_assert_cmpstr(t.out->str, ==, "a\nc\n");
    g_string_free(t.out, TRUE);
    g_string_free(t.err, TRUE);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static bool
has_heard_much(void *data)
{
    return ((Tapped *)data)->bytes > ENDLESS_BYTES;
}

/* Endless output: what was dropped is told, the log stays within its bounds, and who reads it
 * meanwhile is served. */
static void
test_endless(void)
{
    Tapped t = {0};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, 0, "exec yes");
    Followed f;

    run_tap(run, &tap, &t);
    turn_until(has_heard_much, &t);
    followed_begin(&f, run, 0, 0);
    while (f.out[0]->len < 1 << 20) {
        if (!f.go || !followed_step(&f))
            g_main_context_iteration(NULL, TRUE);
    }
    g_assert_false(run_has_ended(run));
    followed_clear(&f);
    run_signal(run, SIGKILL);
    turn_until_ended(run);
    g_assert_cmpuint(t.gaps + t.bytes, ==, run_end(run)->out_bytes);
    followed_begin(&f, run, 0, 0);
    followed_to_end(&f);
    g_assert_cmpuint(f.at[0], ==, run_end(run)->out_bytes);
    g_assert_cmpuint(f.out[0]->len, <=, 16 << 20);
    g_assert_cmpuint(f.out[0]->len, >=, 8 << 20);
    g_assert_cmpuint(f.gaps[0], >, 0);
    followed_clear(&f);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* Short output is read where it is; longer output by slices, of which the middle may be left out;
 * whichever stream it is in. */
static void
test_reports(void)
{
#define SUMMARY "printf 'TAP version 13\\n1..2\\nok 1 - a\\nnot ok 2 - b\\n'"
    static const struct {
        const char *line;
        bool found, partial;
    } cases[] = {
        {"echo nothing", false, false},
        {"true", false, false},
        {SUMMARY, true, false},
        {SUMMARY " >&2; seq 100", true, false},
        {"seq 5000; " SUMMARY, true, false},
        {"seq 5000; " SUMMARY "; seq 5000; seq 5000 >&2", true, false},
        {"seq 5000; " SUMMARY " >&2; seq 5000 >&2", true, false},
        {"seq 600000; " SUMMARY, true, true},
        {"seq 600000; " SUMMARY "; seq 600000", false, false},
        {"seq 100000; seq 600000 >&2; " SUMMARY " >&2", true, true},
    };

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Run) run = link_box_shell(box, 0, cases[i].line);

        g_test_message("%s", cases[i].line);
        g_assert_null(run_test_report(run));
        turn_until_ended(run);
        const TestReport *report = run_test_report(run);
        g_assert_cmpint(report != NULL, ==, cases[i].found);
        if (report == NULL)
            continue;
        g_assert_cmpint(report->total, ==, 2);
        g_assert_cmpint(report->failed, ==, 1);
        g_assert_cmpint(report->partial, ==, cases[i].partial);
    }
    g_assert_cmpint(link_box_free(box), ==, 0);
#undef SUMMARY
}

static void
test_timeout(void)
{
    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    const char *const argv[] = {"/bin/sh", "-c", "sleep 1000 & sleep 1000", NULL};
    RunSpec spec = {.argv = argv, .user = "", .cwd = "/", .timeout_ms = 200};
    g_autoptr(Run) run = box_link_start(box->link, &spec, NULL);

    turn_until_ended(run);
    g_assert_cmpint(run_end(run)->reason, ==, RUN_TIMEOUT);
    g_assert_cmpint(run_end_exit_code(run_end(run)), ==, 124);
    g_assert_cmpuint(run_end(run)->duration_us, >=, 200000);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
never(void *data)
{
    g_assert_not_reached();
}

/* Some come late, some leave early, one begins in the middle and one behind the end. */
static void
test_followers(void)
{
    Followed late, middle, behind;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, START_STDIN,
                                        "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done; cat");
    Tapped t = {0};
    RunPiece piece;

    run_tap(run, &tap, &t);
    RunFollower *leaves = run_follow(run, 0, 0, never, NULL);
    g_assert_cmpint(run_follower_next(leaves, &piece), ==, RUN_STEP_WAIT);
    run_follower_free(leaves);
    while (t.bytes < 40000)
        g_main_context_iteration(NULL, TRUE);
    followed_begin(&late, run, 0, 0);
    followed_begin(&middle, run, 30000, 0);
    followed_begin(&behind, run, 1000000, 0);
    /* This one asks the log and leaves while it is read. */
    leaves = run_follow(run, 0, 0, never, NULL);
    (void)run_follower_next(leaves, &piece);
    run_follower_free(leaves);
    run_close_input(run);
    followed_to_end(&late);
    followed_to_end(&middle);
    followed_to_end(&behind);
    g_assert_cmpuint(late.out[0]->len, ==, run_end(run)->out_bytes);
    g_assert_cmpuint(middle.out[0]->len, ==, run_end(run)->out_bytes - 30000);
    g_assert_cmpint(memcmp(late.out[0]->data + 30000, middle.out[0]->data, middle.out[0]->len), ==, 0);
    g_assert_cmpuint(behind.out[0]->len, ==, 0);
    followed_clear(&late);
    followed_clear(&middle);
    followed_clear(&behind);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static bool
says(void *data)
{
    Followed *f = ((void **)data)[0];
    const char *text = ((void **)data)[1];

    while (f->go && followed_step(f))
        ;
    g_autofree char *got = followed_text(f, 0);
    return strstr(got, text) != NULL;
}

static void
expect(Followed *f, const char *text)
{
    const void *args[] = {f, text};

    turn_until(says, args);
}

static void
type(Run *run, const char *text)
{
    g_assert_cmpuint(run_write(run, text, strlen(text)), ==, strlen(text));
}

static void
test_terminal(void)
{
    Followed f;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    const char *const argv[] = {
        "/bin/sh", "-c",
        "trap 'echo size $(stty size)' WINCH; stty size; stty -echo; echo ready; "
        "until read a; [ -n \"$a\" ]; do :; done; echo got $a; trap 'echo int' INT; echo armed; "
        "read b; echo over $?",
        NULL};
    const char *const env[] = {"TERM=dumb", NULL};
    RunSpec spec = {
        .flags = START_TTY, .argv = argv, .env = env, .user = "", .cwd = "/", .rows = 30, .columns = 100};
    g_autoptr(Run) run = box_link_start(box->link, &spec, NULL);

    g_assert_true(run_is_terminal(run));
    followed_begin(&f, run, 0, 0);
    expect(&f, "30 100\r\n");
    expect(&f, "ready\r\n");
    run_resize(run, 50, 120);
    type(run, "word\n");
    expect(&f, "got word\r\n");
    expect(&f, "size 50 120\r\n");
    expect(&f, "armed\r\n");
    run_signal(run, SIGINT);
    expect(&f, "int\r\n");
    run_close_input(run);
    followed_to_end(&f);
    followed_clear(&f);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
test_kill(void)
{
    Followed f;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, 0, "echo up; sleep 1000 & sleep 1000");

    followed_begin(&f, run, 0, 0);
    expect(&f, "up\n");
    run_signal(run, SIGTERM);
    run_signal(run, SIGKILL);
    followed_to_end(&f);
    g_assert_cmpint(run_end(run)->reason, ==, RUN_SIGNAL);
    /* Not yet begun, it is not spared. */
    g_autoptr(Run) early = link_box_shell(box, 0, "exec sleep 1000");
    run_signal(early, SIGTERM);
    turn_until_ended(early);
    g_assert_cmpint(run_end(early)->code, ==, SIGTERM);
    /* What comes too late is nobody's. */
    run_signal(run, SIGKILL);
    run_resize(run, 1, 1);
    g_assert_cmpuint(run_write(run, "x", 1), ==, 0);
    run_close_input(run);
    followed_clear(&f);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* The box is ended in an orderly way, and by the loss of its init. */
static void
test_closed(void)
{
    if (!room_possible())
        return;
    for (int lost = 0; lost < 2; lost++) {
        LinkBox *box = link_box_new();
        Followed f;
        g_autoptr(Run) run = link_box_shell(box, 0, "echo up; exec sleep 1000");

        followed_begin(&f, run, 0, 0);
        expect(&f, "up\n");
        if (lost == 1)
            kill(box->pid, SIGKILL);
        else
            box_link_stop(box->link);
        turn_until_count(&box->closed, 1);
        g_assert_null(box->error);
        g_assert_cmpint(run_end(run)->reason, ==, lost == 1 ? RUN_LOST : RUN_STOPPED);
        g_assert_cmpuint(run_end(run)->out_bytes, ==, 3);
        followed_to_end(&f);
        followed_clear(&f);
        g_autoptr(GError) error = NULL;
        const char *const argv[] = {"true", NULL};
        RunSpec spec = {.argv = argv};
        g_assert_null(box_link_start(box->link, &spec, &error));
        g_assert_cmpint(err_kind(error), ==, ERR_UNAVAILABLE);
        (void)link_box_free(box);
    }
}

static void
on_connected(int fd, const GError *error, void *data)
{
    g_assert_cmpint(fd, ==, -1);
    *(int *)data = err_kind(error) == ERR_UNAVAILABLE ? 1 : 2;
}

static void
on_probed(bool alive, void *data)
{
    *(int *)data = alive ? 1 : 2;
}

static bool
is_set(void *data)
{
    return *(int *)data != 0;
}

static void
test_connect(void)
{
    int refused = 0, alive = 0;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();

    box_link_connect(box->link, 1, on_connected, &refused);
    box_link_probe(box->link, on_probed, &alive);
    turn_until(is_set, &refused);
    turn_until(is_set, &alive);
    g_assert_cmpint(refused, ==, 1);
    g_assert_cmpint(alive, ==, 1);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/link/one", test_one);
    g_test_add_func("/box/link/ends", test_ends);
    g_test_add_func("/box/link/refused", test_refused);
    g_test_add_func("/box/link/many", test_many);
    g_test_add_func("/box/link/tap", test_tap);
    g_test_add_func("/box/link/endless", test_endless);
    g_test_add_func("/box/link/reports", test_reports);
    g_test_add_func("/box/link/timeout", test_timeout);
    g_test_add_func("/box/link/followers", test_followers);
    g_test_add_func("/box/link/terminal", test_terminal);
    g_test_add_func("/box/link/kill", test_kill);
    g_test_add_func("/box/link/closed", test_closed);
    g_test_add_func("/box/link/connect", test_connect);
    return g_test_run();
}
