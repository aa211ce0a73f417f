/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "wire/record.h"

enum { MEMORY_DEVICES = 1, TTY_DEVICES = 5, NAME_MAX_HERE = 8 };

static const struct {
    const char *name;
    unsigned major, minor;
} devices[] = {
    {"null", MEMORY_DEVICES, 3},   {"zero", MEMORY_DEVICES, 5},    {"full", MEMORY_DEVICES, 7},
    {"random", MEMORY_DEVICES, 8}, {"urandom", MEMORY_DEVICES, 9}, {"tty", TTY_DEVICES, 0},
};

static const char *const links[][2] = {
    {"ptmx", "pts/ptmx"},          {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"},
    {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
};

/* Who may not make device nodes borrows the host's, each looked at first. */
static bool
bind_device(int dev_fd, size_t i)
{
    g_autofree char *path = g_strconcat("/dev/", devices[i].name, NULL);
    autofd source = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (source < 0 || fstat(source, &st) < 0)
        return false;
    if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(devices[i].major, devices[i].minor)) {
        errno = ENODEV;
        return false;
    }
    autofd tree = open_tree(source, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    autofd target = openat(dev_fd, devices[i].name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

    return tree >= 0 && target >= 0 &&
           move_mount(tree, "", dev_fd, devices[i].name, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

static bool
fill_dev(int dev_fd, GError **error)
{
    for (size_t i = 0; i < G_N_ELEMENTS(devices); i++) {
        dev_t number = makedev(devices[i].major, devices[i].minor);

        if (mknodat(dev_fd, devices[i].name, S_IFCHR | 0666, number) < 0 && !bind_device(dev_fd, i))
            return err_errno(error, "make device '%s' for boxes", devices[i].name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        if (symlinkat(links[i][1], dev_fd, links[i][0]) < 0)
            return err_errno(error, "make link '%s' for boxes", links[i][0]);
    }
    if (mkdirat(dev_fd, "pts", 0755) < 0 || mkdirat(dev_fd, "shm", 0755) < 0)
        return err_errno(error, "make the device folders for boxes");
    return true;
}

static bool
fill_stage(int stage_fd, GError **error)
{
    static const char *const dirs[] = {"disk", "root", "dev", "none"};

    for (int i = 0; i < KEEPER_LAYERS_MAX; i++) {
        char name[NAME_MAX_HERE];

        snprintf(name, sizeof name, "l%02d", i);
        if (mkdirat(stage_fd, name, 0755) < 0)
            return err_errno(error, "make folder '%s' of the stage", name);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(dirs); i++) {
        if (mkdirat(stage_fd, dirs[i], 0755) < 0)
            return err_errno(error, "make folder '%s' of the stage", dirs[i]);
    }
    autofd empty = openat(stage_fd, "empty", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

    return empty >= 0 || err_errno(error, "make the empty file of the stage");
}

static bool
mount_tmpfs(const char *path, unsigned long flags, int *ret_fd, GError **error)
{
    if (mount("tmpfs", path, "tmpfs", flags, "size=256k,nr_inodes=128,mode=0755") < 0)
        return err_errno(error, "mount a tmpfs at '%s'", path);
    *ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_fd >= 0 || err_errno(error, "open '%s'", path);
}

/* Boxes get copies of these mounts, and copies are as read-only as they are. */
static bool
close_mount(int fd, const char *path, GError **error)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

    return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0 ||
           err_errno(error, "make '%s' read-only", path);
}

bool
stage_make(const char *dir, GError **error)
{
    g_autofree char *dev = g_strconcat(dir, "/dev", NULL);
    autofd stage_fd = -1;
    autofd dev_fd = -1;

    mode_t mask = umask(0);
    bool ok = mount_tmpfs(dir, MS_NOSUID | MS_NODEV | MS_NOEXEC, &stage_fd, error) &&
              fill_stage(stage_fd, error) && mount_tmpfs(dev, MS_NOSUID | MS_NOEXEC, &dev_fd, error) &&
              fill_dev(dev_fd, error) && close_mount(dev_fd, dev, error) && close_mount(stage_fd, dir, error);

    umask(mask);
    return ok;
}
