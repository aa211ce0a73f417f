/* SPDX-License-Identifier: Apache-2.0 */
/* A generation of a repository's objects is mounted into a box that lives.
 *
 * Only a process in the box's mount namespace can attach a mount there, so a helper goes in: a fork of
 * the keeper that has let go of every fd but the mount and the box's pidfd, cannot be looked into, and
 * runs nothing but what is here.  It enters the user and the mount namespace, never that of processes,
 * so nothing in the box can name it.  There it is root of the box and no more: what it finds on its way
 * is the box's, hostile, and judged by the fd that it then uses.
 *
 * The files keep the ids of the server's user, whom no box knows: nobody inside owns them, whatever
 * rights root has there, and all may read them.
 *
 * The helper holds the box's mounts, so a box that ends waits for it (HOLDS_ATTACH). */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "keeper/fork.h"
#include "keeper/keeper.h"
#include "keeper/layers.h"

enum {
    HELPER_TIMEOUT_S = 10,
    SIGNAL_BASE = 128, /* from here on an exit code is no errno */
};

static bool
enter(int pidfd)
{
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || clearenv() != 0 || setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return false;
    umask(022);
    /* A change of ids forgets both. */
    return prctl(PR_SET_DUMPABLE, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && chdir("/") == 0;
}

/* Of the box's root, and nobody else's to change.  A mount there is EXDEV. */
static int
step_into(int dir_fd, const char *name, bool make)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    struct stat st;

    if (make && mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
        return -1;
    int fd = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);

    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        errno = EPERM;
        return -1;
    }
    return fd;
}

/* KEEPER_ATTACH_DIR, step by step.  What is left open ends with the helper. */
static int
open_place(bool make)
{
    static const char *const steps[] = {"run", "coop", "git"};
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    for (size_t i = 0; i < G_N_ELEMENTS(steps) && fd >= 0; i++)
        fd = step_into(fd, steps[i], make);
    return fd;
}

/* An errno, or 0; EALREADY: it is there. */
static int
attach(int mount_fd, const char *name, bool full)
{
    int place = open_place(true);

    if (place < 0)
        return errno;
    int target = step_into(place, name, !full);

    if (target < 0 && errno == EXDEV)
        return EALREADY;
    if (full)
        return ENOSPC;
    if (target < 0)
        return errno;
    return move_mount(mount_fd, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0
               ? 0
               : errno;
}

/* An errno, or 0; EALREADY: it is not there. */
static int
detach(const char *name)
{
    int place = open_place(false);

    if (place < 0)
        return errno == ENOENT ? EALREADY : errno;
    if (fchdir(place) < 0)
        return errno;
    if (umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
        /* Where it cannot go it is an empty folder of the box's. */
        (void)unlinkat(place, name, AT_REMOVEDIR);
        return 0;
    }
    /* EINVAL: nothing is mounted there. */
    if (errno != EINVAL && errno != ENOENT)
        return errno;
    return unlinkat(place, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? EALREADY : errno;
}

_Noreturn static void
help(const Box *box, const KeeperRequest *r, int mount_fd)
{
    int keep[] = {STDERR_FILENO, box->pidfd, mount_fd};
    bool attaches = r->verb == KEEPER_ATTACH;

    (void)alarm(HELPER_TIMEOUT_S);
    fork_detach(keep, attaches ? 3 : 2);
    FAILPOINT("attach-enter");
    if (!enter(box->pidfd))
        _exit(errno);
    _exit(attaches ? attach(mount_fd, r->layers[0], box->n_attached >= KEEPER_ATTACHED_MAX)
                   : detach(r->layers[0]));
}

static void
count(Box *box)
{
    if (box->attaches)
        box->n_attached++;
    else if (box->n_attached > 0)
        box->n_attached--;
}

static void
on_helper(void *ctx, uint32_t events)
{
    Box *box = ctx;
    Server *server = box->keeper->server;
    int pidfd = box->attach_watch.fd;

    loop_remove(&box->keeper->loop, &box->attach_watch);
    int code = fork_reap(pidfd);

    close(pidfd);
    box->holds &= ~(unsigned)HOLDS_ATTACH;
    if (code == 0)
        count(box);
    if (code == 0 || code == EALREADY)
        server_tell(server, KEEPER_OK, box->attach_serial, box->id);
    else
        server_tell_failure(server, box->attach_serial, box->id, STAGE_ATTACH,
                            box->state == BOX_KILLING         ? ESRCH
                            : code < 0 || code >= SIGNAL_BASE ? ETIMEDOUT
                                                              : code);
    if (box->state == BOX_KILLING)
        box_clean(box);
}

void
box_attach_cancel(Box *box)
{
    if ((box->holds & HOLDS_ATTACH) != 0)
        (void)pidfd_send_signal(box->attach_watch.fd, SIGKILL, NULL, 0);
}

static bool
start_helper(Box *box, const KeeperRequest *r, int mount_fd)
{
    int pidfd = -1;
    pid_t pid = fork_held(0, -1, &pidfd);

    if (pid == 0)
        help(box, r, mount_fd);
    if (pid < 0)
        return false;
    box->attach_watch = (Watch){.fd = -1, .func = on_helper, .ctx = box};
    if (loop_add(&box->keeper->loop, &box->attach_watch, pidfd, EPOLLIN)) {
        box->holds |= HOLDS_ATTACH;
        box->attach_serial = r->serial;
        box->attaches = r->verb == KEEPER_ATTACH;
        return true;
    }
    fork_give_up(pidfd);
    return false;
}

static int
begin(Keeper *keeper, Box *box, const KeeperRequest *r)
{
    if (box == NULL || box->state != BOX_RUNNING)
        return ESRCH;
    if ((box->holds & HOLDS_ATTACH) != 0)
        return EBUSY;
    if (keeper->generation_fd < 0)
        return ENOENT;
    autofd mount_fd = r->verb == KEEPER_ATTACH
                          ? layer_open(keeper->generation_fd, r->layers[0], MOUNT_ATTR_NOEXEC, -1)
                          : -1;

    if (r->verb == KEEPER_ATTACH && mount_fd < 0)
        return errno;
    return start_helper(box, r, mount_fd) ? 0 : errno;
}

void
box_attach(Keeper *keeper, const KeeperRequest *request)
{
    int error = begin(keeper, box_find(keeper, request->box), request);

    if (error != 0)
        server_tell_failure(keeper->server, request->serial, request->box, STAGE_ATTACH, error);
}
