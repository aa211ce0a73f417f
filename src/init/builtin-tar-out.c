/* SPDX-License-Identifier: Apache-2.0 */
/* A tree becomes an archive.  It is walked by descriptors and no link is followed.  What cannot
 * be read is left out and told; the archive is whole all the same. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/tar.h"
#include "wire/builtin.h"

enum { DENTS_BYTES = 2048 };

typedef struct TarOut {
    TarWriter writer;
    int first; /* errno of the first entry that was left out */
    size_t path_bytes;
    char path[TAR_PATH_MAX];
    char target[TAR_PATH_MAX];
} TarOut;

void
tar_complain(const char *operation, const char *name, const char *why)
{
    char line[TAR_PATH_MAX + 256];
    char *at = stpcpy(stpcpy(line, operation), ": ");

    for (size_t i = 0; name[i] != '\0' && i < TAR_PATH_MAX; i++)
        *at++ = (uint8_t)name[i] < ' ' || name[i] == 0x7f ? '?' : name[i];
    at = stpcpy(stpcpy(stpcpy(at, *name != '\0' ? ": " : ""), why), "\n");
    (void)file_write_all(STDERR_FILENO, line, (size_t)(at - line));
}

static void
leave_out(TarOut *out, int error, const char *why)
{
    if (out->first == 0)
        out->first = error;
    tar_complain("tar-out", out->path, why);
}

/* As many bytes as the header promised, whatever becomes of the file. */
static void
write_file(TarOut *out, int fd, const struct stat *st)
{
    static const uint8_t zeros[TAR_BLOCK];
    uint64_t left = (uint64_t)st->st_size;
    uint8_t bytes[TAR_BUFFER];
    ssize_t n = 1;

    while (left > 0 && n > 0 && out->writer.error == 0) {
        n = read(fd, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes);
        if (n > 0) {
            tar_write_data(&out->writer, bytes, (size_t)n);
            left -= (uint64_t)n;
        }
    }
    if (n <= 0)
        leave_out(out, n < 0 ? errno : ESTALE, n < 0 ? "cannot be read" : "shrank while it was read");
    for (; left > 0 && out->writer.error == 0; left -= left < TAR_BLOCK ? left : TAR_BLOCK)
        tar_write_data(&out->writer, zeros, left < TAR_BLOCK ? (size_t)left : TAR_BLOCK);
    tar_write_padding(&out->writer, (uint64_t)st->st_size);
}

static void
add_file(TarOut *out, int dir_fd, const char *name)
{
    struct stat st;
    int fd = file_open(dir_fd, name, O_RDONLY | O_NOFOLLOW, 0);

    if (fd < 0) {
        if (errno != ENOENT)
            leave_out(out, errno, "cannot be opened");
        return;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        tar_write_entry(&out->writer, out->path, "", &st);
        write_file(out, fd, &st);
    }
    close(fd);
}

static void
add_link(TarOut *out, int dir_fd, const char *name, const struct stat *st)
{
    ssize_t n = readlinkat(dir_fd, name, out->target, sizeof out->target - 1);

    if (n < 0)
        return;
    out->target[n] = '\0';
    tar_write_entry(&out->writer, out->path, out->target, st);
}

static void walk(TarOut *out, int fd, unsigned depth);

static void
add_folder(TarOut *out, int dir_fd, const char *name, unsigned depth)
{
    struct stat st;
    int fd = folder_open_below(dir_fd, name);

    if (fd < 0) {
        /* A mount is not the tree's. */
        if (errno != ENOENT && errno != EXDEV)
            leave_out(out, errno, "cannot be opened");
        return;
    }
    if (depth > BUILTIN_DEPTH_MAX) {
        leave_out(out, ELOOP, "lies too deep");
    } else if (fstat(fd, &st) == 0) {
        out->path[out->path_bytes++] = '/';
        out->path[out->path_bytes] = '\0';
        tar_write_entry(&out->writer, out->path, "", &st);
        walk(out, fd, depth);
    }
    close(fd);
}

static void
add(TarOut *out, int dir_fd, const char *name, unsigned depth)
{
    struct stat st;
    size_t before = out->path_bytes;
    size_t n = strlen(name);

    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    /* And the slash of a folder. */
    if (before + n + 2 > sizeof out->path) {
        leave_out(out, ENAMETOOLONG, "the names below it are too long");
        return;
    }
    memcpy(out->path + before, name, n + 1);
    out->path_bytes += n;
    if (S_ISDIR(st.st_mode))
        add_folder(out, dir_fd, name, depth);
    else if (S_ISREG(st.st_mode))
        add_file(out, dir_fd, name);
    else if (S_ISLNK(st.st_mode))
        add_link(out, dir_fd, name, &st);
    out->path_bytes = before;
    out->path[before] = '\0';
}

static void
walk(TarOut *out, int fd, unsigned depth)
{
    _Alignas(8) char dents[DENTS_BYTES];
    long n;

    while (out->writer.error == 0 && (n = syscall(SYS_getdents64, fd, dents, sizeof dents)) > 0) {
        for (long at = 0; at < n;) {
            const Dirent *d = (const Dirent *)(const void *)(dents + at);

            at += d->bytes;
            if (!name_is_dots(d->name))
                add(out, fd, d->name, depth + 1);
        }
    }
}

/* Something else than a folder is an archive of one entry. */
static int
add_one(TarOut *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    int fd = file_open_regular(path, &st);

    if (fd < 0)
        return errno;
    path = slash != NULL ? slash + 1 : path;
    memcpy(out->path, path, strlen(path) + 1);
    tar_write_entry(&out->writer, path, "", &st);
    write_file(out, fd, &st);
    close(fd);
    return 0;
}

static int
write_out(void *ctx, const void *bytes, size_t n)
{
    return file_write_all(STDOUT_FILENO, bytes, n);
}

int
builtin_tar_out(const char *const *args)
{
    TarOut *out = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = file_open(AT_FDCWD, args[0], O_RDONLY | O_DIRECTORY, 0);

    if (fd < 0 && errno != ENOTDIR)
        return errno;
    if (out == MAP_FAILED || strlen(args[0]) >= TAR_PATH_MAX)
        return out == MAP_FAILED ? ENOMEM : ENAMETOOLONG;
    out->writer.put = write_out;
    int e = fd < 0 ? add_one(out, args[0]) : 0;
    if (e != 0)
        return e;
    if (fd >= 0)
        walk(out, fd, 0);
    tar_write_end(&out->writer);
    return out->writer.error != 0 ? out->writer.error : out->first;
}
