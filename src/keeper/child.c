/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/fork.h"
#include "keeper/ipc.h"
#include "wire/channel.h"

enum { FAILED_CODE = 127, HIGH_FD = 64, INIT_FD = 4, SYNC_FD = 5, FIRST_FREE_FD = 6 };

_Noreturn static void
fail(int sync_fd, KeeperStage stage, int error)
{
    ChildReport report = {.stage = stage, .error = error};

    (void)channel_send(sync_fd, &report, sizeof report, NULL, 0);
    _exit(FAILED_CODE);
}

static ssize_t
receive(int sync_fd, ChildGo *go, int *fds, size_t *n_fds)
{
    struct pollfd poll_fd = {.fd = sync_fd, .events = POLLIN};

    while (poll(&poll_fd, 1, -1) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return channel_recv(sync_fd, go, sizeof *go, fds, n_fds);
}

/* The mounts; the keeper sends as many to a packet as a packet holds. */
static void
await_go(int sync_fd, int *ret_fds, bool *ret_bound_ipc)
{
    ChildGo go = {.n_fds = 1};
    size_t got = 0;

    while (got < go.n_fds) {
        size_t n = CHILD_FDS_MAX - got;

        if (receive(sync_fd, &go, ret_fds + got, &n) != sizeof go || n == 0 || go.n_fds > CHILD_FDS_MAX)
            _exit(FAILED_CODE);
        got += n;
    }
    *ret_bound_ipc = go.bound_ipc != 0;
}

static bool
enter_groups(const CgroupEntry *group)
{
    for (int i = 0; i < group->n_tasks; i++) {
        if (write(group->tasks[i], "0", 1) != 1)
            return false;
        close(group->tasks[i]);
    }
    /* After the move, else its root would be the keeper's group. */
    return unshare(CLONE_NEWCGROUP) == 0;
}

static bool
become_root(void)
{
    if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
        return false;
    /* A change of ids forgets it. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/* No signal is ignored (keeper_open sees to it), and exec makes handlers the default. */
static bool
open_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL) == 0;
}

static bool
fresh_keyring(void)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 || errno == ENOSYS;
}

/* 0, 1 and 2 are the box's own /dev/null, 3 is the channel; init and the sync socket close
 * themselves at exec.  Nothing else is left. */
static bool
place_fds(const ChildSpec *spec, int *ret_sync_fd)
{
    int channel = fcntl(spec->channel_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    int init = fcntl(spec->init_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    int sync = fcntl(*ret_sync_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (channel < 0 || init < 0 || sync < 0 || null < 0)
        return false;
    for (int fd = 0; fd < CHILD_CHANNEL_FD; fd++) {
        if (null == fd ? fcntl(fd, F_SETFD, 0) < 0 : dup2(null, fd) < 0)
            return false;
    }
    if (dup2(channel, CHILD_CHANNEL_FD) < 0 || dup3(init, INIT_FD, O_CLOEXEC) < 0 ||
        dup3(sync, SYNC_FD, O_CLOEXEC) < 0)
        return false;
    *ret_sync_fd = SYNC_FD;
    return close_range(FIRST_FREE_FD, ~0u, CLOSE_RANGE_UNSHARE) == 0;
}

int
child_keep(const ChildSpec *spec, int ret_keep[static CHILD_KEEP_MAX])
{
    const int own[] = {STDERR_FILENO, spec->sync_fd, spec->channel_fd, spec->init_fd};
    size_t n = sizeof own / sizeof own[0];

    memcpy(ret_keep, own, sizeof own);
    memcpy(ret_keep + n, spec->group->tasks, sizeof(int) * (size_t)spec->group->n_tasks);
    return (int)n + spec->group->n_tasks;
}

static void
start(const ChildSpec *spec, int *fds, bool *ret_bound_ipc)
{
    int keep[CHILD_KEEP_MAX];

    fork_detach(keep, child_keep(spec, keep));
    (void)setsid();
    if (!enter_groups(spec->group))
        fail(spec->sync_fd, STAGE_CGROUP, errno);
    /* While files are still opened as the keeper: its folder is closed to the box's ids. */
    if (chdir(spec->stage_dir) < 0)
        fail(spec->sync_fd, STAGE_MOUNTS, errno);
    await_go(spec->sync_fd, fds, ret_bound_ipc);
    if (!become_root())
        fail(spec->sync_fd, STAGE_MAPS, errno);
}

static void
build_root(const ChildSpec *spec, const int *fds, bool bound_ipc)
{
    int root_fd = -1;
    int proc_fd = -1;
    int user_fd = -1;
    bool written = false;

    umask(022);
    if (!child_mount_root(spec, fds, &root_fd, &written) || !child_mount_system(spec, root_fd, &proc_fd) ||
        (!written && !child_write_files(spec, root_fd)))
        fail(spec->sync_fd, STAGE_MOUNTS, errno);
    /* By its own /proc: in that of the keeper these files would be there once for every box.
     * Kernels on which nobody may do it leave the bound to the box's memory. */
    if (bound_ipc)
        (void)ipc_bound(proc_fd, spec->request->limits.memory_bytes);
    if (!child_mask(spec, proc_fd, &user_fd))
        fail(spec->sync_fd, STAGE_MASKS, errno);
    /* A mount that is not attached yet counts as a namespace, so not before the last of them. */
    if (!child_forbid_namespaces(user_fd))
        fail(spec->sync_fd, STAGE_LIMITS, errno);
    if (!child_enter_root(root_fd))
        fail(spec->sync_fd, STAGE_PIVOT, errno);
    if (sethostname(spec->request->hostname, strlen(spec->request->hostname)) < 0)
        fail(spec->sync_fd, STAGE_LIMITS, errno);
}

static void
confine(const ChildSpec *spec, int *sync_fd)
{
    if (!child_limit(spec) || !open_signals() || !fresh_keyring())
        fail(*sync_fd, STAGE_LIMITS, errno);
    if (!child_drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail(*sync_fd, STAGE_CAPABILITIES, errno);
    if (!child_landlock(spec->landlock_abi))
        fail(*sync_fd, STAGE_LANDLOCK, errno);
    if (!place_fds(spec, sync_fd))
        fail(*sync_fd, STAGE_EXEC, errno);
    if (!child_filter(spec->filter))
        fail(*sync_fd, STAGE_FILTER, errno);
}

void
child_run(const ChildSpec *spec)
{
    static const char name[] = "coop-init";
    static const char sudo[] = "sudo";
    const char *argv[] = {name, (spec->request->flags & KEEPER_SUDO) != 0 ? sudo : NULL, NULL};
    const char *envp[] = {NULL};
    ChildReport report = {0};
    int fds[CHILD_FDS_MAX];
    int sync_fd = spec->sync_fd;
    bool bound_ipc = false;

    start(spec, fds, &bound_ipc);
    build_root(spec, fds, bound_ipc);
    confine(spec, &sync_fd);
    if (channel_send(sync_fd, &report, sizeof report, NULL, 0) < 0)
        _exit(FAILED_CODE);
    (void)syscall(SYS_execveat, INIT_FD, "", argv, envp, AT_EMPTY_PATH);
    fail(sync_fd, STAGE_EXEC, errno);
}
