/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An archive becomes files.  Its names, and everything that lies below the folder already, are
 * somebody else's, who may change them while we work.  So every path is opened anew from the
 * folder's descriptor, with no link and no mount on the way, and what is made is made in the
 * descriptor of its parent, where it did not exist.
 *
 * Links are kept back until the end, so that no entry can go through one of the archive's own,
 * and so are the modes and times of folders, which would stand in the way of what goes into them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/tar.h"
#include "wire/builtin.h"

enum { TRIES_MAX = 8, NEW_FOLDER_MODE = 0755, OPEN_MODE = 0700, MODE_KEPT = 0777 };

/* What is done at the end, newest first. */
typedef struct Late {
    struct Late *older;
    TarType type;
    mode_t mode;
    struct timespec mtime;
    char *target; /* behind the path */
    char path[];
} Late;

typedef struct TarIn {
    int root_fd;
    uint64_t entries_left, bytes_left;
    Late *late;
    const char *why;
    TarEntry entry;
    TarReader reader;
} TarIn;

static int
fail(TarIn *in, int error, const char *why)
{
    in->why = why;
    return error;
}

static int
fail_errno(TarIn *in, const char *why)
{
    return fail(in, errno, why);
}

static ssize_t
read_input(void *ctx, void *bytes, size_t n)
{
    ssize_t got;

    do {
        got = read(STDIN_FILENO, bytes, n);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* The folders of `path`, made where they are missing. */
static int
make_folders(const TarIn *in, char *path)
{
    int fd = folder_open_below(in->root_fd, ".");
    for (char *at = path, *end; fd >= 0 && *at != '\0'; at = end) {
        end = at + strcspn(at, "/");
        char after = *end;

        *end = '\0';
        int next = mkdirat(fd, at, NEW_FOLDER_MODE) == 0 || errno == EEXIST ? folder_open_below(fd, at) : -1;
        int e = errno;

        close(fd);
        fd = next;
        errno = e;
        *end = after;
        end += after == '/';
    }
    return fd;
}

/* The folder that `path` lies in, and its last part. */
static int
open_parent(const TarIn *in, char *path, bool make, const char **ret_last)
{
    char *slash = strrchr(path, '/');

    *ret_last = slash != NULL ? slash + 1 : path;
    if (slash == NULL)
        return folder_open_below(in->root_fd, ".");
    *slash = '\0';
    int fd = folder_open_below(in->root_fd, path);
    if (fd < 0 && errno == ENOENT && make)
        fd = make_folders(in, path);
    *slash = '/';
    return fd;
}

static int
keep_for_later(TarIn *in, const TarEntry *entry)
{
    size_t n = strlen(entry->path) + 1;
    size_t target_n = strlen(entry->target) + 1;
    Late *late = malloc(sizeof *late + n + target_n);

    if (late == NULL)
        return fail(in, ENOMEM, "there is no memory");
    *late = (Late){.older = in->late, .type = entry->type, .mode = entry->mode, .mtime = entry->mtime};
    memcpy(late->path, entry->path, n);
    late->target = late->path + n;
    memcpy(late->target, entry->target, target_n);
    in->late = late;
    return 0;
}

/* One that was there keeps its mode. */
static int
place_folder(TarIn *in, TarEntry *entry)
{
    const char *last;
    int dir_fd = open_parent(in, entry->path, true, &last);

    if (dir_fd < 0)
        return fail_errno(in, "its folder cannot be made");
    bool made = mkdirat(dir_fd, last, OPEN_MODE) == 0;
    int fd = made || errno == EEXIST ? folder_open_below(dir_fd, last) : -1;
    int e = fd < 0 ? fail_errno(in, "the folder cannot be made") : 0;

    close(dir_fd);
    if (fd >= 0)
        close(fd);
    entry->target[0] = '\0';
    return e == 0 && made ? keep_for_later(in, entry) : e;
}

static int
create_file(int dir_fd, const char *last)
{
    int fd = -1;

    for (int i = 0; i < TRIES_MAX && fd < 0; i++) {
        fd = openat(dir_fd, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && (errno != EEXIST || unlinkat(dir_fd, last, 0) < 0))
            break;
    }
    return fd;
}

static int
write_at(int fd, const TarPiece *piece)
{
    for (size_t done = 0; done < piece->n;) {
        ssize_t n = pwrite(fd, (const uint8_t *)piece->bytes + done, piece->n - done,
                           (off_t)(piece->offset + done));

        if (n < 0 && errno != EINTR)
            return errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int
fill_file(TarIn *in, int fd, const TarEntry *entry)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->mtime};
    TarPiece piece;

    do {
        int e = tar_data(&in->reader, &piece);

        if (e != 0)
            return fail(in, e, in->reader.why);
        e = write_at(fd, &piece);
        if (e != 0)
            return fail(in, e, "cannot be written");
    } while (piece.n > 0);
    if (in->reader.sparse && ftruncate(fd, (off_t)entry->size) < 0)
        return fail_errno(in, "cannot be written");
    if (fchmod(fd, entry->mode & MODE_KEPT) < 0)
        return fail_errno(in, "its mode cannot be set");
    /* A time that the file system cannot hold is no reason to lose the file. */
    (void)futimens(fd, times);
    return 0;
}

static int
place_file(TarIn *in, TarEntry *entry)
{
    const char *last;

    if (entry->size > in->bytes_left)
        return fail(in, EFBIG, "the files are larger than allowed");
    in->bytes_left -= entry->size;
    int dir_fd = open_parent(in, entry->path, true, &last);
    if (dir_fd < 0)
        return fail_errno(in, "its folder cannot be made");
    int fd = create_file(dir_fd, last);
    int e = fd < 0 ? fail_errno(in, "cannot be made") : fill_file(in, fd, entry);

    if (fd >= 0 && e != 0)
        (void)unlinkat(dir_fd, last, 0);
    if (fd >= 0)
        close(fd);
    close(dir_fd);
    return e;
}

/* A hard link leads to an entry by its name, a symbolic one wherever it says. */
static int
place_link(TarIn *in, TarEntry *entry)
{
    int e = entry->type == TAR_HARD_LINK ? tar_name_check(entry->target)
                                         : tar_target_check(entry->path, entry->target);

    return e != 0 ? fail(in, e, "its target leads out of the tree") : keep_for_later(in, entry);
}

static int
place(TarIn *in, TarEntry *entry)
{
    int e = tar_name_check(entry->path);

    if (e != 0)
        return fail(in, e, e == EXDEV ? "the name leads out of the tree" : "the name cannot be used");
    /* The folder itself, which is there. */
    if (entry->path[0] == '\0')
        return entry->type == TAR_FOLDER ? 0 : fail(in, EISDIR, "the name is the folder's own");
    switch (entry->type) {
    case TAR_FOLDER:
        return place_folder(in, entry);
    case TAR_FILE:
        return place_file(in, entry);
    case TAR_LINK:
    case TAR_HARD_LINK:
        return place_link(in, entry);
    case TAR_SKIPPED:
    default:
        tar_complain("tar-in", entry->path, "skipped: it is no file, folder or link");
        return 0;
    }
}

/* -1 with errno. */
static int
make_link(TarIn *in, Late *late, int dir_fd, const char *last)
{
    const char *to;
    struct stat st;

    if (late->type == TAR_LINK)
        return symlinkat(late->target, dir_fd, last);
    int to_fd = open_parent(in, late->target, false, &to);
    int result = -1;
    if (to_fd >= 0 && fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EINVAL;
        if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
            result = linkat(to_fd, to, dir_fd, last, 0);
    }
    int e = errno;
    if (to_fd >= 0)
        close(to_fd);
    errno = e;
    return result;
}

static int
finish_link(TarIn *in, Late *late)
{
    const char *last;
    int dir_fd = open_parent(in, late->path, true, &last);
    int made = -1;

    for (int i = 0; dir_fd >= 0 && i < TRIES_MAX && made < 0; i++) {
        made = make_link(in, late, dir_fd, last);
        if (made < 0 && (errno != EEXIST || unlinkat(dir_fd, last, 0) < 0))
            break;
    }
    int e = made < 0 ? errno : 0;
    if (dir_fd >= 0)
        close(dir_fd);
    return e != 0 ? fail(in, e, "the link cannot be made") : 0;
}

static int
finish_folder(TarIn *in, const Late *late)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, late->mtime};
    int fd = folder_open_below(in->root_fd, late->path);

    /* Somebody took it away, or put something in its place: that is theirs. */
    if (fd < 0)
        return 0;
    (void)futimens(fd, times);
    int e = fchmod(fd, late->mode & MODE_KEPT) < 0 ? fail_errno(in, "its mode cannot be set") : 0;
    close(fd);
    return e;
}

/* Oldest first. */
static Late *
reverse(Late *late)
{
    Late *out = NULL;

    while (late != NULL) {
        Late *older = late->older;

        late->older = out;
        out = late;
        late = older;
    }
    return out;
}

/* Links in the archive's order, since one may lead to another; then folders, those below before
 * those above, whose mode may close them. */
static int
finish(TarIn *in, const char **ret_path)
{
    int e = 0;

    in->late = reverse(in->late);
    for (Late *late = in->late; late != NULL && e == 0; late = late->older) {
        *ret_path = late->path;
        e = late->type != TAR_FOLDER ? finish_link(in, late) : 0;
    }
    in->late = reverse(in->late);
    for (Late *late = in->late; late != NULL && e == 0; late = late->older) {
        *ret_path = late->path;
        e = late->type == TAR_FOLDER ? finish_folder(in, late) : 0;
    }
    return e;
}

static int
unpack(TarIn *in, const char **ret_path)
{
    int e;

    in->entry.path[0] = '\0';
    while ((e = tar_next(&in->reader, &in->entry)) == 0) {
        *ret_path = in->entry.path;
        if (in->entries_left-- == 0)
            return fail(in, EFBIG, "there are more entries than allowed");
        e = place(in, &in->entry);
        if (e != 0)
            return e;
    }
    in->why = in->reader.why;
    return e == ENODATA ? finish(in, ret_path) : e;
}

int
builtin_tar_in(const char *const *args)
{
    TarIn *in = mmap(NULL, sizeof *in, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const char *path = "";

    if (in == MAP_FAILED)
        return ENOMEM;
    if (!number_parse(args[1], 10, BUILTIN_TAR_ENTRIES_MAX, &in->entries_left) ||
        !number_parse(args[2], 10, INT64_MAX, &in->bytes_left))
        return EINVAL;
    in->root_fd = file_open(AT_FDCWD, args[0], O_RDONLY | O_DIRECTORY, 0);
    if (in->root_fd < 0)
        return errno;
    tar_reader_init(&in->reader, read_input, NULL);
    int e = unpack(in, &path);
    if (e != 0)
        tar_complain("tar-in", path, in->why);
    return e;
}
