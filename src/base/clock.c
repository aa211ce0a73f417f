/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <string.h>
#include <time.h>

static gint64
read_clock_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (gint64)ts.tv_sec * G_USEC_PER_SEC + ts.tv_nsec / 1000;
}

gint64
clock_mono_us(void)
{
    return read_clock_us(CLOCK_MONOTONIC);
}

gint64
clock_wall_us(void)
{
    return read_clock_us(CLOCK_REALTIME);
}

void
clock_format_iso(gint64 wall_us, char ret_text[CLOCK_ISO_LEN + 1])
{
    /* The years that four digits can say: 0001 to 9999. */
    gint64 at = CLAMP(wall_us, G_GINT64_CONSTANT(-62135596800000000), G_GINT64_CONSTANT(253402300799999999));
    gint64 us = at % G_USEC_PER_SEC;
    struct tm tm;

    if (us < 0)
        us += G_USEC_PER_SEC;
    time_t seconds = (time_t)((at - us) / G_USEC_PER_SEC);
    gmtime_r(&seconds, &tm);
    g_snprintf(ret_text, CLOCK_ISO_LEN + 1, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900,
               tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)us);
}
