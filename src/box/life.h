/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* How long a box lives.  All times are of the monotonic clock, which is the same for every
 * process until the machine is started anew: a jump of the wall clock ends nothing, and a
 * restarted server goes on with the same deadlines. */
typedef struct BoxLife {
    gint64 born_us;
    gint64 deadline_us; /* the end whatever happens; only renewal moves it */
    gint64 used_us;     /* idleness counts from here */
    gint64 lifetime_ms, idle_ms;
} BoxLife;

typedef enum BoxDue { BOX_DUE_NOT, BOX_DUE_IDLE, BOX_DUE_DEADLINE } BoxDue;

void box_life_begin(BoxLife *life, gint64 now_us, gint64 lifetime_ms, gint64 idle_ms);
/* Until `lifetime_ms` from now, or until the most that any box may live; false when that is
 * over already. */
bool box_life_renew(BoxLife *life, gint64 now_us, gint64 lifetime_ms);
void box_life_touch(BoxLife *life, gint64 now_us);
/* A paused box is not idle: somebody put it aside. */
BoxDue box_life_due(const BoxLife *life, gint64 now_us, bool paused);
/* When it is to be told of: some seconds of a short life, a minute of a long one before its end. */
gint64 box_life_warn_us(const BoxLife *life, bool paused);
/* When it will be over if nobody touches it. */
gint64 box_life_end_us(const BoxLife *life, bool paused);
