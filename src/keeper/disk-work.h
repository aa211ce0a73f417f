/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What a forked helper does to disks, so that the keeper never waits for one.  Names are below
 * the state folder. */
typedef struct DiskShape {
    uint64_t bytes;
    uint32_t inodes;
} DiskShape;

enum { DISK_NAME_MAX = 79 };

typedef struct DiskWork {
    int state_fd;
    const char *state_dir;
    DiskShape shape;
    uint32_t owner; /* the id of root on it */
    char image[DISK_NAME_MAX + 1];
    char kept[DISK_NAME_MAX + 1]; /* make: begin with this one if it is there; end: keep it so */
    bool golden;                  /* make: copy from the shape's golden image, made if missing */
    int dir_fd;                   /* end: of the mounted disk */
} DiskWork;

/* 0, or an errno.  The mount is attached nowhere: it ends with the last fd. */
int disk_work_make(const DiskWork *work, int *ret_mount_fd);
int disk_work_end(const DiskWork *work);

/* A disk in memory, for a keeper that may not mount images; quick enough to need no helper. */
int disk_make_memory(const DiskShape *shape, uint32_t owner, int *ret_mount_fd);
