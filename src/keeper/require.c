/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/require.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "keeper/fork.h"

/* Names of the kernel's insides, of the host's hardware, and switches. */
static const char *const hidden[] = {
    "acpi",        "asound",       "bus",         "cmdline",       "config.gz",
    "consoles",    "diskstats",    "dma",         "driver",        "dynamic_debug",
    "fs",          "interrupts",   "iomem",       "ioports",       "irq",
    "kallsyms",    "kcore",        "key-users",   "keys",          "kmsg",
    "kpagecgroup", "kpagecount",   "kpageflags",  "latency_stats", "modules",
    "mtrr",        "pagetypeinfo", "partitions",  "pressure",      "sched_debug",
    "scsi",        "slabinfo",     "softirqs",    "swaps",         "sysrq-trigger",
    "sysvipc",     "timer_list",   "timer_stats", "vmallocinfo",   "zoneinfo",
};

static bool
require_seccomp(GError **error)
{
    uint32_t action = SECCOMP_RET_KILL_PROCESS;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
        return err_set(error, ERR_UNAVAILABLE,
                       "this kernel cannot filter system calls (seccomp): boxes cannot be made safely");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) < 0)
        return err_set(error, ERR_UNAVAILABLE,
                       "this kernel has no no_new_privs: boxes cannot be made safely");
    return true;
}

static bool
can_clone(uint64_t namespaces)
{
    int pidfd = -1;
    pid_t pid = fork_held(namespaces, -1, &pidfd);

    if (pid == 0)
        _exit(0);
    if (pid < 0)
        return false;
    autofd fd = pidfd;

    (void)fork_reap(fd);
    return true;
}

static bool
require_namespaces(uint64_t *ret_namespaces, GError **error)
{
    uint64_t needed = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;

    /* Kernels may be built without time namespaces. */
    *ret_namespaces = needed | CLONE_NEWTIME;
    if (can_clone(*ret_namespaces))
        return true;
    *ret_namespaces = needed;
    if (can_clone(needed))
        return true;
    if (errno == ENOSYS)
        return err_set(error, ERR_UNAVAILABLE,
                       "this kernel has no clone3: Linux 5.19 is the oldest that works");
    return err_errno(error, "make user, pid, mount and network namespaces (boxes cannot be made without)");
}

bool
require_kernel(uint64_t *ret_namespaces, GError **error)
{
    return require_seccomp(error) && require_namespaces(ret_namespaces, error);
}

int
find_masks(ChildMask ret_masks[CHILD_MASKS_MAX])
{
    int n = 0;

    _Static_assert(G_N_ELEMENTS(hidden) <= CHILD_MASKS_MAX, "every name has room");
    for (size_t i = 0; i < G_N_ELEMENTS(hidden); i++) {
        g_autofree char *path = g_strconcat("/proc/", hidden[i], NULL);
        struct stat st;

        if (lstat(path, &st) == 0 && !S_ISLNK(st.st_mode))
            ret_masks[n++] = (ChildMask){.name = hidden[i], .is_dir = S_ISDIR(st.st_mode)};
    }
    return n;
}
