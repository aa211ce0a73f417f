/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* Room for the descriptors of one packet, aligned for the kernel's header. */
typedef union Control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX)];
} Control;

int
channel_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int saved = errno;

    close(fd);
    errno = saved;
    return -1;
}

int
channel_send(int fd, const void *packet, size_t n, const int *fds, size_t n_fds)
{
    return channel_send2(fd, packet, n, NULL, 0, fds, n_fds);
}

int
channel_send2(int fd, const void *head, size_t head_n, const void *body, size_t body_n, const int *fds,
              size_t n_fds)
{
    Control control = {0};
    /* sendmsg() only reads; its type was made for recvmsg() too. */
    struct iovec parts[2] = {{(void *)(uintptr_t)head, head_n}, {(void *)(uintptr_t)body, body_n}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = body_n > 0 ? 2 : 1};
    ssize_t sent;

    /* An empty packet would look like the end of the stream. */
    if (head_n == 0 || n_fds > CHANNEL_FDS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (n_fds > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * n_fds);
    }
    do {
        sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    /* One end was closed, with or without packets it had not read. */
    if (sent < 0 && errno == ECONNRESET)
        errno = EPIPE;
    return sent < 0 ? -1 : 0;
}

static void
take_fds(struct msghdr *message, int *ret_fds, size_t max, size_t *n_fds)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg != NULL; cmsg = CMSG_NXTHDR(message, cmsg)) {
        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
            if (*n_fds < max)
                ret_fds[(*n_fds)++] = fd;
            else
                close(fd);
        }
    }
}

ssize_t
channel_recv(int fd, void *packet, size_t size, int *ret_fds, size_t *n_fds)
{
    Control control;
    struct iovec part = {packet, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    size_t max = n_fds != NULL ? *n_fds : 0;
    size_t taken = 0;
    ssize_t n;

    /* A peer that closed with something unread is reported once as a reset, ahead of the packets
     * that it had sent. */
    do {
        n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n >= 0)
        take_fds(&message, ret_fds, max, &taken);
    if (n > 0 && (message.msg_flags & MSG_TRUNC) != 0) {
        while (taken > 0)
            close(ret_fds[--taken]);
        errno = EMSGSIZE;
        n = -1;
    }
    if (n_fds != NULL)
        *n_fds = taken;
    return n;
}
