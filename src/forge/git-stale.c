/* SPDX-License-Identifier: Apache-2.0 */
/* Each coop-git holds a shared lock on the repository's folder, and so does everything it starts, by the
 * same open file; the kernel takes it back with the last of them.  Whoever gets the exclusive one
 * knows that nothing runs, and that nothing starts until it lets go. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/tree.h"
#include "forge/git-private.h"

enum { DEPTH_MAX = 32 };

typedef struct Sweep {
    time_t before; /* older than this */
    guint removed;
} Sweep;

typedef enum Leftover { LEFT_NOTHING, LEFT_FILE, LEFT_TREE } Leftover;

/* What git calls the things it makes and means to rename or remove. */
static Leftover
judge(const char *name, bool in_objects)
{
    if (g_str_has_prefix(name, "tmp_objdir-"))
        return LEFT_TREE;
    if (in_objects && (g_str_has_prefix(name, "tmp_") || g_str_has_prefix(name, ".tmp-")))
        return LEFT_FILE;
    return g_str_has_suffix(name, ".lock") || strcmp(name, "gc.pid") == 0 ? LEFT_FILE : LEFT_NOTHING;
}

static DIR *
open_folder(int parent_fd, const char *name)
{
    autofd fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (dir != NULL)
        (void)g_steal_fd(&fd);
    return dir;
}

static bool
is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void
sweep(Sweep *all, int parent_fd, const char *name, bool in_objects, int depth)
{
    DIR *dir = depth < DEPTH_MAX ? open_folder(parent_fd, name) : NULL;

    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        Leftover left = judge(entry->d_name, in_objects);
        struct stat st;

        if (is_dot(entry->d_name) || fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        bool old = st.st_mtime <= all->before;

        if (S_ISDIR(st.st_mode) && left == LEFT_TREE && old) {
            all->removed += tree_remove(dirfd(dir), entry->d_name, NULL);
        } else if (S_ISDIR(st.st_mode) && left != LEFT_TREE) {
            sweep(all, dirfd(dir), entry->d_name, in_objects || strcmp(entry->d_name, "objects") == 0,
                  depth + 1);
        } else if (S_ISREG(st.st_mode) && left == LEFT_FILE && old &&
                   unlinkat(dirfd(dir), entry->d_name, 0) == 0) {
            all->removed++;
        }
    }
    closedir(dir);
}

bool
git_clear_stale(GitRepo *repo, guint age_s, guint *ret_removed, GError **error)
{
    autofd fd = open(repo->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    Sweep all = {.before = time(NULL) - (time_t)age_s};

    if (fd < 0)
        return err_errno(error, "open the repository's folder");
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? err_set(error, ERR_CONFLICT, "git is at work in the repository")
                                    : err_errno(error, "lock the repository's folder");
    sweep(&all, fd, ".", false, 0);
    if (ret_removed != NULL)
        *ret_removed = all.removed;
    return true;
}
