/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs wait in a list, the oldest first; some of them run.  A helper tells what it found over
 * its socket and may then still have to give back the image; its job, and its place among those
 * that run, go when it has ended.  Jobs carry a box's id, never the box, which may be gone by
 * then. */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "keeper/disk-private.h"
#include "keeper/fork.h"
#include "wire/channel.h"

enum {
    KEEP_MAX = 5,
    RETRY_US = 50 * 1000,            /* after there was no process, or no descriptor, for a helper */
    GIVE_UP_US = 2 * G_USEC_PER_SEC, /* after the first time, if it was to make a disk */
};

typedef struct JobResult {
    int32_t error;
    uint32_t outcome; /* DeviceOutcome */
} JobResult;

static const DiskFds no_fds = DISK_FDS_NONE;

static void start_jobs(Disks *disks);

void
disk_job_free(DiskJob *job)
{
    loop_remove(job->disks->spec.loop, &job->result_watch);
    loop_remove(job->disks->spec.loop, &job->end_watch);
    disk_close_fd(&job->pidfd);
    disk_close_fd(&job->socket);
    disk_close_fd(&job->work.dir_fd);
    disk_close_fd(&job->image_fd);
    g_free(job);
}

DiskJob *
disk_job_new(Disks *disks, DiskJobKind kind, const char *box)
{
    DiskJob *job = g_new0(DiskJob, 1);

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

_Noreturn static void
run_job(const DiskJob *job, int socket)
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

static void
tell_done(Disks *disks, const DiskJob *job, int error, DiskFds fds)
{
    if (job->box[0] == '\0')
        disk_pool_job_done(disks, job, error, fds);
    else
        disks->spec.on_done(disks->spec.ctx, job->kind, job->box, error, fds);
}

/* What it found; nothing, when it has ended without a word. */
static void
take_result(DiskJob *job)
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
job_unlink(Disks *disks, const DiskJob *job)
{
    DiskJob **at = &disks->jobs;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
}

static void
on_helper_end(void *ctx, uint32_t events)
{
    DiskJob *job = ctx;
    Disks *disks = job->disks;

    loop_remove(disks->spec.loop, &job->end_watch);
    (void)fork_reap(job->pidfd);
    disks->n_running--;
    if (!job->told)
        take_result(job);
    devices_settle(disks->spec.devices, job->work.device.place, job->outcome);
    job_unlink(disks, job);
    disk_job_free(job);
    start_jobs(disks);
}

static bool
job_start(Disks *disks, DiskJob *job)
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
        disk_close_fd(&job->socket);
        if (job->kind == DISK_JOB_MAKE)
            devices_settle(disks->spec.devices, job->work.device.place,
                           device_lease_unused(&job->work.device));
        errno = saved;
        return false;
    }
    /* The helper has its own. */
    disk_close_fd(&job->work.dir_fd);
    disk_close_fd(&job->image_fd);
    (void)shutdown(job->socket, SHUT_WR);
    disks->n_running++;
    job->result_watch = (Watch){.fd = -1, .func = on_result, .ctx = job};
    job->end_watch = (Watch){.fd = -1, .func = on_helper_end, .ctx = job};
    g_assert(loop_add(disks->spec.loop, &job->result_watch, job->socket, EPOLLIN));
    g_assert(loop_add(disks->spec.loop, &job->end_watch, job->pidfd, EPOLLIN));
    return true;
}

/* Jobs of boxes come before those of the pool. */
static DiskJob *
next_waiting(Disks *disks)
{
    DiskJob *pool = NULL;

    for (DiskJob *job = disks->jobs; job != NULL; job = job->next) {
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
give_up(Disks *disks, DiskJob *job, int error)
{
    log_warn("keeper", "no helper for a disk", log_str("error", g_strerror(error)));
    /* Whoever hears of it may ask for another, and with that start all that wait. */
    job_unlink(disks, job);
    tell_done(disks, job, error, no_fds);
    disk_job_free(job);
}

static int64_t
give_up_us(const DiskJob *job)
{
    return job->kind == DISK_JOB_MAKE && job->failed_us != 0 ? job->failed_us + GIVE_UP_US : INT64_MAX;
}

static void
start_jobs(Disks *disks)
{
    DiskJob *job;

    disks->retry_us = INT64_MAX;
    while (disks->n_running < DISK_JOBS_MAX && (job = next_waiting(disks)) != NULL) {
        if (!job_start(disks, job)) {
            int64_t now = clock_mono_us();

            if (job->failed_us == 0)
                job->failed_us = now;
            /* Every request tries too, and must not put off the end of it. */
            disks->retry_us = MIN(now + RETRY_US, give_up_us(job));
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
    DiskJob *job = next_waiting(disks);

    if (job != NULL && clock_mono_us() >= give_up_us(job))
        give_up(disks, job, EAGAIN);
    start_jobs(disks);
}

void
disk_job_queue(Disks *disks, DiskJob *job)
{
    DiskJob **end = &disks->jobs;

    while (*end != NULL)
        end = &(*end)->next;
    *end = job;
    start_jobs(disks);
}
