/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "keeper/device-work.h"
#include "keeper/loop.h"
#include "wire/record.h"

/* The loop devices that the keeper makes.  Their numbers lie in a range that follows from its
 * random instance name, and each is written down before it is made: so the next start knows them
 * too, and no device is ever removed that somebody else made.  They are used again, and when none
 * was needed for a while those that are free are removed. */
typedef struct Devices Devices;

enum {
    DEVICE_PLACES = KEEPER_BOXES_MAX + KEEPER_POOL_MAX + 64,
    DEVICE_FIRST = 4096,
    DEVICE_RANGES = 200,
};

typedef struct DevicesSpec {
    Loop *loop;
    int state_fd; /* borrowed */
    const char *instance;
    int64_t idle_us; /* until those that are free are removed */
} DevicesSpec;

/* The first number of an instance's range. */
uint32_t device_base(const char *instance);

Devices *devices_new(const DevicesSpec *spec, GError **error);
/* Those that are free are removed first, as far as there is time for it. */
void devices_free(Devices *devices);

/* One that is free, or is to be made; none when there are too many, or it cannot be written down. */
DeviceLease devices_take(Devices *devices);
/* A lease is over: its helper has ended, or its disk is no more. */
void devices_settle(Devices *devices, int place, DeviceOutcome outcome);

/* When devices_trim() has something to do. */
int64_t devices_due_us(const Devices *devices);
void devices_trim(Devices *devices);
