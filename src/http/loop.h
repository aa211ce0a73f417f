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
typedef struct HttpLoop HttpLoop;

typedef struct HttpWatch HttpWatch;
struct HttpWatch {
    void (*ready)(HttpWatch *watch, uint32_t epoll_events);
    int fd;         /* borrowed */
    uint32_t armed; /* events asked of the kernel; 0 with `fd` < 0: not added */
};

HttpLoop *http_loop_new(GMainContext *context); /* NULL: the default one */
void http_loop_free(HttpLoop *loop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpLoop, http_loop_free)

/* One buffer of HTTP_READ_SIZE bytes for whoever is reading right now: it is valid only
 * until control returns to the loop. */
uint8_t *http_loop_read_buffer(HttpLoop *loop);

/* Level-triggered.  Adding fails only when the kernel has no room. */
bool http_loop_add(HttpLoop *loop, HttpWatch *watch, uint32_t epoll_events, GError **error);
void http_loop_set(HttpLoop *loop, HttpWatch *watch, uint32_t epoll_events);
void http_loop_remove(HttpLoop *loop, HttpWatch *watch);

/* Timers for deadlines that are armed far more often than they fire.  Timers of equal
 * duration form one queue, so arming and cancelling are O(1); use few distinct durations. */
typedef struct HttpTimer HttpTimer;
struct HttpTimer {
    void (*expired)(HttpTimer *timer);
    HttpTimer *prev, *next; /* the queue's; NULL `queue`: not armed */
    struct HttpTimerQueue *queue;
    gint64 due_us;
};

/* Arms or re-arms; fires once. */
void http_loop_timer_set(HttpLoop *loop, HttpTimer *timer, guint ms);
void http_loop_timer_cancel(HttpLoop *loop, HttpTimer *timer);

/* Work that may block, in a small pool of threads.  `work` shares nothing with the loop but
 * `data`, which is its own until `done` runs on the loop; every `done` runs, the last ones
 * inside http_loop_free(). */
void http_loop_offload(HttpLoop *loop, void (*work)(void *data), void (*done)(void *data), void *data);
