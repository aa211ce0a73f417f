/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "forge/forge.h"

/* A tree of a repository becomes files in a box: git writes an archive (patch.h) into a socket, from which
 * it goes on to the box without being held anywhere. */
typedef struct TreeFeed TreeFeed;

typedef struct TreeFeedSpec {
    Forge *forge; /* borrowed, as is the box */
    Repo *repo;
    Box *box;
    const char *tree;
    const char *path; /* below the template's working folder */
    gint64 time_s;    /* of all files */
} TreeFeedSpec;

/* Once, from the loop, after which the feed is gone. */
typedef void (*TreeFeedFunc)(const GError *error, void *data);
TreeFeed *tree_feed_start(const TreeFeedSpec *spec, TreeFeedFunc done, void *data, GError **error);
void tree_feed_cancel(TreeFeed *feed); /* `done` is not called any more */
