/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor with small programs.  Each tells what happens to it by lines,
 * which come through the supervisor's own pipe, so that order and content are checked as a
 * reader of `coop start` would see them. */
#include <fcntl.h>
#include <glib-unix.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/supervisor.h"

enum { PROGRAMS_MAX = 3, TEST_DEADLINE_S = 60 };

typedef struct Run {
    GMainLoop *loop;
    Supervisor *supervisor;
    char *folder; /* the scripts' working place, "$D" */
    SupervisorProgram programs[PROGRAMS_MAX];
    char **argv[PROGRAMS_MAX];
    size_t n;
    GString *lines;
    int out[2];
    guint source;
    guint deadline;
    const char *stop_at;  /* a line after which the supervisor is told to stop */
    const char *again_at; /* and told again */
    bool done;
    ExitCode code;
    char *message;
} Run;

static void
on_done(ExitCode code, const char *message, void *data)
{
    Run *run = data;

    g_assert_false(run->done);
    run->done = true;
    run->code = code;
    run->message = g_strdup(message);
    g_main_loop_quit(run->loop);
}

static void
read_out(Run *run)
{
    char text[1024];
    ssize_t n;

    while ((n = read(run->out[0], text, sizeof text)) > 0)
        g_string_append_len(run->lines, text, n);
}

static void
stop_when_seen(Run *run, const char **line)
{
    if (*line == NULL || strstr(run->lines->str, *line) == NULL)
        return;
    *line = NULL;
    supervisor_stop(run->supervisor);
}

static gboolean
on_out(int fd, GIOCondition condition, gpointer data)
{
    Run *run = data;

    read_out(run);
    stop_when_seen(run, &run->stop_at);
    stop_when_seen(run, &run->again_at);
    return G_SOURCE_CONTINUE;
}

static gboolean
on_deadline(gpointer data)
{
    const Run *run = data;

    g_error("nothing ended; lines so far:\n%s", run->lines->str);
    return G_SOURCE_REMOVE;
}

static void
run_init(Run *run)
{
    *run = (Run){.loop = g_main_loop_new(NULL, FALSE), .lines = g_string_new(NULL)};
    run->folder = g_dir_make_tmp("coop-supervisor-XXXXXX", NULL);
    g_assert_true(g_unix_open_pipe(run->out, FD_CLOEXEC, NULL));
    g_assert_true(g_unix_set_fd_nonblocking(run->out[0], TRUE, NULL));
}

static void
run_add(Run *run, const char *name, const char *script, SupervisorRestart restart)
{
    g_autofree char *whole = g_strdup_printf("D='%s'; N=%s; %s", run->folder, name, script);
    const char *const argv[] = {"sh", "-c", whole, NULL};

    run->argv[run->n] = g_strdupv((char **)(guintptr)argv);
    run->programs[run->n] = (SupervisorProgram){name, (const char *const *)run->argv[run->n], restart};
    run->n++;
}

static void
run_go(Run *run, SupervisorTimes times)
{
    SupervisorSpec spec = {.programs = run->programs,
                           .n_programs = run->n,
                           .times = times,
                           .out_fd = run->out[1],
                           .on_done = on_done,
                           .data = run};

    run->source = g_unix_fd_add(run->out[0], G_IO_IN, on_out, run);
    run->deadline = g_timeout_add_seconds(TEST_DEADLINE_S, on_deadline, run);
    run->supervisor = supervisor_new(&spec);
    g_main_loop_run(run->loop);
    read_out(run);
    supervisor_free(run->supervisor);
    run->supervisor = NULL;
}

static void
run_clear(Run *run)
{
    const char *const rm[] = {"rm", "-rf", run->folder, NULL};

    g_source_remove(run->source);
    g_source_remove(run->deadline);
    close(run->out[0]);
    close(run->out[1]);
    for (size_t i = 0; i < run->n; i++)
        g_strfreev(run->argv[i]);
    g_assert_true(g_spawn_sync(NULL, (char **)(guintptr)rm, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL,
                               NULL, NULL));
    g_string_free(run->lines, TRUE);
    g_main_loop_unref(run->loop);
    g_free(run->folder);
    g_free(run->message);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

/* Fast enough for a test; the deadlines that must not fire are long. */
static const SupervisorTimes quick = {
    .first_delay_ms = 1, .max_delay_ms = 8, .stable_ms = 60000, .ready_ms = 30000, .stop_ms = 30000};

#define COUNT "n=$(($(cat $D/$N 2>/dev/null || echo 0) + 1)); echo $n >$D/$N; "
/* A shell may miss a signal between looking for it and sleeping; sigwait() cannot.  They die
 * with the test, also when it fails. */
#define PROGRAM(body)                                                                                        \
    "exec setpriv --pdeathsig KILL /usr/bin/python3 -ISc 'import signal as s, sys\n"                         \
    "def say(line): print(line, flush=True)\n"                                                               \
    "s.pthread_sigmask(s.SIG_BLOCK, [s.SIGTERM])\n" body "' $N"
#define UNTIL_TERM "s.sigwait([s.SIGTERM])\n"
#define SERVE                                                                                                \
    PROGRAM("say(sys.argv[1] + \" up\"); say(\"ready\")\n" UNTIL_TERM "say(sys.argv[1] + \" stopped\")")
#define DEAF PROGRAM("say(\"up\"); say(\"ready\")\n" UNTIL_TERM "say(\"deaf\")\n" UNTIL_TERM)
#define NEVER_READY PROGRAM(UNTIL_TERM)

static void
test_order(void)
{
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a", SERVE, RESTART_ALWAYS);
    run_add(&run, "b", SERVE, RESTART_ALWAYS);
    run_add(&run, "c", SERVE, RESTART_ALWAYS);
    run.stop_at = "c up\n";
    run_go(&run, quick);
    g_assert_cmpstr(run.lines->str, ==, "a up\nb up\nc up\nc stopped\nb stopped\na stopped\n");
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
    g_assert_null(run.message);
}

/* Its third life works; the program after it waits until then. */
static void
test_crashes_are_restarted(void)
{
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a", COUNT "echo life $n; [ $n = 1 ] && exit 1; [ $n = 2 ] && kill -9 $$; " SERVE,
            RESTART_ALWAYS);
    run_add(&run, "b", SERVE, RESTART_ALWAYS);
    run.stop_at = "b up\n";
    run_go(&run, quick);
    g_assert_cmpstr(run.lines->str, ==, "life 1\nlife 2\nlife 3\na up\nb up\nb stopped\na stopped\n");
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
}

/* One that was ready is restarted for ever; the others are left alone. */
static void
test_ready_program_is_never_given_up(void)
{
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a", SERVE, RESTART_ALWAYS);
    run_add(&run, "b", COUNT "echo ready; echo life $n; [ $n -lt 12 ] && exit 6; " SERVE, RESTART_ALWAYS);
    run.stop_at = "b up\n";
    run_go(&run, quick);
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
    g_assert_true(g_str_has_prefix(run.lines->str, "a up\nlife 1\nlife 2\n"));
    g_assert_true(g_str_has_suffix(run.lines->str, "life 12\nb up\nb stopped\na stopped\n"));
}

static void
test_given_up(void)
{
    static const struct {
        const char *script;
        const char *lines;
        ExitCode code;
        const char *message;
    } cases[] = {
        {"echo no; exit 78", "a up\nno\na stopped\n", EXIT_CODE_CONFIG,
         "b cannot run with this configuration (exit code 78)"},
        {"echo no; exit 2", "a up\nno\na stopped\n", EXIT_CODE_USAGE,
         "b cannot run with this configuration (exit code 2)"},
        {"echo ready; echo yes; exit 78", "a up\nyes\na stopped\n", EXIT_CODE_CONFIG,
         "b cannot run with this configuration (exit code 78)"},
        {"echo no; exit 6", "a up\nno\na stopped\n", EXIT_CODE_CONFLICT,
         "b could not start: what it needs is in use (exit code 6)"},
        {"echo no; exit 1", "a up\nno\nno\nno\nno\nno\na stopped\n", EXIT_CODE_FAILED,
         "b failed 5 times in a row and was never ready"},
        {"echo no; kill -SEGV $$", "a up\nno\nno\nno\nno\nno\na stopped\n", EXIT_CODE_FAILED,
         "b failed 5 times in a row and was never ready"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Run) run;

        g_test_message("%s", cases[i].script);
        run_init(&run);
        run_add(&run, "a", SERVE, RESTART_ALWAYS);
        run_add(&run, "b", cases[i].script, RESTART_ALWAYS);
        run_go(&run, quick);
        g_assert_cmpstr(run.lines->str, ==, cases[i].lines);
        g_assert_cmpint(run.code, ==, cases[i].code);
        g_assert_cmpstr(run.message, ==, cases[i].message);
    }
}

/* The others do not wait for it, and it is tried until it works, whatever it said before. */
static void
test_optional_program(void)
{
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a", COUNT "[ $n -lt 12 ] && exit 78; " SERVE, RESTART_ALWAYS);
    run.programs[0].optional = true;
    run_add(&run, "b", SERVE, RESTART_ALWAYS);
    run.stop_at = "a up\n";
    run_go(&run, quick);
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
    g_assert_nonnull(strstr(run.lines->str, "b up\n"));
    g_assert_true(g_str_has_suffix(run.lines->str, "a stopped\n"));
}

static void
test_missing_program(void)
{
    static const char *const argv[] = {"/nonexistent/coop", NULL};
    g_auto(Run) run;

    run_init(&run);
    run.programs[0] = (SupervisorProgram){"a", argv, RESTART_ALWAYS};
    run.argv[0] = g_new0(char *, 1);
    run.n = 1;
    run_go(&run, quick);
    g_assert_cmpint(run.code, ==, EXIT_CODE_FAILED);
    g_assert_cmpstr(run.message, ==, "start '/nonexistent/coop': No such file or directory");
}

static void
test_end_of_one_can_be_the_end(void)
{
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a", SERVE, RESTART_ALWAYS);
    run_add(&run, "b", COUNT "echo ready; echo life $n; [ $n -lt 3 ] && exit 1; exit 0", RESTART_ON_FAILURE);
    run_go(&run, quick);
    g_assert_cmpstr(run.lines->str, ==, "a up\nlife 1\nlife 2\nlife 3\na stopped\n");
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
    g_assert_null(run.message);
}

static void
test_term_ignorer_is_killed(void)
{
    SupervisorTimes times = quick;
    g_auto(Run) run;

    times.stop_ms = 20;
    run_init(&run);
    run_add(&run, "a", SERVE, RESTART_ALWAYS);
    run_add(&run, "b", DEAF, RESTART_ALWAYS);
    run.stop_at = "\nup\n";
    run_go(&run, times);
    /* Whether it came to say "deaf" before it was killed is a race that does not matter. */
    g_assert_true(g_str_has_prefix(run.lines->str, "a up\nup\n"));
    g_assert_true(g_str_has_suffix(run.lines->str, "\na stopped\n"));
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
}

/* With a deadline that would outlast the test. */
static void
test_second_stop_does_not_wait(void)
{
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a", SERVE, RESTART_ALWAYS);
    run_add(&run, "b", DEAF, RESTART_ALWAYS);
    run.stop_at = "\nup\n";
    run.again_at = "deaf\n";
    run_go(&run, quick);
    g_assert_cmpstr(run.lines->str, ==, "a up\nup\ndeaf\n");
}

static void
test_never_ready(void)
{
    SupervisorTimes times = quick;
    g_auto(Run) run;

    times.ready_ms = 20;
    run_init(&run);
    run_add(&run, "a", NEVER_READY, RESTART_ALWAYS);
    run_go(&run, times);
    g_assert_cmpstr(run.message, ==, "a failed 5 times in a row and was never ready");
}

/* Delays 20, 40, 80, 80 ms: at least their sum passes, and not without bound. */
static void
test_backoff_doubles_up_to_its_bound(void)
{
    SupervisorTimes times = quick;
    g_auto(Run) run;

    times.first_delay_ms = 20;
    times.max_delay_ms = 80;
    run_init(&run);
    run_add(&run, "a", "exit 1", RESTART_ALWAYS);
    gint64 start = clock_mono_us();
    run_go(&run, times);
    gint64 took_ms = (clock_mono_us() - start) / 1000;
    g_assert_cmpint(took_ms, >=, 20 + 40 + 80 + 80);
}

/* Failures before a stable time do not count: with a bound far beyond the test's deadline,
 * only the first delay is ever used. */
static void
test_stable_time_resets_the_delay(void)
{
    SupervisorTimes times = quick;
    g_auto(Run) run;

    times.first_delay_ms = 1;
    times.max_delay_ms = 1 << 30;
    times.stable_ms = 0;
    run_init(&run);
    run_add(&run, "a", COUNT "echo ready; [ $n -lt 40 ] && exit 1; " SERVE, RESTART_ALWAYS);
    run.stop_at = "a up\n";
    run_go(&run, times);
    g_assert_cmpstr(run.lines->str, ==, "a up\na stopped\n");
}

static void
test_lines(void)
{
    g_autofree char *xs = g_strnfill(3 * SUPERVISOR_LINE_MAX, 'x');
    g_autofree char *want = g_strconcat("ready http://x\nnot ready\nreadyish\n", xs, "\nno end", NULL);
    g_auto(Run) run;

    run_init(&run);
    run_add(&run, "a",
            "echo ready http://x; echo not ready; echo readyish; echo ready; "
            "head -c 12288 /dev/zero | tr '\\0' x; echo; printf 'no end'; exit 0",
            RESTART_ON_FAILURE);
    run_go(&run, quick);
    g_assert_cmpstr(run.lines->str, ==, want);
}

/* Nobody reads the lines: the supervisor must not block on its own output. */
static void
test_unread_lines_are_dropped(void)
{
    g_auto(Run) run;
    char page[4096] = {0};

    run_init(&run);
    g_assert_true(g_unix_set_fd_nonblocking(run.out[1], TRUE, NULL));
    while (write(run.out[1], page, sizeof page) > 0) {
    }
    g_assert_true(g_unix_set_fd_nonblocking(run.out[1], FALSE, NULL));
    autofd reader = g_steal_fd(&run.out[0]);
    int other[2];
    g_assert_true(g_unix_open_pipe(other, FD_CLOEXEC, NULL));
    run.out[0] = other[0];
    autofd writer = other[1];
    g_assert_true(g_unix_set_fd_nonblocking(run.out[0], TRUE, NULL));
    run_add(&run, "a", "for i in 1 2 3; do echo line; done; echo ready; exit 0", RESTART_ON_FAILURE);
    run_go(&run, quick);
    g_assert_cmpint(run.code, ==, EXIT_CODE_OK);
    g_assert_cmpint(reader, >=, 0);
    g_assert_cmpint(writer, >=, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/supervisor/order", test_order);
    g_test_add_func("/supervisor/restart", test_crashes_are_restarted);
    g_test_add_func("/supervisor/ready-once", test_ready_program_is_never_given_up);
    g_test_add_func("/supervisor/given-up", test_given_up);
    g_test_add_func("/supervisor/optional", test_optional_program);
    g_test_add_func("/supervisor/missing-program", test_missing_program);
    g_test_add_func("/supervisor/on-failure", test_end_of_one_can_be_the_end);
    g_test_add_func("/supervisor/kill", test_term_ignorer_is_killed);
    g_test_add_func("/supervisor/second-stop", test_second_stop_does_not_wait);
    g_test_add_func("/supervisor/never-ready", test_never_ready);
    g_test_add_func("/supervisor/backoff", test_backoff_doubles_up_to_its_bound);
    g_test_add_func("/supervisor/stable", test_stable_time_resets_the_delay);
    g_test_add_func("/supervisor/lines", test_lines);
    g_test_add_func("/supervisor/unread-lines", test_unread_lines_are_dropped);
    return g_test_run();
}
