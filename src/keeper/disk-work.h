/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "keeper/device-work.h"
#include "keeper/disk-image.h"

/* What a forked helper does to disks, so that the keeper never waits for one.
 *
 * The image of a disk that is thrown away has no name: it is there as long as somebody has it
 * open, and a kill -9 of everybody leaves nothing.  The keeper holds it beside the mount, so that
 * the end of the mount is not the end of the file: giving back a gigabyte takes the host longer
 * than everything else. */
typedef struct DiskFds {
    int mount; /* attached nowhere: it ends with the last fd */
    int image;
    int device; /* the place of its loop device in the keeper's table; -1: not one of ours */
} DiskFds;
#define DISK_FDS_NONE                                                                                        \
    {                                                                                                        \
        .mount = -1, .image = -1, .device = -1                                                               \
    }

typedef struct DiskWork {
    int state_fd;
    DiskShape shape;
    uint32_t owner;                 /* the id of root on it */
    char kept[DISK_NAME_MAX + 1];   /* the file below the state folder; "": thrown away */
    bool golden;                    /* make: copy from the shape's golden image */
    DeviceLease device;             /* make: the one to use; end: the one that is free then */
    int dir_fd;                     /* end: of the mounted disk; closed; -1: only the folder is left */
    char folder[DISK_NAME_MAX + 1]; /* end: removed with all that is in it; "": none */
} DiskWork;

/* What an overlay needs of a new disk; `owner`: the id of root on it.  0, or an errno. */
int disk_make_dirs(int mount_fd, uint32_t owner);

/* 0, or an errno; the outcome is told in either case. */
int disk_work_make(const DiskWork *work, DiskFds *ret_fds, DeviceOutcome *ret_outcome);
int disk_work_end(const DiskWork *work);

/* A disk that is kept may come back full, and a start needs a few inodes and blocks: they are set
 * aside where the box does not see them, from its start to the next.  Best effort: what is not
 * there cannot be set aside.  `owner`: the box's root, as whom it is done; the mount knows no
 * other. */
void disk_set_aside(int dir_fd, uint32_t owner);

/* Nothing is written to the disk any more, and whoever waits for that fails: else the end of the
 * box's overlay would first write a gigabyte that nobody will read. */
void disk_stop(int dir_fd);

/* A disk in memory, for a keeper that may not mount images; quick enough to need no helper. */
int disk_make_memory(const DiskShape *shape, uint32_t owner, int *ret_mount_fd);
