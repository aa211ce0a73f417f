/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "base/io.h"
#include "base/spawn.h"

enum { WATCHDOG_S = 60, OUTPUT_MAX = 4096 };

typedef struct Watch {
    guint exits;
    ChildExit how;
} Watch;

static void
on_exit_note(Child *child, ChildExit how, void *data)
{
    Watch *watch = data;

    watch->exits++;
    watch->how = how;
}

static void
wait_for_exit(const Watch *watch)
{
    while (watch->exits == 0)
        g_main_context_iteration(NULL, TRUE);
    g_assert_cmpuint(watch->exits, ==, 1);
}

static Child *
spawn_ok(const SpawnSpec *spec, ChildExitFunc on_exit, void *data)
{
    g_autoptr(GError) error = NULL;
    Child *child = child_spawn(spec, on_exit, data, &error);

    g_assert_no_error(error);
    g_assert_nonnull(child);
    return child;
}

/* Runs it to its end; what it wrote to its output. */
static char *
run(SpawnSpec spec, ChildExit *ret_how)
{
    g_autofree char *text = g_malloc0(OUTPUT_MAX + 1);
    Watch watch = {0};
    int fds[2];

    g_assert_no_errno(pipe2(fds, O_CLOEXEC));
    spec.stdout_fd = fds[1];
    G_GNUC_UNUSED g_autoptr(Child) child = spawn_ok(&spec, on_exit_note, &watch);
    close(fds[1]);
    g_assert_cmpint(io_read_full(fds[0], text, OUTPUT_MAX), <, OUTPUT_MAX);
    close(fds[0]);
    wait_for_exit(&watch);
    if (ret_how != NULL)
        *ret_how = watch.how;
    else
        g_assert_true(!watch.how.signalled && watch.how.value == 0);
    return g_steal_pointer(&text);
}

static char *
run_shell(const char *script, SpawnSpec spec, ChildExit *ret_how)
{
    const char *const argv[] = {"sh", "-c", script, NULL};

    spec.argv = argv;
    return run(spec, ret_how);
}

static const SpawnSpec plain = SPAWN_SPEC_INIT;

static void
test_exits(void)
{
    static const struct {
        const char *script;
        ChildExit how;
    } cases[] = {
        {"exit 0", {false, 0}},
        {"exit 3", {false, 3}},
        {"exit 255", {false, 255}},
        {"kill -KILL $$", {true, SIGKILL}},
        {"kill -TERM $$", {true, SIGTERM}},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        ChildExit how;
        G_GNUC_UNUSED g_autofree char *text = run_shell(cases[i].script, plain, &how);

        g_test_message("%s", cases[i].script);
        g_assert_cmpint(how.signalled, ==, cases[i].how.signalled);
        g_assert_cmpint(how.value, ==, cases[i].how.value);
    }
}

static void
check_not_started(const char *program, const char *cwd, ErrKind kind, const char *text)
{
    const char *const argv[] = {program, NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    Watch watch = {0};
    g_autoptr(GError) error = NULL;

    spec.argv = argv;
    spec.cwd = cwd;
    g_test_message("'%s' in '%s'", program, cwd);
    g_assert_null(child_spawn(&spec, on_exit_note, &watch, &error));
    g_assert_error(error, ERR_DOMAIN, (int)kind);
    g_assert_nonnull(strstr(error->message, text));
    g_assert_cmpuint(watch.exits, ==, 0);
}

static void
test_not_started(void)
{
    check_not_started("/no/such/program", NULL, ERR_NOT_FOUND, "'/no/such/program'");
    check_not_started("no-such-program-anywhere", NULL, ERR_NOT_FOUND, "'no-such-program-anywhere'");
    check_not_started("/etc/passwd", NULL, ERR_DENIED, "/etc/passwd");
    check_not_started("true", "/no/such/folder", ERR_NOT_FOUND, "/no/such/folder");
}

static void
test_surroundings(void)
{
    static const char *const env[] = {"A=b c", "PATH=/usr/bin:/bin", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;

    spec.cwd = "/usr";
    g_autofree char *cwd = run_shell("pwd -P", spec, NULL);
    g_assert_cmpstr(cwd, ==, "/usr\n");

    spec.env = env;
    g_autofree char *text = run_shell("echo \"$A-$COOP_TEST_ENV\"", spec, NULL);
    g_assert_cmpstr(text, ==, "b c-\n");
    g_autofree char *inherited = run_shell("echo \"$COOP_TEST_ENV\"", plain, NULL);
    g_assert_cmpstr(inherited, ==, "ours\n");

    g_autofree char *session = run_shell("cut -d' ' -f5,6 /proc/$$/stat; echo $$", plain, NULL);
    spec.new_session = true;
    g_autofree char *own = run_shell("cut -d' ' -f5,6 /proc/$$/stat; echo $$", spec, NULL);
    long group, sid, pid;
    g_assert_cmpint(sscanf(own, "%ld %ld %ld", &group, &sid, &pid), ==, 3);
    g_assert_cmpint(group, ==, pid);
    g_assert_cmpint(sid, ==, pid);
    g_assert_cmpint(sscanf(session, "%ld %ld %ld", &group, &sid, &pid), ==, 3);
    g_assert_cmpint(sid, ==, getsid(0));
}

/* Even one that somebody forgot to mark stays here. */
static void
test_descriptors(void)
{
    autofd forgotten = open("/dev/null", O_RDWR);
    autofd high = fcntl(forgotten, F_DUPFD, 200);

    g_assert_cmpint(high, >=, 200);
    g_autofree char *text = run_shell("ls /proc/$$/fd; :", plain, NULL);
    g_assert_cmpstr(text, ==, "0\n1\n2\n");
    g_autofree char *in = run_shell("readlink /proc/$$/fd/0", plain, NULL);
    g_assert_cmpstr(in, ==, "/dev/null\n");
}

/* Whatever their numbers are here, the other one's included. */
static void
test_more_descriptors(void)
{
    static const struct {
        int extra, second; /* 0: none */
        const char *text;
    } cases[] = {
        {60, 61, "0\n1\n2\n3\n4\none two "}, {3, 4, "0\n1\n2\n3\n4\none two "},
        {4, 3, "0\n1\n2\n3\n4\none two "},   {60, 0, "0\n1\n2\n3\none "},
        {0, 61, "0\n1\n2\n4\ntwo "},         {0, 3, "0\n1\n2\n4\ntwo "},
    };
    autofd one = io_open_memory("one", "one ", 4);
    autofd two = io_open_memory("two", "two ", 4);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        int kept[] = {fcntl(3, F_DUPFD_CLOEXEC, 100), fcntl(4, F_DUPFD_CLOEXEC, 100)};
        int from[] = {fcntl(one, F_DUPFD_CLOEXEC, 100), fcntl(two, F_DUPFD_CLOEXEC, 100)};
        SpawnSpec spec = SPAWN_SPEC_INIT;

        g_test_message("%d and %d", cases[i].extra, cases[i].second);
        spec.extra_fd = cases[i].extra;
        spec.second_fd = cases[i].second;
        if (spec.extra_fd > 0)
            g_assert_cmpint(dup3(from[0], spec.extra_fd, O_CLOEXEC), ==, spec.extra_fd);
        if (spec.second_fd > 0)
            g_assert_cmpint(dup3(from[1], spec.second_fd, O_CLOEXEC), ==, spec.second_fd);
        g_autofree char *text = run_shell("ls /proc/$$/fd; for i in 3 4; do "
                                          "[ ! -e /proc/$$/fd/$i ] || cat /proc/$$/fd/$i; done",
                                          spec, NULL);

        for (int k = 0; k < 2; k++) {
            (void)close(60 + k);
            close(from[k]);
            if (kept[k] >= 0)
                g_assert_cmpint(dup3(kept[k], 3 + k, O_CLOEXEC), ==, 3 + k);
            auto_close(&kept[k]);
        }
        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

/* Nobody changes what is in it. */
static void
test_memory(void)
{
    autofd fd = io_open_memory("text", "text", 4);
    char text[8] = "";

    g_assert_cmpint(io_read_full(fd, text, sizeof text), ==, 4);
    g_assert_cmpstr(text, ==, "text");
    g_assert_cmpint(pwrite(fd, "next", 4, 0), ==, -1);
    g_assert_cmpint(ftruncate(fd, 0), ==, -1);
}

static void
test_three_streams(void)
{
    const char *const argv[] = {"sh", "-c", "cat; echo err >&2", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    Watch watch = {0};
    int in[2], out[2], err[2];
    char text[16] = "";

    g_assert_no_errno(pipe2(in, O_CLOEXEC));
    g_assert_no_errno(pipe2(out, O_CLOEXEC));
    g_assert_no_errno(pipe2(err, O_CLOEXEC));
    spec.argv = argv;
    spec.stdin_fd = in[0];
    spec.stdout_fd = out[1];
    spec.stderr_fd = err[1];
    G_GNUC_UNUSED g_autoptr(Child) child = spawn_ok(&spec, on_exit_note, &watch);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    g_assert_true(io_write_all(in[1], "hello", 5));
    close(in[1]);
    g_assert_cmpint(io_read_full(out[0], text, sizeof text - 1), ==, 5);
    g_assert_cmpstr(text, ==, "hello");
    g_assert_cmpint(io_read_full(err[0], text, sizeof text - 1), ==, 4);
    wait_for_exit(&watch);
    close(out[0]);
    close(err[0]);
}

/* The child's error stream is to be our output, and its output something else: what is put in
 * place first must not be what the next one copies. */
static void
test_crossed_streams(void)
{
    const char *const argv[] = {"sh", "-c", "echo out; echo err >&2", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    Watch watch = {0};
    autofd saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int out[2], ours[2];
    char text[16] = "";

    g_assert_no_errno(pipe2(out, O_CLOEXEC));
    g_assert_no_errno(pipe2(ours, O_CLOEXEC));
    spec.argv = argv;
    spec.stdout_fd = out[1];
    spec.stderr_fd = STDOUT_FILENO;
    g_assert_no_errno(dup2(ours[1], STDOUT_FILENO));
    G_GNUC_UNUSED g_autoptr(Child) child = child_spawn(&spec, on_exit_note, &watch, NULL);
    g_assert_no_errno(dup2(saved, STDOUT_FILENO));
    close(out[1]);
    close(ours[1]);
    g_assert_cmpint(io_read_full(ours[0], text, sizeof text - 1), ==, 4);
    g_assert_cmpstr(text, ==, "err\n");
    g_assert_cmpint(io_read_full(out[0], text, sizeof text - 1), ==, 4);
    g_assert_cmpstr(text, ==, "out\n");
    wait_for_exit(&watch);
    close(out[0]);
    close(ours[0]);
}

static void
test_signals_of_child(void)
{
    sigset_t blocked;

    (void)signal(SIGPIPE, SIG_IGN);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    g_assert_no_errno(sigprocmask(SIG_BLOCK, &blocked, NULL));
    const char *const argv[] = {"grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    spec.argv = argv;
    g_autofree char *text = run(spec, NULL);
    unsigned long mask, ignored;
    g_assert_cmpint(sscanf(text, "SigBlk: %lx SigIgn: %lx", &mask, &ignored), ==, 2);
    g_assert_cmphex(mask, ==, 0);
    /* The C library keeps 32 and 33 for itself. */
    g_assert_cmphex(ignored & ~(3ul << 31), ==, 0);
    g_assert_no_errno(sigprocmask(SIG_UNBLOCK, &blocked, NULL));
    (void)signal(SIGPIPE, SIG_DFL);
}

static void
test_signal(void)
{
    const char *const argv[] = {"sleep", "1000", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    Watch watch = {0};
    g_autoptr(GError) error = NULL;

    spec.argv = argv;
    g_autoptr(Child) child = spawn_ok(&spec, on_exit_note, &watch);
    g_assert_cmpint(child_pid(child), >, 0);
    g_assert_true(child_signal(child, 0, &error));
    g_assert_false(child_signal(child, 12345, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_INTERNAL);
    g_clear_error(&error);
    g_assert_true(child_signal(child, SIGTERM, &error));
    g_assert_no_error(error);
    wait_for_exit(&watch);
    g_assert_true(watch.how.signalled);
    g_assert_cmpint(watch.how.value, ==, SIGTERM);
    g_assert_false(child_signal(child, SIGTERM, &error));
    g_assert_error(error, ERR_DOMAIN, ERR_NOT_FOUND);
}

static void
on_exit_free(Child *child, ChildExit how, void *data)
{
    child_free(child);
    *(guint *)data += 1;
}

static void
test_free(void)
{
    const char *const argv[] = {"true", NULL};
    const char *const sleeper[] = {"sleep", "1000", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    guint freed = 0;
    Watch watch = {0};

    spec.argv = argv;
    spawn_ok(&spec, on_exit_free, &freed);
    while (freed == 0)
        g_main_context_iteration(NULL, TRUE);
    child_free(NULL);

    spec.argv = sleeper;
    Child *child = spawn_ok(&spec, on_exit_note, &watch);
    pid_t pid = child_pid(child);
    child_free(child);
    g_assert_no_errno(kill(pid, SIGKILL));
    siginfo_t info = {0};
    g_assert_no_errno(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    g_assert_cmpuint(watch.exits, ==, 0);
    g_assert_no_errno(waitid(P_PID, (id_t)pid, &info, WEXITED));
}

/* An ignored SIGCHLD, as some parents leave it behind, makes the kernel reap by itself. */
static void
test_reaped_by_others(void)
{
    const char *const argv[] = {"sh", "-c", "read x; exit 3", NULL};
    SpawnSpec spec = SPAWN_SPEC_INIT;
    Watch watch = {0};
    ChildExit how;
    int fds[2];

    (void)signal(SIGCHLD, SIG_IGN);
    G_GNUC_UNUSED g_autofree char *text = run_shell("exit 3", plain, &how);
    g_assert_cmpint(how.value, ==, 3);

    g_assert_no_errno(pipe2(fds, O_CLOEXEC));
    spec.argv = argv;
    spec.stdin_fd = fds[0];
    G_GNUC_UNUSED g_autoptr(Child) child = spawn_ok(&spec, on_exit_note, &watch);
    (void)signal(SIGCHLD, SIG_IGN);
    close(fds[0]);
    close(fds[1]);
    wait_for_exit(&watch);
    (void)signal(SIGCHLD, SIG_DFL);
    g_assert_false(watch.how.signalled);
    g_assert_cmpint(watch.how.value, ==, -1);
}

static void
test_many(void)
{
    enum { MANY = 200 };
    Watch watches[MANY] = {0};
    Child *children[MANY];
    SpawnSpec spec = SPAWN_SPEC_INIT;
    int fds[2];

    g_assert_no_errno(pipe2(fds, O_CLOEXEC));
    spec.stdin_fd = fds[0];
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *script = g_strdup_printf("read x; exit %u", i);
        const char *const argv[] = {"sh", "-c", script, NULL};

        spec.argv = argv;
        children[i] = spawn_ok(&spec, on_exit_note, &watches[i]);
    }
    while (g_main_context_iteration(NULL, FALSE))
        continue;
    for (guint i = 0; i < MANY; i++)
        g_assert_cmpuint(watches[i].exits, ==, 0);
    close(fds[0]);
    close(fds[1]);
    for (guint i = 0; i < MANY; i++) {
        wait_for_exit(&watches[i]);
        g_assert_cmpint(watches[i].how.value, ==, i);
        child_free(children[i]);
    }
}

/* What a child of test_failpoint() does. */
static int
pass_failpoints(void)
{
    for (guint i = 1; i <= 5; i++) {
        FAILPOINT("other");
        FAILPOINT("here");
        if (!io_write_all(STDOUT_FILENO, "x", 1))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static void
test_failpoint(void)
{
    static const struct {
        const char *spec;
        const char *output; /* five: it lived */
    } cases[] = {
        {"COOP_FAIL_AT=here:1", ""},      {"COOP_FAIL_AT=here", ""},        {"COOP_FAIL_AT=here:3", "xx"},
        {"COOP_FAIL_AT=here:5", "xxxx"},  {"COOP_FAIL_AT=here:6", "xxxxx"}, {"COOP_FAIL_AT=here:0", "xxxxx"},
        {"COOP_FAIL_AT=her:1", "xxxxx"},  {"COOP_FAIL_AT=", "xxxxx"},       {"NOTHING=x", "xxxxx"},
        {"COOP_FAIL_AT=here:x", "xxxxx"},
    };
    const char *const argv[] = {"/proc/self/exe", "--pass-failpoints", NULL};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const env[] = {cases[i].spec, NULL};
        SpawnSpec spec = SPAWN_SPEC_INIT;
        ChildExit how;
        const char *want = cases[i].output;

#ifndef COOP_FAILPOINTS
        want = "xxxxx";
#endif
        spec.argv = argv;
        spec.env = env;
        g_autofree char *text = run(spec, &how);
        g_test_message("%s", cases[i].spec);
        g_assert_cmpstr(text, ==, want);
        bool lived = strlen(want) == 5;
        g_assert_cmpint(how.signalled, ==, !lived);
        g_assert_cmpint(how.value, ==, lived ? 0 : SIGKILL);
    }
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--pass-failpoints") == 0)
        return pass_failpoints();
    g_setenv("COOP_TEST_ENV", "ours", TRUE);
    g_setenv("PATH", "/usr/bin:/bin", TRUE);
    g_test_init(&argc, &argv, NULL);
    alarm(WATCHDOG_S);
    g_test_add_func("/spawn/exits", test_exits);
    g_test_add_func("/spawn/not-started", test_not_started);
    g_test_add_func("/spawn/surroundings", test_surroundings);
    g_test_add_func("/spawn/descriptors", test_descriptors);
    g_test_add_func("/spawn/more-descriptors", test_more_descriptors);
    g_test_add_func("/spawn/memory", test_memory);
    g_test_add_func("/spawn/three-streams", test_three_streams);
    g_test_add_func("/spawn/crossed-streams", test_crossed_streams);
    g_test_add_func("/spawn/signals-of-child", test_signals_of_child);
    g_test_add_func("/spawn/signal", test_signal);
    g_test_add_func("/spawn/free", test_free);
    g_test_add_func("/spawn/reaped-by-others", test_reaped_by_others);
    g_test_add_func("/spawn/many", test_many);
    g_test_add_func("/failpoint", test_failpoint);
    return g_test_run();
}
