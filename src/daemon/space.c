/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/space.h"

#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "daemon/place.h"

enum { SPACE_MS = 10000 };

static pid_t
start_builder(const char *builder, int socket_fd)
{
    const char *const argv[] = {builder, "--space", NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid = -1;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    if (posix_spawn_file_actions_adddup2(&actions, socket_fd, STDOUT_FILENO) != 0 ||
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1) != 0 ||
        posix_spawn(&pid, builder, &actions, NULL, (char *const *)(guintptr)argv, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static int
receive_fd(int socket_fd)
{
    char control[CMSG_SPACE(sizeof(int))];
    char byte;
    struct iovec iov = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct pollfd ready = {.fd = socket_fd, .events = POLLIN};
    int fd = -1;

    if (poll(&ready, 1, SPACE_MS) != 1 || recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    if (head != NULL && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    return fd;
}

int
build_space_open(void)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *builder = program_find(self != NULL ? self : "coop", "coop-builder", &error);
    int fds[2];

    if (builder == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        log_warn("templates", "nothing can be built",
                 log_str("error", error != NULL ? error->message : "socketpair"));
        return -1;
    }
    autofd ours = fds[0];
    autofd theirs = fds[1];
    pid_t pid = start_builder(builder, theirs);

    close(g_steal_fd(&theirs));
    int fd = pid > 0 ? receive_fd(ours) : -1;
    if (pid > 0)
        (void)TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0)); /* whether it worked is in the fd */
    if (fd < 0)
        log_warn("templates", "nothing can be built: the user has no namespace with ids of its own",
                 log_str("hint", "coop doctor"));
    return fd;
}
