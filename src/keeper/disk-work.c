/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk-work.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum {
    LOOP_TRIES = 64, /* another process may take the free device first */
    LOOP_BLOCK = 4096,
    COPY_CHUNK = 1 << 20,
    MKFS_BLOCK = 4096,
    MKFS_INODE = 256,
    /* mkfs counts the inodes it reserves. */
    MKFS_RESERVED_INODES = 11,
    FSCK_FIXED = 1,
};

/* ext4: stop at once, write nothing more; the value: without flushing the log. */
#define EXT4_SHUTDOWN _IOR('X', 125, uint32_t)
static const uint32_t shutdown_no_flush = 2;

/* The program's exit status; -1: it did not run. */
static int
run_program(const char *const *argv)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
            _exit(127);
        static char *const env[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                    (char *)(uintptr_t) "MKE2FS_CONFIG=/dev/null", NULL};
        (void)execvpe(argv[0], (char *const *)(uintptr_t)argv, env);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* No journal: a box's disk is never mounted after a crash of the host. */
static int
format(const char *path, const DiskShape *shape, uint32_t owner)
{
    char options[64];
    char inodes[16];
    char blocks[24];
    char block_size[8];
    char inode_size[8];

    snprintf(inodes, sizeof inodes, "%u", shape->inodes + MKFS_RESERVED_INODES);
    snprintf(blocks, sizeof blocks, "%llu", (unsigned long long)(shape->bytes / MKFS_BLOCK));
    snprintf(block_size, sizeof block_size, "%d", MKFS_BLOCK);
    snprintf(inode_size, sizeof inode_size, "%d", MKFS_INODE);
    snprintf(options, sizeof options, "nodiscard,lazy_itable_init=1,root_owner=%u:%u", owner, owner);
    const char *const argv[] = {"mkfs.ext4",
                                "-q",
                                "-F",
                                "-b",
                                block_size,
                                "-I",
                                inode_size,
                                "-N",
                                inodes,
                                "-m",
                                "0",
                                "-O",
                                "none,extent,filetype,flex_bg,sparse_super,large_file,huge_file,dir_nlink,"
                                "dir_index,extra_isize,ext_attr,uninit_bg,64bit",
                                "-E",
                                options,
                                path,
                                blocks,
                                NULL};

    return run_program(argv) == 0 ? 0 : EIO;
}

static int
copy_range(int from, int to, off_t at, off_t end)
{
    while (at < end) {
        off_t out = at;
        size_t want = (size_t)(end - at < COPY_CHUNK ? end - at : COPY_CHUNK);
        ssize_t n = copy_file_range(from, &at, to, &out, want, 0);

        if (n <= 0)
            return n < 0 ? errno : EIO;
    }
    return 0;
}

/* Only what is not a hole. */
static int
copy_sparse(int from, int to, off_t size)
{
    off_t at = 0;
    int error = 0;

    if (ftruncate(to, size) < 0)
        return errno;
    while (error == 0) {
        off_t data = lseek(from, at, SEEK_DATA);
        off_t hole = data >= 0 ? lseek(from, data, SEEK_HOLE) : -1;

        if (data < 0)
            return errno == ENXIO ? 0 : errno;
        if (hole < 0)
            return errno;
        error = copy_range(from, to, data, hole);
        at = hole;
    }
    return error;
}

static int
make_image(const DiskWork *work, const char *name)
{
    char path[PATH_MAX];
    autofd fd = openat(work->state_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)work->shape.bytes) < 0)
        return errno;
    if (snprintf(path, sizeof path, "%s/%s", work->state_dir, name) >= (int)sizeof path)
        return ENAMETOOLONG;
    return format(path, &work->shape, work->owner);
}

/* An fd of the golden image; renamed into place when it is whole. */
static int
open_golden(const DiskWork *work, int *ret_fd)
{
    char name[DISK_NAME_MAX + 1];
    char part[DISK_NAME_MAX + 1];

    snprintf(name, sizeof name, "images/%llu-%u-%u.img", (unsigned long long)work->shape.bytes,
             work->shape.inodes, work->owner);
    *ret_fd = openat(work->state_fd, name, O_RDONLY | O_CLOEXEC);
    if (*ret_fd >= 0 || errno != ENOENT)
        return *ret_fd >= 0 ? 0 : errno;
    snprintf(part, sizeof part, "images/%d.part", (int)getpid());
    (void)unlinkat(work->state_fd, part, 0);
    int error = make_image(work, part);

    if (error == 0 && renameat(work->state_fd, part, work->state_fd, name) < 0)
        error = errno;
    if (error != 0)
        return error;
    *ret_fd = openat(work->state_fd, name, O_RDONLY | O_CLOEXEC);
    return *ret_fd >= 0 ? 0 : errno;
}

static int
make_copy(const DiskWork *work)
{
    autofd golden = -1;
    int error = open_golden(work, &golden);

    if (error != 0)
        return error;
    autofd fd = openat(work->state_fd, work->image, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return fd < 0 ? errno : copy_sparse(golden, fd, (off_t)work->shape.bytes);
}

static int
take_kept(const DiskWork *work)
{
    char path[PATH_MAX];

    if (renameat(work->state_fd, work->kept, work->state_fd, work->image) < 0)
        return errno;
    if (snprintf(path, sizeof path, "%s/%s", work->state_dir, work->image) >= (int)sizeof path)
        return ENAMETOOLONG;
    int code = run_program((const char *const[]){"e2fsck", "-p", path, NULL});

    return code == 0 || code == FSCK_FIXED ? 0 : EUCLEAN;
}

/* Direct I/O, so that pages of the image are not cached twice; the device frees itself with
 * its last user. */
static int
attach_loop(int image_fd, char ret_path[static 32], int *ret_fd)
{
    struct loop_config config = {.fd = (uint32_t)image_fd,
                                 .block_size = LOOP_BLOCK,
                                 .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO};
    autofd control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    if (control < 0)
        return errno;
    for (int i = 0; i < LOOP_TRIES; i++) {
        int number = ioctl(control, LOOP_CTL_GET_FREE);

        if (number < 0)
            return errno;
        snprintf(ret_path, 32, "/dev/loop%d", number);
        autofd fd = open(ret_path, O_RDWR | O_CLOEXEC);

        if (fd < 0 && errno != ENXIO && errno != EBUSY)
            return errno;
        if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &config) == 0) {
            *ret_fd = fd;
            fd = -1;
            return 0;
        }
        if (fd >= 0 && errno != EBUSY)
            return errno;
    }
    return EBUSY;
}

static int
make_dirs(int mount_fd, uint32_t owner)
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
    int error = make_dirs(mount_fd, owner);

    if (error != 0)
        return error;
    *ret_mount_fd = mount_fd;
    mount_fd = -1;
    return 0;
}

static int
mount_image(const DiskWork *work, int *ret_mount_fd)
{
    char device[32];
    autofd loop = -1;
    autofd image = openat(work->state_fd, work->image, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    int error = image < 0 ? errno : attach_loop(image, device, &loop);

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
disk_work_make(const DiskWork *work, int *ret_mount_fd)
{
    int error = work->kept[0] != '\0' ? take_kept(work) : ENOENT;

    if (error == ENOENT)
        error = work->golden ? make_copy(work) : make_image(work, work->image);
    return error != 0 ? error : mount_image(work, ret_mount_fd);
}

int
disk_work_end(const DiskWork *work)
{
    if (work->kept[0] != '\0') {
        if (syncfs(work->dir_fd) < 0)
            return errno;
    } else {
        /* Without it the last close would first write a gigabyte that nobody will read. */
        (void)ioctl(work->dir_fd, EXT4_SHUTDOWN, &shutdown_no_flush);
    }
    close(work->dir_fd);
    if (work->kept[0] != '\0')
        return renameat(work->state_fd, work->image, work->state_fd, work->kept) < 0 ? errno : 0;
    return unlinkat(work->state_fd, work->image, 0) < 0 && errno != ENOENT ? errno : 0;
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
