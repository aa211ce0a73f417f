/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "keeper/fork.h"
#include "keeper/idmap.h"
#include "keeper/ipc.h"
#include "keeper/keeper.h"
#include "keeper/layers.h"
#include "keeper/net.h"
#include "wire/channel.h"

enum { PROC_PATH_MAX = 64 };

/* What the kernel counts per user (inotify instances above all) is counted for the creator of
 * the user namespace: that has to be the box's own range, or boxes would share one allowance.
 * Opening files stays root's. */
static pid_t
clone_as(uint32_t owner, uint64_t namespaces, int cgroup_fd, int *ret_pidfd)
{
    if (seteuid(owner) < 0)
        return -1;
    (void)setfsuid(0);
    pid_t pid = fork_held(namespaces, cgroup_fd, ret_pidfd);
    int saved = errno;

    if (pid == 0)
        return 0;
    /* From a saved uid of 0 this cannot fail; a keeper that is not root any more is useless. */
    if (seteuid(0) < 0)
        g_error("cannot become root again");
    errno = saved;
    return pid;
}

static pid_t
clone_box(Box *box, const ChildSpec *spec)
{
    const Keeper *keeper = box->keeper;
    uint32_t owner = ids_base_of(&keeper->ids, box->slot);
    int keep[CHILD_KEEP_MAX];
    uint64_t flags = keeper->namespaces | (fork_may_share(keep, child_keep(spec, keep)) ? CLONE_FILES : 0);
    pid_t pid = keeper->privileged ? clone_as(owner, flags, spec->group->unified_fd, &box->pidfd)
                                   : fork_held(flags, spec->group->unified_fd, &box->pidfd);

    if (pid == 0)
        child_run(spec);
    if (pid > 0)
        box->pidfd = fork_raise_fd(box->pidfd);
    return pid;
}

static bool
start_child(Box *box, pid_t *ret_pid)
{
    Keeper *keeper = box->keeper;
    int channel[2];
    int sync[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, channel) < 0)
        return false;
    box->channel_fd = fork_raise_fd(channel[0]);
    box->handed[0] = channel[1];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sync) < 0)
        return false;
    box->sync_fd = sync[0];
    box->handed[1] = sync[1];
    ChildSpec spec = {.request = &box->request,
                      .group = &box->entry,
                      .filter = &keeper->filter,
                      .masks = keeper->masks,
                      .n_masks = keeper->n_masks,
                      .stage_dir = keeper->stage_dir,
                      .sync_fd = box->handed[1],
                      .channel_fd = box->handed[0],
                      .init_fd = keeper->init_fd,
                      .landlock_abi = keeper->landlock_abi};

    *ret_pid = clone_box(box, &spec);
    return *ret_pid > 0;
}

/* Of the ids on disk to those of the box: where both begin at 0, the box's own namespace has it. */
static int
open_idmap(Box *box, pid_t pid)
{
    const Keeper *keeper = box->keeper;
    char path[PROC_PATH_MAX];

    if (box->idmap_fd >= 0)
        return g_steal_fd(&box->idmap_fd);
    if (keeper->config.template_base != 0)
        return idmap_make(keeper->config.template_base, ids_base_of(&keeper->ids, box->slot));

    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool
send_mounts(Box *box, const int *fds, uint32_t n)
{
    ChildGo go = {.n_fds = n, .bound_ipc = box->keeper->ipc_by_child};

    for (uint32_t sent = 0; sent < n;) {
        uint32_t part = n - sent < CHANNEL_FDS_MAX ? n - sent : CHANNEL_FDS_MAX;

        if (channel_send(box->sync_fd, &go, sizeof go, fds + sent, part) < 0)
            return false;
        sent += part;
    }
    return true;
}

/* The disk and the layers, mapped for this box; they are the child's from then on. */
static bool
give_mounts(Box *box, pid_t pid)
{
    const Keeper *keeper = box->keeper;
    int fds[CHILD_FDS_MAX];
    bool mapped = box->idmap_fd >= 0 || !keeper->privileged;
    autofd userns = keeper->privileged ? open_idmap(box, pid) : -1;

    if (!mapped && (userns < 0 || !idmap_apply(box->disk_mount_fd, userns)))
        return false;
    box->disk_dir_fd = fork_raise_fd(openat(box->disk_mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (box->disk_dir_fd < 0 || !layers_open(keeper->template_fd, &box->request, userns, fds + 1))
        return false;
    fds[0] = box->disk_mount_fd;
    FAILPOINT("create-layers");
    bool ok = send_mounts(box, fds, box->request.n_layers + 1);
    int saved = errno;

    for (uint32_t i = 0; i <= box->request.n_layers; i++)
        close(fds[i]);
    box->disk_mount_fd = -1;
    errno = saved;
    return ok;
}

static bool
bound_ipc(Box *box)
{
    Keeper *keeper = box->keeper;

    if (keeper->ipc_by_child)
        return true;
    int proc_fd = proc_view_use(&keeper->proc);

    if (proc_fd < 0 || !ipc_enter(box->pidfd))
        return false;
    IpcBound bound = ipc_bound(proc_fd, box->request.limits.memory_bytes);
    int saved = errno;

    ipc_leave(keeper->ipcns_fd);
    /* Kernels differ in whose these settings are: the host's root's, or that of the box. */
    keeper->ipc_by_child = bound == IPC_NOT_OURS;
    keeper->ipc_known = bound != IPC_FAILED;
    errno = saved;
    return bound != IPC_FAILED;
}

static bool
open_network(Box *box)
{
    bool low_ports = box->request.low_ports != 0;
    NetSpec spec = {.home_fd = box->keeper->netns_fd,
                    .pidfd = box->pidfd,
                    .door_port = box->request.door_port,
                    .proc_fd = low_ports ? proc_view_use(&box->keeper->proc) : -1,
                    .low_ports = low_ports};

    if (!net_open(&spec, &box->door_fd, &box->netns_cookie))
        return false;
    box->door_fd = fork_raise_fd(box->door_fd);
    if (!bound_ipc(box))
        return false;
    FAILPOINT("create-network");
    return true;
}

/* Nobody hears of the box before both are done, so the network can be opened while the child mounts.
 * Not with the first box, which shows who bounds its IPC and has to be told; and not without root:
 * the network of a process whose ids have changed is closed to others of the user. */
static bool
furnish(Box *box, pid_t pid, KeeperStage *ret_stage)
{
    bool wait = !box->keeper->ipc_known || !box->keeper->privileged;

    *ret_stage = STAGE_NETWORK;
    if (wait && !open_network(box))
        return false;
    *ret_stage = STAGE_LAYERS;
    if (!give_mounts(box, pid))
        return false;
    *ret_stage = STAGE_NETWORK;
    return wait || open_network(box);
}

bool
box_spawn(Box *box, KeeperStage *ret_stage)
{
    Keeper *keeper = box->keeper;
    uint32_t base = ids_base_of(&keeper->ids, box->slot);
    pid_t pid = -1;

    *ret_stage = STAGE_CLONE;
    if (!start_child(box, &pid))
        return false;
    box->holds |= HOLDS_PROCESS;
    box->process_watch = (Watch){.fd = -1, .func = box_on_exit, .ctx = box};
    if (!loop_add(&keeper->loop, &box->process_watch, box->pidfd, EPOLLIN))
        return false;
    FAILPOINT("create-clone");
    *ret_stage = STAGE_MAPS;
    /* The child waits for us, so its number is still its own. */
    if (!idmap_write(pid, 0, base))
        return false;
    FAILPOINT("create-maps");
    return furnish(box, pid, ret_stage);
}
