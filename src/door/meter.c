/* SPDX-License-Identifier: Apache-2.0 */
#include "door/meter.h"

#include "base/clock.h"

enum { MINUTE_US = 60 * G_USEC_PER_SEC, QUANTUM_MAX = 64 * 1024 };
#define DAY_US (G_GINT64_CONSTANT(86400) * G_USEC_PER_SEC)

void
meter_init(Meter *meter, const DoorLimits *limits)
{
    *meter = (Meter){.refilled_us = clock_mono_us()};
    meter_set(meter, limits);
    meter->tokens = (gint64)MIN(limits->bytes_per_s, (guint64)G_MAXINT64);
}

void
meter_set(Meter *meter, const DoorLimits *limits)
{
    meter->limits = *limits;
}

static bool
take(MeterMinute *m, guint max)
{
    gint64 minute = clock_mono_us() / MINUTE_US;

    if (m->minute != minute)
        *m = (MeterMinute){.minute = minute};
    if (max > 0 && m->count >= max)
        return false;
    m->count++;
    return true;
}

bool
meter_take_request(Meter *meter)
{
    return take(&meter->requests, meter->limits.requests_per_min);
}

bool
meter_take_lookup(Meter *meter)
{
    return take(&meter->lookups, meter->limits.lookups_per_min);
}

bool
meter_may_tell(Meter *meter)
{
    return take(&meter->told, 1);
}

/* Days are those of the wall clock: a person reads them. */
gint64
door_today(void)
{
    return clock_wall_us() / DAY_US;
}

static void
turn_day(Meter *meter)
{
    gint64 day = door_today();

    if (meter->day != day)
        meter->day_bytes = 0;
    meter->day = day;
}

void
meter_moved(Meter *meter, size_t n)
{
    turn_day(meter);
    meter->day_bytes += n;
    if (meter->limits.bytes_per_s > 0)
        meter->tokens -= (gint64)n;
}

bool
meter_day_is_used_up(Meter *meter)
{
    if (meter->limits.bytes_per_day == 0)
        return false;
    turn_day(meter);
    return meter->day_bytes >= meter->limits.bytes_per_day;
}

guint64
meter_day(Meter *meter, gint64 *ret_day)
{
    turn_day(meter);
    *ret_day = meter->day;
    return meter->day_bytes;
}

void
meter_note_day(Meter *meter, gint64 day, guint64 bytes)
{
    turn_day(meter);
    if (meter->day == day)
        meter->day_bytes = MAX(meter->day_bytes, bytes);
}

/* One second's worth can be saved up. */
static void
refill(Meter *meter)
{
    gint64 rate = (gint64)MIN(meter->limits.bytes_per_s, (guint64)G_MAXINT32 * 1024);
    gint64 now = clock_mono_us();
    gint64 elapsed = MIN(now - meter->refilled_us, (gint64)G_USEC_PER_SEC);

    meter->refilled_us = now;
    meter->tokens = MIN(meter->tokens + rate * elapsed / G_USEC_PER_SEC, rate);
}

/* Less than a twentieth of a second's worth is saved up further: to move every byte as it is
 * granted would be one turn of the loop for each. */
size_t
meter_allowance(Meter *meter)
{
    gint64 least = (gint64)MIN(meter->limits.bytes_per_s / 20, (guint64)QUANTUM_MAX);

    if (meter->limits.bytes_per_s == 0)
        return SIZE_MAX;
    refill(meter);
    return meter->tokens >= MAX(least, 1) ? (size_t)meter->tokens : 0;
}
