/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a whole tree of processes is found and killed.
 *
 * Process groups and sessions do not hold it (setsid leaves them), an environment tag can be
 * cleared, and an orphan of pid 1 has no past.  So each run has a leader between init and its
 * command: a fork of init that is a child subreaper.  A process whose parent dies becomes the
 * child of its nearest living ancestor that is a subreaper, hence every descendant of the
 * command stays a descendant of the leader until it is dead, whatever it does.
 *
 * Killing is a loop: kill every descendant that /proc shows, reap, until wait() says that there
 * is no child left.  That condition is the proof: no child means no descendant.  What a walk
 * misses (it was forked behind the walk's back, or by a thread other than the first) is a child
 * of a process that the walk did kill, so it comes up to the leader and the next walk sees it.
 * Before they are killed the processes are stopped: a stopped one cannot fork, and it holds its
 * place under the limit of processes, so that a fork bomb has no room to go on in.  A process
 * that forks and dies in turns can be missed again and again, but each walk is a new chance of
 * better than one half.  Should it last, init kills everything in the box at once, which the
 * kernel does without a gap (loop.c).
 *
 * The leader is uid 0 of the box and the command is not, so the command can neither kill nor
 * trace it.  Root inside a box (START_ROOT) can; then the run ends as killed, and what it left
 * behind is a child of init and lives on until the box ends.
 *
 * It costs a few private pages and ends with its command: what then still runs was meant to stay
 * in the background, and becomes a child of init.
 */
#include "init/leader.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "init/decimal.h"

enum {
    TREE_MAX = 8192,         /* processes of one walk; the rest is the next one's */
    CHILDREN_TEXT = 4096,    /* read at a time */
    STOP_ROUNDS_MAX = 4,     /* walks that stop before the one that kills */
    KILL_PAUSE_NS = 1000000, /* for the killed to die, when no SIGCHLD says so */
};

typedef struct Tree {
    size_t n;
    pid_t pids[TREE_MAX];
} Tree;

typedef struct Leader {
    pid_t main;
    bool main_ended, killing;
    int status;
    struct rusage usage;
} Leader;

static int
signal_request(void)
{
    return SIGRTMIN;
}

static int
kill_request(void)
{
    return SIGRTMIN + 1;
}

void
leader_ask_signal(pid_t leader, int signal)
{
    (void)sigqueue(leader, signal_request(), (union sigval){.sival_int = signal});
}

void
leader_ask_kill(pid_t leader)
{
    (void)sigqueue(leader, kill_request(), (union sigval){0});
}

/* "/proc/PID/task/PID/children" */
static void
children_path(pid_t pid, char *out)
{
    out = decimal_put(stpcpy(out, "/proc/"), (uint64_t)pid);
    out = decimal_put(stpcpy(out, "/task/"), (uint64_t)pid);
    (void)stpcpy(out, "/children");
}

static void
tree_add(Tree *tree, pid_t pid)
{
    if (pid > 1 && tree->n < TREE_MAX)
        tree->pids[tree->n++] = pid;
}

/* Numbers with a space behind each. */
static void
tree_add_children(Tree *tree, pid_t parent)
{
    char path[64];
    char text[CHILDREN_TEXT];
    pid_t pid = 0;
    ssize_t n;

    children_path(parent, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    while ((n = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
                continue;
            }
            tree_add(tree, pid);
            pid = 0;
        }
    }
    close(fd);
}

static void
tree_walk(Tree *tree)
{
    tree->n = 0;
    tree_add_children(tree, getpid());
    for (size_t i = 0; i < tree->n; i++)
        tree_add_children(tree, tree->pids[i]);
}

/* A pid that was reaped meanwhile and taken by a stranger would be hit in its place; but the
 * leader alone reaps what it could mistake, and inside one walk it does not.  A grandchild's
 * number can change hands only after the whole range of pids was used up. */
static void
tree_signal(const Tree *tree, pid_t except_group, int signal)
{
    for (size_t i = 0; i < tree->n; i++) {
        if (except_group == 0 || getpgid(tree->pids[i]) != except_group)
            (void)kill(tree->pids[i], signal);
    }
}

static void
reap(Leader *leader)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (pid != leader->main)
            continue;
        leader->main_ended = true;
        leader->status = status;
        (void)getrusage(RUSAGE_CHILDREN, &leader->usage);
    }
}

static bool
has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

static void
kill_tree(Leader *leader)
{
    static const struct timespec pause = {0, KILL_PAUSE_NS};
    Tree tree;
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    if (!leader->main_ended)
        (void)kill(-leader->main, SIGKILL);
    while (has_children()) {
        size_t before = 0;

        tree_walk(&tree);
        for (int round = 0; round < STOP_ROUNDS_MAX && tree.n > before; round++) {
            before = tree.n;
            tree_signal(&tree, 0, SIGSTOP);
            tree_walk(&tree);
        }
        tree_signal(&tree, 0, SIGKILL);
        (void)sigtimedwait(&chld, NULL, &pause);
        reap(leader);
    }
}

static void
pass_on(const Leader *leader, int signal)
{
    Tree tree;

    if (leader->main_ended || signal <= 0 || signal >= SIGRTMIN)
        return;
    (void)kill(-leader->main, signal);
    tree_walk(&tree);
    tree_signal(&tree, leader->main, signal);
}

static uint64_t
usec(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static void
report_end(const Leader *leader)
{
    Report report = {.kind = REPORT_ENDED,
                     .status = leader->status,
                     .cpu_us = usec(leader->usage.ru_utime) + usec(leader->usage.ru_stime),
                     .max_rss_bytes = (uint64_t)leader->usage.ru_maxrss * 1024};

    report_send(LEADER_REPORT_FD, &report);
}

static _Noreturn void
lead(Leader *leader)
{
    sigset_t wanted;
    siginfo_t info;

    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, signal_request());
    sigaddset(&wanted, kill_request());
    while (!leader->main_ended) {
        int got = sigwaitinfo(&wanted, &info);

        if (got == SIGCHLD)
            reap(leader);
        else if (got == signal_request())
            pass_on(leader, info.si_value.sival_int);
        else if (got == kill_request())
            kill_tree(leader);
    }
    report_end(leader);
    _exit(0);
}

static _Noreturn void
fail(FrameStage stage, int error)
{
    Report report = {.kind = REPORT_FAILED, .stage = (uint32_t)stage, .error = error};

    report_send(LEADER_REPORT_FD, &report);
    _exit(1);
}

/* What main says over a pipe that its exec closes: nothing, when it went well. */
static void
await_exec(int fd)
{
    Report failed;
    ssize_t n;

    do {
        n = read(fd, &failed, sizeof failed);
    } while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof failed)
        fail((FrameStage)failed.stage, failed.error);
    close(fd);
}

void
leader_run(const FrameStart *start)
{
    Leader leader = {0};
    Report started = {.kind = REPORT_STARTED};
    User user;
    int failed[2];

    if (!user_lookup(start, &user))
        fail(FAIL_USER, errno);
    started.uid = user.uid;
    if ((start->flags & START_BUILTIN) != 0) {
        started.pid = getpid();
        report_send(LEADER_REPORT_FD, &started);
        start_builtin(start, &user);
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || pipe2(failed, O_CLOEXEC) < 0)
        fail(FAIL_FORK, errno);
    leader.main = fork();
    if (leader.main < 0)
        fail(FAIL_FORK, errno);
    if (leader.main == 0)
        start_exec(start, &user, failed[1]);
    close(failed[1]);
    /* The run's streams end when the run closes them. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    await_exec(failed[0]);
    started.pid = leader.main;
    report_send(LEADER_REPORT_FD, &started);
    lead(&leader);
}
