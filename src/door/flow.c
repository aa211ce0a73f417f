/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes go from socket to pipe to socket by splice(2), so they are never copied to us.  A side is
 * read only while the pipe is empty; one that does not take its bytes stops the other by TCP. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "door/tunnel.h"

enum {
    STEPS_MAX = 16, /* in one turn, before others have theirs */
};

static ssize_t
splice_some(int from, int to, size_t n)
{
    ssize_t moved;

    do {
        moved = splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (moved < 0 && errno == EINTR);
    return moved;
}

static void
count(Tunnel *t, const Way *w, size_t n)
{
    t->moved = true;
    if (w == &t->up)
        stream_count(t->stream, n, 0);
    else
        stream_count(t->stream, 0, n);
}

/* What was read before splicing began.  False: broken. */
static bool
send_first(Tunnel *t)
{
    size_t n;
    const guint8 *bytes;

    while ((bytes = buf_peek(&t->first, &n)), n > 0) {
        ssize_t sent = send(t->upstream.fd, bytes, n, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN;
        buf_skip(&t->first, (size_t)sent);
        count(t, &t->up, (size_t)sent);
    }
    buf_clear(&t->first);
    buf_init(&t->first, TUNNEL_FIRST_MAX);
    return true;
}

typedef enum Step { STEP_MOVED, STEP_WAIT, STEP_BROKEN } Step;

/* The kernel takes what a pipe still holds for a promise of more and keeps the last part of what
 * it has taken back; when the socket is full that part would wait for a timer. */
static void
push(int fd)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* sends what is there */
}

static Step
drain(Tunnel *t, Way *w)
{
    ssize_t n = splice_some(w->pipe->out, w->to->fd, w->held);

    if (n < 0 && errno == EAGAIN) {
        push(w->to->fd);
        return STEP_WAIT;
    }
    if (n < 0)
        return STEP_BROKEN;
    w->held -= (size_t)n;
    count(t, w, (size_t)n);
    return STEP_MOVED;
}

static Step
fill(Tunnel *t, Way *w)
{
    size_t allowed = meter_allowance(&t->stream->box->meter);

    if (allowed == 0) {
        loop_timer_set(t->loop, &t->hold, TUNNEL_HOLD_MS);
        return STEP_WAIT;
    }
    if (w->pipe == NULL && (w->pipe = pipe_pool_take(t->stream->box->door->pipes)) == NULL)
        return STEP_BROKEN;
    ssize_t n = splice_some(w->from->fd, w->pipe->in, MIN(allowed, (size_t)PIPE_SIZE));
    if (n < 0)
        return errno == EAGAIN ? STEP_WAIT : STEP_BROKEN;
    w->eof = n == 0;
    w->held = (size_t)n;
    return STEP_MOVED;
}

static void
give_pipe(Tunnel *t, Way *w)
{
    if (w->pipe != NULL && w->held == 0)
        pipe_pool_give(t->stream->box->door->pipes, g_steal_pointer(&w->pipe));
}

static bool
run_way(Tunnel *t, Way *w)
{
    Step step = STEP_MOVED;

    if (w == &t->up && buf_len(&t->first) > 0) {
        if (!send_first(t))
            return false;
        if (buf_len(&t->first) > 0)
            return true;
    }
    for (guint i = 0; step == STEP_MOVED && !(w->eof && w->held == 0) && i < STEPS_MAX; i++)
        step = w->held > 0 ? drain(t, w) : fill(t, w);
    if (step != STEP_BROKEN && w->eof && w->held == 0 && !w->shut) {
        w->shut = true;
        (void)shutdown(w->to->fd, SHUT_WR); /* it may be gone already */
    }
    give_pipe(t, w);
    return step != STEP_BROKEN;
}

bool
flow_run(Tunnel *tunnel, bool up, bool down)
{
    return (!up || run_way(tunnel, &tunnel->up)) && (!down || run_way(tunnel, &tunnel->down));
}

bool
flow_is_over(const Tunnel *tunnel)
{
    return tunnel->up.shut && tunnel->down.shut;
}

static bool
may_read(const Tunnel *t, const Way *w)
{
    return !w->eof && w->held == 0 && t->hold.queue == NULL;
}

static void
set(Tunnel *t, LoopWatch *watch, bool in, bool out)
{
    uint32_t events = (in ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u);

    /* A hang-up is reported whatever is armed, each time anew unless edge-triggered. */
    loop_set(t->loop, watch, events != 0 ? events : EPOLLET);
}

void
flow_arm(Tunnel *tunnel)
{
    Tunnel *t = tunnel;
    bool first = buf_len(&t->first) > 0;

    if (t->peeking) {
        set(t, &t->client, true, false);
        set(t, &t->upstream, false, false);
        return;
    }
    set(t, &t->client, !first && may_read(t, &t->up), t->down.held > 0);
    set(t, &t->upstream, may_read(t, &t->down), first || t->up.held > 0);
}

static void
clear_way(Tunnel *t, Way *w)
{
    give_pipe(t, w);
    if (w->pipe != NULL)
        pipe_free(g_steal_pointer(&w->pipe));
}

void
flow_clear(Tunnel *tunnel)
{
    clear_way(tunnel, &tunnel->up);
    clear_way(tunnel, &tunnel->down);
    buf_clear(&tunnel->first);
}
