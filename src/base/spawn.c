/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

struct Child {
    pid_t pid;
    int pidfd;
    guint source;
    ChildExitFunc on_exit;
    void *data;
};

static gboolean
on_pidfd(int fd, GIOCondition condition, gpointer data)
{
    Child *child = data;
    siginfo_t info = {0};
    ChildExit how = {.value = -1};

    /* It fails only when somebody else has reaped, and would fail for ever. */
    if (waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG) == 0) {
        if (info.si_pid == 0)
            return G_SOURCE_CONTINUE;
        how = (ChildExit){.signalled = info.si_code != CLD_EXITED, .value = info.si_status};
    }
    child->source = 0;
    child->on_exit(child, how, child->data);
    return G_SOURCE_REMOVE;
}

enum { N_COPIES = SPAWN_SECOND_FD + 1 };

/* The child takes its fds one after the other, so one of ours that it is to get as another number is
 * copied out of their way first. */
static int
set_fd(posix_spawn_file_actions_t *actions, int fd, int target, int ret_copies[N_COPIES])
{
    if (fd != target && fd < N_COPIES) {
        fd = ret_copies[target] = fcntl(fd, F_DUPFD_CLOEXEC, N_COPIES);
        if (fd < 0)
            return errno;
    }
    return posix_spawn_file_actions_adddup2(actions, fd, target);
}

/* Libraries open some that are not close-on-exec. */
static int
close_others(posix_spawn_file_actions_t *actions, const SpawnSpec *spec)
{
    int e = 0;

    if (spec->extra_fd <= 0)
        e = posix_spawn_file_actions_addclose(actions, SPAWN_EXTRA_FD);
    if (e == 0 && spec->second_fd <= 0)
        e = posix_spawn_file_actions_addclose(actions, SPAWN_SECOND_FD);
    return e != 0 ? e : posix_spawn_file_actions_addclosefrom_np(actions, N_COPIES);
}

static int
set_fds(posix_spawn_file_actions_t *actions, const SpawnSpec *spec, int ret_copies[N_COPIES])
{
    int e = spec->stdin_fd >= 0
                ? set_fd(actions, spec->stdin_fd, STDIN_FILENO, ret_copies)
                : posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

    if (e == 0 && spec->stdout_fd >= 0)
        e = set_fd(actions, spec->stdout_fd, STDOUT_FILENO, ret_copies);
    if (e == 0 && spec->stderr_fd >= 0)
        e = set_fd(actions, spec->stderr_fd, STDERR_FILENO, ret_copies);
    if (e == 0 && spec->extra_fd > 0)
        e = set_fd(actions, spec->extra_fd, SPAWN_EXTRA_FD, ret_copies);
    if (e == 0 && spec->second_fd > 0)
        e = set_fd(actions, spec->second_fd, SPAWN_SECOND_FD, ret_copies);
    if (e == 0)
        e = close_others(actions, spec);
    if (e == 0 && spec->cwd != NULL)
        e = posix_spawn_file_actions_addchdir_np(actions, spec->cwd);
    return e;
}

/* The child starts with an empty mask and default dispositions: SIGPIPE is ignored here and
 * would stay ignored across exec. */
static int
set_signals(posix_spawnattr_t *attr, const SpawnSpec *spec)
{
    sigset_t none, all;
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;

    sigemptyset(&none);
    sigfillset(&all);
    if (spec->new_session)
        flags |= POSIX_SPAWN_SETSID;
    int e = posix_spawnattr_setsigmask(attr, &none);
    if (e == 0)
        e = posix_spawnattr_setsigdefault(attr, &all);
    return e != 0 ? e : posix_spawnattr_setflags(attr, flags);
}

static int
spawn(const SpawnSpec *spec, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int copies[N_COPIES] = {-1, -1, -1, -1, -1};
    int e = posix_spawn_file_actions_init(&actions);

    if (e != 0)
        return e;
    e = posix_spawnattr_init(&attr);
    if (e == 0) {
        e = set_fds(&actions, spec, copies);
        if (e == 0)
            e = set_signals(&attr, spec);
        if (e == 0)
            e = posix_spawnp(ret_pid, spec->argv[0], &actions, &attr, (char *const *)(guintptr)spec->argv,
                             spec->env != NULL ? (char *const *)(guintptr)spec->env : environ);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 0; i < G_N_ELEMENTS(copies); i++)
        auto_close(&copies[i]);
    return e;
}

/* A parent may have left us with SIGCHLD ignored; the kernel would reap by itself, and give
 * the number away before we hold it. */
static void
keep_dead_children(void)
{
    struct sigaction act;

    if (sigaction(SIGCHLD, NULL, &act) == 0 &&
        (act.sa_handler == SIG_IGN || (act.sa_flags & SA_NOCLDWAIT) != 0))
        (void)signal(SIGCHLD, SIG_DFL);
}

pid_t
spawn_held(const SpawnSpec *spec, int *ret_pidfd, GError **error)
{
    pid_t pid;

    g_assert(spec->argv != NULL && spec->argv[0] != NULL);
    keep_dead_children();
    errno = spawn(spec, &pid);
    if (errno != 0) {
        if (spec->cwd != NULL)
            err_errno(error, "start '%s' in '%s'", spec->argv[0], spec->cwd);
        else
            err_errno(error, "start '%s'", spec->argv[0]);
        return -1;
    }
    /* The number cannot be taken over before we reap it, so this names our child. */
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        err_errno(error, "hold process %d of '%s'", pid, spec->argv[0]);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return -1;
    }
    *ret_pidfd = pidfd;
    return pid;
}

Child *
child_spawn(const SpawnSpec *spec, ChildExitFunc on_exit, void *data, GError **error)
{
    int pidfd;

    g_assert(on_exit != NULL);
    pid_t pid = spawn_held(spec, &pidfd, error);

    if (pid < 0)
        return NULL;
    Child *child = g_new0(Child, 1);
    *child = (Child){.pid = pid, .pidfd = pidfd, .on_exit = on_exit, .data = data};
    child->source = g_unix_fd_add(pidfd, G_IO_IN, on_pidfd, child);
    return child;
}

void
child_free(Child *child)
{
    if (child == NULL)
        return;
    if (child->source != 0)
        g_source_remove(child->source);
    close(child->pidfd);
    g_free(child);
}

pid_t
child_pid(const Child *child)
{
    return child->pid;
}

int
child_pidfd(const Child *child)
{
    return child->pidfd;
}

bool
child_signal(Child *child, int signal, GError **error)
{
    if (syscall(SYS_pidfd_send_signal, child->pidfd, signal, NULL, 0) == 0)
        return true;
    if (errno == ESRCH)
        return err_set(error, ERR_NOT_FOUND, "process %d has ended", child->pid);
    return err_errno(error, "signal process %d", child->pid);
}
