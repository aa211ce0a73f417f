/* SPDX-License-Identifier: Apache-2.0 */
#include "brain/event-cut.h"

void
event_cut_init(EventCut *cut, size_t max)
{
    *cut = (EventCut){0};
    buf_init(&cut->held, max);
}

void
event_cut_clear(EventCut *cut)
{
    buf_clear(&cut->held);
}

static void
drop_handed(EventCut *cut)
{
    buf_skip(&cut->held, cut->handed);
    cut->scanned -= cut->handed;
    cut->handed = 0;
}

bool
event_cut_put(EventCut *cut, const void *bytes, size_t n)
{
    drop_handed(cut);
    return buf_put(&cut->held, bytes, n);
}

/* An empty line ends an event. */
static bool
ends_event(EventCut *cut, guint8 c)
{
    bool second_half = c == '\n' && cut->after_cr;

    cut->after_cr = c == '\r';
    if (second_half)
        return false;
    if (c != '\r' && c != '\n') {
        cut->in_line = true;
        return false;
    }
    bool was_empty = !cut->in_line;
    cut->in_line = false;
    return was_empty;
}

static guint8 *
held_bytes(EventCut *cut, size_t *ret_n)
{
    return (guint8 *)(guintptr)buf_peek(&cut->held, ret_n);
}

guint8 *
event_cut_next(EventCut *cut, size_t *ret_n)
{
    size_t n;

    drop_handed(cut);
    guint8 *bytes = held_bytes(cut, &n);
    while (cut->scanned < n) {
        if (ends_event(cut, bytes[cut->scanned++])) {
            /* Where the LF of a CRLF has not come yet, it begins the next event and changes
             * nothing there. */
            if (cut->after_cr && cut->scanned < n && bytes[cut->scanned] == '\n')
                ends_event(cut, bytes[cut->scanned++]);
            *ret_n = cut->handed = cut->scanned;
            return bytes;
        }
    }
    return NULL;
}

guint8 *
event_cut_rest(EventCut *cut, size_t *ret_n)
{
    drop_handed(cut);
    guint8 *bytes = held_bytes(cut, ret_n);
    return *ret_n > 0 ? bytes : NULL;
}
