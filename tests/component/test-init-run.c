/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in a box: how they begin, what they see, how they and all they left behind end. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "init-fixture.h"
#include "room.h"

enum { MANY = 200 };

typedef struct Case {
    const char *line;
    uint32_t reason;
    int code;
    const char *out;
} Case;

static const Case cases[] = {
    {"echo hello", REASON_EXIT, 0, "hello\n"},
    {"false", REASON_EXIT, 1, ""},
    {"exit 255", REASON_EXIT, 255, ""},
    {"kill -SEGV $$", REASON_SIGNAL, SIGSEGV, ""},
    {"kill -KILL $$", REASON_SIGNAL, SIGKILL, ""},
    {"echo out; echo err >&2", REASON_EXIT, 0, "out\n"},
    {"id -u; id -g; id -G", REASON_EXIT, 0, "1000\n1000\n1000 2000\n"},
    {"pwd", REASON_EXIT, 0, "/\n"},
    {"echo $HOME $PATH", REASON_EXIT, 0,
     "/tmp /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"},
    {"cat", REASON_EXIT, 0, ""}, /* no input was asked for */
    {"ls /proc/self/fd | wc -l", REASON_EXIT, 0, "4\n"},
    {"grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | tr -d '0\\t\\n'", REASON_EXIT, 0,
     "CapInh:CapPrm:CapEff:CapAmb:"},
    {"grep NoNewPrivs /proc/self/status", REASON_EXIT, 0, "NoNewPrivs:\t1\n"},
    {"grep -E 'Sig(Blk|Ign|Cgt)' /proc/1/status | head -0; grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d "
     "'0\\t\\n'",
     REASON_EXIT, 0, "SigBlk:SigIgn:"},
    {"cat /proc/self/oom_score_adj", REASON_EXIT, 0, "500\n"},
    {"cat /proc/1/environ 2>/dev/null; ls /proc/1/fd 2>/dev/null; echo $?", REASON_EXIT, 0, "2\n"},
    {"ps -o pid= -p 1 | tr -d ' '", REASON_EXIT, 0, "1\n"},
};

static void
test_cases(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestRun *run = box_shell(box, i + 1, 0, cases[i].line);

        box_until_ended(box, run);
        g_autofree char *text = test_run_text(run);
        g_test_message("%s", cases[i].line);
        g_assert_false(run->failed);
        g_assert_cmpstr(text, ==, cases[i].out);
        g_assert_cmpuint(run->end.reason, ==, cases[i].reason);
        g_assert_cmpint(run->end.code, ==, cases[i].code);
        box_forget(box, run);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

typedef struct BadStart {
    const char *user, *cwd, *program;
    uint32_t stage, error;
} BadStart;

static const BadStart bad_starts[] = {
    {"", "/", "/no/such/program", FAIL_EXEC, ENOENT},
    {"", "/", "/etc/passwd", FAIL_EXEC, EACCES},
    {"", "/", "", FAIL_EXEC, ENOENT},
    {"", "/no/such/folder", "true", FAIL_CWD, ENOENT},
    {"", "/root", "true", FAIL_CWD, EACCES},
    {"", "/proc", "true", FAIL_CWD, EACCES},
    {"", "/proc/self/fdinfo", "true", FAIL_CWD, EACCES},
    {"nobody-has-this-name", "/", "true", FAIL_USER, ENOENT},
    {"-1", "/", "true", FAIL_USER, EINVAL},
    {"65536", "/", "true", FAIL_USER, EINVAL},
    {"1000:", "/", "true", FAIL_USER, EINVAL},
    {"daemon:1", "/", "true", FAIL_USER, EINVAL},
};

static void
test_bad_starts(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    for (guint i = 0; i < G_N_ELEMENTS(bad_starts); i++) {
        const BadStart *bad = &bad_starts[i];
        g_autofree FrameStart *start = box_spec(0, "");

        start->user = bad->user;
        start->cwd = bad->cwd;
        start->argc = 1;
        start->argv[0] = bad->program;
        TestRun *run = box_start(box, i + 1, start);
        box_until_ended(box, run);
        g_test_message("user '%s' cwd '%s' program '%s'", bad->user, bad->cwd, bad->program);
        g_assert_true(run->failed);
        g_assert_cmpuint(run->stage, ==, bad->stage);
        g_assert_cmpuint(run->error, ==, bad->error);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_users(void)
{
    static const struct {
        const char *user;
        uint32_t flags;
        const char *ids;
    } users[] = {
        {"daemon", 0, "1 1 /usr/sbin"}, {"7", 0, "7 7 /"}, {"1234:77", 0, "1234 77 /"}, {"0", 0, "0 0 /root"},
        {"", START_ROOT, "0 0 /root"},
    };

    if (!room_possible())
        return;
    TestBox *box = box_new();

    for (guint i = 0; i < G_N_ELEMENTS(users); i++) {
        g_autofree FrameStart *start = box_spec(users[i].flags,
                                                "echo $(id -u) $(id -g) $HOME; cat /proc/self/status");

        start->user = users[i].user;
        TestRun *run = box_start(box, i + 1, start);
        box_until_ended(box, run);
        g_autofree char *text = test_run_text(run);
        bool has_caps = strstr(text, "CapEff:\t0000000000000000") == NULL;
        *strchr(text, '\n') = '\0';
        g_assert_cmpstr(text, ==, users[i].ids);
        g_assert_cmpint(has_caps, ==, (users[i].flags & START_ROOT) != 0);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

static bool
all_ended(TestBox *box, void *data)
{
    TestRun **runs = data;

    for (guint i = 0; i < MANY; i++) {
        if (!runs[i]->ended)
            return false;
    }
    return true;
}

static void
test_many(void)
{
    TestRun *runs[MANY];

    if (!room_possible())
        return;
    TestBox *box = box_new();

    for (guint i = 0; i < MANY; i++) {
        g_autofree char *line = g_strdup_printf("echo %u; sleep 1000 & exit %u", i, i % 100);

        runs[i] = box_shell(box, i + 1, 0, line);
    }
    box_until(box, all_ended, runs);
    for (guint i = 0; i < MANY; i++) {
        g_autofree char *text = test_run_text(runs[i]);
        g_autofree char *want = g_strdup_printf("%u\n", i);

        g_assert_cmpstr(text, ==, want);
        g_assert_cmpint(runs[i]->end.code, ==, (int)(i % 100));
    }
    /* One more than there is room for is refused; a place that was given back is used again. */
    for (guint i = MANY; i <= FRAME_RUNS_MAX; i++)
        box_shell(box, i + 1, 0, "true");
    TestRun *refused = g_hash_table_lookup(box->runs, GUINT_TO_POINTER(FRAME_RUNS_MAX + 1));
    box_until_ended(box, refused);
    g_assert_cmpuint(refused->stage, ==, FAIL_LIMIT);
    /* A server that waits for HELLO hears of it behind that. */
    box_forget(box, refused);
    g_assert_cmpint(kill(box->pid, SIGSTOP), ==, 0);
    box_restart_server(box);
    refused = box_shell(box, FRAME_RUNS_MAX + 2, 0, "true");
    g_assert_cmpint(kill(box->pid, SIGCONT), ==, 0);
    box_until_ended(box, refused);
    g_assert_cmpuint(refused->stage, ==, FAIL_LIMIT);
    box_forget(box, runs[0]);
    TestRun *again = box_shell(box, 1000, 0, "echo again");
    box_until_ended(box, again);
    g_assert_cmpuint(again->out[0]->len, ==, 6);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Nobody is there but init, the probe and its leader; that of the run before may still be on
 * its way out. */
static void
assert_nothing_runs(TestBox *box, uint32_t id)
{
    g_autofree FrameStart *start = box_spec(0,
                                            "while set -- /proc/[0-9]*; [ $# -gt 3 ]; do :; done; echo $#");

    start->timeout_ms = 5000;
    TestRun *run = box_start(box, id, start);
    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    g_assert_cmpstr(text, ==, "3\n");
    box_forget(box, run);
}

static const char *const stubborn[] = {
    "sleep 1000",
    "trap '' TERM INT HUP; while :; do sleep 1000; done",
    "setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 & wait' & setsid sleep 1001 & sleep 1000",
    "(setsid sh -c '(setsid sh -c \"trap : TERM; while :; do sleep 1000; done\" &)' &); sleep 1000",
    /* forks and dies in turns, each time in a session of its own */
    "export C='setsid sh -c \"$C\" & exit'; sh -c \"$C\"; sleep 1000",
    "kill -STOP $$",
    "exec 1>&- 2>&-; sleep 1000",
};

static void
test_timeouts(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();

    for (guint i = 0; i < G_N_ELEMENTS(stubborn); i++) {
        g_autofree FrameStart *start = box_spec(0, stubborn[i]);

        start->timeout_ms = 300;
        TestRun *run = box_start(box, i + 1, start);
        box_until_ended(box, run);
        g_test_message("%s", stubborn[i]);
        g_assert_cmpuint(run->end.reason, ==, REASON_TIMEOUT);
        g_assert_cmpuint(run->end.duration_us, >=, 300000);
        g_assert_cmpuint(run->end.duration_us, <, 5000000);
        assert_nothing_runs(box, 100 + i);
    }
    g_assert_cmpint(box_free(box), ==, 0);
}

/* The command ends; who holds its pipes lives on, unharmed, and delays nothing. */
static void
test_background(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *run = box_shell(
        box, 1, 0,
        "(while echo noise; do read x < /dev/null; sleep 0.01; done; echo died > /tmp/never) & echo $!");

    box_until_ended(box, run);
    g_assert_cmpuint(run->end.reason, ==, REASON_EXIT);
    g_assert_cmpuint(run->end.duration_us, <, 5000000);
    g_autofree char *text = test_run_text(run);
    int pid = (int)strtol(strpbrk(text, "123456789"), NULL, 10);
    g_autofree char *look = g_strdup_printf(
        "n=0; while [ $n -lt 50 ]; do n=$((n+1)); sleep 0.01; kill -0 %d || exit 9; done", pid);
    TestRun *other = box_shell(box, 2, 0, look);
    box_until_ended(box, other);
    g_assert_cmpint(other->end.code, ==, 0);
    box_forget(box, run);
    g_autofree char *end = g_strdup_printf("kill %d; while kill -0 %d 2>/dev/null; do :; done", pid, pid);
    TestRun *last = box_shell(box, 3, 0, end);
    box_until_ended(box, last);
    assert_nothing_runs(box, 4);
    g_assert_cmpint(box_free(box), ==, 0);
}

static void
test_signals(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    /* One in the group, one that left it. */
    TestRun *run = box_shell(
        box, 1, 0,
        "trap 'echo main; wait; exit 3' USR1; "
        "setsid sh -c 'trap \"echo far; exit\" USR1; echo ready; while :; do sleep 0.01; done' & "
        "while :; do sleep 0.01; done");

    box_until_bytes(box, run, 6);
    box_send(box, (FrameHead){.type = FRAME_SIGNAL, .run = 1, .value = SIGUSR1}, NULL);
    box_until_ended(box, run);
    g_autofree char *text = test_run_text(run);
    g_assert_nonnull(strstr(text, "main\n"));
    g_assert_nonnull(strstr(text, "far\n"));
    g_assert_cmpint(run->end.code, ==, 3);
    assert_nothing_runs(box, 2);
    g_assert_cmpint(box_free(box), ==, 0);
}

/* Orphans are reaped by init, leaders' children by leaders: none stays a zombie. */
static void
test_zombies(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *run = box_shell(
        box, 1, 0, "i=0; while [ $i -lt 500 ]; do (setsid sh -c 'true &' &); i=$((i+1)); done; wait");
    box_until_ended(box, run);
    TestRun *look = box_shell(box, 2, 0,
                              "n=1; while [ $n -gt 0 ]; do n=$(cat /proc/[0-9]*/stat 2>/dev/null | grep -c "
                              "') Z '); done; echo none");
    box_until_ended(box, look);
    assert_nothing_runs(box, 3);
    g_assert_cmpint(box_free(box), ==, 0);
}

static bool
hung_up(TestBox *box, void *data)
{
    const TestRun *run = data;

    return run->ended;
}

static void
test_shutdown(void)
{
    if (!room_possible())
        return;
    TestBox *box = box_new();
    TestRun *soft = box_shell(box, 1, 0,
                              "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done");
    TestRun *hard = box_shell(box, 2, 0, "trap '' TERM; echo up; while :; do sleep 0.01; done");

    box_until_bytes(box, soft, 3);
    box_until_bytes(box, hard, 3);
    box_send(box, (FrameHead){.type = FRAME_SHUTDOWN}, NULL);
    box_until(box, hung_up, soft);
    box_until(box, hung_up, hard);
    g_autofree char *text = test_run_text(soft);
    g_assert_cmpstr(text, ==, "up\nbye\n");
    g_assert_cmpuint(soft->end.reason, ==, REASON_EXIT);
    g_assert_cmpint(soft->end.code, ==, 5);
    g_assert_cmpuint(hard->end.reason, ==, REASON_STOPPED);
    g_assert_cmpint(box_free(box), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/init/run/cases", test_cases);
    g_test_add_func("/init/run/bad-starts", test_bad_starts);
    g_test_add_func("/init/run/users", test_users);
    g_test_add_func("/init/run/many", test_many);
    g_test_add_func("/init/run/timeouts", test_timeouts);
    g_test_add_func("/init/run/background", test_background);
    g_test_add_func("/init/run/signals", test_signals);
    g_test_add_func("/init/run/zombies", test_zombies);
    g_test_add_func("/init/run/shutdown", test_shutdown);
    return g_test_run();
}
