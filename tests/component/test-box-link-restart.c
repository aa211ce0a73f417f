/* SPDX-License-Identifier: Apache-2.0 */
/* The server goes and comes back: nothing is lost, nothing comes twice. */
#include <signal.h>
#include <string.h>

#include "link-fixture.h"
#include "room.h"

enum { LINES = 300000, RESTARTS = 40, LINE = 10 };

static bool
is_ended_in(void *data)
{
    const LinkBox *box = data;

    return box->ended > 0;
}

/* Each line is its own number. */
static void
check_lines(const Followed *f, guint64 n)
{
    g_assert_cmpuint(f->gaps[0], ==, 0);
    g_assert_cmpuint(f->out[0]->len, ==, n * LINE);
    for (guint64 i = 0; i < n; i++) {
        char want[LINE + 1];

        g_snprintf(want, sizeof want, "%09" G_GUINT64_FORMAT "\n", i);
        if (memcmp(f->out[0]->data + i * LINE, want, LINE) != 0)
            g_error("line %" G_GUINT64_FORMAT " is wrong", i);
    }
}

static void
test_middle(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(g_test_rand_int());
    Followed f;
    BoxLinkRun known = {.run = 1, .started_us = 77};

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autofree char *line = g_strdup_printf("seq -f %%09.0f 0 %d; exit 5", LINES - 1);
    g_autoptr(Run) first = link_box_shell(box, 0, line);

    box->forget = false;
    for (int i = 0; i < RESTARTS; i++) {
        turn_some((guint)g_rand_int_range(rand, 0, 60));
        if (box->ready == 0)
            turn_until_count(&box->ready, 1);
        box->ended = 0;
        box->started = 0;
        link_box_restart(box, &known, 1);
    }
    g_assert_cmpint(run_end(first)->reason, ==, RUN_LOST);
    turn_until(is_ended_in, box);
    Run *run = box_link_find(box->link, 1);
    g_assert_cmpint(run_end(run)->code, ==, 5);
    g_assert_cmpuint(run_end(run)->out_bytes, ==, (guint64)LINES * LINE);
    g_assert_cmpint(run_started_us(run), ==, 77);
    g_assert_cmpuint(box->found, ==, 0);
    g_assert_cmpuint(box->ended, ==, 1);
    followed_begin(&f, run, 0, 0);
    followed_to_end(&f);
    check_lines(&f, LINES);
    followed_clear(&f);
    /* The end comes again until it is written down. */
    for (int i = 0; i < 3; i++) {
        box->ended = 0;
        link_box_restart(box, &known, 1);
        turn_until(is_ended_in, box);
    }
    box_link_forget(box->link, box_link_find(box->link, 1));
    /* What init does not know is lost. */
    box->ended = 0;
    link_box_restart(box, &known, 1);
    turn_until(is_ended_in, box);
    run = box_link_find(box->link, 1);
    g_assert_cmpint(run_end(run)->reason, ==, RUN_LOST);
    g_assert_cmpuint(run_end(run)->out_bytes, ==, (guint64)LINES * LINE);
    g_assert_null(box->error);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static bool
never_more(Run *run, FrameStream stream, const guint8 *bytes, size_t n, void *ctx)
{
    return true;
}

static void
never_ended(Run *run, const RunEnd *end, void *ctx)
{
    g_assert_not_reached();
}

/* A run whose row was never written is found; a streamed one, whose reader is gone, is killed. */
static void
test_found(void)
{
    static const RunSink sink = {never_more, never_ended, NULL};
    Followed f;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, START_STDIN, "echo before; cat");
    g_autoptr(Run) streamed = link_box_stream(box, 0, "exec sleep 4242", &sink, NULL);

    turn_until_count(&box->started, 1);
    while (run_pid(streamed) == 0)
        g_main_context_iteration(NULL, TRUE);
    guint32 id = run_id(run), streamed_id = run_id(streamed);
    box->last_run = 0;
    box->forget = false;
    link_box_restart(box, NULL, 0);
    turn_until_count(&box->found, 1);
    g_assert_cmpuint(run_id(box->last_found), ==, id);
    g_assert_null(box_link_find(box->link, streamed_id));
    g_assert_cmpuint(run_write(box->last_found, "after\n", 6), ==, 6);
    run_close_input(box->last_found);
    followed_begin(&f, box->last_found, 0, 0);
    followed_to_end(&f);
    g_autofree char *text = followed_text(&f, 0);
    g_assert_cmpstr(text, ==, "before\nafter\n");
    followed_clear(&f);
    /* No id is given out twice. */
    g_autoptr(Run) next = link_box_shell(box, 0, "true");
    g_assert_cmpuint(run_id(next), >, id);
    turn_until_ended(next);
    for (int left = 1; left > 0;) {
        g_autoptr(Run) count = link_box_shell(box, 0, "ps -A -o args= | grep -c '[s]leep 4242'");

        turn_until_ended(count);
        g_autofree char *n = run_text(count, 0);
        left = (int)g_ascii_strtoll(n, NULL, 10);
    }
    g_assert_null(box->error);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

static void
test_found_unwanted(void)
{
    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, 0, "exec yes");

    turn_until_count(&box->started, 1);
    box->abandon_found = true;
    link_box_restart(box, NULL, 0);
    turn_until_count(&box->found, 1);
    g_assert_true(run_has_ended(box->last_found));
    g_assert_cmpuint(box_link_live(box->link), ==, 0);
    for (int left = 1; left > 0;) {
        g_autoptr(Run) count = link_box_shell(box, 0, "ps -A -o comm= | grep -c yes");

        turn_until_ended(count);
        g_autofree char *n = run_text(count, 0);
        left = (int)g_ascii_strtoll(n, NULL, 10);
    }
    g_assert_null(box->error);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* What init holds of the input is neither lost nor written over by what comes after. */
static void
test_input(void)
{
    g_autoptr(GString) input = g_string_new(NULL);
    BoxLinkRun known = {.run = 1};
    Followed f;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) run = link_box_shell(box, START_STDIN, "read go; sleep 0.4; exec cat");

    for (int i = 0; input->len < 200000; i++)
        g_string_append_printf(input, "word %d\n", i);
    turn_until_count(&box->started, 1);
    g_assert_cmpuint(run_write(run, "go\n", 3), ==, 3);
    g_assert_cmpuint(run_write(run, input->str, 150000), ==, 150000);
    box->ready = 0;
    link_box_restart(box, &known, 1);
    turn_until_count(&box->ready, 1);
    Run *again = box_link_find(box->link, 1);
    g_assert_cmpuint(run_write(again, input->str + 150000, input->len - 150000), ==, input->len - 150000);
    run_close_input(again);
    followed_begin(&f, again, 0, 0);
    followed_to_end(&f);
    g_autofree char *text = followed_text(&f, 0);
    g_assert_true(g_str_equal(text, input->str));
    followed_clear(&f);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* The server dies before init has answered it: what it had promised to start runs. */
static void
test_start_before_the_answer(void)
{
    /* Of a box with a run from before the logs are read first, and HELLO waits for that. */
    static const guint known_before[] = {0, 1};

    if (!room_possible())
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(known_before); i++) {
        LinkBox *box = link_box_new();
        g_autoptr(Run) first = link_box_shell(box, 0, "echo first");

        box->forget = false;
        turn_until_ended(first);
        g_assert_cmpint(kill(box->pid, SIGSTOP), ==, 0);
        box->last_run = 1;
        link_box_restart(box, &(BoxLinkRun){.run = 1}, known_before[i]);
        g_autoptr(Run) second = link_box_shell(box, 0, "echo second; exit 4");
        BoxLinkRun known[] = {{.run = 1}, {.run = run_id(second)}};

        box->ended = 0;
        link_box_restart(box, known, G_N_ELEMENTS(known));
        g_assert_cmpint(kill(box->pid, SIGCONT), ==, 0);
        turn_until_count(&box->ended, 2);
        Run *again = box_link_find(box->link, known[1].run);
        g_autofree char *text = run_text(again, 0);

        g_assert_cmpstr(text, ==, "second\n");
        g_assert_cmpint(run_end(again)->code, ==, 4);
        g_assert_null(box->error);
        g_assert_cmpint(link_box_free(box), ==, 0);
    }
}

/* And if it lives, the answer names it. */
static void
test_answer_after_the_start(void)
{
    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autoptr(Run) first = link_box_shell(box, START_STDIN, "cat");

    turn_until_count(&box->started, 1);
    g_assert_cmpint(kill(box->pid, SIGSTOP), ==, 0);
    box->last_run = 1;
    link_box_restart(box, &(BoxLinkRun){.run = 1}, 1);
    g_autoptr(Run) before = link_box_shell(box, START_STDIN, "echo before; cat");
    turn_some(100);
    g_autoptr(Run) after = link_box_shell(box, START_STDIN, "echo after; cat");
    Run *runs[] = {box_link_find(box->link, 1), before, after};
    static const char *const texts[] = {"x\n", "before\nx\n", "after\nx\n"};

    box->forget = false;
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        g_assert_cmpuint(run_write(runs[i], "x\n", 2), ==, 2);
        run_close_input(runs[i]);
    }
    g_assert_cmpint(kill(box->pid, SIGCONT), ==, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        turn_until_ended(runs[i]);
        g_autofree char *text = run_text(runs[i], 0);

        g_assert_cmpstr(text, ==, texts[i]);
    }
    g_assert_null(box->error);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

/* While nobody is there the box keeps what it can, and says what it could not. */
static void
test_away(void)
{
    BoxLinkRun known = {.run = 1};
    Followed f;

    if (!room_possible())
        return;
    LinkBox *box = link_box_new();
    g_autofree char *line = g_strdup_printf("seq -f %%09.0f 0 %d", 3999999);
    g_autoptr(Run) run = link_box_shell(box, 0, line);

    turn_until_count(&box->started, 1);
    box_link_free(g_steal_pointer(&box->link));
    /* It is over when its pid is not there any more. */
    g_autofree char *children = g_strdup_printf("/proc/%d/task/%d/children", box->pid, box->pid);
    for (;;) {
        g_autofree char *text = NULL;

        g_assert_true(g_file_get_contents(children, &text, NULL, NULL));
        if (text[0] == '\0')
            break;
        g_thread_yield();
    }
    box->ended = 0;
    box->forget = false;
    link_box_restart(box, &known, 1);
    turn_until(is_ended_in, box);
    followed_begin(&f, box_link_find(box->link, 1), 0, 0);
    followed_to_end(&f);
    g_assert_cmpuint(f.at[0], ==, 40000000);
    g_assert_cmpuint(f.gaps[0], >, 0);
    g_assert_cmpuint(f.out[0]->len, >=, (8 << 20) + 32 * 1024);
    g_assert_cmpint(memcmp(f.out[0]->data + f.out[0]->len - LINE, "003999999\n", LINE), ==, 0);
    followed_clear(&f);
    g_assert_cmpint(link_box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/box/link-restart/middle", test_middle);
    g_test_add_func("/box/link-restart/found", test_found);
    g_test_add_func("/box/link-restart/found-unwanted", test_found_unwanted);
    g_test_add_func("/box/link-restart/input", test_input);
    g_test_add_func("/box/link-restart/start-before-the-answer", test_start_before_the_answer);
    g_test_add_func("/box/link-restart/answer-after-the-start", test_answer_after_the_start);
    g_test_add_func("/box/link-restart/away", test_away);
    return g_test_run();
}
