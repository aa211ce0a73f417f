/* SPDX-License-Identifier: Apache-2.0 */
/* A box can make its tree as deep as it likes, so nothing here calls itself. */
#include "keeper/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/disk-work.h"

enum { DEPTH_MAX = 256, BLOCK = 512, NUMBER_MAX = 24 };

void
folder_name(const char *box, char ret_name[static FOLDER_NAME_MAX])
{
    snprintf(ret_name, FOLDER_NAME_MAX, "folders/%s", box);
}

bool
folder_is_there(int state_fd, const char *box)
{
    char name[FOLDER_NAME_MAX];

    folder_name(box, name);
    return faccessat(state_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int
folder_make(int state_fd, const char *box, uint32_t owner, int *ret_mount_fd)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    char name[FOLDER_NAME_MAX];

    folder_name(box, name);
    if (mkdirat(state_fd, name, 0700) < 0)
        return errno;
    autofd tree = open_tree(state_fd, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
    int error = tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? errno : 0;

    /* The box's root has to get to what is in it. */
    if (error == 0 && (fchmodat(state_fd, name, 0755, 0) < 0))
        error = errno;
    if (error == 0)
        error = disk_make_dirs(tree, owner);
    if (error != 0) {
        (void)folder_remove(state_fd, name);
        return error;
    }
    *ret_mount_fd = g_steal_fd(&tree);
    return 0;
}

/* ---- the way through a tree ---- */

typedef struct Walk {
    DIR *dirs[DEPTH_MAX];
    int depth; /* of those that are open */
} Walk;

static bool
walk_enter(Walk *walk, int parent_fd, const char *name)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    walk->dirs[walk->depth++] = dir;
    return true;
}

static int
walk_fd(const Walk *walk)
{
    return dirfd(walk->dirs[walk->depth - 1]);
}

static void
walk_leave(Walk *walk)
{
    closedir(walk->dirs[--walk->depth]);
}

/* The next name in the folder where we are; NULL at its end. */
static const char *
walk_next(const Walk *walk)
{
    const struct dirent *entry;

    do
        entry = readdir(walk->dirs[walk->depth - 1]);
    while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry != NULL ? entry->d_name : NULL;
}

DiskShape
folder_measure(int state_fd, const char *name, DiskShape most)
{
    DiskShape sum = {0};
    Walk walk = {.depth = 0};

    if (!walk_enter(&walk, state_fd, name))
        return sum;
    while (walk.depth > 0) {
        const char *entry = walk_next(&walk);
        struct stat st;

        if (entry == NULL || sum.bytes > most.bytes || sum.inodes > most.inodes) {
            walk_leave(&walk);
            continue;
        }
        if (fstatat(walk_fd(&walk), entry, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        sum.bytes += (uint64_t)st.st_blocks * BLOCK;
        sum.inodes++;
        if (!S_ISDIR(st.st_mode))
            continue;
        /* Deeper than anything but an attempt to hide: counted as too much. */
        if (walk.depth == DEPTH_MAX)
            sum.inodes = UINT32_MAX;
        else
            (void)walk_enter(&walk, walk_fd(&walk), entry);
    }
    return sum;
}

/* ---- the end of a tree ---- */

/* Folders in it go up beside it, however deep they were. */
static void
empty_into(int top_fd, const char *name, uint64_t *next)
{
    Walk walk = {.depth = 0};
    const char *entry;

    if (!walk_enter(&walk, top_fd, name))
        return;
    while ((entry = walk_next(&walk)) != NULL) {
        char up[NUMBER_MAX];

        if (unlinkat(walk_fd(&walk), entry, 0) == 0)
            continue;
        snprintf(up, sizeof up, "%" PRIu64, (*next)++);
        (void)renameat(walk_fd(&walk), entry, top_fd, up);
    }
    walk_leave(&walk);
}

/* One pass; whether anything went. */
static bool
empty_once(int state_fd, const char *name, uint64_t *next)
{
    Walk walk = {.depth = 0};
    bool any = false;
    const char *entry;

    if (!walk_enter(&walk, state_fd, name))
        return false;
    while ((entry = walk_next(&walk)) != NULL) {
        empty_into(walk_fd(&walk), entry, next);
        any = unlinkat(walk_fd(&walk), entry, AT_REMOVEDIR) == 0 || any;
        any = unlinkat(walk_fd(&walk), entry, 0) == 0 || any;
    }
    walk_leave(&walk);
    return any;
}

int
folder_remove(int state_fd, const char *name)
{
    uint64_t next = 0;

    while (unlinkat(state_fd, name, AT_REMOVEDIR) < 0) {
        if (errno == ENOENT)
            return 0;
        if (!empty_once(state_fd, name, &next))
            return ENOTEMPTY;
    }
    return 0;
}
