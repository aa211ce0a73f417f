/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* One epoll.  A turn handles one event and asks the kernel again, so a callback may end any
 * object, its own included, and no event for it is left over. */
typedef struct Loop {
    int epoll_fd;
} Loop;

typedef void (*WatchFunc)(void *ctx, uint32_t events);

/* Lives inside its owner, who removes it before closing the fd. */
typedef struct Watch {
    int fd; /* -1: not in the loop */
    WatchFunc func;
    void *ctx;
} Watch;
#define WATCH_INIT                                                                                           \
    {                                                                                                        \
        .fd = -1                                                                                             \
    }

/* All set errno. */
bool loop_init(Loop *loop);
void loop_clear(Loop *loop);
bool loop_add(Loop *loop, Watch *watch, int fd, uint32_t events);
bool loop_change(Loop *loop, Watch *watch, uint32_t events);
void loop_remove(Loop *loop, Watch *watch);
/* At most one event; `timeout_ms` -1: none. */
bool loop_turn(Loop *loop, int timeout_ms);
