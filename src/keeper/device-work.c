/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/device-work.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <linux/loop.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failpoint.h"

enum {
    TRIES = 64, /* another process may take the free device first */
    BLOCK = 4096,
    SYS_PATH_MAX = 64,
};

static bool
sys_has(uint32_t number, const char *file)
{
    char path[SYS_PATH_MAX];

    snprintf(path, sizeof path, "/sys/block/loop%u%s", number, file);
    return access(path, F_OK) == 0;
}

bool
device_exists(uint32_t number)
{
    return sys_has(number, "");
}

bool
device_is_attached(uint32_t number)
{
    return sys_has(number, "/loop");
}

static int
configure(uint32_t number, int image_fd, char ret_path[DEVICE_PATH_MAX + 1], int *ret_fd)
{
    struct loop_config config = {.fd = (uint32_t)image_fd,
                                 .block_size = BLOCK,
                                 .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};

    snprintf(ret_path, DEVICE_PATH_MAX + 1, "/dev/loop%u", number);
    autofd fd = open(ret_path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
        return errno;
    *ret_fd = g_steal_fd(&fd);
    return 0;
}

DeviceOutcome
device_lease_unused(const DeviceLease *lease)
{
    return lease->fresh ? DEVICE_NOT_MADE : DEVICE_UNTOUCHED;
}

static int
attach_leased(int control, const DeviceLease *lease, int image_fd, char *ret_path, int *ret_fd,
              DeviceOutcome *ret_outcome)
{
    if (lease->fresh && ioctl(control, LOOP_CTL_ADD, lease->number) < 0) {
        if (errno == EEXIST)
            *ret_outcome = DEVICE_STRANGE;
        return errno;
    }
    *ret_outcome = DEVICE_UNTOUCHED;
    FAILPOINT("device-made");
    int error = configure(lease->number, image_fd, ret_path, ret_fd);

    if (error == 0)
        *ret_outcome = DEVICE_ATTACHED;
    else if (error == EBUSY)
        *ret_outcome = DEVICE_BUSY;
    return error;
}

static int
attach_any(int control, int image_fd, char *ret_path, int *ret_fd)
{
    for (int i = 0; i < TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);

        if (number < 0)
            return errno;
        int error = configure((uint32_t)number, image_fd, ret_path, ret_fd);

        /* Taken, or removed, by somebody else meanwhile. */
        if (error != EBUSY && error != ENXIO && error != ENOENT)
            return error;
    }
    return EBUSY;
}

static int
open_control(void)
{
    return open("/dev/loop-control", O_RDWR | O_CLOEXEC);
}

int
device_attach(const DeviceLease *lease, int image_fd, char ret_path[DEVICE_PATH_MAX + 1], int *ret_fd,
              DeviceOutcome *ret_outcome)
{
    autofd control = open_control();

    *ret_outcome = device_lease_unused(lease);
    if (control < 0)
        return errno;
    if (lease->place >= 0 && attach_leased(control, lease, image_fd, ret_path, ret_fd, ret_outcome) == 0)
        return 0;
    return attach_any(control, image_fd, ret_path, ret_fd);
}

int
device_remove(uint32_t number)
{
    autofd control = open_control();

    return control >= 0 && ioctl(control, LOOP_CTL_REMOVE, number) >= 0 ? 0 : errno;
}
