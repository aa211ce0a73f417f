/* SPDX-License-Identifier: Apache-2.0 */
#include "builder/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/path.h"
#include "base/tree.h"
#include "builder/build.h"

enum { FILE_MAX = 64 * 1024 * 1024 };

int
inside_open_root(GError **error)
{
    int fd = open(BUILD_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        err_errno(error, "open the root");
    return fd;
}

int
inside_open_folder(int root_fd, const char *path, GError **error)
{
    return open_beneath(root_fd, path, O_RDONLY | O_DIRECTORY, 0, error);
}

char *
inside_read(int root_fd, const char *path, gsize *ret_n)
{
    autofd fd = open_beneath(root_fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, NULL);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return NULL;
    g_autofree char *bytes = g_malloc((gsize)st.st_size + 1);
    ssize_t n = io_read_full(fd, bytes, (size_t)st.st_size);

    if (n < 0)
        return NULL;
    bytes[n] = '\0';
    *ret_n = (gsize)n;
    return g_steal_pointer(&bytes);
}

bool
inside_write(int root_fd, const char *folder, const char *name, const void *bytes, gsize n, mode_t mode,
             GError **error)
{
    autofd folder_fd = inside_open_folder(root_fd, folder, error);

    if (folder_fd < 0 || !tree_remove(folder_fd, name, error))
        return false;
    autofd fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

    return (fd >= 0 && io_write_all(fd, bytes, n) && fchmod(fd, mode) == 0) ||
           err_errno(error, "write '/%s/%s'", folder, name);
}

static bool
is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

GPtrArray *
inside_list(int root_fd, const char *folder, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    autofd fd = inside_open_folder(root_fd, folder, &failure);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    if (fd < 0 && err_kind(failure) == ERR_NOT_FOUND)
        return g_steal_pointer(&names);
    if (dir == NULL) {
        if (failure == NULL)
            err_errno(error, "read '/%s'", folder);
        else
            g_propagate_error(error, g_steal_pointer(&failure));
        return NULL;
    }
    (void)g_steal_fd(&fd);
    while ((entry = readdir(dir)) != NULL) {
        if (!is_dot(entry->d_name))
            g_ptr_array_add(names, g_strdup(entry->d_name));
    }
    closedir(dir);
    return g_steal_pointer(&names);
}
