/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "keeper/keeper.h"
#include "keeper/records.h"
#include "wire/channel.h"

enum { CREATE_TIMEOUT_US = 30 * G_USEC_PER_SEC };

static int64_t
boot_time_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
}

static bool
take_slot(Box *box)
{
    Keeper *keeper = box->keeper;

    if (box->slot < 0)
        box->slot = ids_take(&keeper->ids);
    if (box->slot < 0 && pool_shrink(keeper->pool))
        box->slot = ids_take(&keeper->ids);
    if (box->slot < 0) {
        errno = EUSERS;
        return false;
    }
    box->holds |= HOLDS_SLOT;
    return true;
}

/* The record comes before any kernel object that only it names, so that whatever is left by a
 * kill -9 has a name. */
static bool
make_record(Box *box)
{
    Keeper *keeper = box->keeper;
    BoxRecord record = {.version = BOX_RECORD_VERSION,
                        .flags = box->request.flags,
                        .id_base = ids_base_of(&keeper->ids, box->slot),
                        .born_us = box->born_us};

    memcpy(record.id, box->id, sizeof record.id);
    if (!records_set(keeper->records_fd, box->slot, &record))
        return false;
    box->holds |= HOLDS_RECORD;
    FAILPOINT("create-record");
    return true;
}

static bool
make_group(Box *box)
{
    const Cgroups *groups = &box->keeper->groups;

    cgroup_name(box->slot, box->group);
    box->holds |= HOLDS_GROUP;
    if (!cgroup_make(groups, box->group, &box->request.limits) ||
        !cgroup_enter_prepare(groups, box->group, &box->entry))
        return false;
    FAILPOINT("create-cgroup");
    return true;
}

/* All that can fail of its confinement is behind it: what is left is the exec of our own file.
 * Whoever has waited for the box need not wait for that; what is sent to it meanwhile waits in
 * the channel. */
static void
run(Box *box)
{
    box_set_state(box, BOX_RUNNING);
    FAILPOINT("create-running");
    server_tell(box->keeper->server, KEEPER_BOX, box->request.serial, box->id);
    if ((box->request.flags & KEEPER_KEEP_DISK) != 0)
        disk_set_aside(box->disk_dir_fd, ids_base_of(&box->keeper->ids, box->slot));
    storage_add(box->keeper->storage, box);
}

/* The child has told something, or is gone, or has become coop-init. */
static void
on_sync(void *ctx, uint32_t events)
{
    Box *box = ctx;
    ChildReport report;
    ssize_t n = channel_recv(box->sync_fd, &report, sizeof report, NULL, NULL);

    if (n < 0 && errno == EAGAIN)
        return;
    box_close_handed(box);
    if (n == sizeof report && report.stage == 0) {
        if (box->state == BOX_CREATING)
            run(box);
        return;
    }
    loop_remove(&box->keeper->loop, &box->sync_watch);
    close(box->sync_fd);
    box->sync_fd = -1;
    if (n == sizeof report)
        box_fail(box, report.stage < STAGE_MAX ? report.stage : STAGE_EXEC, report.error);
    else if (box->state == BOX_CREATING)
        box_fail(box, STAGE_EXEC, ECHILD);
}

/* A child that gave up takes its namespaces along: then its own word says why. */
static void
fail_spawn(Box *box, KeeperStage stage, int error)
{
    ChildReport report = {.stage = stage, .error = error};

    if (box->sync_fd >= 0)
        (void)channel_recv(box->sync_fd, &report, sizeof report, NULL, NULL);
    if (report.stage == 0 || report.stage >= STAGE_MAX)
        report = (ChildReport){.stage = stage, .error = error};
    box_fail(box, report.stage, report.error);
}

static void
spawn(Box *box)
{
    KeeperStage stage = STAGE_CLONE;

    if (!box_spawn(box, &stage)) {
        fail_spawn(box, stage, errno);
        return;
    }
    box->sync_watch = (Watch){.fd = -1, .func = on_sync, .ctx = box};
    if (!loop_add(&box->keeper->loop, &box->sync_watch, box->sync_fd, EPOLLIN))
        box_fail(box, STAGE_CLONE, errno);
}

void
box_create_on_disk(Box *box, int error, DiskFds fds)
{
    box->holds &= ~(unsigned)HOLDS_DISK_JOB;
    if (error != 0) {
        box_fail(box, STAGE_DISK, error);
        return;
    }
    box->disk_mount_fd = fds.mount;
    box->disk_image_fd = fds.image;
    box->disk_device = fds.device;
    box->holds |= HOLDS_DISK;
    FAILPOINT("create-disk");
    if (box->state == BOX_CREATING)
        spawn(box);
    else
        box_clean(box);
}

static void
take_disk(Box *box)
{
    const KeeperRequest *r = &box->request;
    DiskShape shape = {.bytes = r->limits.disk_bytes, .inodes = r->limits.inodes};
    DiskFds fds;

    box->holds |= HOLDS_DISK_JOB;
    switch (disks_take(box->keeper->disks, box->id, shape, (r->flags & KEEPER_KEEP_DISK) != 0, &fds)) {
    case DISK_TAKEN:
        box_create_on_disk(box, 0, fds);
        break;
    case DISK_REFUSED:
        box_create_on_disk(box, errno, fds);
        break;
    case DISK_LATER:
        break;
    }
}

void
box_create(Keeper *keeper, const KeeperRequest *request)
{
    if (box_find(keeper, request->box) != NULL) {
        server_tell_failure(keeper->server, request->serial, request->box, STAGE_REQUEST, EEXIST);
        return;
    }
    if (keeper->n_boxes >= KEEPER_BOXES_MAX) {
        server_tell_failure(keeper->server, request->serial, request->box, STAGE_REQUEST, EUSERS);
        return;
    }
    const KeeperLimits *limits = &request->limits;
    DiskShape shape = {.bytes = limits->disk_bytes, .inodes = limits->inodes};
    bool in_folder = disks_in_folder(keeper->disks, shape);

    if ((keeper->privileged || in_folder) && !storage_has_room(keeper->storage)) {
        server_tell_failure(keeper->server, request->serial, request->box, STAGE_DISK, ENOSPC);
        return;
    }
    Box *box = box_new(keeper, request);

    box->in_folder = in_folder;
    box->born_us = boot_time_us();
    box->deadline_us = keeper_mono_us() + CREATE_TIMEOUT_US;
    bool prepared = pool_take(keeper->pool, box);

    if (!take_slot(box))
        box_fail(box, STAGE_IDS, errno);
    else if (!make_record(box))
        box_fail(box, STAGE_RECORD, errno);
    else if (prepared)
        spawn(box);
    else if (!make_group(box))
        box_fail(box, STAGE_CGROUP, errno);
    else
        take_disk(box);
}
