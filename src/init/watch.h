/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/builtin.h"

/* The parts of `watch` (wire/builtin.h): what waits to be told, and the folders that are watched.
 * Pages are touched as they are needed: a thousand boxes have one each that does nothing. */

enum {
    WATCH_QUEUE_BYTES = 256 * 1024,
    WATCH_SLOTS = 256,
    WATCH_PATH_MAX = BUILTIN_DEPTH_MAX * 256 + 256,
};

/* Records on their way out.  Of the same path, between two events that say that it came or went,
 * there is at most one change of each kind.  When there is no room the last record is an OVERFLOW
 * and nothing is taken until half of it has gone. */
typedef struct WatchQueue {
    uint8_t *bytes;
    size_t from, to;
    bool full;
    struct {
        uint32_t at; /* where its last record ends; 0: none */
        uint32_t hash;
        uint16_t path_bytes;
        uint16_t kinds; /* 1 << BuiltinEventKind, since it came or went */
    } slots[WATCH_SLOTS];
} WatchQueue;

bool queue_init(WatchQueue *q);
/* False: dropped. */
bool queue_put(WatchQueue *q, BuiltinEvent event, const char *path);
/* Writes what `fd`, which is non-blocking, takes.  0, EAGAIN when some is left, or an errno. */
int queue_write(WatchQueue *q, int fd);
static inline bool
queue_is_empty(const WatchQueue *q)
{
    return q->from == q->to;
}

typedef struct WatchNode WatchNode;
typedef struct WatchTree WatchTree;

/* What a scan found; an error ends it.  `name` lies in `folder`. */
typedef int (*WatchFound)(void *ctx, const WatchNode *folder, const char *name, bool is_dir);

/* Each returns 0 or an errno.  `real` is an absolute path without links, and borrowed. */
int tree_open(WatchTree **ret_tree, const char *real, unsigned depth_max);
int tree_fd(const WatchTree *tree);
WatchNode *tree_root(WatchTree *tree);
WatchNode *tree_find(const WatchTree *tree, int wd);
/* A folder has come: it is watched, and so is what it holds. */
int tree_enter(WatchTree *tree, WatchNode *parent, const char *name, WatchFound found, void *ctx);
/* The three things that are told of one move, each only if it was seen: a folder left, one came,
 * and which one it was.  `move` is the kernel's cookie. */
void tree_left(WatchTree *tree, uint32_t move);
int tree_come(WatchTree *tree, WatchNode *into, const char *name, uint32_t move, WatchFound found, void *ctx);
int tree_moved(WatchTree *tree, WatchNode *node);
/* The kernel has ended its watch. */
void tree_forget(WatchTree *tree, WatchNode *node);
/* True, once: folders moved faster than they could be followed, which is a loss. */
bool tree_take_unsure(WatchTree *tree);
/* After a loss: looks for folders that came or went unseen. */
int tree_rescan(WatchTree *tree);
/* Bytes at `out`, which has WATCH_PATH_MAX; `name` may be NULL. */
size_t tree_path(const WatchNode *node, const char *name, char *out);
