/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <glib.h>
#include <stdbool.h>

/* Whole trees, never following a link. */

/* What is gone already counts as removed. */
bool tree_remove(int parent_fd, const char *name, GError **error);
/* Bytes on the disk. */
bool tree_size(int parent_fd, const char *name, guint64 *ret_bytes, GError **error);

/* Which of a folder's entries are left out; `path` begins with '/' at the top of the tree. */
typedef bool (*TreeSkip)(const char *path, void *data);
/* Files are shared with the source where the file system can, else copied; owner root, without
 * set-id bits; only files, folders and links, and only what can be read. */
bool tree_copy(const char *from, const char *to, TreeSkip skip, void *data, GError **error);
