/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "keeper/keeper.h"

enum {
    LOOK_US = G_USEC_PER_SEC,
    LOOK_SOON_US = 100 * 1000, /* where the floor is near */
    NEAR = 4,                  /* times the floor */
    FLOOR_PART = 20,           /* of the file system, and at most: */
    FLOOR_MIB = 2048,
    INODES_PART = 100,
    EVENTS_BYTES = 4096,
    PATH_TEXT_MAX = 256,
    BLOCK = 512, /* the unit of st_blocks */
};

struct Storage {
    Keeper *keeper;
    int64_t due_us;
    Watch errors; /* of file systems, where the kernel tells them */
};

typedef struct Room {
    uint64_t free, floor, inodes, inodes_floor;
} Room;

static bool
read_room(const Keeper *keeper, Room *ret_room)
{
    struct statfs fs;

    if (fstatfs(keeper->state_fd, &fs) < 0)
        return false;
    uint64_t all = (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
    uint64_t floor = MIN(all / FLOOR_PART, (uint64_t)FLOOR_MIB << 20);

    /* File systems that make inodes as they need them say that they have none. */
    *ret_room = (Room){.free = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize,
                       .floor = keeper->config.disk_floor != UINT64_MAX ? keeper->config.disk_floor : floor,
                       .inodes = fs.f_files > 0 ? (uint64_t)fs.f_ffree : UINT64_MAX,
                       .inodes_floor = (uint64_t)fs.f_files / INODES_PART};
    return true;
}

static bool
is_low(const Room *room)
{
    return room->free < room->floor || (room->floor > 0 && room->inodes < room->inodes_floor);
}

bool
storage_has_room(Storage *storage)
{
    Room room;

    return !read_room(storage->keeper, &room) || !is_low(&room);
}

/* One that cannot be frozen is told about all the same. */
void
storage_stop_box(Box *box, int error)
{
    Keeper *keeper = box->keeper;

    if (box->trouble != 0)
        return;
    log_warn("keeper", "froze a box: storage", log_str("box", box->id), log_str("error", g_strerror(error)));
    box->frozen = cgroup_freeze(&keeper->groups, box->group, true) || box->frozen;
    box->trouble = error;
    server_tell_trouble(keeper->server, box);
}

static uint64_t
used_by(const Box *box)
{
    struct stat st;

    if (box->in_folder)
        return box->disk_used.bytes;
    return box->disk_image_fd >= 0 && fstat(box->disk_image_fd, &st) == 0 ? (uint64_t)st.st_blocks * BLOCK
                                                                          : 0;
}

/* NULL: nobody wrote. */
static Box *
find_top_writer(Keeper *keeper)
{
    uint64_t most = 0;
    Box *top = NULL;

    for (Box *box = keeper->boxes; box != NULL; box = box->next) {
        if (box->state != BOX_RUNNING)
            continue;
        uint64_t used = used_by(box);
        uint64_t wrote = used > box->disk_seen ? used - box->disk_seen : 0;

        box->disk_seen = used;
        if (wrote > most && box->trouble == 0) {
            most = wrote;
            top = box;
        }
    }
    return top;
}

int64_t
storage_due_us(const Storage *storage)
{
    const Keeper *keeper = storage->keeper;
    bool on_disk = keeper->privileged;

    for (const Box *box = keeper->boxes; box != NULL && !on_disk; box = box->next)
        on_disk = box->in_folder;
    return on_disk && keeper->boxes != NULL ? storage->due_us : INT64_MAX;
}

void
storage_look(Storage *storage)
{
    Box *top = find_top_writer(storage->keeper);
    Room room;

    storage->due_us = keeper_mono_us() + LOOK_US;
    if (!read_room(storage->keeper, &room))
        return;
    if (room.free < NEAR * room.floor)
        storage->due_us = keeper_mono_us() + LOOK_SOON_US;
    if (is_low(&room) && top != NULL)
        storage_stop_box(top, ENOSPC);
}

/* What the kernel has counted for the device of its disk. */
static bool
has_failed(const Box *box)
{
    char path[2 * PATH_TEXT_MAX];
    char target[PATH_TEXT_MAX];
    struct stat st;

    if (fstat(box->disk_dir_fd, &st) < 0)
        return false;
    snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
    ssize_t n = readlink(path, target, sizeof target - 1);

    if (n <= 0)
        return false;
    target[n] = '\0';
    const char *name = strrchr(target, '/');

    snprintf(path, sizeof path, "/sys/fs/ext4/%s/errors_count", name != NULL ? name + 1 : target);
    autofd fd = open(path, O_RDONLY | O_CLOEXEC);

    n = fd >= 0 ? read(fd, target, sizeof target - 1) : -1;
    return n > 0 && target[0] != '0';
}

/* Copies of one image have one id: which of the disks it is has to be asked. */
static void
on_failed(Storage *storage, const void *fsid)
{
    for (Box *box = storage->keeper->boxes; box != NULL; box = box->next) {
        if (box->state == BOX_RUNNING && memcmp(&box->fsid, fsid, sizeof box->fsid) == 0 && has_failed(box))
            storage_stop_box(box, EIO);
    }
}

static void
on_errors(void *ctx, uint32_t events)
{
    Storage *storage = ctx;
    _Alignas(struct fanotify_event_metadata) char bytes[EVENTS_BYTES];
    ssize_t n = read(storage->errors.fd, bytes, sizeof bytes);
    struct fanotify_event_metadata *event = (void *)bytes;

    for (; n > 0 && FAN_EVENT_OK(event, n); event = FAN_EVENT_NEXT(event, n)) {
        const char *at = (const char *)event + event->metadata_len;
        const char *end = (const char *)event + event->event_len;

        while (at + sizeof(struct fanotify_event_info_fid) <= end) {
            const struct fanotify_event_info_fid *info = (const void *)at;

            if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_FID)
                on_failed(storage, &info->fsid);
            if (info->hdr.len == 0)
                break;
            at += info->hdr.len;
        }
    }
}

Storage *
storage_new(Keeper *keeper)
{
    Storage *storage = g_new0(Storage, 1);
    int fd = -1;

    storage->keeper = keeper;
    storage->errors = (Watch){.fd = -1, .func = on_errors, .ctx = storage};
    /* Kernels that do not tell lack a warning, not a wall. */
    if (keeper->privileged)
        fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK | FAN_CLOEXEC,
                           O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !loop_add(&keeper->loop, &storage->errors, fd, EPOLLIN))
        close(fd);
    return storage;
}

void
storage_free(Storage *storage)
{
    int fd = storage->errors.fd;

    loop_remove(&storage->keeper->loop, &storage->errors);
    if (fd >= 0)
        close(fd);
    g_free(storage);
}

void
storage_add(Storage *storage, Box *box)
{
    struct statfs fs;

    if (box->disk_image_fd < 0)
        return;
    box->disk_seen = used_by(box);
    if (storage->errors.fd < 0 || fstatfs(box->disk_dir_fd, &fs) < 0)
        return;
    _Static_assert(sizeof fs.f_fsid == sizeof box->fsid, "an id of a file system is a number");
    memcpy(&box->fsid, &fs.f_fsid, sizeof box->fsid);
    (void)fanotify_mark(storage->errors.fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_FS_ERROR,
                        box->disk_dir_fd, NULL);
}
