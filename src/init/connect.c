/* SPDX-License-Identifier: Apache-2.0 */
/* The host reaches a port of the box through a socket that is made and connected in here and
 * passed out, so that nobody from outside enters the box's network. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/box.h"

enum { STEPS = 2, USEC_PER_MSEC = 1000 };

void
connect_done(Connect *c)
{
    if (c->fd >= 0)
        close(c->fd);
    *c = (Connect){.fd = -1};
}

void
connect_clear(Box *box)
{
    for (size_t i = 0; i < CONNECTS_MAX; i++) {
        if (box->connects[i].used)
            connect_done(&box->connects[i]);
    }
}

static void
settle(Connect *c, int error)
{
    c->done = true;
    c->error = error;
    if (error != 0 && c->fd >= 0) {
        close(c->fd);
        c->fd = -1;
    }
}

static int
open_step(const Connect *c)
{
    struct sockaddr_in v4 = {
        .sin_family = AF_INET, .sin_port = htons(c->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {
        .sin6_family = AF_INET6, .sin6_port = htons(c->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    bool first = c->step == 0;
    int fd = socket(first ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (connect(fd, first ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, first ? sizeof v4 : sizeof v6) <
            0 &&
        errno != EINPROGRESS) {
        int e = errno;

        close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

/* 127.0.0.1 first, then ::1; the error told is the first one, which most servers cause. */
static void
try_next(Box *box, Connect *c)
{
    for (; c->step < STEPS; c->step++) {
        c->fd = open_step(c);
        if (c->fd >= 0) {
            uint64_t data = watch_data(WATCH_CONNECT, (uint32_t)(c - box->connects), c->asked);

            if (!box_watch(box, EPOLL_CTL_ADD, c->fd, EPOLLOUT, data))
                settle(c, errno);
            return;
        }
        if (c->step == 0)
            c->error = errno;
    }
    settle(c, c->error != 0 ? c->error : errno);
}

bool
connect_begin(Box *box, uint32_t asked, uint32_t port)
{
    Connect *c = NULL;

    for (size_t i = 0; i < CONNECTS_MAX && c == NULL; i++) {
        if (!box->connects[i].used)
            c = &box->connects[i];
    }
    if (c == NULL)
        return false;
    *c = (Connect){.used = true,
                   .asked = asked,
                   .port = (uint16_t)port,
                   .fd = -1,
                   .deadline_us = now_us() + (uint64_t)CONNECT_TIMEOUT_MS * USEC_PER_MSEC};
    if (port == 0 || port > UINT16_MAX)
        settle(c, EINVAL);
    else
        try_next(box, c);
    return true;
}

void
connect_on_event(Box *box, Connect *c)
{
    int error = 0;
    socklen_t n = sizeof error;

    if (c->done || c->fd < 0)
        return;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        error = errno;
    (void)box_watch(box, EPOLL_CTL_DEL, c->fd, 0, 0);
    if (error == 0) {
        settle(c, 0);
        return;
    }
    close(c->fd);
    c->fd = -1;
    if (c->step == 0)
        c->error = error;
    c->step++;
    try_next(box, c);
}

void
connect_on_time(Box *box, uint64_t now)
{
    for (size_t i = 0; i < CONNECTS_MAX; i++) {
        Connect *c = &box->connects[i];

        if (c->used && !c->done && now >= c->deadline_us)
            settle(c, ETIMEDOUT);
    }
}
