/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

enum { TREE_DEPTH_MAX = 256, BLOCK = 512, PIECE = 1 << 20 };

static bool
is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *
open_folder(int parent_fd, const char *name)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (fd >= 0 && dir == NULL)
        close(fd);
    return dir;
}

/* ---- removing and measuring ---- */

static bool
remove_at(int parent_fd, const char *name, guint depth)
{
    if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
        return true;
    if (errno != EISDIR || depth > TREE_DEPTH_MAX)
        return false;
    DIR *dir = open_folder(parent_fd, name);
    bool ok = dir != NULL;
    const struct dirent *entry;

    while (ok && (entry = readdir(dir)) != NULL)
        ok = is_dot(entry->d_name) || remove_at(dirfd(dir), entry->d_name, depth + 1);
    int saved = errno;

    if (dir != NULL)
        closedir(dir);
    errno = saved;
    return ok && (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

bool
tree_remove(int parent_fd, const char *name, GError **error)
{
    return remove_at(parent_fd, name, 0) || err_errno(error, "remove '%s'", name);
}

static bool
size_at(int parent_fd, const char *name, guint depth, guint64 *sum)
{
    struct stat st;

    if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    *sum += (guint64)st.st_blocks * BLOCK / (S_ISDIR(st.st_mode) ? 1 : MAX(st.st_nlink, 1));
    if (!S_ISDIR(st.st_mode))
        return true;
    DIR *dir = depth <= TREE_DEPTH_MAX ? open_folder(parent_fd, name) : NULL;
    bool ok = dir != NULL;
    const struct dirent *entry;

    while (ok && (entry = readdir(dir)) != NULL)
        ok = is_dot(entry->d_name) || size_at(dirfd(dir), entry->d_name, depth + 1, sum);
    if (dir != NULL)
        closedir(dir);
    return ok;
}

bool
tree_size(int parent_fd, const char *name, guint64 *ret_bytes, GError **error)
{
    guint64 sum = 0;

    if (!size_at(parent_fd, name, 0, &sum))
        return err_errno(error, "measure '%s'", name);
    *ret_bytes = sum;
    return true;
}

/* ---- copying ---- */

typedef struct Copy {
    TreeSkip skip;
    void *data;
    GError **error;
} Copy;

static bool
copy_bytes(int from, int to)
{
    ssize_t n;

    if (ioctl(to, FICLONE, from) == 0)
        return true;
    while ((n = copy_file_range(from, NULL, to, NULL, PIECE, 0)) > 0)
        ;
    return n == 0;
}

static bool
copy_file(int from_dir, int to_dir, const char *name, const struct stat *st)
{
    autofd from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (from < 0)
        return errno == EACCES || errno == ENOENT; /* what others may not read stays out */
    autofd to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const struct timespec times[] = {st->st_atim, st->st_mtim};

    return to >= 0 && copy_bytes(from, to) && fchmod(to, st->st_mode & 0777) == 0 && futimens(to, times) == 0;
}

static bool
copy_link(int from_dir, int to_dir, const char *name)
{
    char target[4096];
    ssize_t n = readlinkat(from_dir, name, target, sizeof target - 1);

    if (n < 0)
        return false;
    target[n] = '\0';
    return symlinkat(target, to_dir, name) == 0;
}

static bool copy_folder(const Copy *c, int from_fd, int to_fd, const char *path, guint depth);

static bool
copy_entry(const Copy *c, int from_dir, int to_dir, const char *name, const char *path, guint depth)
{
    struct stat st;

    if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT;
    if (S_ISLNK(st.st_mode))
        return copy_link(from_dir, to_dir, name);
    if (S_ISREG(st.st_mode))
        return copy_file(from_dir, to_dir, name, &st);
    if (!S_ISDIR(st.st_mode))
        return true;
    autofd from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return errno == EACCES || errno == ENOENT;
    if (mkdirat(to_dir, name, 0755) < 0 && errno != EEXIST)
        return false;
    autofd to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return to >= 0 && copy_folder(c, from, to, path, depth + 1) &&
           fchmod(to, (st.st_mode & 01777) | 0700) == 0;
}

static bool
copy_folder(const Copy *c, int from_fd, int to_fd, const char *path, guint depth)
{
    int copy = fcntl(from_fd, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy >= 0 && depth <= TREE_DEPTH_MAX ? fdopendir(copy) : NULL;
    const struct dirent *entry;
    bool ok = dir != NULL;

    while (ok && (entry = readdir(dir)) != NULL) {
        g_autofree char *below = g_strconcat(path, "/", entry->d_name, NULL);

        if (is_dot(entry->d_name) || (c->skip != NULL && c->skip(below, c->data)))
            continue;
        ok = copy_entry(c, from_fd, to_fd, entry->d_name, below, depth);
        if (!ok && *c->error == NULL)
            err_errno(c->error, "copy '%s'", below);
    }
    if (dir != NULL)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
    return ok;
}

bool
tree_copy(const char *from, const char *to, TreeSkip skip, void *data, GError **error)
{
    autofd from_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofd to_fd = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    GError *failed = NULL;
    Copy c = {skip, data, &failed};

    if (from_fd < 0 || to_fd < 0)
        return err_errno(error, "open '%s'", from_fd < 0 ? from : to);
    if (copy_folder(&c, from_fd, to_fd, "", 0))
        return true;
    if (failed == NULL)
        return err_set(error, ERR_INTERNAL, "copy '%s': nested too deeply", from);
    g_propagate_error(error, failed);
    return false;
}
