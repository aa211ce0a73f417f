/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include "keeper/cgroup.h"

/* null zero full random urandom, tty ptmx, terminals of a box's own devpts */
static const char *const device_list[] = {"c 1:3 rw", "c 1:5 rw", "c 1:7 rw",   "c 1:8 rw", "c 1:9 rw",
                                          "c 5:0 rw", "c 5:2 rw", "c 136:* rw", NULL};

enum { CPU_PERIOD_US = 100000, NS_PER_US = 1000, MILLI = 1000 };

/* What groups made below inherit, so that no box pays for it. */
bool
cgroup_v1_open(Cgroups *groups)
{
    int devices = groups->fd[CGROUP_DEVICES];

    if (groups->fd[CGROUP_MEMORY] >= 0)
        (void)cgroup_write(groups->fd[CGROUP_MEMORY], ".", "memory.swappiness", "0");
    if (devices < 0)
        return true;
    if (!cgroup_write(devices, ".", "devices.deny", "a"))
        return false;
    for (size_t i = 0; device_list[i] != NULL; i++) {
        if (!cgroup_write(devices, ".", "devices.allow", device_list[i]))
            return false;
    }
    groups->devices_closed = 1;
    return true;
}

static bool
limit_memory(int fd, const char *name, uint64_t bytes)
{
    /* The sum with swap may not lie below the limit, so it comes second.  A kernel without swap
     * accounting does not have it. */
    if (!cgroup_write_number(fd, name, "memory.limit_in_bytes", bytes))
        return false;
    if (!cgroup_write_number(fd, name, "memory.memsw.limit_in_bytes", bytes) && errno != ENOENT)
        return false;
    /* Socket buffers have an account of their own; kernels without it charge them to memory. */
    (void)cgroup_write_number(fd, name, "memory.kmem.tcp.limit_in_bytes", bytes);
    return true;
}

void
cgroup_v1_cap(const Cgroups *groups, const Ceiling *ceiling)
{
    const int *fd = groups->fd;

    if (fd[CGROUP_MEMORY] >= 0 && ceiling->memory_bytes > 0)
        (void)limit_memory(fd[CGROUP_MEMORY], ".", ceiling->memory_bytes);
    if (fd[CGROUP_PIDS] >= 0 && ceiling->pids > 0)
        (void)cgroup_write_number(fd[CGROUP_PIDS], ".", "pids.max", ceiling->pids);
}

bool
cgroup_v1_limit(const Cgroups *groups, const char *name, const KeeperLimits *limits)
{
    const int *fd = groups->fd;

    if (fd[CGROUP_MEMORY] >= 0 && !limit_memory(fd[CGROUP_MEMORY], name, limits->memory_bytes))
        return false;
    if (fd[CGROUP_CPU] >= 0 && !cgroup_write_number(fd[CGROUP_CPU], name, "cpu.cfs_quota_us",
                                                    (uint64_t)limits->cpu_milli * (CPU_PERIOD_US / MILLI)))
        return false;
    return fd[CGROUP_PIDS] < 0 || cgroup_write_number(fd[CGROUP_PIDS], name, "pids.max", limits->pids);
}

void
cgroup_v1_use(const Cgroups *groups, const char *name, CgroupUse *use)
{
    const int *fd = groups->fd;

    if (fd[CGROUP_MEMORY] >= 0) {
        use->memory_bytes = cgroup_read_number(fd[CGROUP_MEMORY], name, "memory.usage_in_bytes", NULL);
        use->memory_peak_bytes = cgroup_read_number(fd[CGROUP_MEMORY], name, "memory.max_usage_in_bytes",
                                                    NULL);
    }
    if (use->cpu_us == 0 && fd[CGROUP_CPUACCT] >= 0)
        use->cpu_us = cgroup_read_number(fd[CGROUP_CPUACCT], name, "cpuacct.usage", NULL) / NS_PER_US;
    if (fd[CGROUP_PIDS] >= 0)
        use->pids = (uint32_t)cgroup_read_number(fd[CGROUP_PIDS], name, "pids.current", NULL);
}
