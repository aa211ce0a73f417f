/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs wait in a list, the oldest first; some of them run.  A helper tells what it found over
 * its socket and may then still have to give back the image; its job, and its place among those
 * that run, go when it has ended.  Jobs carry a box's id, never the box, which may be gone by
 * then. */
#include "keeper/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "keeper/folder.h"
#include "keeper/fork.h"
#include "wire/channel.h"

enum {
    RUNNING_MAX = 4,
    KEEP_MAX = 5,
    END_MS = 1000,
    RETRY_US = 50 * 1000, /* after there was no process, or no descriptor, for a helper */
    TRIES_MAX = 40,       /* of one that makes a disk */
};

typedef struct Job {
    struct Job *next;
    Disks *disks;
    DiskJobKind kind;
    char box[KEEPER_ID_LEN + 1]; /* "": of the pool */
    DiskWork work;
    int image_fd; /* end: given back last */
    int pidfd;    /* -1: waiting */
    int socket;
    unsigned tries; /* that failed */
    bool told;
    DeviceOutcome outcome; /* make: of the device it was lent */
    Watch result_watch, end_watch;
} Job;

typedef struct Ready {
    struct Ready *next;
    DiskFds fds;
} Ready;

struct Disks {
    DisksSpec spec;
    Job *jobs;
    unsigned n_running;
    unsigned n_pool_jobs; /* that make one */
    Ready *ready;
    uint32_t n_ready;
    DiskShape shape;
    uint32_t want;
    bool pool_failed; /* the last one for the pool could not be made */
    int64_t retry_us; /* INT64_MAX: no job waits for that */
};

typedef struct JobResult {
    int32_t error;
    uint32_t outcome; /* DeviceOutcome */
} JobResult;

static const DiskFds no_fds = DISK_FDS_NONE;

static void start_jobs(Disks *disks);

Disks *
disks_new(const DisksSpec *spec)
{
    Disks *disks = g_new0(Disks, 1);

    disks->spec = *spec;
    disks->retry_us = INT64_MAX;
    return disks;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void
job_free(Job *job)
{
    loop_remove(job->disks->spec.loop, &job->result_watch);
    loop_remove(job->disks->spec.loop, &job->end_watch);
    close_fd(&job->pidfd);
    close_fd(&job->socket);
    close_fd(&job->work.dir_fd);
    close_fd(&job->image_fd);
    g_free(job);
}

void
disks_free(Disks *disks)
{
    while (disks->jobs != NULL) {
        Job *job = disks->jobs;

        disks->jobs = job->next;
        /* One that is taking a disk down may finish; the others die with us. */
        if (job->kind == DISK_JOB_END && job->pidfd >= 0)
            (void)poll(&(struct pollfd){.fd = job->pidfd, .events = POLLIN}, 1, END_MS);
        job_free(job);
    }
    while (disks->ready != NULL) {
        Ready *ready = disks->ready;

        disks->ready = ready->next;
        disk_stop(ready->fds.mount);
        close_fd(&ready->fds.mount);
        close_fd(&ready->fds.image);
        g_free(ready);
    }
    g_free(disks);
}

static Job *
job_new(Disks *disks, DiskJobKind kind, const char *box)
{
    Job *job = g_new0(Job, 1);

    job->disks = disks;
    job->kind = kind;
    job->pidfd = job->socket = job->image_fd = -1;
    job->result_watch = job->end_watch = (Watch)WATCH_INIT;
    g_strlcpy(job->box, box, sizeof job->box);
    job->work = (DiskWork){.state_fd = disks->spec.state_fd,
                           .owner = disks->spec.owner,
                           .device = DEVICE_LEASE_NONE,
                           .dir_fd = -1};
    return job;
}

static void
job_queue(Disks *disks, Job *job)
{
    Job **end = &disks->jobs;

    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    start_jobs(disks);
}

_Noreturn static void
run_job(const Job *job, int socket)
{
    int keep[KEEP_MAX] = {STDERR_FILENO, socket, job->work.state_fd};
    int n = 3;
    DiskFds fds = no_fds;
    DeviceOutcome outcome = DEVICE_UNKNOWN;

    if (job->work.dir_fd >= 0)
        keep[n++] = job->work.dir_fd;
    if (job->image_fd >= 0)
        keep[n++] = job->image_fd;
    fork_detach(keep, n);
    /* The last close of a disk is the slow one; it has to be ours, not the keeper's. */
    (void)poll(&(struct pollfd){.fd = socket, .events = POLLRDHUP}, 1, -1);
    int error = job->kind == DISK_JOB_MAKE ? disk_work_make(&job->work, &fds, &outcome)
                                           : disk_work_end(&job->work);
    JobResult result = {.error = error, .outcome = outcome};

    FAILPOINT("disk-helper");
    bool sent = channel_send(socket, &result, sizeof result, &fds.mount, fds.mount >= 0 ? 2 : 0) == 0;

    FAILPOINT("disk-release");
    if (job->image_fd >= 0)
        close(job->image_fd);
    _exit(sent ? 0 : 1);
}

static bool
same_shape(DiskShape a, DiskShape b)
{
    return a.bytes == b.bytes && a.inodes == b.inodes;
}

void
disks_drop(Disks *disks, DiskFds fds)
{
    Job *job = job_new(disks, DISK_JOB_END, "");

    job->work.dir_fd = fds.mount;
    job->image_fd = fds.image;
    job->work.device.place = fds.device;
    job_queue(disks, job);
}

static void
pool_job_done(Disks *disks, const Job *job, int error, DiskFds fds)
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

static void
tell_done(Disks *disks, const Job *job, int error, DiskFds fds)
{
    if (job->box[0] == '\0')
        pool_job_done(disks, job, error, fds);
    else
        disks->spec.on_done(disks->spec.ctx, job->kind, job->box, error, fds);
}

/* What it found; nothing, when it has ended without a word. */
static void
take_result(Job *job)
{
    Disks *disks = job->disks;
    JobResult result = {.error = EIO};
    int fds[2] = {-1, -1};
    size_t n_fds = 2;

    loop_remove(disks->spec.loop, &job->result_watch);
    job->told = true;
    if (channel_recv(job->socket, &result, sizeof result, fds, &n_fds) != sizeof result)
        result.error = EIO;
    DiskFds made = no_fds;

    if (n_fds == 2)
        made = (DiskFds){.mount = fork_raise_fd(fds[0]), .image = fork_raise_fd(fds[1]), .device = -1};
    job->outcome = result.outcome;
    /* From now on the device is the disk's. */
    if (n_fds == 2 && result.outcome == DEVICE_ATTACHED) {
        made.device = job->work.device.place;
        job->work.device.place = -1;
    }

    tell_done(disks, job, result.error, made);
}

static void
on_result(void *ctx, uint32_t events)
{
    take_result(ctx);
}

static void
job_unlink(Disks *disks, const Job *job)
{
    Job **at = &disks->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
}

static void
on_helper_end(void *ctx, uint32_t events)
{
    Job *job = ctx;
    Disks *disks = job->disks;

    loop_remove(disks->spec.loop, &job->end_watch);
    (void)fork_reap(job->pidfd);
    disks->n_running--;
    if (!job->told)
        take_result(job);
    devices_settle(disks->spec.devices, job->work.device.place, job->outcome);
    job_unlink(disks, job);
    job_free(job);
    start_jobs(disks);
}

static bool
job_start(Disks *disks, Job *job)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    if (job->kind == DISK_JOB_MAKE)
        job->work.device = devices_take(disks->spec.devices);
    pid_t pid = fork_held(0, -1, &job->pidfd);

    if (pid == 0)
        run_job(job, pair[1]);
    int saved = errno;

    close(pair[1]);
    job->socket = pair[0];
    if (pid < 0) {
        close_fd(&job->socket);
        if (job->kind == DISK_JOB_MAKE)
            devices_settle(disks->spec.devices, job->work.device.place,
                           device_lease_unused(&job->work.device));
        errno = saved;
        return false;
    }
    /* The helper has its own. */
    close_fd(&job->work.dir_fd);
    close_fd(&job->image_fd);
    (void)shutdown(job->socket, SHUT_WR);
    disks->n_running++;
    job->result_watch = (Watch){.fd = -1, .func = on_result, .ctx = job};
    job->end_watch = (Watch){.fd = -1, .func = on_helper_end, .ctx = job};
    g_assert(loop_add(disks->spec.loop, &job->result_watch, job->socket, EPOLLIN));
    g_assert(loop_add(disks->spec.loop, &job->end_watch, job->pidfd, EPOLLIN));
    return true;
}

/* Jobs of boxes come before those of the pool. */
static Job *
next_waiting(Disks *disks)
{
    Job *pool = NULL;

    for (Job *job = disks->jobs; job != NULL; job = job->next) {
        if (job->pidfd >= 0)
            continue;
        if (job->box[0] != '\0')
            return job;
        if (pool == NULL)
            pool = job;
    }
    return pool;
}

static void
give_up(Disks *disks, Job *job, int error)
{
    log_warn("keeper", "no helper for a disk", log_str("error", g_strerror(error)));
    /* Whoever hears of it may ask for another, and with that start all that wait. */
    job_unlink(disks, job);
    tell_done(disks, job, error, no_fds);
    job_free(job);
}

static void
start_jobs(Disks *disks)
{
    Job *job;

    disks->retry_us = INT64_MAX;
    while (disks->n_running < RUNNING_MAX && (job = next_waiting(disks)) != NULL) {
        if (!job_start(disks, job)) {
            job->tries++;
            disks->retry_us = clock_mono_us() + RETRY_US;
            return;
        }
    }
}

int64_t
disks_due_us(const Disks *disks)
{
    return disks->retry_us;
}

void
disks_retry(Disks *disks)
{
    Job *job = next_waiting(disks);

    if (job != NULL && job->kind == DISK_JOB_MAKE && job->tries >= TRIES_MAX)
        give_up(disks, job, EAGAIN);
    start_jobs(disks);
}

bool
disks_lack(const Disks *disks, uint32_t count)
{
    return !disks->spec.in_memory && disks->n_pool_jobs < RUNNING_MAX &&
           disks->n_ready + disks->n_pool_jobs < count;
}

void
disks_want(Disks *disks, uint32_t count)
{
    disks->want = count;
    while (disks_lack(disks, count)) {
        Job *job = job_new(disks, DISK_JOB_MAKE, "");

        job->work.shape = disks->shape;
        job->work.golden = true;
        disks->n_pool_jobs++;
        job_queue(disks, job);
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
    Job *job = job_new(disks, DISK_JOB_MAKE, box);

    job->work.shape = shape;
    job->work.golden = same_shape(shape, disks->shape);
    if (keep)
        kept_image(box, job->work.kept);
    job_queue(disks, job);
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
    Job *job = job_new(disks, DISK_JOB_END, box);

    if (folder)
        folder_name(box, job->work.folder);
    job->work.dir_fd = fds.mount;
    job->image_fd = fds.image;
    job->work.device.place = fds.device;
    if (keep)
        kept_image(box, job->work.kept);
    job_queue(disks, job);
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
        Job *job = job_new(disks, DISK_JOB_END, "");

        folder_name(entry->d_name, job->work.folder);
        job_queue(disks, job);
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
