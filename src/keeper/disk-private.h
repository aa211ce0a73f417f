/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <unistd.h>

#include "keeper/disk.h"

/* The inside of disks, for disk.c, which says what is to be done, and disk-job.c, which has it
 * done. */

enum { DISK_JOBS_MAX = 4 }; /* that run */

typedef struct DiskJob {
    struct DiskJob *next;
    Disks *disks;
    DiskJobKind kind;
    char box[KEEPER_ID_LEN + 1]; /* "": of the pool */
    DiskWork work;
    int image_fd; /* end: given back last */
    int pidfd;    /* -1: waiting */
    int socket;
    int64_t failed_us; /* when there was no helper for it first; 0: never */
    bool told;
    DeviceOutcome outcome; /* make: of the device it was lent */
    Watch result_watch, end_watch;
} DiskJob;

typedef struct Ready {
    struct Ready *next;
    DiskFds fds;
} Ready;

struct Disks {
    DisksSpec spec;
    DiskJob *jobs;
    unsigned n_running;
    unsigned n_pool_jobs; /* that make one */
    Ready *ready;
    uint32_t n_ready;
    DiskShape shape;
    uint32_t want;
    bool pool_failed; /* the last one for the pool could not be made */
    int64_t retry_us; /* INT64_MAX: no job waits for that */
};

/* disk-job.c */
DiskJob *disk_job_new(Disks *disks, DiskJobKind kind, const char *box);
/* Takes it, and starts what can be started. */
void disk_job_queue(Disks *disks, DiskJob *job);
void disk_job_free(DiskJob *job);

/* disk.c: one of no box has ended. */
void disk_pool_job_done(Disks *disks, const DiskJob *job, int error, DiskFds fds);

static inline void
disk_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}
