/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/fork.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL_BASE = 128 };

pid_t
fork_held(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
    struct clone_args args = {
        .flags = flags | CLONE_PIDFD, .pidfd = (uintptr_t)ret_pidfd, .exit_signal = SIGCHLD};

    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
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
    qsort(keep, (size_t)n, sizeof *keep, compare_fds);
    for (int i = 0; i < n; i++) {
        if ((unsigned)keep[i] > from)
            (void)close_range(from, (unsigned)keep[i] - 1, 0);
        from = (unsigned)keep[i] + 1;
    }
    (void)close_range(from, ~0u, 0);
}
