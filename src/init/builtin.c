/* SPDX-License-Identifier: Apache-2.0 */
#include "init/builtin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "wire/builtin.h"

enum { TRIES_MAX = 64, LINK_MAX_BYTES = 4096 };

static const struct {
    const char *name;
    int n_args;
    int (*run)(const char *const *args);
} operations[] = {
    {"stat", 1, builtin_stat},       {"list", 3, builtin_list},     {"read", 3, builtin_read},
    {"write", 3, builtin_write},     {"mkdir", 2, builtin_mkdir},   {"move", 3, builtin_move},
    {"remove", 2, builtin_remove},   {"chmod", 2, builtin_chmod},   {"watch", 2, builtin_watch},
    {"tar-out", 1, builtin_tar_out}, {"tar-in", 3, builtin_tar_in},
};

int
builtin_run(int argc, const char *const *argv)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(argv[0], operations[i].name) == 0)
            return argc == operations[i].n_args + 1 ? operations[i].run(argv + 1) : EINVAL;
    }
    return ENOSYS;
}

bool
number_parse(const char *text, unsigned base, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        unsigned digit = (unsigned)(unsigned char)*text - '0';

        if (digit >= base || digit > max || number > (max - digit) / base)
            return false;
        number = number * base + digit;
    }
    *ret_number = number;
    return true;
}

/* The kernel may ask to try again while somebody renames what lies on the way. */
static int
open_how(int dir_fd, const char *path, struct open_how *how)
{
    long fd = -1;

    for (int i = 0; i < TRIES_MAX; i++) {
        fd = syscall(SYS_openat2, dir_fd, path, how, sizeof *how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    return (int)fd;
}

int
file_open(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .mode = mode,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    struct statfs fs;

    /* The kernel takes no other flag beside it. */
    if ((flags & O_PATH) != 0)
        how.flags = (unsigned)flags | O_CLOEXEC;
    int fd = open_how(dir_fd, path, &how);
    if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC) {
        close(fd);
        errno = EACCES;
        return -1;
    }
    return fd;
}

int
folder_open_below(int dir_fd, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
                                      RESOLVE_NO_XDEV};

    return open_how(dir_fd, path, &how);
}

bool
name_is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int
file_open_regular(const char *path, struct stat *ret_stat)
{
    int fd = file_open(AT_FDCWD, path, O_RDONLY, 0);

    if (fd < 0)
        return -1;
    if (fstat(fd, ret_stat) == 0 && S_ISREG(ret_stat->st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(ret_stat->st_mode) ? EISDIR : EINVAL;
    return -1;
}

int
file_write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n > 0) {
        ssize_t put = write(fd, at, n);

        if (put < 0 && errno != EINTR)
            return errno;
        if (put > 0) {
            at += put;
            n -= (size_t)put;
        }
    }
    return 0;
}

int
entry_write(int dir_fd, const char *name, const struct stat *st)
{
    char text[sizeof(BuiltinEntry) + 256 + LINK_MAX_BYTES];
    BuiltinEntry entry = {.size = (uint64_t)st->st_size,
                          .mtime_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
                          .mode = st->st_mode,
                          .uid = st->st_uid,
                          .gid = st->st_gid};
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL && slash[1] != '\0' ? slash + 1 : name;
    size_t n = strlen(last) < 256 ? strlen(last) : 255;

    entry.name_bytes = (uint16_t)n;
    memcpy(text + sizeof entry, last, n);
    if (S_ISLNK(st->st_mode)) {
        ssize_t got = readlinkat(dir_fd, name, text + sizeof entry + n, LINK_MAX_BYTES);

        entry.target_bytes = got > 0 ? (uint16_t)got : 0;
    }
    memcpy(text, &entry, sizeof entry);
    return file_write_all(STDOUT_FILENO, text, sizeof entry + n + entry.target_bytes);
}
