/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Deadlines, leases and durations use the monotonic clock: the wall clock may jump.  The
 * wall clock is only for what people read. */
gint64 clock_mono_us(void);
gint64 clock_wall_us(void); /* since 1970, UTC */

/* "2026-01-31T12:00:00.123456Z"; the form of every time in the API and the event log.  A time
 * outside the years 1 to 9999 is shown as the nearest inside. */
enum { CLOCK_ISO_LEN = 27 };
void clock_format_iso(gint64 wall_us, char ret_text[CLOCK_ISO_LEN + 1]);
