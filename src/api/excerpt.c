/* SPDX-License-Identifier: Apache-2.0 */
#include "api/excerpt.h"

#include <string.h>

enum { CONTINUATION_MAX = 3 /* bytes of a character after its first */ };

void
excerpt_init(Excerpt *excerpt, size_t max)
{
    *excerpt = (Excerpt){.head = g_byte_array_new(), .tail = g_byte_array_new(), .half = max / 2};
}

void
excerpt_clear(Excerpt *excerpt)
{
    g_clear_pointer(&excerpt->head, g_byte_array_unref);
    g_clear_pointer(&excerpt->tail, g_byte_array_unref);
}

/* Twice the half may be held for a moment, so that bytes are moved once in so many. */
static void
trim_tail(Excerpt *e, size_t max)
{
    if (e->tail->len <= max)
        return;
    guint n = e->tail->len - (guint)e->half;
    g_byte_array_remove_range(e->tail, 0, n);
    e->dropped += n;
}

void
excerpt_add(Excerpt *e, const guint8 *bytes, size_t n)
{
    if (e->tail->len == 0 && e->dropped == 0 && e->head->len < e->half) {
        size_t take = MIN(n, e->half - e->head->len);

        g_byte_array_append(e->head, bytes, (guint)take);
        bytes += take;
        n -= take;
    }
    if (n > e->half) {
        e->dropped += e->tail->len + (n - e->half);
        g_byte_array_set_size(e->tail, 0);
        bytes += n - e->half;
        n = e->half;
    }
    if (n > 0)
        g_byte_array_append(e->tail, bytes, (guint)n);
    trim_tail(e, 2 * e->half);
}

void
excerpt_skip(Excerpt *e, guint64 n)
{
    e->dropped += e->tail->len + n;
    e->gap = true;
    g_byte_array_set_size(e->tail, 0);
}

size_t
excerpt_size(const Excerpt *e)
{
    return e->head->len + e->tail->len;
}

bool
excerpt_is_cut(const Excerpt *e)
{
    return e->gap || e->dropped > 0 || e->tail->len > e->half;
}

/* The length without a character that is not whole. */
static size_t
whole_length(const guint8 *bytes, size_t n)
{
    for (size_t back = 1; back <= MIN(n, (size_t)CONTINUATION_MAX + 1); back++) {
        guint8 c = bytes[n - back];

        if ((c & 0xc0) == 0x80)
            continue;
        size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return need > back ? n - back : n;
    }
    return n;
}

/* How many bytes of a character stand at the start whose first one was cut away. */
static size_t
broken_start(const guint8 *bytes, size_t n)
{
    size_t i = 0;

    while (i < MIN(n, (size_t)CONTINUATION_MAX) && (bytes[i] & 0xc0) == 0x80)
        i++;
    return i;
}

static void
append_valid(GString *text, const guint8 *bytes, size_t n)
{
    if (n == 0)
        return;
    g_autofree char *valid = g_utf8_make_valid((const char *)bytes, (gssize)n);
    g_string_append(text, valid);
}

char *
excerpt_dup_text(const Excerpt *e)
{
    GString *text = g_string_new(NULL);
    const guint8 *tail = e->tail->data;
    size_t n = e->tail->len;

    if (!excerpt_is_cut(e)) {
        g_autoptr(GByteArray) whole = g_byte_array_sized_new((guint)excerpt_size(e));

        g_byte_array_append(whole, e->head->data, e->head->len);
        g_byte_array_append(whole, tail, (guint)n);
        append_valid(text, whole->data, whole->len);
        return g_string_free(text, FALSE);
    }
    size_t extra = n > e->half ? n - e->half : 0;
    size_t head = whole_length(e->head->data, e->head->len);
    extra += broken_start(tail + extra, n - extra);
    append_valid(text, e->head->data, head);
    g_string_append_printf(text, "\n[%" G_GUINT64_FORMAT " bytes left out]\n",
                           e->dropped + extra + (e->head->len - head));
    append_valid(text, tail + extra, n - extra);
    return g_string_free(text, FALSE);
}
