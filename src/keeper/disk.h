/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "keeper/disk-work.h"
#include "keeper/loop.h"
#include "wire/record.h"

/* The disks of boxes: an ext4 image each, mounted by a helper, or memory where images cannot
 * be mounted.  Images of one shape are kept ready. */
typedef struct Disks Disks;

typedef enum DiskJobKind { DISK_JOB_MAKE, DISK_JOB_END } DiskJobKind;

/* `mount_fd` is the callee's, -1 unless a disk was made. */
typedef void (*DiskDoneFunc)(void *ctx, DiskJobKind kind, const char *box, int error, int mount_fd);

typedef struct DisksSpec {
    Loop *loop;
    int state_fd; /* borrowed, as are the others */
    const char *state_dir;
    bool in_memory;
    uint32_t owner; /* the id of root on disks */
    DiskDoneFunc on_done;
    void *ctx;
} DisksSpec;

Disks *disks_new(const DisksSpec *spec);
/* Helpers that run are ended; ready images go. */
void disks_free(Disks *disks);

/* Have this many of a shape ready; those of another shape are dropped. */
void disks_prepare(Disks *disks, DiskShape shape, uint32_t count);
uint32_t disks_ready(const Disks *disks);

typedef enum DiskTake { DISK_TAKEN, DISK_LATER, DISK_REFUSED } DiskTake;
/* TAKEN: `ret_mount_fd` is the caller's.  LATER: on_done will be called.  REFUSED: errno. */
DiskTake disks_take(Disks *disks, const char *box, DiskShape shape, bool keep, int *ret_mount_fd);

/* Takes `dir_fd`.  True: it is gone.  False: on_done will be called when it is gone, or kept. */
bool disks_end(Disks *disks, const char *box, int dir_fd, bool keep);
/* Of a box that is no more. */
bool disks_forget(Disks *disks, const char *box);
/* Whether the keeper knows this file of the pool folder. */
bool disks_know(const Disks *disks, const char *name);
