/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

#include "door/door.h"

/* What one box has used of its limits.  Private to this folder. */
typedef struct MeterMinute {
    gint64 minute;
    guint count;
} MeterMinute;

typedef struct Meter {
    DoorLimits limits;
    MeterMinute requests, lookups, told;
    gint64 day;
    guint64 day_bytes;
    gint64 refilled_us;
    gint64 tokens; /* bytes that may pass now; below 0: more has passed already */
} Meter;

void meter_init(Meter *meter, const DoorLimits *limits);
void meter_set(Meter *meter, const DoorLimits *limits); /* what was counted stays */
bool meter_take_request(Meter *meter);
bool meter_take_lookup(Meter *meter);
/* True once a minute: whoever floods is told of once. */
bool meter_may_tell(Meter *meter);

void meter_moved(Meter *meter, size_t n);
/* How much may pass now; SIZE_MAX: there is no bound. */
size_t meter_allowance(Meter *meter);
bool meter_day_is_used_up(Meter *meter);
/* Bytes of today, and which day that is. */
guint64 meter_day(Meter *meter, gint64 *ret_day);
/* What is known from elsewhere of that day; what was counted here is never less. */
void meter_note_day(Meter *meter, gint64 day, guint64 bytes);
