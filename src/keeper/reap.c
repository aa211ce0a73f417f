/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a box.  What it holds is given up in a fixed order, each step once the one before
 * is done: processes, cgroups, disk, slot, record.  The record goes last: as long as it is
 * there, the next start finishes what was begun. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "keeper/fork.h"
#include "keeper/keeper.h"
#include "keeper/records.h"

enum {
    KILL_AGAIN_US = G_USEC_PER_SEC, /* a process in the kernel takes its time */
    CLEAN_AGAIN_US = 10 * 1000,     /* a cgroup is busy for a moment after its last process */
};

void
box_fail(Box *box, KeeperStage stage, int error)
{
    if (box->failed_stage == 0 && box->state == BOX_CREATING) {
        box->failed_stage = stage;
        box->failed_error = error;
    }
    box_kill(box);
}

void
box_kill(Box *box)
{
    if (box->state != BOX_KILLING)
        box_set_state(box, BOX_KILLING);
    bool thrown_away = (box->request.flags & KEEPER_KEEP_DISK) == 0;

    if ((box->holds & HOLDS_PROCESS) != 0) {
        /* The end of pid 1 is the end of its pid namespace; the cgroup is there for what the
         * kernel is slow to notice. */
        (void)pidfd_send_signal(box->pidfd, SIGKILL, NULL, 0);
        (void)cgroup_kill(&box->keeper->groups, box->group);
        if (thrown_away && box->disk_dir_fd >= 0 && box->disk_image_fd >= 0)
            disk_stop(box->disk_dir_fd);
        FAILPOINT("kill-signal");
    }
    box_attach_cancel(box);
    box->deadline_us = keeper_mono_us() + KILL_AGAIN_US;
    box_clean(box);
}

void
box_on_exit(void *ctx, uint32_t events)
{
    Box *box = ctx;

    box_close_handed(box);
    /* A child that fails leaves its reason in the socket and is dead by the time we look: at
     * most a report and the end. */
    for (int i = 0; i < 2 && box->state == BOX_CREATING && box->sync_watch.fd >= 0; i++)
        box->sync_watch.func(box, 0);
    loop_remove(&box->keeper->loop, &box->process_watch);
    box->exit_code = fork_reap(box->pidfd);
    box->holds &= ~(unsigned)HOLDS_PROCESS;
    FAILPOINT("kill-reaped");
    if (box->state != BOX_KILLING)
        box_kill(box);
    else
        box_clean(box);
}

static bool
give_up_group(Box *box)
{
    if ((box->holds & HOLDS_GROUP) == 0)
        return true;
    uint32_t oom_kills = cgroup_oom_kills(&box->keeper->groups, box->group);

    if (oom_kills > box->oom_kills)
        box->oom_kills = oom_kills;
    if (!cgroup_remove(&box->keeper->groups, box->group)) {
        box->deadline_us = keeper_mono_us() + CLEAN_AGAIN_US;
        return false;
    }
    box->holds &= ~(unsigned)HOLDS_GROUP;
    FAILPOINT("kill-cgroup");
    return true;
}

static bool
give_up_disk(Box *box)
{
    bool keep = (box->request.flags & KEEPER_KEEP_DISK) != 0;

    if ((box->holds & HOLDS_DISK) == 0)
        return true;
    if (box->disk_dir_fd < 0)
        box->disk_dir_fd = openat(box->disk_mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (box->disk_mount_fd >= 0)
        close(box->disk_mount_fd);
    DiskFds fds = {.mount = g_steal_fd(&box->disk_dir_fd),
                   .image = g_steal_fd(&box->disk_image_fd),
                   .device = box->disk_device};

    box->disk_mount_fd = -1;
    box->holds &= ~(unsigned)HOLDS_DISK;
    if (disks_end(box->keeper->disks, box->id, fds, keep))
        return true;
    box->holds |= HOLDS_DISK_JOB;
    return false;
}

static void
tell_end(const Box *box)
{
    Server *server = box->keeper->server;
    KeeperAnswer answer = {.verb = KEEPER_GONE,
                           .exit_code = box->exit_code,
                           .oom_kills = box->oom_kills,
                           .born_us = box->born_us};

    memcpy(answer.box, box->id, KEEPER_ID_LEN);
    if (box->failed_stage != 0)
        server_tell_failure(server, box->request.serial, box->id, box->failed_stage, box->failed_error);
    else if (box->n_killers == 0)
        server_answer(server, &answer);
    for (int i = 0; i < box->n_killers; i++) {
        answer.serial = box->killers[i];
        server_answer(server, &answer);
    }
}

void
box_clean(Box *box)
{
    Keeper *keeper = box->keeper;

    if ((box->holds & (HOLDS_PROCESS | HOLDS_DISK_JOB | HOLDS_ATTACH)) != 0 || !give_up_group(box) ||
        !give_up_disk(box))
        return;
    if ((box->holds & HOLDS_RECORD) != 0 && !records_wipe(keeper->records_fd, box->slot))
        log_warn("keeper", "a box's record stays", log_str("box", box->id),
                 log_str("error", g_strerror(errno)));
    FAILPOINT("kill-record");
    if ((box->holds & HOLDS_SLOT) != 0)
        ids_give_back(&keeper->ids, box->slot);
    box->holds = 0;
    box_set_state(box, BOX_GONE);
    tell_end(box);
    box_free(box);
}

void
box_check_deadlines(Keeper *keeper)
{
    int64_t now = keeper_mono_us();

    for (Box *box = keeper->boxes, *next; box != NULL; box = next) {
        next = box->next;
        if (box->state == BOX_RUNNING || now < box->deadline_us)
            continue;
        if (box->state == BOX_CREATING)
            box_fail(box, STAGE_CLONE, ETIMEDOUT);
        else
            box_kill(box);
    }
}
