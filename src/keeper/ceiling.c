/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/ceiling.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLOOR_PART = 10, /* of all, and at least: */
    FLOOR_MEMORY_MIB = 256,
    FLOOR_PIDS = 1024,
    KIB = 1024,
};

static uint64_t
without_floor(uint64_t all, uint64_t floor)
{
    floor = MAX(floor, all / FLOOR_PART);
    return all > 2 * floor ? all - floor : all / 2;
}

Ceiling
ceiling_of(const char *meminfo, const char *pid_max, const char *threads_max)
{
    static const char key[] = "MemTotal:";
    const char *at = meminfo != NULL ? strstr(meminfo, key) : NULL;
    uint64_t memory = at != NULL ? strtoull(at + strlen(key), NULL, 10) * KIB : 0;
    uint64_t pids = pid_max != NULL ? strtoull(pid_max, NULL, 10) : 0;
    uint64_t threads = threads_max != NULL ? strtoull(threads_max, NULL, 10) : 0;

    if (threads != 0 && threads < pids)
        pids = threads;
    return (Ceiling){.memory_bytes = without_floor(memory, (uint64_t)FLOOR_MEMORY_MIB * KIB * KIB),
                     .pids = without_floor(pids, FLOOR_PIDS)};
}

Ceiling
ceiling_of_host(Ceiling given)
{
    g_autofree char *meminfo = NULL;
    g_autofree char *pid_max = NULL;
    g_autofree char *threads_max = NULL;

    (void)g_file_get_contents("/proc/meminfo", &meminfo, NULL, NULL);
    (void)g_file_get_contents("/proc/sys/kernel/pid_max", &pid_max, NULL, NULL);
    (void)g_file_get_contents("/proc/sys/kernel/threads-max", &threads_max, NULL, NULL);
    Ceiling host = ceiling_of(meminfo, pid_max, threads_max);

    return (Ceiling){.memory_bytes = given.memory_bytes != 0 ? given.memory_bytes : host.memory_bytes,
                     .pids = given.pids != 0 ? given.pids : host.pids};
}
