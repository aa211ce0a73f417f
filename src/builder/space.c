/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/space.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/subids.h"

enum { CODE_MISSING = 127, CODE_FAILED = 126, CODE_SPACE = 125 };

/* newuidmap PID 0 FIRST 65536 65536 OWN 1 */
static bool
run_mapper(const char *program, pid_t pid, guint32 first, guint32 own, GError **error)
{
    g_autofree char *pid_text = g_strdup_printf("%d", (int)pid);
    g_autofree char *first_text = g_strdup_printf("%u", first);
    g_autofree char *count_text = g_strdup_printf("%d", SPACE_IDS);
    g_autofree char *own_text = g_strdup_printf("%u", own);
    const char *argv[] = {program, pid_text, "0", first_text, count_text, count_text, own_text, "1", NULL};
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void)execvp(program, (char *const *)(guintptr)argv);
        _exit(errno == ENOENT ? CODE_MISSING : CODE_FAILED);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return err_errno(error, "run %s", program);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CODE_MISSING)
        return err_set(error, ERR_UNAVAILABLE, "%s is not installed: install uidmap", program);
    return status == 0 ||
           err_set(error, ERR_UNAVAILABLE, "%s did not give the ids from %u on", program, first);
}

/* ---- the user namespace ---- */

static bool
give_ids(pid_t pid, GError **error)
{
    guint32 first;

    return subids_find_own(SPACE_IDS, &first, error) &&
           run_mapper("newuidmap", pid, first, geteuid(), error) &&
           run_mapper("newgidmap", pid, first, getegid(), error);
}

int
space_open(GError **error)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe") ? 0 : -1;
    autofd reader = fds[0];
    autofd writer = fds[1];
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);

    if (pid < 0)
        return err_errno(error, "make a user namespace (\"coop doctor\" says why it may be refused)") ? 0
                                                                                                      : -1;
    if (pid == 0) {
        char byte;

        close(writer);
        _exit(read(reader, &byte, 1) == 0 ? 0 : 1); /* until we have what we want of it */
    }
    g_autofree char *path = g_strdup_printf("/proc/%d/ns/user", (int)pid);
    int fd = give_ids(pid, error) ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0 && error != NULL && *error == NULL)
        err_errno(error, "hold the user namespace");
    close(g_steal_fd(&writer));
    (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0)); /* it has nothing to say */
    return fd;
}

/* ---- the rest ---- */

static bool
follow(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

/* A change of ids makes a process undumpable, and then not even root of the space may write the
 * id maps of cells. */
static bool
enter(int userns_fd)
{
    return setns(userns_fd, CLONE_NEWUSER) == 0 && setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0 &&
           setgroups(0, NULL) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0 &&
           unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS) == 0 &&
           mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* Everything it mounts stays its own.  In a new pid namespace a parent outside is 0. */
static int
be_first(int (*work)(void *data), void *data)
{
    if (!follow(0) || mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return CODE_SPACE;
    return work(data);
}

/* The process between us and pid 1: with it goes everything. */
static _Noreturn void
be_between(int userns_fd, pid_t parent, int (*work)(void *data), void *data)
{
    int status = 0;

    if (!enter(userns_fd) || !follow(parent))
        _exit(CODE_SPACE);
    pid_t pid = fork();

    if (pid == 0)
        _exit(be_first(work, data));
    if (pid < 0 || TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
        _exit(CODE_SPACE);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int
space_run(int userns_fd, int (*work)(void *data), void *data, volatile pid_t *ret_pid, GError **error)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    int status;

    if (pid == 0)
        be_between(userns_fd, parent, work, data);
    if (pid < 0)
        return err_errno(error, "start a process") ? 0 : -1;
    if (ret_pid != NULL)
        *ret_pid = pid;
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
        return err_errno(error, "wait for the child in its namespace") ? 0 : -1;
    if (ret_pid != NULL)
        *ret_pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CODE_SPACE) {
        err_set(error, ERR_UNAVAILABLE,
                "the namespaces of builds cannot be made (\"coop doctor\" says what is missing)");
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
