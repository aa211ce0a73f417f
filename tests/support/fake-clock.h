/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>

/* Link fake-clock.c into a test program, and it takes the place of base/clock.c: time stands
 * still but for what the test adds.  Not for what waits on the loop, which has a clock of its
 * own. */
void fake_clock_forward(gint64 seconds);
void fake_clock_jump(gint64 seconds); /* the wall clock alone */
