/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "box/link-private.h"

enum { HEAD_MAX = 64 }; /* empty places before the array is moved together */

static Piece *
piece_new(FrameStream stream, guint64 offset, const void *bytes, guint64 n)
{
    Piece *piece = g_malloc(sizeof *piece + (bytes != NULL ? (size_t)n : 0));

    *piece = (Piece){.offset = offset, .n = n, .stream = stream, .gap = bytes == NULL};
    if (bytes != NULL)
        memcpy(piece->bytes, bytes, (size_t)n);
    return piece;
}

static bool
join(Pieces *p, FrameStream stream, guint64 offset, const void *bytes, guint64 n)
{
    Piece *last = g_ptr_array_index(p->items, p->items->len - 1);

    if (last->stream != stream || last->gap != (bytes == NULL) || last->offset + last->n != offset)
        return false;
    if (last->gap) {
        last->n += n;
        return true;
    }
    if (last->n + n > RUN_PIECE_JOIN)
        return false;
    last = g_realloc(last, sizeof *last + (size_t)(last->n + n));
    memcpy(last->bytes + last->n, bytes, (size_t)n);
    last->n += n;
    g_ptr_array_index(p->items, p->items->len - 1) = last;
    return true;
}

bool
pieces_add(Pieces *p, FrameStream stream, guint64 offset, const void *bytes, guint64 n, guint64 busy)
{
    if (p->items == NULL)
        p->items = g_ptr_array_new_with_free_func(g_free);
    if (bytes != NULL)
        p->bytes += (size_t)n;
    if (pieces_count(p) > 0 && pieces_end(p) > busy && join(p, stream, offset, bytes, n))
        return false;
    g_ptr_array_add(p->items, piece_new(stream, offset, bytes, n));
    return true;
}

void
pieces_drop_first(Pieces *p)
{
    Piece *piece = pieces_at(p, p->first);

    if (!piece->gap)
        p->bytes -= (size_t)piece->n;
    g_free(piece);
    g_ptr_array_index(p->items, p->head) = NULL;
    p->head++;
    p->first++;
    if (p->head == p->items->len) {
        g_clear_pointer(&p->items, g_ptr_array_unref);
        p->head = 0;
    } else if (p->head >= HEAD_MAX && p->head >= p->items->len / 2) {
        g_ptr_array_remove_range(p->items, 0, p->head);
        p->head = 0;
    }
}

void
pieces_clear(Pieces *p)
{
    while (pieces_count(p) > 0)
        pieces_drop_first(p);
}
