/* SPDX-License-Identifier: Apache-2.0 */
#include "door/pipes.h"

#include <fcntl.h>
#include <unistd.h>

struct PipePool {
    GPtrArray *idle;
};

void
pipe_free(Pipe *pipe)
{
    close(pipe->in);
    close(pipe->out);
    g_free(pipe);
}

PipePool *
pipe_pool_new(void)
{
    PipePool *pool = g_new0(PipePool, 1);

    pool->idle = g_ptr_array_new_with_free_func((GDestroyNotify)pipe_free);
    return pool;
}

void
pipe_pool_free(PipePool *pool)
{
    if (pool == NULL)
        return;
    g_ptr_array_unref(pool->idle);
    g_free(pool);
}

Pipe *
pipe_pool_take(PipePool *pool)
{
    int fds[2];

    if (pool->idle->len > 0)
        return g_ptr_array_steal_index_fast(pool->idle, pool->idle->len - 1);
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
        return NULL;
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_SIZE); /* the user's share may be used up; smaller works too */
    Pipe *pipe = g_new0(Pipe, 1);
    pipe->in = fds[1];
    pipe->out = fds[0];
    return pipe;
}

void
pipe_pool_give(PipePool *pool, Pipe *pipe)
{
    if (pool->idle->len < PIPES_KEPT)
        g_ptr_array_add(pool->idle, pipe);
    else
        pipe_free(pipe);
}
