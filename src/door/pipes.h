/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* Pipes for splice(2), lent to a tunnel only while bytes are on their way in it: a thousand idle
 * tunnels hold none.  Private to this folder. */
typedef struct PipePool PipePool;

typedef struct Pipe {
    int in, out; /* what is written to `in` is read from `out` */
} Pipe;

enum { PIPES_KEPT = 16, PIPE_SIZE = 1024 * 1024 };

PipePool *pipe_pool_new(void);
void pipe_pool_free(PipePool *pool);
/* NULL: no fds are left; errno says why. */
Pipe *pipe_pool_take(PipePool *pool);
/* `pipe` is empty. */
void pipe_pool_give(PipePool *pool, Pipe *pipe);
void pipe_free(Pipe *pipe); /* one that is not empty */
