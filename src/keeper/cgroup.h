/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cgroup-find.h"
#include "keeper/ceiling.h"
#include "wire/record.h"

/* Our group in every hierarchy, and in it one group for each box, named after its slot.  Ours
 * lies in the group the keeper was started in, never at the root of a host that has put us
 * somewhere else. */
enum { CGROUP_NAME_MAX = 31 };

typedef struct Cgroups {
    char *path[CGROUP_KINDS]; /* of our group; NULL: none in this hierarchy */
    int fd[CGROUP_KINDS];     /* of our group, or -1 */
    unsigned unified;         /* 1 << kind: controllers that are used through the unified hierarchy */
    unsigned devices_closed;  /* 1: boxes reach only the devices of the list */
} Cgroups;

/* How a box is put into its group: the unified one at clone(), the others by the child itself,
 * which writes "0" to each file.  (A parent that writes a foreign pid waits for a grace period
 * of RCU, 10 to 25 ms.) */
typedef struct CgroupEntry {
    int unified_fd;
    int tasks[CGROUP_KINDS];
    int n_tasks;
} CgroupEntry;

typedef struct CgroupUse {
    uint64_t memory_bytes, memory_peak_bytes, cpu_us;
    uint32_t pids, oom_kills;
} CgroupUse;

/* Makes our group `name` wherever it can be made; `missing` says what cannot be enforced. */
bool cgroups_open(Cgroups *groups, const CgroupPlace *place, const char *name, GError **error);
/* Of all boxes together, on our own group; best effort where the kernel lacks a limit. */
void cgroups_cap(const Cgroups *groups, const Ceiling *ceiling);
/* Removes our group; for the end of the keeper, when no box is left. */
void cgroups_close(Cgroups *groups);
unsigned cgroups_missing(const Cgroups *groups); /* KeeperDegraded */

void cgroup_name(int slot, char ret_name[CGROUP_NAME_MAX + 1]);
/* The following set errno. */
bool cgroup_make(const Cgroups *groups, const char *name, const KeeperLimits *limits);
bool cgroup_enter_prepare(const Cgroups *groups, const char *name, CgroupEntry *ret_entry);
void cgroup_entry_clear(CgroupEntry *entry);
bool cgroup_freeze(const Cgroups *groups, const char *name, bool frozen);
/* Whatever is in the group; false: only the pid namespace's end can do it. */
bool cgroup_kill(const Cgroups *groups, const char *name);
void cgroup_use(const Cgroups *groups, const char *name, CgroupUse *ret_use);
uint32_t cgroup_oom_kills(const Cgroups *groups, const char *name);
/* True when the group is in no hierarchy any more. */
bool cgroup_remove(const Cgroups *groups, const char *name);

/* For the files of cgroup-v1.c and cgroup-v2.c. */
bool cgroup_write(int dir_fd, const char *group, const char *file, const char *text);
bool cgroup_write_number(int dir_fd, const char *group, const char *file, uint64_t number);
/* The number in the file, or behind `key` on a line of it; 0 when there is none. */
uint64_t cgroup_read_number(int dir_fd, const char *group, const char *file, const char *key);

bool cgroup_v1_open(Cgroups *groups);
void cgroup_v1_cap(const Cgroups *groups, const Ceiling *ceiling);
bool cgroup_v1_limit(const Cgroups *groups, const char *name, const KeeperLimits *limits);
void cgroup_v1_use(const Cgroups *groups, const char *name, CgroupUse *use);
bool cgroup_v2_open(Cgroups *groups, const char *parent_dir);
void cgroup_v2_cap(const Cgroups *groups, const Ceiling *ceiling);
bool cgroup_v2_limit(const Cgroups *groups, const char *name, const KeeperLimits *limits);
void cgroup_v2_use(const Cgroups *groups, const char *name, CgroupUse *use);
