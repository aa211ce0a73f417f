/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* A byte queue that knows its own maximum.  Everything that grows because somebody outside
 * wrote bytes lives in one of these: the caller decides the bound when it makes the queue,
 * and must handle "full".
 *
 * An empty queue holds no storage, so ten thousand idle connections cost only the struct,
 * which is meant to be embedded: init/clear, not new/free. */
typedef struct Buf {
    guint8 *data;
    size_t head; /* first unread byte */
    size_t tail; /* one past the last byte */
    size_t size; /* bytes allocated */
    size_t max;
} Buf;

void buf_init(Buf *b, size_t max);
void buf_clear(Buf *b);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Buf, buf_clear)

static inline size_t
buf_len(const Buf *b)
{
    return b->tail - b->head;
}

static inline size_t
buf_room(const Buf *b)
{
    return b->max - buf_len(b);
}

/* All or nothing; false means it would pass the maximum. */
bool buf_put(Buf *b, const void *p, size_t n) G_GNUC_WARN_UNUSED_RESULT;
bool buf_puts(Buf *b, const char *s) G_GNUC_WARN_UNUSED_RESULT;
bool buf_printf(Buf *b, const char *fmt, ...) G_GNUC_PRINTF(2, 3) G_GNUC_WARN_UNUSED_RESULT;

/* Room for `n` more bytes at the end, to be filled in place and then made part of the queue
 * with buf_grow().  NULL when that would pass the maximum. */
guint8 *buf_reserve(Buf *b, size_t n);
void buf_grow(Buf *b, size_t n);

/* Valid until the next call on `b`. */
const guint8 *buf_peek(const Buf *b, size_t *ret_len);
void buf_skip(Buf *b, size_t n);
