/* SPDX-License-Identifier: Apache-2.0 */
/* The file tree of a box, built in its own mount namespace in the keeper's stage folder, where
 * we stand, and then made the root.  Everything in the image is untrusted: a target is opened below the new
 * root without following a link, and a mount goes onto that fd. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "keeper/child.h"

enum {
    OPTIONS_MAX = 512,
    MASK_PATH_MAX = 64,
    NUMBER_MAX = 32,
    CPU_PERIOD_US = 100000,
    MILLI = 1000,
    SHM_MAX = 64 << 20,
    SHM_PART = 4, /* of the memory, which it is charged to */
};

static const unsigned plain_attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

static bool
attach(int mount_fd, int target_fd)
{
    return mount_fd >= 0 && target_fd >= 0 &&
           move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
}

/* `options`: key, value, …, NULL. */
static int
mount_fresh(const char *type, const char *const *options, unsigned attrs)
{
    int context = fsopen(type, FSOPEN_CLOEXEC);

    if (context < 0)
        return -1;
    for (; *options != NULL; options += 2) {
        if (fsconfig(context, FSCONFIG_SET_STRING, options[0], options[1], 0) < 0)
            return -1;
    }
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return -1;
    int fd = fsmount(context, FSMOUNT_CLOEXEC, attrs);

    close(context);
    return fd;
}

/* The kernel of Debian 12 cannot make an overlay of detached mounts, so they are attached
 * first; the overlay has its own references, and the places vanish with the old root.  With
 * userxattr no redirect in a layer is followed, and there is no metacopy. */
bool
child_mount_root(const ChildSpec *spec, const int *fds, int *ret_root_fd, bool *ret_written)
{
    char options[OPTIONS_MAX] = "lowerdir=";
    size_t n = strlen(options);

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        move_mount(fds[0], "", AT_FDCWD, "disk", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return false;
    for (uint32_t i = 0; i < spec->request->n_layers; i++) {
        char name[] = CHILD_LAYER;

        child_layer_name(i, name);
        if (move_mount(fds[i + 1], "", AT_FDCWD, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
            return false;
        n += (size_t)snprintf(options + n, sizeof options - n, i > 0 ? ":%s" : "%s", name);
    }
    snprintf(options + n, sizeof options - n, ",upperdir=disk/upper,workdir=disk/work,userxattr,index=off");
    if (!child_write_below(spec, ret_written) ||
        mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        return false;
    *ret_root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_root_fd >= 0;
}

/* All of /proc/sys can be read, none of it written. */
static bool
mount_proc_sys(int proc_fd)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    int tree = open_tree(proc_fd, "sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    return tree >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0 &&
           move_mount(tree, "", proc_fd, "sys", MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/* What covers a name is the keeper's own empty file or folder, from a mount that is read-only
 * already; nothing of the image is used.  root/proc is no link: child_open_dir() has seen to it. */
bool
child_mask(const ChildSpec *spec, int proc_fd, int *ret_user_fd)
{
    for (int i = 0; i < spec->n_masks; i++) {
        const ChildMask *mask = &spec->masks[i];
        char path[MASK_PATH_MAX];

        snprintf(path, sizeof path, "root/proc/%s", mask->name);
        if (mount(mask->is_dir ? "none" : "empty", path, NULL, MS_BIND, NULL) < 0)
            return false;
    }
    *ret_user_fd = openat(proc_fd, "sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *ret_user_fd >= 0 && mount_proc_sys(proc_fd);
}

/* Not sysfs: two files from which language run-times read how large they may grow. */
static bool
mount_sys(const ChildSpec *spec, int root_fd)
{
    static const char *const options[] = {"size", "64k", "nr_inodes", "16", "mode", "0755", NULL};
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    const KeeperLimits *limits = &spec->request->limits;
    char cpu[NUMBER_MAX];
    char memory[NUMBER_MAX];
    int fd = mount_fresh("tmpfs", options, plain_attrs);

    if (fd < 0 || mkdirat(fd, "fs", 0755) < 0 || mkdirat(fd, "fs/cgroup", 0755) < 0)
        return false;
    snprintf(cpu, sizeof cpu, "%u %d\n", limits->cpu_milli * (CPU_PERIOD_US / MILLI), CPU_PERIOD_US);
    snprintf(memory, sizeof memory, "%llu\n", (unsigned long long)limits->memory_bytes);
    return child_write_file(fd, "fs/cgroup/cpu.max", cpu) &&
           child_write_file(fd, "fs/cgroup/memory.max", memory) &&
           mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0 &&
           attach(fd, child_make_dir(root_fd, "sys"));
}

/* The device tree is the keeper's, read-only; terminals and shared memory are the box's own. */
static bool
mount_dev(const ChildSpec *spec, int root_fd)
{
    static const char *const pts[] = {"ptmxmode", "0666", "mode", "0620", "gid", "5", "max", "64", NULL};
    uint64_t shm_bytes = spec->request->limits.memory_bytes / SHM_PART;
    char size[NUMBER_MAX];
    const char *const shm[] = {"size", size, "nr_inodes", "4096", "mode", "1777", NULL};
    int tree = open_tree(AT_FDCWD, "dev", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

    snprintf(size, sizeof size, "%llu", (unsigned long long)(shm_bytes < SHM_MAX ? shm_bytes : SHM_MAX));
    return attach(tree, child_make_dir(root_fd, "dev")) &&
           attach(mount_fresh("devpts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
                  child_open_dir(tree, "pts")) &&
           attach(mount_fresh("tmpfs", shm, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV),
                  child_open_dir(tree, "shm"));
}

bool
child_mount_system(const ChildSpec *spec, int root_fd, int *ret_proc_fd)
{
    static const char *const options[] = {NULL};

    *ret_proc_fd = mount_fresh("proc", options, plain_attrs);
    return attach(*ret_proc_fd, child_make_dir(root_fd, "proc")) && mount_sys(spec, root_fd) &&
           mount_dev(spec, root_fd);
}

bool
child_enter_root(int root_fd)
{
    return fchdir(root_fd) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 &&
           chdir("/") == 0;
}
