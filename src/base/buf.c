/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

enum { BUF_SIZE_MIN = 256 };

void
buf_init(Buf *b, size_t max)
{
    g_assert(max > 0 && max <= G_MAXSSIZE / 2);
    *b = (Buf){.max = max};
}

void
buf_clear(Buf *b)
{
    g_free(b->data);
    *b = (Buf){.max = b->max};
}

guint8 *
buf_reserve(Buf *b, size_t n)
{
    if (n > buf_room(b))
        return NULL;
    if (b->data != NULL && b->size - b->tail >= n)
        return b->data + b->tail;

    size_t len = buf_len(b);
    if (b->head > 0) {
        memmove(b->data, b->data + b->head, len);
        b->head = 0;
        b->tail = len;
    }
    if (b->data == NULL || b->size - len < n) {
        size_t want = MAX(MAX(b->size * 2, len + n), (size_t)BUF_SIZE_MIN);

        b->size = MAX(MIN(want, b->max), len + n);
        b->data = g_realloc(b->data, b->size);
    }
    return b->data + b->tail;
}

void
buf_grow(Buf *b, size_t n)
{
    g_assert(n <= b->size - b->tail);
    b->tail += n;
}

bool
buf_put(Buf *b, const void *p, size_t n)
{
    if (n == 0)
        return true;
    guint8 *to = buf_reserve(b, n);

    if (to == NULL)
        return false;
    memcpy(to, p, n);
    b->tail += n;
    return true;
}

bool
buf_puts(Buf *b, const char *s)
{
    return buf_put(b, s, strlen(s));
}

bool
buf_printf(Buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    return buf_puts(b, text);
}

const guint8 *
buf_peek(const Buf *b, size_t *ret_len)
{
    *ret_len = buf_len(b);
    return b->data != NULL ? b->data + b->head : (const guint8 *)"";
}

void
buf_skip(Buf *b, size_t n)
{
    g_assert(n <= buf_len(b));
    b->head += n;
    if (b->head == b->tail)
        buf_clear(b);
}
