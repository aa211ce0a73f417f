/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"

/* Cuts a stream of server-sent events after each one, without changing a byte: what was not
 * received whole is never passed on, so that an error can follow in its place.  All that comes
 * out, put together, is what went in. */
typedef struct EventCut {
    Buf held;
    size_t scanned; /* bytes of `held` that were looked at */
    size_t handed;  /* bytes handed out, to be dropped by the next call */
    bool in_line;   /* the line has a byte */
    bool after_cr;
} EventCut;

/* `max` bounds one event, comments counted. */
void event_cut_init(EventCut *cut, size_t max);
void event_cut_clear(EventCut *cut);
bool event_cut_put(EventCut *cut, const void *bytes, size_t n); /* false: too long */
/* The next whole event, its empty line included, valid until the next call; NULL: none. */
guint8 *event_cut_next(EventCut *cut, size_t *ret_n);
/* What is left of one that has not ended; NULL: nothing. */
guint8 *event_cut_rest(EventCut *cut, size_t *ret_n);
