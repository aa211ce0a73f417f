/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* What forked helpers do to loop devices, since each of these may wait. */

/* A device of the keeper's that a helper may use. */
typedef struct DeviceLease {
    int place; /* in the keeper's table; -1: none */
    uint32_t number;
    bool fresh; /* it is written down, but has yet to be made */
} DeviceLease;
#define DEVICE_LEASE_NONE                                                                                    \
    {                                                                                                        \
        .place = -1                                                                                          \
    }

/* What became of it. */
typedef enum DeviceOutcome {
    DEVICE_UNKNOWN,   /* nobody has told */
    DEVICE_UNTOUCHED, /* it is as it was */
    DEVICE_NOT_MADE,  /* should there be one of its number, it is somebody else's */
    DEVICE_ATTACHED,
    DEVICE_STRANGE, /* somebody else made it first */
    DEVICE_BUSY,    /* somebody else uses it */
} DeviceOutcome;

enum { DEVICE_PATH_MAX = 31 };

/* Of one that nothing was done with. */
DeviceOutcome device_lease_unused(const DeviceLease *lease);

/* Attaches the image to the leased device, or, if that cannot be had, to any that is free.  The
 * device frees itself with its last user; direct I/O, so that pages of the image are not cached
 * twice.  0, or an errno; the outcome is told in either case. */
int device_attach(const DeviceLease *lease, int image_fd, char ret_path[DEVICE_PATH_MAX + 1], int *ret_fd,
                  DeviceOutcome *ret_outcome);

/* The kernel refuses to remove one that is attached or open.  0, or an errno. */
int device_remove(uint32_t number);

bool device_exists(uint32_t number);
bool device_is_attached(uint32_t number);
