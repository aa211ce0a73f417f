/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk-work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/folder.h"

enum { SPARES = 16, SPARE_BYTES = 4096, SPARE_NAME_MAX = 16 };

/* ext4: stop at once, write nothing more; the value: without flushing the log. */
#define EXT4_SHUTDOWN _IOR('X', 125, uint32_t)
static const uint32_t shutdown_no_flush = 2;

int
disk_make_dirs(int mount_fd, uint32_t owner)
{
    static const struct {
        const char *name;
        mode_t mode;
    } dirs[] = {{"upper", 0755}, {"work", 0700}};

    for (size_t i = 0; i < sizeof dirs / sizeof dirs[0]; i++) {
        if (mkdirat(mount_fd, dirs[i].name, dirs[i].mode) < 0)
            return errno == EEXIST ? 0 : errno;
        /* The upper folder's mode is that of the box's root; the umask has no say in it. */
        if (fchmodat(mount_fd, dirs[i].name, dirs[i].mode, 0) < 0)
            return errno;
        if (owner != 0 && fchownat(mount_fd, dirs[i].name, owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
            return errno;
    }
    return 0;
}

static int
mount_new(int context, uint32_t owner, int *ret_mount_fd)
{
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return errno;
    autofd mount_fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

    if (mount_fd < 0)
        return errno;
    int error = disk_make_dirs(mount_fd, owner);

    if (error != 0)
        return error;
    *ret_mount_fd = mount_fd;
    mount_fd = -1;
    return 0;
}

static void
spare_name(int i, char ret_name[static SPARE_NAME_MAX])
{
    snprintf(ret_name, SPARE_NAME_MAX, "spare/%d", i);
}

static void
make_spares(int dir_fd)
{
    char name[SPARE_NAME_MAX];

    (void)mkdirat(dir_fd, "spare", 0700);
    for (int i = 0; i < SPARES; i++) {
        spare_name(i, name);
        autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0 || fallocate(fd, 0, 0, SPARE_BYTES) < 0)
            return;
    }
}

void
disk_set_aside(int dir_fd, uint32_t owner)
{
    (void)setfsgid(owner);
    (void)setfsuid(owner);
    make_spares(dir_fd);
    (void)setfsuid(0);
    (void)setfsgid(0);
}

static void
use_spares(int dir_fd)
{
    char name[SPARE_NAME_MAX];

    for (int i = 0; i < SPARES; i++) {
        spare_name(i, name);
        (void)unlinkat(dir_fd, name, 0);
    }
}

static int
mount_image(const DiskWork *work, int image_fd, int *ret_mount_fd, DeviceOutcome *ret_outcome)
{
    char device[DEVICE_PATH_MAX + 1];
    autofd loop = -1;
    int error = device_attach(&work->device, image_fd, device, &loop, ret_outcome);

    if (error != 0)
        return error;
    autofd context = fsopen("ext4", FSOPEN_CLOEXEC);

    if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_FLAG, "noinit_itable", NULL, 0) < 0)
        return errno;
    /* What is thrown away needs no order on the host's disk. */
    if (work->kept[0] == '\0' && fsconfig(context, FSCONFIG_SET_FLAG, "nobarrier", NULL, 0) < 0)
        return errno;
    return mount_new(context, work->owner, ret_mount_fd);
}

int
disk_work_make(const DiskWork *work, DiskFds *ret_fds, DeviceOutcome *ret_outcome)
{
    const char *name = work->kept[0] != '\0' ? work->kept : NULL;
    autofd image = -1;

    *ret_outcome = device_lease_unused(&work->device);
    int error = name != NULL ? image_open(work->state_fd, name, &image) : ENOENT;

    if (error == ENOENT)
        error = image_make(work->state_fd, &work->shape, work->owner, work->golden, name, &image);
    if (error == 0)
        error = mount_image(work, image, &ret_fds->mount, ret_outcome);
    if (error == 0 && name != NULL)
        use_spares(ret_fds->mount);
    if (error == 0)
        ret_fds->image = g_steal_fd(&image);
    return error;
}

void
disk_stop(int dir_fd)
{
    (void)ioctl(dir_fd, EXT4_SHUTDOWN, &shutdown_no_flush);
}

int
disk_work_end(const DiskWork *work)
{
    int error = 0;

    if (work->dir_fd < 0)
        return folder_remove(work->state_fd, work->folder);
    if (work->kept[0] != '\0')
        error = syncfs(work->dir_fd) < 0 ? errno : 0;
    else if (work->folder[0] == '\0')
        disk_stop(work->dir_fd);
    close(work->dir_fd);
    if (work->folder[0] != '\0')
        error = folder_remove(work->state_fd, work->folder);
    return error;
}

int
disk_make_memory(const DiskShape *shape, uint32_t owner, int *ret_mount_fd)
{
    char size[24];
    char inodes[16];
    autofd context = fsopen("tmpfs", FSOPEN_CLOEXEC);

    snprintf(size, sizeof size, "%llu", (unsigned long long)shape->bytes);
    snprintf(inodes, sizeof inodes, "%u", shape->inodes);
    if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
        fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0)
        return errno;
    return mount_new(context, owner, ret_mount_fd);
}
