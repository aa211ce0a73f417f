/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/exitcode.h"
#include "base/failpoint.h"
#include "base/tree.h"
#include "builder/build.h"
#include "builder/space.h"

/* coop-builder: makes one layer of a template, as an ordinary user, and removes what belongs to
 * the ids that user was lent.  Its plan comes on standard input, progress goes to standard
 * output; it ends with the server that started it, and takes its folder along unless it is
 * killed, when the next start of a server does.
 *
 * The lock on a folder is the sign that somebody works in it. */

enum { BUILDER_USERNS_FD = 3, NICE = 10, IOPRIO_WHO_PROCESS = 1, IOPRIO_LOWEST = 2 << 13 | 7 };

typedef struct Removal {
    const Plan *plan;
    int store_fd;
} Removal;

/* Others go first: a build is never urgent. */
static void
be_modest(void)
{
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_LOWEST);
}

/* Our process group is the whole build; the space dies with its pid 1. */
static volatile pid_t space_pid;
static volatile sig_atomic_t stopped;

static void
on_stop(int signal)
{
    stopped = 1;
    if (space_pid > 0)
        kill(space_pid, SIGKILL);
}

static bool
follow_parent(GError **error)
{
    struct sigaction stop = {.sa_handler = on_stop};
    pid_t parent = getppid();

    if (sigaction(SIGTERM, &stop, NULL) < 0 || sigaction(SIGINT, &stop, NULL) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return err_errno(error, "follow the server");
    return getppid() == parent || err_set(error, ERR_CANCELLED, "the server is gone");
}

static int
remove_in_space(void *data)
{
    const Removal *r = data;
    g_autoptr(GError) error = NULL;

    for (guint i = 0; r->plan->names[i] != NULL; i++) {
        FAILPOINT("build-remove");
        if (!tree_remove(r->store_fd, r->plan->names[i], &error)) {
            report_error(error);
            return 1;
        }
    }
    return 0;
}

/* Only what nobody works in; names that are locked are left to who holds them. */
static bool
lock_names(Plan *plan, int store_fd, GArray *locks)
{
    guint kept = 0;

    for (guint i = 0; plan->names[i] != NULL; i++) {
        int fd = openat(store_fd, plan->names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            g_array_append_val(locks, fd);
            plan->names[kept++] = plan->names[i];
            continue;
        }
        if (fd >= 0)
            close(fd);
        g_free(plan->names[i]);
    }
    plan->names[kept] = NULL;
    return kept > 0;
}

static int
run_remove(Plan *plan, int store_fd, int userns_fd, GError **error)
{
    Removal removal = {plan, store_fd};
    g_autoptr(GArray) locks = g_array_new(FALSE, FALSE, sizeof(int));

    if (!lock_names(plan, store_fd, locks))
        return 0;
    return space_run(userns_fd, remove_in_space, &removal, &space_pid, error);
}

static unsigned
needs_of(const Plan *plan)
{
    unsigned needs = HOST_APT;

    if (plan->action == PLAN_TRY)
        return 0;
    if (plan->npm[0] != NULL || plan->node != NULL)
        needs |= HOST_NPM;
    if (plan->go != NULL)
        needs |= HOST_GO;
    return needs;
}

/* The folder is the user's, so that the lock and the name are ours before anything is in it. */
static int
open_work(const Plan *plan, int store_fd, GError **error)
{
    if (mkdirat(store_fd, plan->work, 0755) < 0)
        return err_errno(error, "make '%s'", plan->work) ? 0 : -1;
    int fd = openat(store_fd, plan->work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        err_errno(error, "hold '%s'", plan->work);
    return fd;
}

static int
run_build(Plan *plan, int store_fd, int userns_fd, GError **error)
{
    g_autoptr(HostSources) host = host_sources_read(needs_of(plan));
    g_autoptr(Json) versions = json_object();
    Build build = {
        .plan = plan, .host = host, .store_fd = -1, .folder_fd = -1, .sudo_fd = -1, .versions = versions};
    autofd work_fd = open_work(plan, store_fd, error);

    if (work_fd < 0)
        return -1;
    FAILPOINT("build-begin");
    build.report.told = G_MAXUINT;
    report_step(&build.report, "start", 0, 1);
    int code = space_run(userns_fd, build_in_space, &build, &space_pid, error);
    Plan rest = *plan;
    char *names[] = {(char *)(guintptr)plan->work, NULL};

    FAILPOINT("build-cleanup");
    rest.names = names;
    g_autoptr(GError) failed = NULL;
    Removal removal = {&rest, store_fd};
    /* What cannot go now goes when a server starts. */
    (void)space_run(userns_fd, remove_in_space, &removal, NULL, &failed);
    return code;
}

static int
run(int userns_fd, GError **error)
{
    g_autoptr(Plan) plan = plan_read(STDIN_FILENO, error);

    if (plan == NULL)
        return -1;
    autofd store_fd = open(plan->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store_fd < 0)
        return err_errno(error, "open '%s'", plan->store) ? 0 : -1;
    return plan->action == PLAN_REMOVE ? run_remove(plan, store_fd, userns_fd, error)
                                       : run_build(plan, store_fd, userns_fd, error);
}

/* Hands the namespace to who has called us, through the socket that is our standard output. */
static int
give_space(GError **error)
{
    autofd fd = space_open(error);
    char control[CMSG_SPACE(sizeof(int))] = {0};
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    if (fd < 0)
        return -1;
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    return sendmsg(STDOUT_FILENO, &message, MSG_NOSIGNAL) == 1 ? 0
                                                               : (err_errno(error, "hand it on") ? 0 : -1);
}

/* With --userns the namespace is there as BUILDER_USERNS_FD. */
static int
run_plan(bool given, GError **error)
{
    autofd fd = given ? fcntl(BUILDER_USERNS_FD, F_DUPFD_CLOEXEC, BUILDER_USERNS_FD + 1) : space_open(error);

    if (fd < 0 && given)
        err_errno(error, "use the namespace");
    if (fd < 0)
        return -1;
    if (given)
        close(BUILDER_USERNS_FD);
    return run(fd, error);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    const char *mode = argc > 1 ? argv[1] : "";
    int code = -1;

    if (strcmp(mode, "--space") == 0) {
        code = give_space(&error);
        if (error != NULL)
            fprintf(stderr, "%s\n", error->message);
        return code == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILED;
    }
    be_modest();
    umask(022); /* the server's keeps out the users of boxes */
    signal(SIGPIPE, SIG_IGN);
    if (follow_parent(&error))
        code = run_plan(strcmp(mode, "--userns") == 0, &error);
    if (stopped) {
        g_clear_error(&error);
        err_set(&error, ERR_CANCELLED, "the build was stopped");
    }
    if (error == NULL && code > 1)
        err_set(&error, ERR_INTERNAL, "the build ended with %d", code);
    if (error != NULL)
        report_error(error);
    return code == 0 ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}
