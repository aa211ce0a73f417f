/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "builder/build.h"
#include "builder/space.h"

static bool
make_dir(const char *path, GError **error)
{
    return mkdir(path, 0755) == 0 || errno == EEXIST || err_errno(error, "make '%s'", path);
}

static bool
bind_fd(int fd, const char *target, GError **error)
{
    g_autofree char *from = g_strdup_printf("/proc/self/fd/%d", fd);

    if (!make_dir(target, error))
        return false;
    return mount(from, target, NULL, MS_BIND, NULL) == 0 || err_errno(error, "bind '%s'", target);
}

/* Folders of the user below the store in which root of the space works. */
static int
open_made(int parent_fd, const char *name, GError **error)
{
    if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
        return err_errno(error, "make '%s'", name) ? 0 : -1;
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        err_errno(error, "open '%s'", name);
    return fd;
}

/* A layer of a template can be named with any characters but ':' and ',', which separate; the
 * links in /proc have none. */
static bool
mount_overlay(Build *b, int work_fd, int upper_fd, GError **error)
{
    g_autoptr(GString) options = g_string_new("userxattr,lowerdir=");
    g_autoptr(GArray) fds = g_array_new(FALSE, FALSE, sizeof(int));
    autofd scratch_fd = open_made(work_fd, "scratch", error);
    bool ok = scratch_fd >= 0;

    for (guint i = 0; ok && b->plan->lowers[i] != NULL; i++) {
        int fd = openat(b->store_fd, b->plan->lowers[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        ok = fd >= 0 || err_errno(error, "open the layer '%s'", b->plan->lowers[i]);
        if (ok) {
            g_array_append_val(fds, fd);
            g_string_append_printf(options, "%s/proc/self/fd/%d", i > 0 ? ":" : "", fd);
        }
    }
    g_string_append_printf(options, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", upper_fd,
                           scratch_fd);
    if (ok && mount("overlay", BUILD_ROOT, "overlay", MS_NODEV, options->str) < 0)
        ok = err_errno(error, "mount the layers of '%s'", b->plan->key);
    for (guint i = 0; i < fds->len; i++)
        close(g_array_index(fds, int, i));
    return ok;
}

bool
build_mount(Build *b, GError **error)
{
    /* Binds take only mounts of our own namespace, and /tmp may hide the store's path. */
    b->store_fd = open(b->plan->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->store_fd < 0)
        return err_errno(error, "open '%s'", b->plan->store);
    if (b->plan->folder != NULL)
        b->folder_fd = open(b->plan->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (b->plan->folder != NULL && b->folder_fd < 0)
        return err_errno(error, "open '%s'", b->plan->folder);
    if (b->plan->sudo != NULL)
        b->sudo_fd = open(b->plan->sudo, O_RDONLY | O_CLOEXEC); /* a build without it has no sudo */
    if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
        return err_errno(error, "mount a /tmp of its own");
    autofd work_fd = open_made(b->store_fd, b->plan->work, error);
    if (work_fd < 0)
        return false;
    autofd upper_fd = open_made(work_fd, "root", error);
    if (upper_fd < 0 || !make_dir(BUILD_ROOT, error) || !make_dir(BUILD_CACHE, error))
        return false;
    return b->plan->root != NULL ? bind_fd(upper_fd, BUILD_ROOT, error)
                                 : mount_overlay(b, work_fd, upper_fd, error);
}

bool
build_mount_cache(Build *b, const char *name, GError **error)
{
    g_autofree char *target = g_build_filename(BUILD_CACHE, name, NULL);
    g_autofree char *partial = g_build_filename(target, "partial", NULL);
    autofd cache_fd = open_made(b->store_fd, "cache", error);

    if (cache_fd < 0)
        return false;
    if (access(target, F_OK) == 0)
        return true;
    autofd fd = open_made(cache_fd, name, error);
    return fd >= 0 && bind_fd(fd, target, error) && make_dir(partial, error);
}

bool
build_unmount_root(Build *b, GError **error)
{
    return umount2(BUILD_ROOT, 0) == 0 || err_errno(error, "unmount the root of '%s'", b->plan->key);
}
