/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watched folders as they are.  A folder is one inode and hence has one number, whatever it is
 * called: asking for a watch on one that is watched gives the same number again.  So an event is
 * only a reason to look: when it is read the folder may have moved on, or its name may be
 * another's.  What is found is put where it was found; what a move led to and is not there is
 * believed until the next move; and where neither can be, a scan is asked for.
 *
 * The kernel tells of one move in this order: where from, where to, and who it was, as far as each
 * of these was watched at that moment.
 *
 * No descriptor is held while nothing happens: an open folder would keep the kernel from telling
 * that it was removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/watch-node.h"
#include "wire/decimal.h"

enum { DENTS_BYTES = 2048 };

static const uint32_t watch_mask = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM |
                                   IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

/* Without `found` it looks for a loss: it tells nothing, and goes into folders that are known. */
typedef struct Scan {
    WatchTree *tree;
    WatchFound found;
    void *ctx;
    const WatchNode *quiet; /* what lies in it was told */
} Scan;

int
tree_fd(const WatchTree *tree)
{
    return tree->fd;
}

WatchNode *
tree_root(WatchTree *tree)
{
    return tree->root;
}

bool
tree_take_unsure(WatchTree *tree)
{
    bool unsure = tree->unsure;

    tree->unsure = false;
    return unsure;
}

static bool
is_scarce(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

static int
add_watch(const WatchTree *tree, int fd)
{
    char path[sizeof "/proc/self/fd/" + DECIMAL_MAX];

    (void)decimal_put(stpcpy(path, "/proc/self/fd/"), (uint64_t)fd);
    return inotify_add_watch(tree->fd, path, watch_mask);
}

/* Whether all of it stays in sight at another depth, and nothing comes into it. */
static bool
fits(const WatchTree *tree, const WatchNode *node, const WatchNode *parent)
{
    unsigned from = node_depth(node);
    unsigned to = node_depth(parent) + 1;

    if (from == to)
        return true;
    unsigned height = node_height(node);
    return to + height <= tree->depth_max && (to > from || from + height < tree->depth_max);
}

/* The folder behind `fd` gets a node; one that it has already is put where it belongs.  NULL: it
 * was found in itself, as it can look half way through a row of moves. */
static int
watch_folder(WatchTree *tree, int fd, WatchNode *parent, const char *name, WatchNode **ret_node,
             bool *ret_known)
{
    int wd = add_watch(tree, fd);
    WatchNode *node = wd >= 0 ? tree_find(tree, wd) : NULL;

    *ret_node = NULL;
    if (node != NULL && node_is_below(parent, node)) {
        tree->unsure = true;
        return 0;
    }
    /* It comes as a stranger. */
    if (node != NULL && !fits(tree, node, parent)) {
        node_drop(tree, node);
        node = NULL;
        wd = add_watch(tree, fd);
    }
    if (wd < 0)
        return errno;
    *ret_known = node != NULL;
    *ret_node = node;
    if (node != NULL)
        return node_settle(tree, node, parent, name) ? 0 : ENOMEM;
    if (tree->n == BUILTIN_WATCHES_MAX)
        return ENOSPC;
    *ret_node = node_new(tree, parent, name, wd);
    return *ret_node != NULL ? 0 : ENOMEM;
}

static int scan(const Scan *s, int fd, WatchNode *node, unsigned depth);
static int catch_up(const Scan *s, WatchNode *node);

/* What vanished, became a link or is closed to the user is no error, and no node. */
static int
enter_below(const Scan *s, int dir_fd, WatchNode *parent, const char *name, unsigned depth,
            WatchNode **ret_node)
{
    bool known;

    *ret_node = NULL;
    if (depth > s->tree->depth_max)
        return 0;
    int fd = folder_open_below(dir_fd, name);
    if (fd < 0)
        return is_scarce(errno) ? errno : 0;
    int e = watch_folder(s->tree, fd, parent, name, ret_node, &known);
    if (e == 0 && *ret_node != NULL)
        e = known && s->found != NULL ? catch_up(s, *ret_node) : scan(s, fd, *ret_node, depth);
    close(fd);
    return e == EACCES || e == ENOENT ? 0 : e;
}

static bool
is_folder(int fd, const Dirent *d)
{
    struct stat st;

    if (d->type != DT_UNKNOWN)
        return d->type == DT_DIR;
    return fstatat(fd, d->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int
scan(const Scan *s, int fd, WatchNode *node, unsigned depth)
{
    _Alignas(8) char dents[DENTS_BYTES];
    WatchNode *below;
    int e = 0;
    long n;

    node->missed = 0;
    while (e == 0 && (n = syscall(SYS_getdents64, fd, dents, sizeof dents)) > 0) {
        for (long at = 0; at < n && e == 0;) {
            const Dirent *d = (const Dirent *)(const void *)(dents + at);
            bool folder = is_folder(fd, d);

            at += d->bytes;
            if (name_is_dots(d->name))
                continue;
            if (s->found != NULL && node != s->quiet)
                e = s->found(s->ctx, node, d->name, folder);
            if (folder && e == 0)
                e = enter_below(s, fd, node, d->name, depth + 1, &below);
        }
    }
    return e;
}

/* -1 with errno.  ENOENT: what is there is another. */
static int
open_root(const WatchTree *tree)
{
    struct stat st;
    int fd = file_open(AT_FDCWD, tree->real, O_RDONLY | O_DIRECTORY, 0);

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == tree->device && st.st_ino == tree->inode)
        return fd;
    if (fd >= 0)
        close(fd);
    errno = ENOENT;
    return -1;
}

/* Whether it is that folder that is open: a stranger may have its name by now. */
static bool
is_node(const WatchTree *tree, int fd, const WatchNode *node)
{
    int wd = add_watch(tree, fd);

    if (wd >= 0 && tree_find(tree, wd) == NULL)
        (void)inotify_rm_watch(tree->fd, wd);
    return wd == node->wd;
}

/* -1 with errno.  ENOENT: it is not where it was seen last. */
static int
open_node(const WatchTree *tree, const WatchNode *node)
{
    const char *names[BUILTIN_DEPTH_MAX + 1];
    const WatchNode *up = node;
    size_t n = 0;
    int fd = open_root(tree);

    for (; up->parent != NULL && n <= BUILTIN_DEPTH_MAX; up = up->parent)
        names[n++] = up->name;
    while (fd >= 0 && n-- > 0) {
        int next = folder_open_below(fd, names[n]);
        int e = errno;

        close(fd);
        fd = next;
        errno = e;
    }
    if (fd < 0 || node == tree->root || is_node(tree, fd, node))
        return fd;
    close(fd);
    errno = ENOENT;
    return -1;
}

/* Looks for what was missed in a folder when it was on its way here. */
static int
catch_up(const Scan *s, WatchNode *node)
{
    WatchTree *tree = s->tree;
    Scan again = *s;
    WatchNode *missed;
    int e = 0;

    tree->attempt++;
    while (e == 0 && (missed = node_find_missed(tree, node)) != NULL) {
        int fd = open_node(tree, missed);

        again.quiet = missed;
        missed->missed = tree->attempt;
        if (fd < 0) {
            e = is_scarce(errno) ? errno : 0;
            continue;
        }
        e = scan(&again, fd, missed, node_depth(missed));
        close(fd);
    }
    return e;
}

/* What the folder has below `name`; NULL: nothing. */
static int
enter(const Scan *s, WatchNode *parent, const char *name, WatchNode **ret_node)
{
    int fd = open_node(s->tree, parent);

    *ret_node = NULL;
    /* It was moved: where that is told is the place to look for this too. */
    if (fd < 0) {
        parent->missed = s->tree->attempt;
        return is_scarce(errno) ? errno : 0;
    }
    int e = enter_below(s, fd, parent, name, node_depth(parent) + 1, ret_node);
    close(fd);
    return e;
}

int
tree_enter(WatchTree *tree, WatchNode *parent, const char *name, WatchFound found, void *ctx)
{
    WatchNode *node;

    return enter(&(Scan){.tree = tree, .found = found, .ctx = ctx}, parent, name, &node);
}

void
tree_left(WatchTree *tree, uint32_t move)
{
    tree->left_by = move;
    tree->came = tree->to_parent = NULL;
}

int
tree_come(WatchTree *tree, WatchNode *into, const char *name, uint32_t move, WatchFound found, void *ctx)
{
    Scan s = {.tree = tree, .found = found, .ctx = ctx};
    WatchNode *node;
    int e = enter(&s, into, name, &node);

    tree->came = node;
    tree->to_parent = NULL;
    if (e == 0 && node == NULL && move == tree->left_by && node_depth(into) < tree->depth_max &&
        strlen(name) <= NAME_MAX) {
        tree->to_parent = into;
        (void)stpcpy(tree->to_name, name);
    }
    return e;
}

int
tree_moved(WatchTree *tree, WatchNode *node)
{
    WatchNode *came = tree->came;
    WatchNode *to = tree->to_parent;

    tree->came = tree->to_parent = NULL;
    if (came == node)
        return 0;
    int fd = open_node(tree, node);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (is_scarce(errno))
        return errno;
    if (to != NULL && !node_is_below(to, node) && fits(tree, node, to))
        return node_settle(tree, node, to, tree->to_name) ? 0 : ENOMEM;
    /* It stayed in the tree, but its new name is another's already. */
    tree->unsure = tree->unsure || came != NULL || to != NULL;
    if (to == NULL || !node_is_below(to, node))
        node_drop(tree, node);
    return 0;
}

int
tree_rescan(WatchTree *tree)
{
    Scan s = {.tree = tree};
    int fd = open_root(tree);

    if (fd < 0)
        return errno;
    tree->round++;
    tree->came = tree->to_parent = NULL;
    int e = scan(&s, fd, tree->root, 0);
    close(fd);
    if (e == 0)
        node_sweep(tree, tree->root);
    return e;
}

int
tree_open(WatchTree **ret_tree, const char *real, unsigned depth_max)
{
    struct stat st;
    bool known;
    WatchTree *tree = mmap(NULL, sizeof *tree, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (tree == MAP_FAILED)
        return ENOMEM;
    tree->real = real;
    tree->depth_max = depth_max;
    tree->attempt = 1;
    tree->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (tree->fd < 0)
        return errno;
    int fd = file_open(AT_FDCWD, real, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0 || fstat(fd, &st) < 0)
        return errno;
    tree->device = st.st_dev;
    tree->inode = st.st_ino;
    int e = watch_folder(tree, fd, NULL, "", &tree->root, &known);
    if (e == 0)
        e = scan(&(Scan){.tree = tree}, fd, tree->root, 0);
    close(fd);
    *ret_tree = tree;
    return e;
}
