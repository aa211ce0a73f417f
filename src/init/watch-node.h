/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <limits.h>
#include <sys/types.h>

#include "init/watch.h"

/* The tree in memory, private to watch-node.c and watch-tree.c: nothing in watch-node.c looks at
 * the folders themselves. */

enum { WATCH_BUCKETS = 4096 };

struct WatchNode {
    WatchNode *same_bucket;
    WatchNode *parent, *child, *sibling;
    WatchNode **from; /* the pointer that leads here among siblings */
    char *name;
    int wd;
    uint32_t round;  /* of the scan that saw it last */
    uint32_t missed; /* a folder in it was not found where it was looked for, when this was the
                        number of the tree's `attempt`; 0: none */
};

struct WatchTree {
    int fd;
    const char *real;
    dev_t device;
    ino_t inode;
    unsigned depth_max;
    uint32_t n, round, attempt;
    WatchNode *root;
    bool unsure;
    uint32_t left_by;     /* the cookie of the last move that began in the tree */
    WatchNode *came;      /* the last that was found where a move led */
    WatchNode *to_parent; /* where the last move led to when nothing was found there; NULL: none */
    char to_name[NAME_MAX + 1];
    WatchNode *buckets[WATCH_BUCKETS];
};

/* NULL: no memory. */
WatchNode *node_new(WatchTree *tree, WatchNode *parent, const char *name, int wd);
/* With all below it, and their watches. */
void node_drop(WatchTree *tree, WatchNode *node);
unsigned node_depth(const WatchNode *node);
/* Levels below it. */
unsigned node_height(const WatchNode *node);
/* Also when both are the same. */
bool node_is_below(const WatchNode *node, const WatchNode *above);
/* Where it has turned up; `parent` is not below it.  False: no memory. */
bool node_settle(WatchTree *tree, WatchNode *node, WatchNode *parent, const char *name);
/* One with something missed that this attempt has not tried, itself or below it; NULL: none. */
WatchNode *node_find_missed(const WatchTree *tree, WatchNode *node);
/* Drops what this round did not see. */
void node_sweep(WatchTree *tree, WatchNode *node);
