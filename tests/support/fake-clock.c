/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake-clock.h"

#include "base/clock.h"

enum { START_S = 1000000000 };

/* The database's threads read it too. */
static gint64 added_s, wall_added_s;

static gint64
now_us(void)
{
    return (START_S + __atomic_load_n(&added_s, __ATOMIC_SEQ_CST)) * G_USEC_PER_SEC;
}

void
fake_clock_forward(gint64 seconds)
{
    __atomic_add_fetch(&added_s, seconds, __ATOMIC_SEQ_CST);
}

gint64
clock_mono_us(void)
{
    return now_us();
}

void
fake_clock_jump(gint64 seconds)
{
    __atomic_add_fetch(&wall_added_s, seconds, __ATOMIC_SEQ_CST);
}

gint64
clock_wall_us(void)
{
    return now_us() + __atomic_load_n(&wall_added_s, __ATOMIC_SEQ_CST) * G_USEC_PER_SEC;
}

void
clock_format_iso(gint64 wall_us, char ret_text[CLOCK_ISO_LEN + 1])
{
    g_autoptr(GDateTime) at = g_date_time_new_from_unix_utc(wall_us / G_USEC_PER_SEC);
    g_autofree char *text = g_date_time_format(at, "%Y-%m-%dT%H:%M:%S.000000Z");

    g_strlcpy(ret_text, text, CLOCK_ISO_LEN + 1);
}
