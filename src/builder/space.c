/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/space.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
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

/* Waits for its ids and becomes root; everything it mounts stays its own.  A change of ids makes
 * a process undumpable, and then not even root of the space may write the id maps of cells. */
static void
enter(int ready_fd)
{
    char byte;

    if (read(ready_fd, &byte, 1) != 1 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
        setgroups(0, NULL) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        _exit(CODE_SPACE);
    /* The parent may have died before it could have told us; then the pipe has no writer. */
    struct pollfd parent = {.fd = ready_fd};
    if (poll(&parent, 1, 0) != 0)
        _exit(CODE_SPACE);
    close(ready_fd);
}

static bool
give_ids(pid_t pid, GError **error)
{
    guint32 first;

    return subids_find_own(SPACE_IDS, &first, error) &&
           run_mapper("newuidmap", pid, first, geteuid(), error) &&
           run_mapper("newgidmap", pid, first, getegid(), error);
}

int
space_run(int (*work)(void *data), void *data, volatile pid_t *ret_pid, GError **error)
{
    int fds[2];
    int status;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe") ? 0 : -1;
    autofd reader = fds[0];
    autofd writer = fds[1];
    pid_t pid = (pid_t)syscall(
        SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD, NULL,
        NULL, NULL, 0);

    if (pid < 0) {
        err_errno(error, "make a user namespace (\"coop doctor\" says why it may be refused)");
        return -1;
    }
    if (pid == 0) {
        close(writer);
        enter(reader);
        _exit(work(data));
    }
    if (ret_pid != NULL)
        *ret_pid = pid;
    bool ok = give_ids(pid, error);
    if (ok && write(writer, "x", 1) != 1)
        ok = err_errno(error, "wake the child in its namespace");
    if (!ok)
        kill(pid, SIGKILL);
    if (TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0)
        return err_errno(error, "wait for the child in its namespace") ? 0 : -1;
    if (ret_pid != NULL)
        *ret_pid = 0;
    if (!ok)
        return -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == CODE_SPACE) {
        err_set(error, ERR_UNAVAILABLE, "the namespace for builds cannot be set up (no /proc of its own)");
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
