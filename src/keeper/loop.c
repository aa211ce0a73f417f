/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

bool
loop_init(Loop *loop)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll_fd >= 0;
}

void
loop_clear(Loop *loop)
{
    close(loop->epoll_fd);
    loop->epoll_fd = -1;
}

bool
loop_add(Loop *loop, Watch *watch, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return false;
    watch->fd = fd;
    return true;
}

bool
loop_change(Loop *loop, Watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) == 0;
}

void
loop_remove(Loop *loop, Watch *watch)
{
    if (watch->fd < 0)
        return;
    /* It is in the set, so this cannot fail. */
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->fd = -1;
}

bool
loop_turn(Loop *loop, int timeout_ms)
{
    struct epoll_event event;
    int n = epoll_wait(loop->epoll_fd, &event, 1, timeout_ms);

    if (n < 0)
        return errno == EINTR;
    if (n > 0) {
        Watch *watch = event.data.ptr;

        watch->func(watch->ctx, event.events);
    }
    return true;
}
