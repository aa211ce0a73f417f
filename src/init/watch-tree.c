/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watched folders: a tree of names, found by the kernel's number of the watch.  A folder is
 * one inode and hence has one number, whatever it is called: asking for a watch on one that is
 * watched gives the same number again, which is how a move that was half seen is noticed.
 *
 * No descriptor is held while nothing happens: an open folder would keep the kernel from telling
 * that it was removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/builtin.h"
#include "init/decimal.h"
#include "init/watch.h"

enum { BUCKETS = 4096, DENTS_BYTES = 2048 };

static const uint32_t watch_mask = IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM |
                                   IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;

struct WatchNode {
    WatchNode *same_bucket;
    WatchNode *parent, *child, *sibling;
    char *name;
    int wd;
    uint32_t round; /* of the scan that saw it last */
};

struct WatchTree {
    int fd;
    const char *real;
    dev_t device;
    ino_t inode;
    unsigned depth_max;
    uint32_t n, round;
    WatchNode *root;
    WatchNode *departed;
    uint32_t cookie;
    WatchNode *buckets[BUCKETS];
};

typedef struct Scan {
    WatchTree *tree;
    WatchFound found;
    void *ctx;
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
tree_has_departed(const WatchTree *tree)
{
    return tree->departed != NULL;
}

WatchNode *
tree_find(WatchTree *tree, int wd)
{
    WatchNode *node = tree->buckets[(unsigned)wd % BUCKETS];

    while (node != NULL && node->wd != wd)
        node = node->same_bucket;
    return node;
}

static unsigned
depth_of(const WatchNode *node)
{
    unsigned depth = 0;

    for (; node->parent != NULL; node = node->parent)
        depth++;
    return depth;
}

size_t
tree_path(const WatchNode *node, const char *name, char *out)
{
    const char *names[BUILTIN_DEPTH_MAX + 2];
    size_t n = 0;
    size_t bytes = 0;

    if (name != NULL)
        names[n++] = name;
    for (; node->parent != NULL && n <= BUILTIN_DEPTH_MAX; node = node->parent)
        names[n++] = node->name;
    while (n-- > 0) {
        size_t length = strlen(names[n]);

        if (bytes > 0)
            out[bytes++] = '/';
        memcpy(out + bytes, names[n], length);
        bytes += length;
    }
    return bytes;
}

static void
unlink_from_parent(WatchNode *node)
{
    WatchNode **at = node->parent != NULL ? &node->parent->child : NULL;

    while (at != NULL && *at != node)
        at = &(*at)->sibling;
    if (at != NULL)
        *at = node->sibling;
    node->parent = node->sibling = NULL;
}

static void
link_to_parent(WatchNode *node, WatchNode *parent)
{
    node->parent = parent;
    node->sibling = parent->child;
    parent->child = node;
}

static void
unlink_from_bucket(WatchTree *tree, const WatchNode *node)
{
    WatchNode **at = &tree->buckets[(unsigned)node->wd % BUCKETS];

    while (*at != node)
        at = &(*at)->same_bucket;
    *at = node->same_bucket;
}

/* With all below it. */
static void
drop(WatchTree *tree, WatchNode *node)
{
    while (node->child != NULL)
        drop(tree, node->child);
    if (tree->departed == node)
        tree->departed = NULL;
    unlink_from_parent(node);
    unlink_from_bucket(tree, node);
    /* It is gone already when the folder is; a number is not used again. */
    (void)inotify_rm_watch(tree->fd, node->wd);
    tree->n--;
    free(node->name);
    free(node);
}

void
tree_forget(WatchTree *tree, WatchNode *node)
{
    drop(tree, node);
}

static bool
is_below(const WatchNode *node, const WatchNode *above)
{
    while (node != NULL && node != above)
        node = node->parent;
    return node != NULL;
}

/* Where a folder that is known has turned up. */
static bool
settle(WatchTree *tree, WatchNode *node, WatchNode *parent, const char *name)
{
    char *copy = strdup(name);

    if (copy == NULL)
        return false;
    free(node->name);
    node->name = copy;
    node->round = tree->round;
    if (tree->departed == node)
        tree->departed = NULL;
    /* Seen half way through a row of moves it can look like a folder in itself; the events that
     * follow put it right. */
    if (node->parent != parent && !is_below(parent, node)) {
        unlink_from_parent(node);
        link_to_parent(node, parent);
    }
    return true;
}

static int
add_watch(const WatchTree *tree, int fd)
{
    char path[sizeof "/proc/self/fd/" + DECIMAL_MAX];

    (void)decimal_put(stpcpy(path, "/proc/self/fd/"), (uint64_t)fd);
    return inotify_add_watch(tree->fd, path, watch_mask);
}

/* The folder behind `fd` gets a node; one that it has already is put where it belongs. */
static int
watch_folder(WatchTree *tree, int fd, WatchNode *parent, const char *name, WatchNode **ret_node,
             bool *ret_known)
{
    int wd = add_watch(tree, fd);
    WatchNode *node = wd >= 0 ? tree_find(tree, wd) : NULL;

    if (wd < 0)
        return errno;
    *ret_known = node != NULL;
    *ret_node = node;
    if (node != NULL)
        return node == tree->root || settle(tree, node, parent, name) ? 0 : ENOMEM;
    if (tree->n == BUILTIN_WATCHES_MAX)
        return ENOSPC;
    node = calloc(1, sizeof *node);
    if (node == NULL || (node->name = strdup(name)) == NULL) {
        free(node);
        return ENOMEM;
    }
    node->wd = wd;
    node->round = tree->round;
    node->same_bucket = tree->buckets[(unsigned)wd % BUCKETS];
    tree->buckets[(unsigned)wd % BUCKETS] = node;
    if (parent != NULL)
        link_to_parent(node, parent);
    tree->n++;
    *ret_node = node;
    return 0;
}

static int scan(const Scan *s, int fd, WatchNode *node, unsigned depth);

/* What vanished, became a link or is closed to the user is no error. */
static int
enter_below(const Scan *s, int dir_fd, WatchNode *parent, const char *name, unsigned depth)
{
    WatchNode *node;
    bool known;

    if (depth > s->tree->depth_max)
        return 0;
    int fd = folder_open_below(dir_fd, name);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? errno : 0;
    int e = watch_folder(s->tree, fd, parent, name, &node, &known);
    /* A scan for an event goes no further than what is known, a scan for a loss does. */
    if (e == 0 && (!known || s->found == NULL))
        e = scan(s, fd, node, depth);
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
    int e = 0;
    long n;

    while (e == 0 && (n = syscall(SYS_getdents64, fd, dents, sizeof dents)) > 0) {
        for (long at = 0; at < n && e == 0;) {
            const Dirent *d = (const Dirent *)(const void *)(dents + at);
            bool folder = is_folder(fd, d);

            at += d->bytes;
            if (name_is_dots(d->name))
                continue;
            if (s->found != NULL)
                e = s->found(s->ctx, node, d->name, folder);
            if (folder && e == 0)
                e = enter_below(s, fd, node, d->name, depth + 1);
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

static int
open_node(const WatchTree *tree, const WatchNode *node)
{
    const char *names[BUILTIN_DEPTH_MAX + 1];
    size_t n = 0;
    int fd = open_root(tree);

    for (; node->parent != NULL && n <= BUILTIN_DEPTH_MAX; node = node->parent)
        names[n++] = node->name;
    while (fd >= 0 && n-- > 0) {
        int next = folder_open_below(fd, names[n]);
        int e = errno;

        close(fd);
        fd = next;
        errno = e;
    }
    return fd;
}

int
tree_enter(WatchTree *tree, WatchNode *parent, const char *name, WatchFound found, void *ctx)
{
    Scan s = {tree, found, ctx};
    int fd = open_node(tree, parent);

    /* The folder above it went in the meantime, which an event tells. */
    if (fd < 0)
        return 0;
    int e = enter_below(&s, fd, parent, name, depth_of(parent) + 1);
    close(fd);
    return e;
}

void
tree_depart(WatchTree *tree, WatchNode *parent, const char *name, uint32_t cookie)
{
    tree_give_up(tree);
    WatchNode *node = parent->child;
    while (node != NULL && strcmp(node->name, name) != 0)
        node = node->sibling;
    tree->departed = node;
    tree->cookie = cookie;
}

static unsigned
height_of(const WatchNode *node)
{
    unsigned height = 0;

    for (const WatchNode *child = node->child; child != NULL; child = child->sibling) {
        unsigned below = height_of(child) + 1;

        height = below > height ? below : height;
    }
    return height;
}

bool
tree_arrive(WatchTree *tree, WatchNode *parent, const char *name, uint32_t cookie)
{
    WatchNode *node = tree->departed;

    if (node == NULL || tree->cookie != cookie)
        return false;
    /* Deeper down some of it may be out of sight; then it comes as a stranger. */
    if (depth_of(parent) + 1 + height_of(node) <= tree->depth_max && settle(tree, node, parent, name))
        return true;
    drop(tree, node);
    return false;
}

void
tree_give_up(WatchTree *tree)
{
    if (tree->departed != NULL)
        drop(tree, tree->departed);
}

static void
sweep(WatchTree *tree, WatchNode *node)
{
    for (WatchNode *child = node->child, *next; child != NULL; child = next) {
        next = child->sibling;
        if (child->round != tree->round)
            drop(tree, child);
        else
            sweep(tree, child);
    }
}

int
tree_rescan(WatchTree *tree)
{
    Scan s = {.tree = tree};
    int fd = open_root(tree);

    if (fd < 0)
        return errno;
    tree->round++;
    int e = scan(&s, fd, tree->root, 0);
    close(fd);
    if (e == 0)
        sweep(tree, tree->root);
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
