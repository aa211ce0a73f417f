/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* The hierarchies a box may be in: the unified one (version 2) and those of version 1 with the
 * controllers we use.  On a hybrid host both are there. */
typedef enum CgroupKind {
    CGROUP_UNIFIED,
    CGROUP_MEMORY,
    CGROUP_CPU,
    CGROUP_CPUACCT,
    CGROUP_PIDS,
    CGROUP_DEVICES,
    CGROUP_FREEZER,
    CGROUP_KINDS,
} CgroupKind;

/* Where this process is in each; NULL: not mounted, or not reachable from here.  Controllers
 * that are mounted together have the same folder. */
typedef struct CgroupPlace {
    char *dir[CGROUP_KINDS];
} CgroupPlace;

/* From the texts of /proc/self/cgroup and /proc/self/mountinfo. */
void cgroup_find(const char *cgroup_text, const char *mountinfo_text, CgroupPlace *ret_place);
void cgroup_place_clear(CgroupPlace *place);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CgroupPlace, cgroup_place_clear)

const char *cgroup_kind_name(CgroupKind kind);
