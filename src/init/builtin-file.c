/* SPDX-License-Identifier: Apache-2.0 */
/* One file: what it is, its bytes, its name. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/builtin.h"
#include "wire/decimal.h"

enum {
    COPY_BYTES = 128 * 1024,
    SPLICE_BYTES = 1 << 20,
    MODE_MAX = 07777,
    MODE_DEFAULT = 0644,
    TEMP_NAME = 32
};

int
builtin_stat(const char *const *args)
{
    struct stat st;
    int fd = file_open(AT_FDCWD, args[0], O_PATH | O_NOFOLLOW, 0);

    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    return entry_write(AT_FDCWD, args[0], &st);
}

static size_t
at_most(uint64_t left, size_t max)
{
    return left < max ? (size_t)left : max;
}

/* Both ends of a transfer are pipes, so bytes are moved without a look at them.  *left is what is
 * still to come; where a file system cannot do it that is all, and copying goes on from there. */
static int
splice_out(int fd, uint64_t *offset, uint64_t *left)
{
    while (*left > 0) {
        loff_t at = (loff_t)*offset;
        ssize_t n = splice(fd, &at, STDOUT_FILENO, NULL, at_most(*left, SPLICE_BYTES), SPLICE_F_MOVE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EINVAL ? 0 : errno;
        *offset += (uint64_t)n;
        *left = n > 0 ? *left - (uint64_t)n : 0;
    }
    return 0;
}

static int
copy_out(int fd, uint64_t offset, uint64_t length)
{
    char bytes[COPY_BYTES];

    while (length > 0) {
        ssize_t n = pread(fd, bytes, at_most(length, sizeof bytes), (off_t)offset);
        int e = n > 0 ? file_write_all(STDOUT_FILENO, bytes, (size_t)n) : 0;

        if (n < 0 || e != 0)
            return n < 0 ? errno : e;
        if (n == 0)
            break;
        offset += (uint64_t)n;
        length -= (uint64_t)n;
    }
    return 0;
}

int
builtin_read(const char *const *args)
{
    uint64_t offset, length = INT64_MAX;
    struct stat st;

    if (!number_parse(args[1], 10, INT64_MAX, &offset) ||
        (strcmp(args[2], "-") != 0 && !number_parse(args[2], 10, INT64_MAX, &length)))
        return EINVAL;
    int fd = file_open_regular(args[0], &st);
    if (fd < 0)
        return errno;
    int e = entry_write(AT_FDCWD, args[0], &st);
    if (e == 0)
        e = splice_out(fd, &offset, &length);
    return e != 0 ? e : copy_out(fd, offset, length);
}

/* As splice_out(); *ret_over: input has ended. */
static int
splice_in(int fd, uint64_t *left, bool *ret_over)
{
    *ret_over = false;
    while (*left > 0 && !*ret_over) {
        ssize_t n = splice(STDIN_FILENO, NULL, fd, NULL, at_most(*left, SPLICE_BYTES), SPLICE_F_MOVE);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EINVAL ? 0 : errno;
        *left -= (uint64_t)n;
        *ret_over = n == 0;
    }
    return 0;
}

/* Takes input until its end or `length`. */
static int
copy_in(int fd, uint64_t length, bool exact)
{
    char bytes[COPY_BYTES];
    uint64_t left = length;
    bool over;
    int failed = splice_in(fd, &left, &over);

    if (failed != 0 || over)
        return failed != 0 ? failed : exact ? EPIPE : 0;
    while (left > 0) {
        ssize_t n = read(STDIN_FILENO, bytes, at_most(left, sizeof bytes));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return exact ? EPIPE : 0;
        int e = file_write_all(fd, bytes, (size_t)n);
        if (e != 0)
            return e;
        left -= (uint64_t)n;
    }
    return 0;
}

/* A name nobody can have guessed, beside the file. */
static void
make_temp_name(char name[TEMP_NAME])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[8] = {0};
    char *at = stpcpy(name, ".coop-");

    (void)!getrandom(random, sizeof random, 0);
    for (size_t i = 0; i < sizeof random; i++) {
        *at++ = digits[random[i] >> 4];
        *at++ = digits[random[i] & 15];
    }
    *at = '\0';
}

/* A file without a name where the file system can, so that a kill leaves nothing behind. */
static int
open_temp(int dir_fd, char name[TEMP_NAME], bool *ret_named)
{
    int fd = openat(dir_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    make_temp_name(name);
    *ret_named = fd < 0;
    if (fd < 0)
        fd = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd;
}

static int
give_name(int fd, int dir_fd, const char *name)
{
    char path[sizeof "/proc/self/fd/" + DECIMAL_MAX];

    (void)decimal_put(stpcpy(path, "/proc/self/fd/"), (uint64_t)fd);
    return linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) < 0 ? errno : 0;
}

/* The folder of `path` and the last part of it.  A link at its end is followed, so that the file
 * it leads to is written, as an editor would. */
static int
open_parent(const char *path, char real[PATH_MAX], const char **ret_last)
{
    if (strlen(path) >= PATH_MAX || *path == '\0') {
        errno = *path == '\0' ? ENOENT : ENAMETOOLONG;
        return -1;
    }
    if (realpath(path, real) == NULL)
        (void)stpcpy(real, path);
    char *slash = strrchr(real, '/');
    *ret_last = slash != NULL ? slash + 1 : real;
    if (**ret_last == '\0') {
        errno = EISDIR;
        return -1;
    }
    if (slash == NULL)
        return file_open(AT_FDCWD, ".", O_RDONLY | O_DIRECTORY, 0);
    *slash = '\0';
    return file_open(AT_FDCWD, slash == real ? "/" : real, O_RDONLY | O_DIRECTORY, 0);
}

/* The mode the file gets; an errno when what is there is no file. */
static int
wanted_mode(int dir_fd, const char *last, const char *text, mode_t *ret_mode)
{
    uint64_t number = MODE_DEFAULT;
    struct stat st;

    if (fstatat(dir_fd, last, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(st.st_mode))
            return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        number = st.st_mode & MODE_MAX;
    } else if (errno != ENOENT) {
        return errno;
    }
    if (strcmp(text, "-") != 0 && !number_parse(text, 8, MODE_MAX, &number))
        return EINVAL;
    *ret_mode = (mode_t)number;
    return 0;
}

static int
fill_and_place(int dir_fd, const char *last, mode_t mode, uint64_t length, bool exact)
{
    char temp[TEMP_NAME];
    bool named;
    int fd = open_temp(dir_fd, temp, &named);

    if (fd < 0)
        return errno;
    int e = copy_in(fd, length, exact);
    if (e == 0 && fchmod(fd, mode) < 0)
        e = errno;
    if (e == 0 && !named) {
        e = give_name(fd, dir_fd, temp);
        named = e == 0;
    }
    if (e == 0 && renameat(dir_fd, temp, dir_fd, last) < 0)
        e = errno;
    if (e != 0 && named)
        (void)unlinkat(dir_fd, temp, 0);
    return e;
}

int
builtin_write(const char *const *args)
{
    char real[PATH_MAX];
    const char *last;
    uint64_t length = UINT64_MAX;
    bool exact = strcmp(args[2], "-") != 0;
    mode_t mode = 0;

    if (exact && !number_parse(args[2], 10, INT64_MAX, &length))
        return EINVAL;
    int dir_fd = open_parent(args[0], real, &last);
    if (dir_fd < 0)
        return errno;
    int e = wanted_mode(dir_fd, last, args[1], &mode);
    return e != 0 ? e : fill_and_place(dir_fd, last, mode, length, exact);
}

int
builtin_mkdir(const char *const *args)
{
    char path[PATH_MAX];
    uint64_t mode;
    struct stat st;

    if (!number_parse(args[1], 8, MODE_MAX, &mode) || args[0][0] == '\0')
        return EINVAL;
    if (strlen(args[0]) >= sizeof path)
        return ENAMETOOLONG;
    (void)stpcpy(path, args[0]);
    for (char *at = path + 1; *at != '\0'; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return errno;
        *at = '/';
    }
    if (mkdir(path, (mode_t)mode) == 0)
        return chmod(path, (mode_t)mode) < 0 ? errno : 0;
    if (errno != EEXIST)
        return errno;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : EEXIST;
}

int
builtin_move(const char *const *args)
{
    bool keep = strcmp(args[2], "keep") == 0;

    if (!keep && strcmp(args[2], "replace") != 0)
        return EINVAL;
    /* musl has no function for it. */
    long result = syscall(SYS_renameat2, AT_FDCWD, args[0], AT_FDCWD, args[1], keep ? RENAME_NOREPLACE : 0);

    return result < 0 ? errno : 0;
}

int
builtin_chmod(const char *const *args)
{
    uint64_t mode;

    if (!number_parse(args[1], 8, MODE_MAX, &mode))
        return EINVAL;
    return fchmodat(AT_FDCWD, args[0], (mode_t)mode, 0) < 0 ? errno : 0;
}
