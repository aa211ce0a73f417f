/* SPDX-License-Identifier: Apache-2.0 */
#include "box/file-pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

static void
on_ready(LoopWatch *watch, uint32_t events)
{
    FilePipe *pipe = (FilePipe *)watch;

    /* A hang-up is reported whatever is armed, each time anew unless edge-triggered. */
    loop_set(pipe->loop, &pipe->watch, EPOLLET);
    if (!pipe->awaited)
        return;
    pipe->awaited = false;
    pipe->ready(pipe);
}

bool
file_pipe_open(FilePipe *pipe, Loop *loop, FilePipeWay way, int *ret_theirs, GError **error)
{
    int fds[2];

    pipe->watch.fd = -1;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_errno(error, "make a pipe");
    autofd mine = fds[way == FILE_PIPE_IN ? 1 : 0];
    autofd theirs = fds[way == FILE_PIPE_IN ? 0 : 1];

    if (fcntl(mine, F_SETFL, O_NONBLOCK) < 0)
        return err_errno(error, "make a pipe");
    /* The kernel counts the pages of a user's pipes: one that stays small is only slower. */
    (void)fcntl(mine, F_SETPIPE_SZ, FILE_PIPE_BYTES);
    pipe->watch = (LoopWatch){.ready = on_ready, .fd = mine};
    pipe->loop = loop;
    pipe->events = way == FILE_PIPE_IN ? EPOLLOUT : EPOLLIN;
    pipe->awaited = false;
    if (!loop_add(loop, &pipe->watch, EPOLLET, error)) {
        pipe->watch.fd = -1;
        return false;
    }
    (void)g_steal_fd(&mine);
    *ret_theirs = g_steal_fd(&theirs);
    return true;
}

void
file_pipe_close(FilePipe *pipe)
{
    if (pipe->watch.fd < 0)
        return;
    loop_remove(pipe->loop, &pipe->watch);
    close(pipe->watch.fd);
    pipe->watch.fd = -1;
    pipe->awaited = false;
}

void
file_pipe_await(FilePipe *pipe)
{
    if (pipe->watch.fd < 0)
        return;
    pipe->awaited = true;
    loop_set(pipe->loop, &pipe->watch, pipe->events);
}

bool
file_pipe_has_bytes(const FilePipe *pipe)
{
    int n = 0;

    return pipe->watch.fd >= 0 && ioctl(pipe->watch.fd, FIONREAD, &n) == 0 && n > 0;
}

static bool
poll_has(const FilePipe *pipe, short events)
{
    struct pollfd look = {.fd = pipe->watch.fd, .events = events};

    return poll(&look, 1, 0) > 0 && (look.revents & events) != 0;
}

bool
file_pipe_has_ended(const FilePipe *pipe)
{
    return pipe->watch.fd < 0 || (poll_has(pipe, POLLHUP) && !file_pipe_has_bytes(pipe));
}

ssize_t
file_pipe_read(FilePipe *pipe, void *bytes, size_t n)
{
    ssize_t got;

    if (pipe->watch.fd < 0)
        return 0;
    do {
        got = read(pipe->watch.fd, bytes, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

ssize_t
file_pipe_write(FilePipe *pipe, const void *bytes, size_t n)
{
    ssize_t put;

    do {
        put = write(pipe->watch.fd, bytes, n);
    } while (put < 0 && errno == EINTR);
    return put;
}

static ssize_t
move(int from, int to, size_t n)
{
    ssize_t moved;

    do {
        moved = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (moved < 0 && errno == EINTR);
    return moved;
}

/* The kernel says EAGAIN of either side. */
ssize_t
file_pipe_splice_to(FilePipe *pipe, int fd, size_t n)
{
    ssize_t moved = pipe->watch.fd >= 0 ? move(pipe->watch.fd, fd, n) : 0;

    if (moved < 0 && errno == EAGAIN)
        errno = file_pipe_has_bytes(pipe) ? ENOBUFS : EAGAIN;
    return moved;
}

ssize_t
file_pipe_splice_from(FilePipe *pipe, int fd, size_t n)
{
    ssize_t moved = move(fd, pipe->watch.fd, n);

    if (moved < 0 && errno == EAGAIN)
        errno = poll_has(pipe, POLLOUT) ? EAGAIN : ENOBUFS;
    return moved;
}
