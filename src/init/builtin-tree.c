/* SPDX-License-Identifier: Apache-2.0 */
/* Folders: their entries, and their removal.  A tree is walked by descriptors, one a level, and
 * no link is followed: whoever swaps a folder for a link while it is removed loses the link. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/builtin.h"
#include "wire/builtin.h"

enum { DENTS_BYTES = 32 * 1024 };

/* Entries of one buffer until `*left` is 0; the place after the last in `*cursor`. */
static int
list_some(int fd, const char *dents, size_t n, uint64_t *left, uint64_t *cursor)
{
    struct stat st;

    for (size_t at = 0; at<n && * left> 0;) {
        const Dirent *d = (const Dirent *)(const void *)(dents + at);

        at += d->bytes;
        *cursor = (uint64_t)d->next;
        /* What was removed since is not there. */
        if (name_is_dots(d->name) || fstatat(fd, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        int e = entry_write(fd, d->name, &st);
        if (e != 0)
            return e;
        (*left)--;
    }
    return 0;
}

int
builtin_list(const char *const *args)
{
    _Alignas(8) char dents[DENTS_BYTES];
    struct stat end = {0};
    uint64_t cursor, left;
    long n = 0;

    if (!number_parse(args[1], 10, INT64_MAX, &cursor) ||
        !number_parse(args[2], 10, BUILTIN_LIST_MAX, &left) || left == 0)
        return EINVAL;
    int fd = file_open(AT_FDCWD, args[0], O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || lseek(fd, (off_t)cursor, SEEK_SET) < 0)
        return errno;
    while (left > 0 && (n = syscall(SYS_getdents64, fd, dents, sizeof dents)) > 0) {
        int e = list_some(fd, dents, (size_t)n, &left, &cursor);

        if (e != 0)
            return e;
    }
    if (n < 0)
        return errno;
    end.st_size = n == 0 ? 0 : (off_t)cursor;
    return entry_write(-1, "", &end);
}

static int remove_below(int dir_fd, const char *name, unsigned depth);

static int
empty_folder(int fd, unsigned depth)
{
    _Alignas(8) char dents[DENTS_BYTES / 16];
    int first = 0;
    bool moved = true;
    long n;

    /* Removing while reading may skip entries, so it is read again until nothing goes. */
    while (moved && lseek(fd, 0, SEEK_SET) == 0) {
        moved = false;
        while ((n = syscall(SYS_getdents64, fd, dents, sizeof dents)) > 0) {
            for (long at = 0; at < n;) {
                const Dirent *d = (const Dirent *)(const void *)(dents + at);
                int e = name_is_dots(d->name) ? ENOENT : remove_below(fd, d->name, depth + 1);

                at += d->bytes;
                moved |= e == 0;
                if (e != 0 && e != ENOENT && first == 0)
                    first = e;
            }
        }
    }
    return first;
}

static int
remove_below(int dir_fd, const char *name, unsigned depth)
{
    if (unlinkat(dir_fd, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return errno;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return errno;
    if (depth >= BUILTIN_DEPTH_MAX)
        return ELOOP;
    int fd = folder_open_below(dir_fd, name);
    if (fd < 0)
        return errno;
    int e = empty_folder(fd, depth);
    close(fd);
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return e != 0 ? e : errno;
}

int
builtin_remove(const char *const *args)
{
    char path[PATH_MAX];
    size_t n = strlen(args[0]);
    bool tree = strcmp(args[1], "tree") == 0;

    if (!tree && strcmp(args[1], "one") != 0)
        return EINVAL;
    if (n >= sizeof path)
        return ENAMETOOLONG;
    (void)stpcpy(path, args[0]);
    while (n > 1 && path[n - 1] == '/')
        path[--n] = '\0';
    char *slash = strrchr(path, '/');
    const char *last = slash != NULL ? slash + 1 : path;
    if (*last == '\0' || name_is_dots(last))
        return EINVAL;
    if (!tree)
        return unlink(path) == 0 || (errno == EISDIR && rmdir(path) == 0) ? 0 : errno;
    if (slash != NULL)
        *slash = '\0';
    int dir_fd = file_open(AT_FDCWD,
                           slash == NULL   ? "."
                           : slash == path ? "/"
                                           : path,
                           O_RDONLY | O_DIRECTORY, 0);
    return dir_fd < 0 ? errno : remove_below(dir_fd, last, 0);
}
