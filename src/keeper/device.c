/* SPDX-License-Identifier: Apache-2.0 */
/* The file `devices` is the instance's name, and for each place one byte: 1 from before its device is
 * made until after it is removed.  Everything else about it is asked of the kernel.  Under another
 * name the places have other numbers, so what is written there then says nothing.
 *
 *     NONE -> USED <-> FREE -> REMOVING -> NONE
 *
 * One that is still, or again, attached when we are done with it (BUSY) is left alone until it is
 * not; a number that somebody else has (STRANGE) is never used.  Removing one waits for several grace periods
 * of the kernel, so a helper does it, some of them side by side. */
#include "keeper/device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/failpoint.h"
#include "keeper/fork.h"

enum {
    TRIMMERS_MAX = 8,
    REMOVE_TRIES = 20,
    REMOVE_WAIT_MS = 10,
    STOP_US = 2 * G_USEC_PER_SEC,
    HEX = 16,
    US_PER_MS = 1000,
    MINORS = 1 << 20,
    NAME_BYTES = 16,
};

_Static_assert(DEVICE_FIRST + DEVICE_RANGES * DEVICE_PLACES <= MINORS, "every device has a number");

typedef enum PlaceState {
    PLACE_NONE,
    PLACE_FREE,
    PLACE_USED,
    PLACE_BUSY,
    PLACE_REMOVING,
    PLACE_STRANGE,
    PLACE_LEFT, /* at the end; still written down */
} PlaceState;

typedef struct Trimmer {
    Devices *devices;
    int place;
    int pidfd; /* -1: none runs */
    Watch watch;
} Trimmer;

typedef struct DeviceList {
    char name[NAME_BYTES];
    uint8_t ours[DEVICE_PLACES];
} DeviceList;

struct Devices {
    DevicesSpec spec;
    int fd;
    uint32_t base;
    uint8_t state[DEVICE_PLACES]; /* PlaceState */
    int64_t used_us;              /* when one was taken or given back */
    bool ending;
    Trimmer trimmers[TRIMMERS_MAX];
};

uint32_t
device_base(const char *instance)
{
    uint64_t name = strtoull(instance, NULL, HEX);

    return DEVICE_FIRST + (uint32_t)(name % DEVICE_RANGES) * DEVICE_PLACES;
}

static uint32_t
number_of(const Devices *devices, int place)
{
    return devices->base + (uint32_t)place;
}

static bool
write_down(const Devices *devices, int place, uint8_t ours)
{
    return pwrite(devices->fd, &ours, 1, NAME_BYTES + place) == 1;
}

/* There is none of ours. */
static PlaceState
strike_out(const Devices *devices, int place)
{
    (void)write_down(devices, place, 0);
    FAILPOINT("device-wiped");
    return PLACE_NONE;
}

/* As the kernel has it; what is gone is struck out.  Only for one that may be ours: the kernel does
 * not know who made it. */
static PlaceState
look(const Devices *devices, int place)
{
    if (device_exists(number_of(devices, place)))
        return device_is_attached(number_of(devices, place)) ? PLACE_BUSY : PLACE_FREE;
    return strike_out(devices, place);
}

/* The file has a byte for each place from the start: a full disk keeps nobody from writing one.  Its
 * name comes last, so that none stands over what was written under another. */
static bool
make_list(const Devices *devices, const char name[static NAME_BYTES])
{
    static const uint8_t none[DEVICE_PLACES];

    return ftruncate(devices->fd, 0) == 0 &&
           pwrite(devices->fd, none, sizeof none, NAME_BYTES) == (ssize_t)sizeof none &&
           pwrite(devices->fd, name, NAME_BYTES, 0) == NAME_BYTES;
}

static bool
read_places(Devices *devices, GError **error)
{
    char name[NAME_BYTES] = {0};
    DeviceList list = {0};
    ssize_t n = pread(devices->fd, &list, sizeof list, 0);

    if (n < 0)
        return err_errno(error, "read the list of loop devices");
    memcpy(name, devices->spec.instance, strnlen(devices->spec.instance, NAME_BYTES));
    if (n < (ssize_t)sizeof list || memcmp(list.name, name, sizeof name) != 0) {
        memset(list.ours, 0, sizeof list.ours);
        if (!make_list(devices, name))
            return err_errno(error, "make the list of loop devices");
    }
    for (int place = 0; place < DEVICE_PLACES; place++)
        devices->state[place] = list.ours[place] != 0 ? look(devices, place) : PLACE_NONE;
    return true;
}

Devices *
devices_new(const DevicesSpec *spec, GError **error)
{
    autofd fd = openat(spec->state_fd, "devices", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        err_errno(error, "open the list of loop devices");
        return NULL;
    }
    Devices *devices = g_new0(Devices, 1);

    devices->spec = *spec;
    devices->base = device_base(spec->instance);
    devices->used_us = clock_mono_us();
    devices->fd = g_steal_fd(&fd);
    for (int i = 0; i < TRIMMERS_MAX; i++)
        devices->trimmers[i] = (Trimmer){.devices = devices, .pidfd = -1, .watch = WATCH_INIT};
    if (read_places(devices, error))
        return devices;
    close(devices->fd);
    g_free(devices);
    return NULL;
}

static int
find(const Devices *devices, PlaceState state)
{
    const uint8_t *at = memchr(devices->state, state, DEVICE_PLACES);

    return at != NULL ? (int)(at - devices->state) : -1;
}

/* One that is free, or was in use when we looked last. */
static int
find_free(const Devices *devices)
{
    int place = find(devices, PLACE_FREE);

    if (place >= 0)
        return place;
    for (place = find(devices, PLACE_BUSY); place >= 0 && place < DEVICE_PLACES; place++) {
        if (devices->state[place] == PLACE_BUSY && !device_is_attached(number_of(devices, place)))
            return place;
    }
    return -1;
}

DeviceLease
devices_take(Devices *devices)
{
    DeviceLease lease = {.place = find_free(devices)};

    devices->used_us = clock_mono_us();
    if (lease.place < 0) {
        lease.fresh = true;
        lease.place = find(devices, PLACE_NONE);
    }
    if (lease.place < 0 || (lease.fresh && !write_down(devices, lease.place, 1)))
        return (DeviceLease)DEVICE_LEASE_NONE;
    FAILPOINT("device-record");
    devices->state[lease.place] = PLACE_USED;
    lease.number = number_of(devices, lease.place);
    return lease;
}

void
devices_settle(Devices *devices, int place, DeviceOutcome outcome)
{
    if (place < 0)
        return;
    devices->used_us = clock_mono_us();
    if (outcome == DEVICE_STRANGE) {
        (void)strike_out(devices, place);
        devices->state[place] = PLACE_STRANGE;
    } else if (outcome == DEVICE_NOT_MADE) {
        devices->state[place] = strike_out(devices, place);
    } else {
        devices->state[place] = look(devices, place);
    }
}

static void
on_trimmed(void *ctx, uint32_t events)
{
    Trimmer *trimmer = ctx;
    Devices *devices = trimmer->devices;

    loop_remove(devices->spec.loop, &trimmer->watch);
    bool removed = fork_reap(trimmer->pidfd) == 0;

    close(trimmer->pidfd);
    trimmer->pidfd = -1;
    /* Whatever has the number of one that was removed is not ours. */
    PlaceState state = removed ? strike_out(devices, trimmer->place) : look(devices, trimmer->place);

    /* What could not be removed is not tried again before it was idle for as long again; at the end,
     * by the next keeper. */
    if (state != PLACE_NONE) {
        devices->used_us = clock_mono_us();
        state = devices->ending ? PLACE_LEFT : state;
    }
    devices->state[trimmer->place] = state;
}

_Noreturn static void
run_trimmer(uint32_t number)
{
    int keep = STDERR_FILENO;

    fork_detach(&keep, 1);
    int error = device_remove(number);

    /* Who looks at every device of the host holds each for a moment. */
    for (int i = 0; error == EBUSY && i < REMOVE_TRIES; i++) {
        (void)poll(NULL, 0, REMOVE_WAIT_MS);
        error = device_remove(number);
    }
    FAILPOINT("device-removed");
    _exit(error == 0 ? 0 : 1);
}

static bool
trimmer_start(Trimmer *trimmer, int place)
{
    Devices *devices = trimmer->devices;
    pid_t pid = fork_held(0, -1, &trimmer->pidfd);

    if (pid == 0)
        run_trimmer(number_of(devices, place));
    if (pid < 0)
        return false;
    trimmer->place = place;
    devices->state[place] = PLACE_REMOVING;
    trimmer->watch = (Watch){.fd = -1, .func = on_trimmed, .ctx = trimmer};
    g_assert(loop_add(devices->spec.loop, &trimmer->watch, trimmer->pidfd, EPOLLIN));
    FAILPOINT("device-trim");
    return true;
}

static Trimmer *
idle_trimmer(Devices *devices)
{
    for (int i = 0; i < TRIMMERS_MAX; i++) {
        if (devices->trimmers[i].pidfd < 0)
            return &devices->trimmers[i];
    }
    return NULL;
}

int64_t
devices_due_us(const Devices *devices)
{
    for (int i = 0; i < TRIMMERS_MAX; i++) {
        if (devices->trimmers[i].pidfd < 0)
            return find(devices, PLACE_FREE) >= 0 || find(devices, PLACE_BUSY) >= 0
                       ? devices->used_us + devices->spec.idle_us
                       : INT64_MAX;
    }
    return INT64_MAX;
}

static bool
start_trimmers(Devices *devices)
{
    Trimmer *trimmer;
    int place = -1;

    while ((trimmer = idle_trimmer(devices)) != NULL && (place = find_free(devices)) >= 0) {
        if (!trimmer_start(trimmer, place))
            return false;
    }
    return true;
}

void
devices_trim(Devices *devices)
{
    /* Nothing to be had, or no process: after a while again. */
    if (!start_trimmers(devices) || (find(devices, PLACE_FREE) < 0 && find(devices, PLACE_BUSY) >= 0))
        devices->used_us = clock_mono_us();
}

/* Without the loop, which may hold what is freed already. */
static void
await_trimmers(Devices *devices, int timeout_ms)
{
    struct pollfd fds[TRIMMERS_MAX];

    for (int i = 0; i < TRIMMERS_MAX; i++)
        fds[i] = (struct pollfd){.fd = devices->trimmers[i].pidfd, .events = POLLIN};
    if (poll(fds, TRIMMERS_MAX, timeout_ms) <= 0)
        return;
    for (int i = 0; i < TRIMMERS_MAX; i++) {
        if (fds[i].revents != 0)
            on_trimmed(&devices->trimmers[i], EPOLLIN);
    }
}

void
devices_free(Devices *devices)
{
    int64_t end_us = clock_mono_us() + STOP_US;

    devices->ending = true;
    for (int place = 0; place < DEVICE_PLACES; place++) {
        if (devices->state[place] == PLACE_USED)
            devices->state[place] = look(devices, place);
    }
    while (clock_mono_us() < end_us && start_trimmers(devices) && find(devices, PLACE_REMOVING) >= 0)
        await_trimmers(devices, (int)((end_us - clock_mono_us()) / US_PER_MS) + 1);
    for (int i = 0; i < TRIMMERS_MAX; i++) {
        loop_remove(devices->spec.loop, &devices->trimmers[i].watch);
        if (devices->trimmers[i].pidfd >= 0)
            close(devices->trimmers[i].pidfd);
    }
    close(devices->fd);
    g_free(devices);
}
