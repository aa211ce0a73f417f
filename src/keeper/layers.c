/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/layers.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int
layer_open(int store_fd, const char *name, uint64_t attrs, int userns_fd)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    struct mount_attr attr = {.attr_set = attrs | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                              .propagation = MS_PRIVATE};
    autofd dir = (int)syscall(SYS_openat2, store_fd, name, &how, sizeof how);

    if (dir < 0)
        return -1;
    autofd tree = open_tree(dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (tree < 0)
        return -1;
    if (userns_fd >= 0) {
        attr.attr_set |= MOUNT_ATTR_IDMAP;
        attr.userns_fd = (uint64_t)userns_fd;
    }
    if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return -1;
    return g_steal_fd(&tree);
}

bool
layers_open(int store_fd, const KeeperRequest *request, int userns_fd, int *ret_fds)
{
    for (uint32_t i = 0; i < request->n_layers; i++) {
        ret_fds[i] = layer_open(store_fd, request->layers[i], 0, userns_fd);
        if (ret_fds[i] >= 0)
            continue;
        int saved = errno;

        while (i > 0)
            close(ret_fds[--i]);
        errno = saved;
        return false;
    }
    return true;
}
