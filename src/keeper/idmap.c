/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "keeper/fork.h"
#include "keeper/ids.h"

enum { PROC_PATH_MAX = 64, MAP_MAX = 64 };

static bool
write_file(pid_t pid, const char *file, const char *map, int n)
{
    char path[PROC_PATH_MAX];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    autofd fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, map, (size_t)n) == n;
}

bool
idmap_write(pid_t pid, uint32_t inside, uint32_t outside)
{
    char map[MAP_MAX];
    int n = snprintf(map, sizeof map, "%u %u %d\n", inside, outside, ID_RANGE);

    return write_file(pid, "uid_map", map, n) && write_file(pid, "gid_map", map, n);
}

/* Until its end of the pipe is the only one. */
_Noreturn static void
wait_for_end(int fd)
{
    char byte;

    fork_detach(&fd, 1);
    (void)!read(fd, &byte, 1);
    _exit(0);
}

static int
open_mapped(pid_t pid, uint32_t inside, uint32_t outside)
{
    char path[PROC_PATH_MAX];

    if (!idmap_write(pid, inside, outside))
        return -1;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* The namespace needs a process only until we hold its fd. */
int
idmap_make(uint32_t inside, uint32_t outside)
{
    int ends[2];
    int pidfd;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork_held(CLONE_NEWUSER, -1, &pidfd);

    if (pid == 0)
        wait_for_end(ends[0]);
    FAILPOINT("idmap");
    int fd = pid > 0 ? open_mapped(pid, inside, outside) : -1;
    int saved = errno;

    close(ends[0]);
    close(ends[1]);
    if (pid > 0) {
        (void)fork_reap(pidfd);
        close(pidfd);
    }
    errno = saved;
    return fd;
}

bool
idmap_apply(int mount_fd, int userns_fd)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd};

    return mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0;
}
