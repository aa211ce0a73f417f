/* SPDX-License-Identifier: Apache-2.0 */
/* The watched folders: a tree of names, found by the kernel's number of the watch. */
#include "init/watch-node.h"

#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

WatchNode *
tree_find(const WatchTree *tree, int wd)
{
    WatchNode *node = tree->buckets[(unsigned)wd % WATCH_BUCKETS];

    while (node != NULL && node->wd != wd)
        node = node->same_bucket;
    return node;
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

unsigned
node_depth(const WatchNode *node)
{
    unsigned depth = 0;

    for (; node->parent != NULL; node = node->parent)
        depth++;
    return depth;
}

unsigned
node_height(const WatchNode *node)
{
    unsigned height = 0;

    for (const WatchNode *child = node->child; child != NULL; child = child->sibling) {
        unsigned below = node_height(child) + 1;

        height = below > height ? below : height;
    }
    return height;
}

bool
node_is_below(const WatchNode *node, const WatchNode *above)
{
    while (node != NULL && node != above)
        node = node->parent;
    return node != NULL;
}

static void
unlink_from_parent(WatchNode *node)
{
    if (node->parent == NULL)
        return;
    *node->from = node->sibling;
    if (node->sibling != NULL)
        node->sibling->from = node->from;
    node->parent = node->sibling = NULL;
}

static void
link_to_parent(WatchNode *node, WatchNode *parent)
{
    node->parent = parent;
    node->sibling = parent->child;
    node->from = &parent->child;
    if (node->sibling != NULL)
        node->sibling->from = &node->sibling;
    parent->child = node;
}

static void
unlink_from_bucket(WatchTree *tree, const WatchNode *node)
{
    WatchNode **at = &tree->buckets[(unsigned)node->wd % WATCH_BUCKETS];

    while (*at != node)
        at = &(*at)->same_bucket;
    *at = node->same_bucket;
}

WatchNode *
node_new(WatchTree *tree, WatchNode *parent, const char *name, int wd)
{
    WatchNode *node = calloc(1, sizeof *node);

    if (node == NULL || (node->name = strdup(name)) == NULL) {
        free(node);
        return NULL;
    }
    node->wd = wd;
    node->round = tree->round;
    node->same_bucket = tree->buckets[(unsigned)wd % WATCH_BUCKETS];
    tree->buckets[(unsigned)wd % WATCH_BUCKETS] = node;
    if (parent != NULL)
        link_to_parent(node, parent);
    tree->n++;
    return node;
}

void
node_drop(WatchTree *tree, WatchNode *node)
{
    while (node->child != NULL)
        node_drop(tree, node->child);
    if (tree->came == node)
        tree->came = NULL;
    if (tree->to_parent == node)
        tree->to_parent = NULL;
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
    node_drop(tree, node);
}

bool
node_settle(WatchTree *tree, WatchNode *node, WatchNode *parent, const char *name)
{
    if (strcmp(node->name, name) != 0) {
        char *copy = strdup(name);

        if (copy == NULL)
            return false;
        free(node->name);
        node->name = copy;
    }
    node->round = tree->round;
    if (node->parent != parent) {
        unlink_from_parent(node);
        link_to_parent(node, parent);
    }
    return true;
}

WatchNode *
node_find_missed(const WatchTree *tree, WatchNode *node)
{
    WatchNode *found = NULL;

    if (node->missed != 0 && node->missed != tree->attempt)
        return node;
    for (WatchNode *child = node->child; child != NULL && found == NULL; child = child->sibling)
        found = node_find_missed(tree, child);
    return found;
}

void
node_sweep(WatchTree *tree, WatchNode *node)
{
    for (WatchNode *child = node->child, *next; child != NULL; child = next) {
        next = child->sibling;
        if (child->round != tree->round)
            node_drop(tree, child);
        else
            node_sweep(tree, child);
    }
}
