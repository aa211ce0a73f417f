/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "keeper/device.h"
#include "keeper/disk-work.h"
#include "keeper/loop.h"
#include "wire/record.h"

/* The disks of boxes: an ext4 image each, mounted by a helper; where images cannot be mounted,
 * memory or a folder.  Disks of one shape can be had ahead. */
typedef struct Disks Disks;

typedef enum DiskJobKind { DISK_JOB_MAKE, DISK_JOB_END } DiskJobKind;

/* `fds` are the callee's, -1 unless a disk was made. */
typedef void (*DiskDoneFunc)(void *ctx, DiskJobKind kind, const char *box, int error, DiskFds fds);

typedef struct DisksSpec {
    Loop *loop;
    Devices *devices;    /* borrowed */
    int state_fd;        /* borrowed */
    bool in_memory;      /* images cannot be mounted */
    uint64_t memory_max; /* in_memory: a larger disk is a folder */
    uint32_t owner;      /* the id of root on disks */
    DiskDoneFunc on_done;
    void *ctx;
} DisksSpec;

Disks *disks_new(const DisksSpec *spec);
/* Helpers that run are ended; ready disks go. */
void disks_free(Disks *disks);

/* Have this many of a shape ready; those of another shape are dropped. */
void disks_prepare(Disks *disks, DiskShape shape, uint32_t count);
/* The same shape, another count; none is dropped. */
void disks_want(Disks *disks, uint32_t count);
uint32_t disks_ready(const Disks *disks);
/* Whether there are fewer than `count`, and a helper could make one. */
bool disks_lack(const Disks *disks, uint32_t count);
/* Whether the last one that was to be made ahead could not be. */
bool disks_failed(const Disks *disks);
/* A ready one, which is the caller's. */
bool disks_take_ready(Disks *disks, DiskFds *ret_fds);
/* One that no box has had; unmounted by a helper. */
void disks_drop(Disks *disks, DiskFds fds);

typedef enum DiskTake { DISK_TAKEN, DISK_LATER, DISK_REFUSED } DiskTake;
/* TAKEN: `ret_fds` are the caller's.  LATER: on_done will be called.  REFUSED: errno. */
DiskTake disks_take(Disks *disks, const char *box, DiskShape shape, bool keep, DiskFds *ret_fds);

/* Takes the fds; that of the mount may be one of its root.  True: it is gone.  False: on_done will
 * be called when it is unmounted. */
bool disks_end(Disks *disks, const char *box, DiskFds fds, bool keep);
/* Whether a disk of this shape is a folder. */
bool disks_in_folder(const Disks *disks, DiskShape shape);
/* Folders of boxes that a keeper before this one left. */
void disks_sweep(Disks *disks);
/* Of a box that is no more. */
bool disks_forget(Disks *disks, const char *box);
/* When disks_retry() has something to do: a helper could not be started.  A disk that cannot be made
 * is given up after a while with the errno; one that is to end is tried for as long as it takes. */
int64_t disks_due_us(const Disks *disks);
void disks_retry(Disks *disks);
/* Whether a helper works: files without a meaning yet are its. */
bool disks_busy(const Disks *disks);
