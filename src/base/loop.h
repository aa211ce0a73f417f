/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Connections live in one epoll fd that is itself a single source of a GLib context.  GLib
 * polls with poll(2), whose cost grows with every fd; nested this way ten thousand idle
 * streams cost the others nothing.
 *
 * Watches and timers are embedded in their owner and hold no allocation of their own.  A
 * watch or timer may be removed, and its owner freed, from inside any callback. */
typedef struct Loop Loop;

enum {
    LOOP_READ_SIZE = 64 * 1024,
    LOOP_OFFLOAD_THREADS = 4, /* who offloads has one piece of work under way at a time */
};

typedef struct LoopWatch LoopWatch;
struct LoopWatch {
    void (*ready)(LoopWatch *watch, uint32_t epoll_events);
    int fd;         /* borrowed */
    uint32_t armed; /* events asked of the kernel; 0 with `fd` < 0: not added */
};

Loop *loop_new(GMainContext *context); /* NULL: the default one */
void loop_free(Loop *loop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Loop, loop_free)

/* One buffer of LOOP_READ_SIZE bytes for whoever is reading right now: it is valid only
 * until control returns to the loop. */
uint8_t *loop_read_buffer(Loop *loop);

/* Level-triggered.  Adding fails only when the kernel has no room. */
bool loop_add(Loop *loop, LoopWatch *watch, uint32_t epoll_events, GError **error);
void loop_set(Loop *loop, LoopWatch *watch, uint32_t epoll_events);
void loop_remove(Loop *loop, LoopWatch *watch);

/* Timers for deadlines that are armed far more often than they fire.  Timers of equal
 * duration form one queue, so arming and cancelling are O(1); use few distinct durations. */
typedef struct LoopTimer LoopTimer;
struct LoopTimer {
    void (*expired)(LoopTimer *timer);
    LoopTimer *prev, *next; /* the queue's; NULL `queue`: not armed */
    struct LoopTimerQueue *queue;
    gint64 due_us;
};

/* Arms or re-arms; fires once. */
void loop_timer_set(Loop *loop, LoopTimer *timer, guint ms);
void loop_timer_cancel(Loop *loop, LoopTimer *timer);

/* Work that may block, in a small pool of threads.  `work` shares nothing with the loop but
 * `data`, which is its own until `done` runs on the loop; every `done` runs, the last ones
 * inside loop_free(). */
void loop_offload(Loop *loop, void (*work)(void *data), void (*done)(void *data), void *data);
