/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL_BASE = 128, FAILED_CODE = 127 };

pid_t
fork_held(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
    int pidfd = -1;
    struct clone_args args = {
        .flags = flags | CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};

    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    /* A clone that fails late leaves a number that is nobody's, or somebody else's soon. */
    if (pid > 0)
        *ret_pidfd = pidfd;
    return pid;
}

int
fork_reap(int pidfd)
{
    siginfo_t info = {0};

    while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return info.si_code == CLD_EXITED ? info.si_status : SIGNAL_BASE + info.si_status;
}

void
fork_give_up(int pidfd)
{
    int saved = errno;

    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    (void)fork_reap(pidfd);
    close(pidfd);
    errno = saved;
}

bool
fork_may_share(const int *keep, int n)
{
    for (int i = 0; i < n; i++) {
        if (keep[i] >= FORK_LOW_FDS)
            return false;
    }
    return true;
}

int
fork_raise_fd(int fd)
{
    int saved = errno;
    int high = fd >= 0 && fd < FORK_LOW_FDS ? fcntl(fd, F_DUPFD_CLOEXEC, FORK_LOW_FDS) : -1;

    if (high >= 0)
        close(fd);
    errno = saved;
    return high >= 0 ? high : fd;
}

static int
compare_fds(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void
fork_detach(int *keep, int n)
{
    unsigned from = 0;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (fork_may_share(keep, n) && close_range(FORK_LOW_FDS, ~0u, CLOSE_RANGE_UNSHARE) < 0)
        _exit(FAILED_CODE);
    qsort(keep, (size_t)n, sizeof *keep, compare_fds);
    for (int i = 0; i < n; i++) {
        if ((unsigned)keep[i] > from)
            (void)close_range(from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    (void)close_range(from, ~0u, 0);
}
