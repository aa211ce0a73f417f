/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NUMBER_MAX = 32 };

bool
ipc_enter(int pidfd)
{
    return setns(pidfd, CLONE_NEWIPC) == 0;
}

void
ipc_leave(int home_fd)
{
    if (setns(home_fd, CLONE_NEWIPC) < 0)
        abort();
}

/* The file shows the namespace of whoever opens it. */
static bool
set(int proc_fd, const char *name, const char *text)
{
    int fd = openat(proc_fd, name, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int saved = errno;

    close(fd);
    errno = saved;
    return ok;
}

IpcBound
ipc_bound(int proc_fd, uint64_t memory_bytes)
{
    char pages[NUMBER_MAX];

    snprintf(pages, sizeof pages, "%llu",
             (unsigned long long)(memory_bytes / (uint64_t)sysconf(_SC_PAGESIZE)));
    if (set(proc_fd, "sys/kernel/shmall", pages) && set(proc_fd, "sys/kernel/msgmni", "1024") &&
        set(proc_fd, "sys/kernel/sem", "250 32000 100 1024"))
        return IPC_BOUND;
    return errno == EACCES || errno == EPERM || errno == EROFS ? IPC_NOT_OURS : IPC_FAILED;
}
