/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a whole tree of processes is held together (offspring.h kills it).
 *
 * Process groups and sessions do not hold it (setsid leaves them), an environment tag can be
 * cleared, and an orphan of pid 1 has no past.  So each run has a leader between init and its
 * command: a fork of init that is a child subreaper.  A process whose parent dies becomes the
 * child of its nearest living ancestor that is a subreaper, hence every descendant of the
 * command stays a descendant of the leader until it is dead, whatever it does.
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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/offspring.h"
#include "init/sudoer.h"
#include "wire/channel.h"

typedef struct Leader {
    pid_t main;
    bool main_ended;
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

static void
reap(void *ctx)
{
    Leader *leader = ctx;
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

static void
kill_tree(Leader *leader)
{
    if (!leader->main_ended)
        (void)kill(-leader->main, SIGKILL);
    offspring_kill(reap, leader);
}

static void
pass_on(const Leader *leader, int signal)
{
    if (leader->main_ended || signal <= 0 || signal >= SIGRTMIN)
        return;
    (void)kill(-leader->main, signal);
    offspring_signal(leader->main, signal);
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

/* A client of sudo that init found in our tree: what it asks for becomes part of it too. */
static void
take_sudo(void)
{
    int fds[2] = {-1, -1};
    size_t n = 2;
    char byte;

    while (channel_recv(LEADER_REPORT_FD, &byte, sizeof byte, fds, &n) > 0) {
        if (n == 2 && fork() == 0)
            sudoer_run(fds[0], fds[1]);
        /* Without a process the client sees the end of its connection. */
        for (size_t i = 0; i < n; i++)
            close(fds[i]);
        n = 2;
    }
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

        if (got == SIGCHLD) {
            reap(leader);
            take_sudo();
        } else if (got == signal_request()) {
            pass_on(leader, info.si_value.sival_int);
        } else if (got == kill_request()) {
            kill_tree(leader);
        }
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

static void
find_user(const FrameStart *start, StartWay way, const UserMemory *memory, UserMemory *ret_found)
{
    const char *wanted = (start->flags & START_ROOT) != 0 ? "0:0" : start->user;

    ret_found->known = false;
    if (!user_recall(memory, wanted, &ret_found->user) &&
        !user_learn(wanted, way == START_WAY_SHARED, ret_found))
        fail(FAIL_USER, errno);
}

static void
report_start(const UserMemory *found, pid_t pid)
{
    Report started = {.kind = REPORT_STARTED, .pid = pid, .uid = found->user.uid};

    report_send(LEADER_REPORT_FD, &started);
    /* If it is lost, the next run looks again. */
    if (found->known)
        (void)!write(LEADER_REPORT_FD, found, sizeof *found);
}

void
leader_run(const FrameStart *start, StartWay way, const UserMemory *memory)
{
    Leader leader = {0};
    UserMemory found;
    int failed[2];

    find_user(start, way, memory, &found);
    if ((start->flags & START_BUILTIN) != 0) {
        report_start(&found, getpid());
        start_builtin(start, &found.user);
    }
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || pipe2(failed, O_CLOEXEC) < 0)
        fail(FAIL_FORK, errno);
    /* For it to become its program we wait anyway. */
    leader.main = way == START_WAY_SHARED ? vfork() : fork();
    if (leader.main < 0)
        fail(FAIL_FORK, errno);
    /* Others of its user may be able to trace a copy, and the way to init is not theirs. */
    if (leader.main == 0 && way == START_WAY_COPIED)
        close(LEADER_REPORT_FD);
    if (leader.main == 0)
        start_exec(start, &found.user, failed[1]);
    close(failed[1]);
    /* The run's streams end when the run closes them. */
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    await_exec(failed[0]);
    report_start(&found, leader.main);
    lead(&leader);
}
