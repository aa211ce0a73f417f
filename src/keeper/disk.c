/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs wait in a list, the oldest first; some of them run.  A job is done when its helper has
 * ended: what it found is then in its socket.  Jobs carry a box's id, never the box, which may
 * be gone by then. */
#include "keeper/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/id.h"
#include "keeper/fork.h"
#include "wire/channel.h"

enum { RUNNING_MAX = 4, POOL_NAME_BYTES = 8 };

typedef struct Job {
    struct Job *next;
    Disks *disks;
    DiskJobKind kind;
    char box[KEEPER_ID_LEN + 1]; /* "": for the pool */
    DiskWork work;
    int pidfd; /* -1: waiting */
    int socket;
    Watch watch;
} Job;

typedef struct Ready {
    struct Ready *next;
    char image[DISK_NAME_MAX + 1];
    int mount_fd;
} Ready;

struct Disks {
    DisksSpec spec;
    Job *jobs;
    unsigned n_running;
    unsigned n_pool_jobs;
    Ready *ready;
    uint32_t n_ready;
    DiskShape shape;
    uint32_t want;
    unsigned pool_failures; /* in a row */
};

typedef struct JobResult {
    int32_t error;
} JobResult;

static void refill(Disks *disks);
static void start_jobs(Disks *disks);

Disks *
disks_new(const DisksSpec *spec)
{
    Disks *disks = g_new0(Disks, 1);

    disks->spec = *spec;
    return disks;
}

static void
job_free(Job *job)
{
    if (job->pidfd >= 0)
        close(job->pidfd);
    if (job->socket >= 0)
        close(job->socket);
    if (job->work.dir_fd >= 0)
        close(job->work.dir_fd);
    g_free(job);
}

static void
drop_ready(Disks *disks)
{
    while (disks->ready != NULL) {
        Ready *ready = disks->ready;

        disks->ready = ready->next;
        (void)unlinkat(disks->spec.state_fd, ready->image, 0);
        close(ready->mount_fd);
        g_free(ready);
    }
    disks->n_ready = 0;
}

void
disks_free(Disks *disks)
{
    while (disks->jobs != NULL) {
        Job *job = disks->jobs;

        disks->jobs = job->next;
        /* Helpers die with us. */
        loop_remove(disks->spec.loop, &job->watch);
        job_free(job);
    }
    drop_ready(disks);
    g_free(disks);
}

static Job *
job_new(Disks *disks, DiskJobKind kind, const char *box)
{
    Job *job = g_new0(Job, 1);

    job->disks = disks;
    job->kind = kind;
    job->pidfd = job->socket = -1;
    job->watch = (Watch)WATCH_INIT;
    g_strlcpy(job->box, box, sizeof job->box);
    job->work = (DiskWork){.state_fd = disks->spec.state_fd,
                           .state_dir = disks->spec.state_dir,
                           .owner = disks->spec.owner,
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
    int keep[] = {STDERR_FILENO, socket, job->work.state_fd, job->work.dir_fd};
    int mount_fd = -1;
    JobResult result;

    fork_detach(keep, job->work.dir_fd < 0 ? 3 : 4);
    /* The last close of a disk is the slow one; it has to be ours, not the keeper's. */
    (void)poll(&(struct pollfd){.fd = socket, .events = POLLRDHUP}, 1, -1);
    result.error = job->kind == DISK_JOB_MAKE ? disk_work_make(&job->work, &mount_fd)
                                              : disk_work_end(&job->work);
    FAILPOINT("disk-helper");
    _exit(channel_send(socket, &result, sizeof result, &mount_fd, mount_fd >= 0 ? 1 : 0) == 0 ? 0 : 1);
}

static void
add_ready(Disks *disks, const Job *job, int mount_fd)
{
    Ready *ready = g_new0(Ready, 1);

    g_strlcpy(ready->image, job->work.image, sizeof ready->image);
    ready->mount_fd = mount_fd;
    ready->next = disks->ready;
    disks->ready = ready;
    disks->n_ready++;
}

static bool
same_shape(DiskShape a, DiskShape b)
{
    return a.bytes == b.bytes && a.inodes == b.inodes;
}

static void
pool_job_done(Disks *disks, const Job *job, int error, int mount_fd)
{
    disks->n_pool_jobs--;
    disks->pool_failures = error == 0 ? 0 : disks->pool_failures + 1;
    if (error == 0 && same_shape(job->work.shape, disks->shape) && disks->n_ready < disks->want) {
        add_ready(disks, job, mount_fd);
        return;
    }
    (void)unlinkat(disks->spec.state_fd, job->work.image, 0);
    if (mount_fd >= 0)
        close(mount_fd);
}

static void
job_unlink(Disks *disks, Job *job)
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
    JobResult result = {.error = EIO};
    int mount_fd = -1;
    size_t n_fds = 1;

    loop_remove(disks->spec.loop, &job->watch);
    (void)fork_reap(job->pidfd);
    if (channel_recv(job->socket, &result, sizeof result, &mount_fd, &n_fds) != sizeof result)
        result.error = EIO;
    if (n_fds == 0)
        mount_fd = -1;
    disks->n_running--;
    job_unlink(disks, job);
    if (job->box[0] == '\0')
        pool_job_done(disks, job, result.error, mount_fd);
    else
        disks->spec.on_done(disks->spec.ctx, job->kind, job->box, result.error, mount_fd);
    job_free(job);
    refill(disks);
    start_jobs(disks);
}

static bool
job_start(Disks *disks, Job *job)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    pid_t pid = fork_held(0, -1, &job->pidfd);

    if (pid == 0)
        run_job(job, pair[1]);
    int saved = errno;

    close(pair[1]);
    job->socket = pair[0];
    if (pid < 0) {
        job->pidfd = -1;
        close(pair[0]);
        job->socket = -1;
        errno = saved;
        return false;
    }
    job->watch = (Watch){.fd = -1, .func = on_helper_end, .ctx = job};
    /* The helper has its own. */
    if (job->work.dir_fd >= 0)
        close(job->work.dir_fd);
    job->work.dir_fd = -1;
    (void)shutdown(job->socket, SHUT_WR);
    disks->n_running++;
    g_assert(loop_add(disks->spec.loop, &job->watch, job->pidfd, EPOLLIN));
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
start_jobs(Disks *disks)
{
    Job *job;

    while (disks->n_running < RUNNING_MAX && (job = next_waiting(disks)) != NULL) {
        /* No process, no memory: the next end of a helper, or the next request, tries again. */
        if (!job_start(disks, job))
            return;
    }
}

static void
refill(Disks *disks)
{
    enum { FAILURES_MAX = 3 };

    if (disks->spec.in_memory)
        return;
    while (disks->pool_failures < FAILURES_MAX && disks->n_pool_jobs < RUNNING_MAX &&
           disks->n_ready + disks->n_pool_jobs < disks->want) {
        Job *job = job_new(disks, DISK_JOB_MAKE, "");
        char name[2 * POOL_NAME_BYTES + 1];

        id_random_hex(name, POOL_NAME_BYTES);
        snprintf(job->work.image, sizeof job->work.image, "pool/%s.img", name);
        job->work.shape = disks->shape;
        job->work.golden = true;
        disks->n_pool_jobs++;
        job_queue(disks, job);
    }
}

void
disks_prepare(Disks *disks, DiskShape shape, uint32_t count)
{
    if (!same_shape(shape, disks->shape) || count < disks->n_ready)
        drop_ready(disks);
    disks->shape = shape;
    disks->want = count;
    disks->pool_failures = 0;
    refill(disks);
}

uint32_t
disks_ready(const Disks *disks)
{
    return disks->n_ready;
}

static void
box_image(const char *box, char ret_name[DISK_NAME_MAX + 1])
{
    snprintf(ret_name, DISK_NAME_MAX + 1, "boxes/%s/disk.img", box);
}

static void
kept_image(const char *box, char ret_name[DISK_NAME_MAX + 1])
{
    snprintf(ret_name, DISK_NAME_MAX + 1, "kept/%s.img", box);
}

static DiskTake
take_ready(Disks *disks, const char *box, int *ret_mount_fd)
{
    Ready *ready = disks->ready;
    char image[DISK_NAME_MAX + 1];

    box_image(box, image);
    if (renameat(disks->spec.state_fd, ready->image, disks->spec.state_fd, image) < 0)
        return DISK_REFUSED;
    *ret_mount_fd = ready->mount_fd;
    disks->ready = ready->next;
    disks->n_ready--;
    g_free(ready);
    return DISK_TAKEN;
}

DiskTake
disks_take(Disks *disks, const char *box, DiskShape shape, bool keep, int *ret_mount_fd)
{
    if (disks->spec.in_memory) {
        errno = keep ? EOPNOTSUPP : disk_make_memory(&shape, disks->spec.owner, ret_mount_fd);
        return errno == 0 ? DISK_TAKEN : DISK_REFUSED;
    }
    if (!keep && disks->ready != NULL && same_shape(shape, disks->shape)) {
        DiskTake took = take_ready(disks, box, ret_mount_fd);

        refill(disks);
        return took;
    }
    Job *job = job_new(disks, DISK_JOB_MAKE, box);

    job->work.shape = shape;
    job->work.golden = same_shape(shape, disks->shape);
    box_image(box, job->work.image);
    if (keep)
        kept_image(box, job->work.kept);
    job_queue(disks, job);
    return DISK_LATER;
}

bool
disks_end(Disks *disks, const char *box, int dir_fd, bool keep)
{
    if (disks->spec.in_memory) {
        close(dir_fd);
        return true;
    }
    Job *job = job_new(disks, DISK_JOB_END, box);

    job->work.dir_fd = dir_fd;
    box_image(box, job->work.image);
    if (keep)
        kept_image(box, job->work.kept);
    job_queue(disks, job);
    return false;
}

bool
disks_forget(Disks *disks, const char *box)
{
    char image[DISK_NAME_MAX + 1];

    kept_image(box, image);
    return unlinkat(disks->spec.state_fd, image, 0) == 0 || errno == ENOENT;
}

bool
disks_know(const Disks *disks, const char *name)
{
    for (const Ready *ready = disks->ready; ready != NULL; ready = ready->next) {
        if (strcmp(ready->image + strlen("pool/"), name) == 0)
            return true;
    }
    for (const Job *job = disks->jobs; job != NULL; job = job->next) {
        if (job->box[0] == '\0' && strcmp(job->work.image + strlen("pool/"), name) == 0)
            return true;
    }
    return false;
}
