/* SPDX-License-Identifier: Apache-2.0 */
/* A process is put into a group by its number, by a helper: the kernel lets whoever moves another
 * process wait for a grace period, 10 to 25 ms.
 *
 * Numbers go to other processes.  A server that was taken over could let its process end in the right
 * moment, and have a stranger with the same number moved, and killed in the end.  So the helper first
 * becomes the tracer of whatever has the number: that one, should it die, is not reaped before the
 * helper ends, and its number stays.  Only then it looks whether the pidfd is of a process that is
 * there, and whose it is.  Nothing is traced, and the helper's end undoes it.  A keeper without
 * privilege can move nobody else's processes, and does without. */
#include "keeper/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "keeper/fork.h"
#include "keeper/keeper.h"

enum {
    HELPER_TIMEOUT_S = 10,
    AGAIN_FIRST_US = 10 * 1000, /* a cgroup is busy for a moment after its last process */
    AGAIN_MAX_US = 1000 * 1000,
    STATUS_MAX = 4096,
    PATH_TEXT_MAX = 64,
    SIGNAL_BASE = 128, /* from here on an exit code is no errno */
};

typedef enum HoldState { HOLD_FREE, HOLD_ENTERING, HOLD_HELD, HOLD_ENDING } HoldState;

typedef struct Hold {
    Keeper *keeper;
    HoldState state;
    char group[CGROUP_NAME_MAX + 1];
    Watch process; /* the pidfd, ours until it is readable */
    Watch helper;  /* ENTERING */
    uint32_t serial;
    int64_t due_us, again_us; /* ENDING */
} Hold;

struct Holds {
    Keeper *keeper;
    bool warned; /* that this machine has no groups */
    Hold all[KEEPER_HOLDS_MAX];
};

Holds *
holds_new(Keeper *keeper)
{
    Holds *holds = g_new0(Holds, 1);

    holds->keeper = keeper;
    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        Hold *hold = &holds->all[i];

        *hold = (Hold){.keeper = keeper, .process = WATCH_INIT, .helper = WATCH_INIT};
        snprintf(hold->group, sizeof hold->group, "hold-%d", i);
    }
    return holds;
}

static void
drop_watch(Hold *hold, Watch *watch)
{
    int fd = watch->fd;

    if (fd < 0)
        return;
    loop_remove(&hold->keeper->loop, watch);
    close(fd);
}

void
holds_free(Holds *holds)
{
    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        drop_watch(&holds->all[i], &holds->all[i].process);
        drop_watch(&holds->all[i], &holds->all[i].helper);
    }
    g_free(holds);
}

/* ---- the end ---- */

static void
try_end(Hold *hold)
{
    (void)cgroup_kill(&hold->keeper->groups, hold->group);
    if (cgroup_remove(&hold->keeper->groups, hold->group)) {
        hold->state = HOLD_FREE;
        return;
    }
    hold->due_us = keeper_mono_us() + hold->again_us;
    hold->again_us = MIN(2 * hold->again_us, AGAIN_MAX_US);
}

static void
end(Hold *hold)
{
    hold->state = HOLD_ENDING;
    hold->again_us = AGAIN_FIRST_US;
    FAILPOINT("hold-end");
    try_end(hold);
}

static void
on_process(void *ctx, uint32_t events)
{
    Hold *hold = ctx;

    drop_watch(hold, &hold->process);
    /* While a helper is at work, its end goes on. */
    if (hold->state == HOLD_HELD)
        end(hold);
}

/* ---- the helper ---- */

static bool
join(const Cgroups *groups, const char *group, pid_t pid)
{
    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (groups->fd[kind] >= 0 &&
            !cgroup_write_number(groups->fd[kind], group, "cgroup.procs", (uint64_t)pid))
            return false;
    }
    return true;
}

/* The number of a line "KEY:\t123"; -1: there is none. */
static int64_t
proc_number(const char *path, const char *key)
{
    char text[STATUS_MAX + 1];
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, STATUS_MAX) : -1;

    if (n < 0)
        return -1;
    text[n] = '\0';
    const char *at = strstr(text, key);

    return at != NULL ? strtoll(at + strlen(key), NULL, 10) : -1;
}

/* As this /proc shows it; -1: it is over, or not to be seen from here. */
static pid_t
pid_of(int pidfd)
{
    char path[PATH_TEXT_MAX];

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    return (pid_t)proc_number(path, "\nPid:");
}

static bool
is_servers(const Keeper *keeper, pid_t pid)
{
    char path[PATH_TEXT_MAX];

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return proc_number(path, "\nUid:") == (int64_t)keeper->config.server_uid;
}

static void
let_go(const Hold *hold)
{
    int keep[2 + CGROUP_KINDS] = {STDERR_FILENO, hold->process.fd};
    int n = 2;

    for (CgroupKind kind = 0; kind < CGROUP_KINDS; kind++) {
        if (hold->keeper->groups.fd[kind] >= 0)
            keep[n++] = hold->keeper->groups.fd[kind];
    }
    fork_detach(keep, n);
}

/* An errno, or 0. */
static int
move_into(const Hold *hold, pid_t pid)
{
    const Keeper *keeper = hold->keeper;

    let_go(hold);
    /* EPERM: whose it is was looked at; a machine can forbid tracing to all (Yama). */
    if (keeper->privileged && ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
        return errno == EPERM ? EOPNOTSUPP : errno;
    FAILPOINT("hold-seized");
    if (pidfd_send_signal(hold->process.fd, 0, NULL, 0) < 0)
        return errno;
    if (!is_servers(keeper, pid))
        return EPERM;
    return join(&keeper->groups, hold->group, pid) ? 0 : errno;
}

static void
tell_failure(const Keeper *keeper, uint32_t serial, int error)
{
    Holds *holds = keeper->holds;

    if (error == EOPNOTSUPP && !holds->warned) {
        holds->warned = true;
        log_warn("keeper", "git gets no group of its own: see kernel.yama.ptrace_scope and cgroup2");
    }
    server_tell_failure(keeper->server, serial, NULL, STAGE_CGROUP, error);
}

static void
on_helper(void *ctx, uint32_t events)
{
    Hold *hold = ctx;
    int code = fork_reap(hold->helper.fd);

    drop_watch(hold, &hold->helper);
    hold->state = HOLD_HELD;
    if (code == 0)
        server_tell(hold->keeper->server, KEEPER_OK, hold->serial, NULL);
    else
        tell_failure(hold->keeper, hold->serial, code < 0 || code >= SIGNAL_BASE ? ETIMEDOUT : code);
    if (code != 0)
        drop_watch(hold, &hold->process);
    if (hold->process.fd < 0)
        end(hold);
}

static bool
start_helper(Hold *hold, pid_t pid)
{
    int pidfd = -1;
    pid_t helper = fork_held(0, -1, &pidfd);

    if (helper == 0) {
        (void)alarm(HELPER_TIMEOUT_S);
        _exit(move_into(hold, pid));
    }
    if (helper < 0)
        return false;
    hold->helper = (Watch){.fd = -1, .func = on_helper, .ctx = hold};
    if (loop_add(&hold->keeper->loop, &hold->helper, pidfd, EPOLLIN))
        return true;
    fork_give_up(pidfd);
    return false;
}

/* ---- the beginning ---- */

static Hold *
find_free(Holds *holds)
{
    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        if (holds->all[i].state == HOLD_FREE)
            return &holds->all[i];
    }
    return NULL;
}

/* An errno, or 0.  What was made is given up by end(). */
static int
begin(Hold *hold, const KeeperRequest *request, int pidfd)
{
    pid_t pid = pid_of(pidfd);

    if (pid <= 0)
        return ESRCH;
    if (!is_servers(hold->keeper, pid))
        return EPERM;
    /* Version 1 cannot kill what is in a group, which would stay. */
    if (hold->keeper->groups.fd[CGROUP_UNIFIED] < 0)
        return EOPNOTSUPP;
    hold->process = (Watch){.fd = -1, .func = on_process, .ctx = hold};
    if (!cgroup_make(&hold->keeper->groups, hold->group, &request->limits) ||
        !loop_add(&hold->keeper->loop, &hold->process, pidfd, EPOLLIN))
        return errno;
    FAILPOINT("hold-made");
    return start_helper(hold, pid) ? 0 : errno;
}

void
holds_take(Holds *holds, const KeeperRequest *request, int pidfd)
{
    autofd fd = pidfd;
    Hold *hold = find_free(holds);
    int error = hold == NULL ? EUSERS : fd < 0 ? EBADF : 0;

    if (error == 0) {
        hold->state = HOLD_ENTERING;
        hold->serial = request->serial;
        error = begin(hold, request, fd);
        if (hold->process.fd >= 0)
            (void)g_steal_fd(&fd);
    }
    if (error == 0)
        return;
    tell_failure(holds->keeper, request->serial, error);
    if (hold == NULL)
        return;
    drop_watch(hold, &hold->process);
    end(hold);
}

/* ---- all of them ---- */

int64_t
holds_due_us(const Holds *holds)
{
    int64_t due_us = INT64_MAX;

    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        if (holds->all[i].state == HOLD_ENDING)
            due_us = MIN(due_us, holds->all[i].due_us);
    }
    return due_us;
}

void
holds_look(Holds *holds)
{
    int64_t now = keeper_mono_us();

    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        if (holds->all[i].state == HOLD_ENDING && now >= holds->all[i].due_us)
            try_end(&holds->all[i]);
    }
}

bool
holds_has_group(const Holds *holds, const char *name)
{
    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        if (holds->all[i].state != HOLD_FREE && strcmp(holds->all[i].group, name) == 0)
            return true;
    }
    return false;
}

void
holds_end(Holds *holds)
{
    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        Hold *hold = &holds->all[i];

        if (hold->state == HOLD_FREE || hold->state == HOLD_ENDING)
            continue;
        drop_watch(hold, &hold->process);
        if (hold->state == HOLD_HELD)
            end(hold);
    }
}

bool
holds_busy(const Holds *holds)
{
    for (int i = 0; i < KEEPER_HOLDS_MAX; i++) {
        if (holds->all[i].state != HOLD_FREE)
            return true;
    }
    return false;
}
