/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "keeper/disk-private.h"
#include "keeper/folder.h"

enum { END_MS = 1000 };

static const DiskFds no_fds = DISK_FDS_NONE;

Disks *
disks_new(const DisksSpec *spec)
{
    Disks *disks = g_new0(Disks, 1);

    disks->spec = *spec;
    disks->retry_us = INT64_MAX;
    return disks;
}

void
disks_free(Disks *disks)
{
    while (disks->jobs != NULL) {
        DiskJob *job = disks->jobs;

        disks->jobs = job->next;
        /* One that is taking a disk down may finish; the others die with us. */
        if (job->kind == DISK_JOB_END && job->pidfd >= 0)
            (void)poll(&(struct pollfd){.fd = job->pidfd, .events = POLLIN}, 1, END_MS);
        disk_job_free(job);
    }
    while (disks->ready != NULL) {
        Ready *ready = disks->ready;

        disks->ready = ready->next;
        disk_stop(ready->fds.mount);
        disk_close_fd(&ready->fds.mount);
        disk_close_fd(&ready->fds.image);
        g_free(ready);
    }
    g_free(disks);
}

static bool
same_shape(DiskShape a, DiskShape b)
{
    return a.bytes == b.bytes && a.inodes == b.inodes;
}

void
disks_drop(Disks *disks, DiskFds fds)
{
    DiskJob *job = disk_job_new(disks, DISK_JOB_END, "");

    job->work.dir_fd = fds.mount;
    job->image_fd = fds.image;
    job->work.device.place = fds.device;
    disk_job_queue(disks, job);
}

void
disk_pool_job_done(Disks *disks, const DiskJob *job, int error, DiskFds fds)
{
    if (job->kind == DISK_JOB_END)
        return;
    disks->n_pool_jobs--;
    disks->pool_failed = error != 0;
    if (error != 0) {
        log_warn("keeper", "cannot prepare a disk", log_str("error", g_strerror(error)));
        return;
    }
    if (!same_shape(job->work.shape, disks->shape) || disks->n_ready >= disks->want) {
        disks_drop(disks, fds);
        return;
    }
    Ready *ready = g_new0(Ready, 1);

    ready->fds = fds;
    ready->next = disks->ready;
    disks->ready = ready;
    disks->n_ready++;
}

bool
disks_lack(const Disks *disks, uint32_t count)
{
    return !disks->spec.in_memory && disks->n_pool_jobs < DISK_JOBS_MAX &&
           disks->n_ready + disks->n_pool_jobs < count;
}

void
disks_want(Disks *disks, uint32_t count)
{
    disks->want = count;
    while (disks_lack(disks, count)) {
        DiskJob *job = disk_job_new(disks, DISK_JOB_MAKE, "");

        job->work.shape = disks->shape;
        job->work.golden = true;
        disks->n_pool_jobs++;
        disk_job_queue(disks, job);
    }
}

bool
disks_failed(const Disks *disks)
{
    return disks->pool_failed;
}

uint32_t
disks_ready(const Disks *disks)
{
    return disks->n_ready;
}

bool
disks_take_ready(Disks *disks, DiskFds *ret_fds)
{
    Ready *ready = disks->ready;

    if (ready == NULL)
        return false;
    *ret_fds = ready->fds;
    disks->ready = ready->next;
    disks->n_ready--;
    g_free(ready);
    return true;
}

void
disks_prepare(Disks *disks, DiskShape shape, uint32_t count)
{
    bool other = !same_shape(shape, disks->shape);
    DiskFds fds;

    disks->shape = shape;
    while ((other || disks->n_ready > count) && disks_take_ready(disks, &fds))
        disks_drop(disks, fds);
    disks->pool_failed = false;
    disks_want(disks, count);
}

static void
kept_image(const char *box, char ret_name[DISK_NAME_MAX + 1])
{
    snprintf(ret_name, DISK_NAME_MAX + 1, "kept/%s.img", box);
}

bool
disks_in_folder(const Disks *disks, DiskShape shape)
{
    return disks->spec.in_memory && shape.bytes > disks->spec.memory_max;
}

static int
make_plain(Disks *disks, const char *box, const DiskShape *shape, int *ret_mount_fd)
{
    const DisksSpec *spec = &disks->spec;

    return disks_in_folder(disks, *shape) ? folder_make(spec->state_fd, box, spec->owner, ret_mount_fd)
                                          : disk_make_memory(shape, spec->owner, ret_mount_fd);
}

DiskTake
disks_take(Disks *disks, const char *box, DiskShape shape, bool keep, DiskFds *ret_fds)
{
    *ret_fds = no_fds;
    if (disks->spec.in_memory) {
        errno = keep ? EOPNOTSUPP : make_plain(disks, box, &shape, &ret_fds->mount);
        return errno == 0 ? DISK_TAKEN : DISK_REFUSED;
    }
    if (!keep && same_shape(shape, disks->shape) && disks_take_ready(disks, ret_fds))
        return DISK_TAKEN;
    DiskJob *job = disk_job_new(disks, DISK_JOB_MAKE, box);

    job->work.shape = shape;
    job->work.golden = same_shape(shape, disks->shape);
    if (keep)
        kept_image(box, job->work.kept);
    disk_job_queue(disks, job);
    return DISK_LATER;
}

bool
disks_end(Disks *disks, const char *box, DiskFds fds, bool keep)
{
    bool folder = disks->spec.in_memory && folder_is_there(disks->spec.state_fd, box);

    if (disks->spec.in_memory && !folder) {
        close(fds.mount);
        return true;
    }
    DiskJob *job = disk_job_new(disks, DISK_JOB_END, box);

    if (folder)
        folder_name(box, job->work.folder);
    job->work.dir_fd = fds.mount;
    job->image_fd = fds.image;
    job->work.device.place = fds.device;
    if (keep)
        kept_image(box, job->work.kept);
    disk_job_queue(disks, job);
    return false;
}

void
disks_sweep(Disks *disks)
{
    int fd = openat(disks->spec.state_fd, "folders", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) > KEEPER_ID_LEN)
            continue;
        DiskJob *job = disk_job_new(disks, DISK_JOB_END, "");

        folder_name(entry->d_name, job->work.folder);
        disk_job_queue(disks, job);
    }
    if (dir != NULL)
        closedir(dir);
}

bool
disks_forget(Disks *disks, const char *box)
{
    char image[DISK_NAME_MAX + 1];

    kept_image(box, image);
    return unlinkat(disks->spec.state_fd, image, 0) == 0 || errno == ENOENT;
}

bool
disks_busy(const Disks *disks)
{
    return disks->jobs != NULL;
}
