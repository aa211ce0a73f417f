/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "keeper/cgroup.h"
#include "keeper/filter.h"
#include "wire/record.h"

/* What a box's first process does between clone() and coop-init.  Only the files child*.c (and
 * fork.c, ipc.c, wire/channel.c) run there; they allocate nothing and tell failures by errno.
 *
 * Over its end of the sync socket it gets a ChildGo and the mounts in packets, sends a
 * ChildReport and closes by exec.  End of file before the last packet means that the keeper is
 * gone or has changed its mind: it exits, it never goes on. */
enum {
    CHILD_MASKS_MAX = 48,
    CHILD_FDS_MAX = KEEPER_LAYERS_MAX + 1, /* the disk, then the layers from the top */
    CHILD_CHANNEL_FD = 3,                  /* where coop-init finds its channel */
};

typedef struct ChildGo {
    uint32_t n_fds;
    uint32_t bound_ipc; /* 1: the child has to do it */
} ChildGo;

typedef struct ChildReport {
    uint32_t stage; /* 0: everything is done, exec comes next */
    int32_t error;
} ChildReport;

/* A name in /proc that boxes do not see. */
typedef struct ChildMask {
    const char *name;
    bool is_dir;
} ChildMask;

typedef struct ChildSpec {
    const KeeperRequest *request;
    const CgroupEntry *group;
    const FilterProgram *filter;
    const ChildMask *masks;
    int n_masks;
    /* A folder that holds: l00…l15, disk, root (empty folders), dev (the device tree), empty (a
     * file), none (a folder). */
    const char *stage_dir;
    int sync_fd, channel_fd, init_fd;
    int landlock_abi; /* below 2: none */
} ChildSpec;

_Noreturn void child_run(const ChildSpec *spec);

enum { CHILD_KEEP_MAX = CGROUP_KINDS + 4 };
/* The fds that it needs of the keeper's. */
int child_keep(const ChildSpec *spec, int ret_keep[static CHILD_KEEP_MAX]);

/* Steps of child_run; all set errno. */
bool child_mount_root(const ChildSpec *spec, const int *fds, int *ret_root_fd, bool *ret_written);
bool child_mount_system(const ChildSpec *spec, int root_fd, int *ret_proc_fd);
/* `ret_user_fd`: the box's /proc/sys/user, through which it can still be written. */
bool child_mask(const ChildSpec *spec, int proc_fd, int *ret_user_fd);
/* The box's own files in /etc: below the overlay before it is mounted, where that is the same and takes a
 * fraction of the time; else through it. */
bool child_write_below(const ChildSpec *spec, bool *ret_written);
bool child_write_files(const ChildSpec *spec, int root_fd);
bool child_enter_root(int root_fd);
bool child_forbid_namespaces(int user_fd);
bool child_limit(const ChildSpec *spec);
bool child_drop_capabilities(void);
bool child_landlock(int abi);
bool child_filter(const FilterProgram *filter);

/* What its files share.  Folders of the image are opened without following a link. */
#define CHILD_LAYER "l00" /* where a layer is attached in the stage folder */
void child_layer_name(uint32_t layer, char name[static sizeof CHILD_LAYER]);
int child_open_dir(int root_fd, const char *name);
int child_make_dir(int root_fd, const char *name);
bool child_write_file(int dir_fd, const char *name, const char *text);
