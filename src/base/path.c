/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"

enum { OPEN_TRIES_MAX = 100 };

bool
path_is_normal(const char *path)
{
    if (path[0] != '/')
        return false;
    for (const char *seg = path + 1;;) {
        size_t n = strcspn(seg, "/");

        if (n == 0 || (n == 1 && seg[0] == '.') || (n == 2 && seg[0] == '.' && seg[1] == '.'))
            return false;
        if (seg[n] == '\0')
            return true;
        seg += n + 1;
    }
}

int
open_beneath(int root_fd, const char *path, int flags, mode_t mode, GError **error)
{
    bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {
        .flags = (unsigned)flags | O_CLOEXEC,
        .mode = creates ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    int fd, tries = 0;

    /* EAGAIN: something was renamed while the kernel resolved a "..". */
    do {
        fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN) && ++tries < OPEN_TRIES_MAX);

    if (fd < 0 && errno == EXDEV)
        err_set(error, ERR_INVALID, "'%s' leads out of its folder", path);
    else if (fd < 0)
        err_errno(error, "open '%s'", path);
    return fd;
}

static char *
dup_without_last_slashes(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    return g_strndup(path, n);
}

bool
path_make_private_dir(const char *path, mode_t mode, GError **error)
{
    g_autofree char *dir = dup_without_last_slashes(path);
    g_autofree char *parent = g_path_get_dirname(dir);
    struct stat st;

    if (g_mkdir_with_parents(parent, 0755) < 0)
        return err_errno(error, "make folder '%s'", parent);
    if (mkdir(dir, mode) < 0 && errno != EEXIST)
        return err_errno(error, "make folder '%s'", dir);
    if (lstat(dir, &st) < 0)
        return err_errno(error, "look at folder '%s'", dir);
    if (!S_ISDIR(st.st_mode))
        return err_set(error, ERR_INVALID, "'%s' is not a folder", dir);
    if (st.st_uid != geteuid() && geteuid() != 0)
        return err_set(error, ERR_DENIED, "folder '%s' belongs to another user (uid %u)", dir, st.st_uid);
    if ((st.st_mode & 0777 & ~mode) != 0)
        return err_set(error, ERR_DENIED, "folder '%s' is open to others (mode %04o): run chmod %04o '%s'",
                       dir, st.st_mode & 07777, mode, dir);
    return true;
}

static bool
sync_parent(const char *path, GError **error)
{
    g_autofree char *parent = g_path_get_dirname(path);
    autofd dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 || fsync(dir) < 0)
        return err_errno(error, "sync folder '%s'", parent);
    return true;
}

bool
path_write_atomic(const char *path, const void *data, size_t len, mode_t mode, GError **error)
{
    g_autofree char *temp = g_strdup_printf("%s.tmp.%d", path, getpid());
    autofd fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

    if (fd < 0)
        return err_errno(error, "create '%s'", temp);
    bool ok = (fchmod(fd, mode) == 0 && io_write_all(fd, data, len) && fsync(fd) == 0) ||
              err_errno(error, "write '%s'", temp);
    if (ok && rename(temp, path) < 0)
        ok = err_errno(error, "rename '%s' to '%s'", temp, path);
    if (!ok) {
        (void)unlink(temp); /* the error to report is the first one */
        return false;
    }
    return sync_parent(path, error);
}

int
path_open_nameless(const char *folder, GError **error)
{
    g_autofree char *path = g_build_filename(folder, "nameless-XXXXXX", NULL);
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd < 0) {
        err_errno(error, "create a temporary file");
        return -1;
    }
    if (unlink(path) < 0) {
        err_errno(error, "unlink a temporary file");
        close(fd);
        return -1;
    }
    return fd;
}
