/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/disk-image.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"

enum {
    COPY_CHUNK = 1 << 20,
    MKFS_BLOCK = 4096,
    MKFS_INODE = 256,
    /* mkfs counts the inodes it reserves; and what disk-work.c makes is not the box's. */
    MKFS_RESERVED_INODES = 11 + 20,
    FSCK_FIXED = 1,
    NAME_BYTES = 8,
    NUMBER_MAX = 24,
    OPTIONS_MAX = 96,
    PROGRAM_MAX = 64,
};

/* Found where systems have it, whatever path we were started with. */
_Noreturn static void
exec_program(const char *const *argv)
{
    static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin"};
    static char *const env[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                                (char *)(uintptr_t) "MKE2FS_CONFIG=/dev/null", NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0) {
        for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
            char path[PROGRAM_MAX];

            snprintf(path, sizeof path, "%s/%s", folders[i], argv[0]);
            (void)execve(path, (char *const *)(uintptr_t)argv, env);
        }
    }
    _exit(127);
}

/* The program's exit status; -1: it did not run. */
static int
run_program(const char *const *argv)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        exec_program(argv);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* The program opens the file by the number it has with us. */
static void
fd_path(int fd, char ret_path[static NUMBER_MAX + 16])
{
    snprintf(ret_path, NUMBER_MAX + 16, "/proc/%d/fd/%d", (int)getpid(), fd);
}

/* No journal: a throw-away disk is never mounted again, a kept one is looked at first.  All
 * groups are one flexible group and there is one super block, so that an empty image is a handful
 * of extents: each costs a discard on hosts that discard. */
static int
format(int fd, const DiskShape *shape, uint32_t owner)
{
    static const char features[] = "none,extent,filetype,flex_bg,sparse_super2,large_file,huge_file,"
                                   "dir_nlink,dir_index,extra_isize,ext_attr,uninit_bg,64bit";
    char path[NUMBER_MAX + 16];
    char inodes[NUMBER_MAX];
    char blocks[NUMBER_MAX];
    char block_size[NUMBER_MAX];
    char inode_size[NUMBER_MAX];
    char options[OPTIONS_MAX];
    const char *const argv[] = {"mkfs.ext4", "-q",   "-F",    "-b", block_size, "-I",   inode_size,
                                "-N",        inodes, "-m",    "0",  "-G",       "4096", "-O",
                                features,    "-E",   options, path, blocks,     NULL};

    fd_path(fd, path);
    snprintf(inodes, sizeof inodes, "%u", shape->inodes + MKFS_RESERVED_INODES);
    snprintf(blocks, sizeof blocks, "%llu", (unsigned long long)(shape->bytes / MKFS_BLOCK));
    snprintf(block_size, sizeof block_size, "%d", MKFS_BLOCK);
    snprintf(inode_size, sizeof inode_size, "%d", MKFS_INODE);
    snprintf(options, sizeof options, "nodiscard,lazy_itable_init=1,num_backup_sb=0,root_owner=%u:%u", owner,
             owner);
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

/* A file that is there by a name until it is whole; what a kill leaves is in the folder of such. */
static int
begin(int state_fd, char ret_name[DISK_NAME_MAX + 1], int *ret_fd)
{
    char random[2 * NAME_BYTES + 1];

    id_random_hex(random, NAME_BYTES);
    snprintf(ret_name, DISK_NAME_MAX + 1, "pool/%s.img", random);
    *ret_fd = openat(state_fd, ret_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return *ret_fd >= 0 ? 0 : errno;
}

static int
finish(int state_fd, const char *name, const char *to)
{
    if (to == NULL)
        return unlinkat(state_fd, name, 0) < 0 ? errno : 0;
    return renameat(state_fd, name, state_fd, to) < 0 ? errno : 0;
}

/* A golden image has the same shape, so one step makes it and the next copies it. */
static int
open_golden(int state_fd, const DiskShape *shape, uint32_t owner, int *ret_fd)
{
    char name[DISK_NAME_MAX + 1];

    snprintf(name, sizeof name, "images/%llu-%u-%u.img", (unsigned long long)shape->bytes, shape->inodes,
             owner);
    *ret_fd = openat(state_fd, name, O_RDONLY | O_CLOEXEC);
    if (*ret_fd >= 0 || errno != ENOENT)
        return *ret_fd >= 0 ? 0 : errno;
    return image_make(state_fd, shape, owner, false, name, ret_fd);
}

static int
fill(int state_fd, const DiskShape *shape, uint32_t owner, bool golden, int fd)
{
    autofd from = -1;
    int error;

    if (!golden)
        return ftruncate(fd, (off_t)shape->bytes) < 0 ? errno : format(fd, shape, owner);
    error = open_golden(state_fd, shape, owner, &from);
    return error != 0 ? error : copy_sparse(from, fd, (off_t)shape->bytes);
}

int
image_make(int state_fd, const DiskShape *shape, uint32_t owner, bool golden, const char *name, int *ret_fd)
{
    char part[DISK_NAME_MAX + 1];
    autofd fd = -1;
    int error = begin(state_fd, part, &fd);

    if (error != 0)
        return error;
    error = fill(state_fd, shape, owner, golden, fd);
    if (error == 0)
        error = finish(state_fd, part, name);
    else
        (void)unlinkat(state_fd, part, 0);
    if (error == 0)
        *ret_fd = g_steal_fd(&fd);
    return error;
}

int
image_open(int state_fd, const char *name, int *ret_fd)
{
    char path[NUMBER_MAX + 16];
    autofd fd = openat(state_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return errno;
    fd_path(fd, path);
    int code = run_program((const char *const[]){"e2fsck", "-p", path, NULL});

    if (code != 0 && code != FSCK_FIXED)
        return EUCLEAN;
    *ret_fd = g_steal_fd(&fd);
    return 0;
}
