/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

#include "keeper/box.h"
#include "keeper/cgroup.h"
#include "keeper/child.h"
#include "keeper/config.h"
#include "keeper/disk.h"
#include "keeper/filter.h"
#include "keeper/folder-watch.h"
#include "keeper/hold.h"
#include "keeper/ids.h"
#include "keeper/loop.h"
#include "keeper/pool.h"
#include "keeper/proc.h"
#include "keeper/server.h"
#include "keeper/storage.h"

/* The state folder, closed to everybody else:
 *
 *     lock          held by the keeper that uses the folder
 *     instance      a random name; our cgroups carry it
 *     groups        folders of our cgroups, those of earlier starts too
 *     records       the boxes there are meant to be
 *     devices       the loop devices that were made for boxes
 *     kept/ID.img   the disk of a box, where keeping it was asked for
 *     pool/         images until they are whole; then those that are thrown away have no name
 *     images/       empty disks to copy from
 *     folders/ID    the disk of a box, where it is neither an image nor in memory
 *     stage/        where boxes build their root; mounted over in the keeper's own namespace */

struct Keeper {
    KeeperConfig config;
    bool privileged; /* of the host's user namespace; else of one of our own */
    unsigned degraded;
    int landlock_abi;

    Loop loop;
    Server *server;
    Devices *devices;
    Disks *disks;
    Pool *pool;
    Storage *storage;
    FolderWatch *folders;
    Holds *holds;
    Cgroups groups;
    IdTable ids;
    Box *boxes;
    uint32_t n_boxes;

    int state_fd, records_fd, template_fd, generation_fd, init_fd, netns_fd, ipcns_fd, lock_fd;
    char *stage_dir;
    char *instance;
    ProcView proc;
    bool ipc_known;      /* whether the next is true was seen */
    bool ipc_by_child;   /* only a box itself can bound its IPC */
    uint64_t namespaces; /* of a box, as flags of clone3 */
    FilterProgram filter;
    ChildMask masks[CHILD_MASKS_MAX];
    int n_masks;
};

int64_t keeper_mono_us(void);
